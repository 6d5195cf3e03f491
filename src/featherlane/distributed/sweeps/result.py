"""What a sweep gives: a table with a row for each sample, and its files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from featherlane.distributed.sweeps.run_directory import _chunks, _read, write_whole
from featherlane.errors import InstallationError, ModelError

INSTALL = "pip install 'featherlane[distributed]'"
KINDS = ("parameter", "result", "status")
NAMED = 8  # samples that a message names


class Sweep:
    """Samples of a sweep, row by row.

    Attributes:
        samples: (n,) their numbers; all of them, unless a run that is not done was loaded.
        parameters: field path -> (n, ...) the numbers that each sample was made with.
        results: name -> (n,) what `reduce` made of each.
        status: name -> (n,) counts of its worlds, as `Batch.status`: `contacts_full`, `rows_full`, `bad_number`,
            `not_converged`, `bad_control`.
        nsample: samples of the whole sweep.
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
        """All of it under one name each, as files have it: `parameter:PATH`, `result:NAME`, `status:CAUSE`."""
        tables = zip(KINDS, (self.parameters, self.results, self.status), strict=True)
        return {f"{kind}:{name}": array for kind, table in tables for name, array in table.items()}

    def save(self, path: str | Path) -> None:
        """Write the table.

        Args:
            path: of a file `.npz`, with an array for each column; or `.parquet`, with a column for each number (what
                has several is `NAME.0`, `NAME.1`, ...), which needs `pip install 'featherlane[distributed]'`.

        Raises:
            ModelError: another suffix, or a folder that is not there.
            InstallationError: a Parquet file, and there is no pyarrow.
        """
        target = Path(path).expanduser()
        writers = {".npz": self._write_npz, ".parquet": self._write_parquet}
        if target.suffix.lower() not in writers:
            raise ModelError(f"{target}: got {target.suffix or 'no suffix'}, allowed are {' and '.join(writers)}")
        if target.is_dir() or not target.parent.is_dir():
            raise ModelError(f"{target}: there is no folder {target.parent}, or it is a folder itself")
        try:
            write_whole(target, writers[target.suffix.lower()])
        except OSError as error:
            raise ModelError(f"{target}: cannot be written: {error.strerror or error}") from None

    def _write_npz(self, path: Path) -> None:
        arrays: dict[str, Any] = {"sample": self.samples, "nsample": np.int64(self.nsample), **self.columns}
        np.savez(path, **arrays)

    def _write_parquet(self, path: Path) -> None:
        try:
            import pyarrow  # pyright: ignore[reportMissingImports]
            from pyarrow import parquet  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise InstallationError(f"a Parquet file needs pyarrow; install it with:\n  {INSTALL}") from None
        with path.open("wb") as file:  # a name that is not UTF-8 is an error of pyarrow
            parquet.write_table(pyarrow.table(dict(self._flat())), file)

    def _flat(self) -> Iterable[tuple[str, np.ndarray]]:
        """Columns of single numbers."""
        yield "sample", self.samples
        for name, array in self.columns.items():
            if array.ndim == 1:
                yield name, array
            else:
                flat = array.reshape(len(array), -1)
                yield from ((f"{name}.{k}", np.ascontiguousarray(flat[:, k])) for k in range(flat.shape[1]))

    def bad(self) -> np.ndarray:
        """Numbers of the samples whose worlds had bad numbers, or of which a result is not finite."""
        wrong = self.status["bad_number"] > 0 if "bad_number" in self.status else np.zeros(len(self), bool)
        for values in self.results.values():
            wrong = wrong | ~np.isfinite(values)
        return self.samples[wrong]


def load_sweep(path: str | Path) -> Sweep:
    """Read the table of a sweep, whole or as far as it has come.

    Args:
        path: a file `.npz` that `Sweep.save` wrote; or a run directory, done or not.

    Returns:
        `Sweep`: its arrays are (n, ...) for the n samples that are done, in their order.

    Raises:
        ModelError: it is not there, or is something else.
    """
    source = Path(path).expanduser()
    if source.is_dir():
        note = source / "run.json"
        if not note.is_file():
            raise ModelError(f"{source}: is no run directory, it has no run.json")
        nsample = _read(note).get("nsample")
        if not isinstance(nsample, int):
            raise ModelError(f"{note}: says no number of samples")
        folder = source / "chunks"
        return joined(list(_chunks(folder, nsample)) if folder.is_dir() else [], nsample)
    if not source.is_file():
        raise ModelError(f"{source}: no such file or folder")
    try:
        with np.load(source, allow_pickle=False) as file:
            arrays: dict[str, Any] = {name: file[name] for name in file.files}
        return Sweep(arrays.pop("sample"), arrays, int(arrays.pop("nsample")))
    except Exception as error:  # whatever another file makes of the reader
        raise ModelError(f"{source}: cannot be read as the table of a sweep: {error}") from None


def joined(chunks: list[tuple[np.ndarray, dict[str, np.ndarray]]], nsample: int) -> Sweep:
    """One table of chunks in any order."""
    if not chunks:
        return Sweep(np.zeros(0, np.int64), {}, nsample)
    samples = np.concatenate([own for own, _ in chunks])
    order = np.argsort(samples)
    columns = {name: np.concatenate([c[name] for _, c in chunks])[order] for name in chunks[0][1]}
    return Sweep(samples[order], columns, nsample)


def told(samples: np.ndarray) -> str:
    """Some numbers of samples, and how many more there are."""
    more = f" and {len(samples) - NAMED} more" * (len(samples) > NAMED)
    return f"{', '.join(map(str, samples[:NAMED]))}{more}"
