"""Run directory of a long computation: finished chunks and their description, so that a run can be resumed.

    run.json          description of the run: hashes of its parts, options, seed, versions
    model.mjb         the model in MuJoCo's binary format
    chunks/A-B.npz    columns of the samples A to B - 1, written atomically when they are finished
    result.npz        all columns, once all samples are done; also result.parquet if pyarrow is installed

Every file is written under a temporary name and then renamed, so that it is always complete or absent.
"""

from __future__ import annotations

import contextlib
import json
import platform
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from featherlane.distributed.machine import versions
from featherlane.errors import ModelError
from featherlane.extension import configuration, whole_file

FORMAT = 1
ENGINE = ("featherlane", "record layout", "kernels")  # versions that a world's bits depend on
CHUNK = re.compile(r"(\d+)-(\d+)\.npz")
WORDS = {
    "model": "another model",
    "parameters": "other parameters",
    "rollout": "another rollout",
    "reduce": "another reduction",
    "seed": "another seed",
    "samples": "another number of samples",
}


def about_here() -> dict[str, str]:
    """Returns facts about this process that do not affect the results, for a reader."""
    return {"cpu": configuration()["cpu"], "system": platform.platform(), "host": platform.node()}


def _is_begun(folder: Path) -> bool:
    """Returns whether a folder holds only what a run writes before `run.json`, as after a full disk or a kill."""
    names = {path.name for path in folder.iterdir() if not re.fullmatch(r"\.(model|run)-\w{8}", path.name)}
    return names <= {"model.mjb", "chunks"} and not any((folder / "chunks").glob("*"))


class RunDirectory:
    """The folder of a run.

    Args:
        path: path of the folder; it is created if it does not exist.
        parts: hashes of the parts of the run, by name.
        about: additional entries of `run.json`.
        save_model: function that writes the model to a given path.

    Raises:
        ModelError: the folder is not writable, holds other files or another run, or is in use by another process.
    """

    def __init__(
        self, path: str | Path, parts: Mapping[str, str], about: Mapping[str, Any], save_model: Callable[[str], object]
    ):
        self.path = Path(path).expanduser()
        self.chunks = self.path / "chunks"
        try:
            self._enter(dict(parts), dict(about), save_model)
        except OSError as error:
            raise ModelError(f"{self.path}: cannot be used as a run directory: {error.strerror or error}") from None

    def _enter(self, parts: dict[str, str], about: dict[str, Any], save_model: Callable[[str], object]) -> None:
        note = self.path / "run.json"
        if self.path.exists() and not note.exists() and not _is_begun(self.path):
            raise ModelError(
                f"{self.path}: contains other files; allowed is a new folder, an empty folder or a run directory"
            )
        self.path.mkdir(parents=True, exist_ok=True)
        self.is_new = not note.exists()
        if not self.is_new:
            self._compare(read_note(note), parts)
        self.chunks.mkdir(exist_ok=True)
        if self.is_new:
            with whole_file(self.path / "model.mjb") as part:
                save_model(str(part))
            text = json.dumps(
                {"format": FORMAT, "parts": parts, "versions": versions(), "system": about_here(), **about}, indent=2
            )
            with whole_file(note) as part:
                part.write_text(text + "\n", encoding="utf-8")

    def _compare(self, found: Mapping[str, Any], parts: Mapping[str, str]) -> None:
        """Raises an error if the folder belongs to a different run."""
        if found.get("format") != FORMAT or not isinstance(found.get("parts"), dict):
            raise ModelError(f"{self.path}: run.json has the format {found.get('format')!r}, allowed is {FORMAT}")
        other = [WORDS.get(name, name) for name, digest in parts.items() if found["parts"].get(name) != digest]
        if other:
            raise ModelError(
                f"{self.path}: contains a run with {' and '.join(other)}; use another folder, or the "
                f"arguments of that run"
            )
        began, here = found.get("versions", {}), versions()
        for name in ENGINE:
            if began.get(name) != here[name]:
                raise ModelError(
                    f"{self.path}: the run was started with {name} {began.get(name)}, installed is "
                    f"{here[name]}, whose results may differ in the last bits; use another folder, or "
                    f"install that version"
                )

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Locks the folder against other processes.

        Raises:
            ModelError: another process uses the folder.
        """
        with (self.path / "run.lock").open("a") as file:
            try:
                import fcntl  # not on Windows

                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ModelError(f"{self.path}: another process is running this sweep") from None
            except (ImportError, OSError):
                pass  # a file system without locks
            yield

    # ---- chunks ------------------------------------------------------------------------------------------------------
    def write_chunk(self, samples: np.ndarray, columns: Mapping[str, Any]) -> None:
        """Writes the columns of consecutive samples.

        Raises:
            ModelError: the file cannot be written.
        """
        first, after = int(samples[0]), int(samples[-1]) + 1
        path = self.chunks / f"{first:09d}-{after:09d}.npz"
        try:
            with whole_file(path) as part:
                np.savez(part, **columns)
        except OSError as error:
            why = error.strerror or str(error)
            raise ModelError(f"{path}: cannot be written: {why}; the samples computed before are kept") from None


def read_note(note: Path) -> dict[str, Any]:
    """Returns the description of a run."""
    try:
        found = json.loads(note.read_text(encoding="utf-8"))
    except (ValueError, UnicodeDecodeError) as error:
        raise ModelError(f"{note}: cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise ModelError(f"{note}: contains {type(found).__name__}, allowed is a dict written by a sweep")
    return found


def read_chunks(folder: Path, nsample: int) -> list[tuple[np.ndarray, dict[str, np.ndarray]]]:
    """Returns samples and columns of finished chunks; an unreadable file is reported and computed again."""
    found, done = [], np.zeros(nsample, bool)
    for path in sorted(folder.iterdir()):
        match = CHUNK.fullmatch(path.name)
        if match is None:
            continue
        samples = np.arange(int(match[1]), int(match[2]))
        try:
            with np.load(path, allow_pickle=False) as file:
                columns = {name: file[name] for name in file.files}
            if not len(samples) or samples[-1] >= nsample or any(len(a) != len(samples) for a in columns.values()):
                raise ValueError("its samples differ from those in its name")
        except Exception as error:  # the reader can raise any error on an incomplete file
            warnings.warn(
                f"{path}: cannot be read, so its samples are computed again: {error}", RuntimeWarning, stacklevel=2
            )
            continue
        if not done[samples].any():
            done[samples] = True
            found.append((samples, columns))
    return found
