"""The result of a sweep: a table with a row per sample, and its files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from featherlane.distributed.sweeps.run_directory import read_chunks, read_note
from featherlane.errors import ModelError
from featherlane.extension import required, whole_file

KINDS = ("parameter", "result", "status")
NAMED = 8  # most samples that a message lists


class Sweep:
    """Table of the samples of a sweep.

    Attributes:
        samples: (n,) numbers of the samples; all of them, except for an unfinished run.
        parameters: field path -> (n, ...) parameter values of each sample.
        results: name -> (n,) results of `reduce`.
        status: name -> (n,) status counts of each world, as in `Batch.status`: `contacts_full`, `rows_full`,
            `non_finite`, `not_converged`, `bad_control`, `singular_inertia`.
        nsample: number of samples of the whole sweep.
    """

    samples: np.ndarray
    parameters: dict[str, np.ndarray]
    results: dict[str, np.ndarray]
    status: dict[str, np.ndarray]
    nsample: int

    def __init__(self, samples: np.ndarray, columns: Mapping[str, np.ndarray], nsample: int):
        self.samples, self.nsample = samples, nsample
        for kind in KINDS:
            prefix = f"{kind}:"
            own = {name.removeprefix(prefix): a for name, a in columns.items() if name.startswith(prefix)}
            setattr(self, "status" if kind == "status" else f"{kind}s", own)

    def __len__(self) -> int:
        return len(self.samples)

    def __repr__(self) -> str:
        of = f" of {self.nsample}" * (len(self) != self.nsample)
        return f"Sweep({len(self)}{of} samples, parameters={list(self.parameters)}, results={list(self.results)})"

    @property
    def columns(self) -> dict[str, np.ndarray]:
        """Returns all columns by the names used in files: `parameter:PATH`, `result:NAME`, `status:CAUSE`."""
        tables = zip(KINDS, (self.parameters, self.results, self.status), strict=True)
        return {f"{kind}:{name}": array for kind, table in tables for name, array in table.items()}

    def save(self, path: str | Path) -> None:
        """Writes the table.

        Args:
            path: path of a file: `.npz`, with an array per column, or `.parquet`, with a column per number (arrays
                become `NAME.0`, `NAME.1`, ...), which needs `pip install 'featherlane[distributed]'`.

        Raises:
            ModelError: the suffix is another one, or the folder does not exist.
            InstallationError: a Parquet file is requested and pyarrow is not installed.
        """
        target = Path(path).expanduser()
        writers = {".npz": self._write_npz, ".parquet": self._write_parquet}
        if target.suffix.lower() not in writers:
            raise ModelError(f"{target}: got {target.suffix or 'no suffix'}, allowed are {' and '.join(writers)}")
        if target.is_dir() or not target.parent.is_dir():
            raise ModelError(f"{target}: the folder {target.parent} does not exist, or the path is a folder")
        try:
            with whole_file(target) as part:
                writers[target.suffix.lower()](part)
        except OSError as error:
            raise ModelError(f"{target}: cannot be written: {error.strerror or error}") from None

    def _write_npz(self, path: Path) -> None:
        arrays: dict[str, Any] = {"sample": self.samples, "nsample": np.int64(self.nsample), **self.columns}
        np.savez(path, **arrays)

    def _write_parquet(self, path: Path) -> None:
        pyarrow, parquet = (required(name, "a Parquet file") for name in ("pyarrow", "pyarrow.parquet"))
        with path.open("wb") as file:  # pyarrow fails on a name that is not UTF-8
            parquet.write_table(pyarrow.table(dict(self._flat())), file)

    def _flat(self) -> Iterable[tuple[str, np.ndarray]]:
        """Yields columns of scalars."""
        yield "sample", self.samples
        for name, array in self.columns.items():
            if array.ndim == 1:
                yield name, array
            else:
                flat = array.reshape(len(array), -1)
                yield from ((f"{name}.{k}", np.ascontiguousarray(flat[:, k])) for k in range(flat.shape[1]))

    def bad(self) -> np.ndarray:
        """Returns the samples with non-finite or out-of-range states, or with a non-finite result."""
        wrong = self.status["non_finite"] > 0 if "non_finite" in self.status else np.zeros(len(self), bool)
        for values in self.results.values():
            wrong = wrong | ~np.isfinite(values)
        return self.samples[wrong]


def load_sweep(path: str | Path) -> Sweep:
    """Reads the table of a sweep, complete or partial.

    Args:
        path: a `.npz` file that `Sweep.save` wrote, or a run directory, finished or not.

    Returns:
        The `Sweep`: its arrays are (n, ...) for the n finished samples, in order.

    Raises:
        ModelError: the path does not exist, or has another format.
    """
    source = Path(path).expanduser()
    if source.is_dir():
        note = source / "run.json"
        if not note.is_file():
            raise ModelError(f"{source}: not a run directory, run.json is missing")
        nsample = read_note(note).get("nsample")
        if not isinstance(nsample, int):
            raise ModelError(f"{note}: the number of samples (nsample) is missing")
        folder = source / "chunks"
        return join_chunks(read_chunks(folder, nsample) if folder.is_dir() else [], nsample)
    if not source.is_file():
        raise ModelError(f"{source}: file or folder not found")
    try:
        with np.load(source, allow_pickle=False) as file:
            arrays: dict[str, Any] = {name: file[name] for name in file.files}
        return Sweep(arrays.pop("sample"), arrays, int(arrays.pop("nsample")))
    except Exception as error:  # the reader can raise any error on another file
        raise ModelError(f"{source}: cannot be read as a table of a sweep: {error}") from None


def join_chunks(chunks: list[tuple[np.ndarray, dict[str, np.ndarray]]], nsample: int) -> Sweep:
    """Joins chunks in any order into one table."""
    if not chunks:
        return Sweep(np.zeros(0, np.int64), {}, nsample)
    samples = np.concatenate([own for own, _ in chunks])
    order = np.argsort(samples)
    columns = {name: np.concatenate([c[name] for _, c in chunks])[order] for name in chunks[0][1]}
    return Sweep(samples[order], columns, nsample)
