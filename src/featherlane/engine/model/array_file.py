"""Reads arrays from untrusted files, without pickles: every error of a reader is a ModelError; writes whole files."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from featherlane.errors import ModelError

PREFIX = ".featherlane-"  # of temporary folders


def read_array(path: str | os.PathLike[str], name: str) -> np.ndarray:
    """Reads the array of a .npy file.

    Args:
        name: the file's name in error messages.

    Raises:
        ModelError: the file does not exist, or does not hold an array of numbers.
    """
    found = _loaded(path, name, "cannot be read as a NumPy array")
    if isinstance(found, np.ndarray):
        return found
    found.close()
    raise ModelError(
        f"{name}: cannot be read as a NumPy array: the file is an .npz archive of several "
        f"arrays, allowed is one array (.npy)"
    )


def read_arrays(
    source: str | os.PathLike[str] | BinaryIO, name: str, refusal: str, largest: Mapping[str, int] | None = None
) -> dict[str, np.ndarray]:
    """Reads arrays of a .npz file.

    Args:
        name: the file's name in error messages.
        refusal: the error text for a file that cannot be read.
        largest: the arrays to read, with the largest size of each, its header included [bytes], because a few KB may
            decompress to gigabytes; None: all arrays, of any size.

    Raises:
        ModelError: the file does not exist, it or one of the arrays cannot be read, or an array is larger.
    """
    found = _loaded(source, name, refusal)
    if isinstance(found, np.ndarray):
        raise ModelError(f"{name}: {refusal}: the file is a single array (.npy), allowed is an .npz archive")
    try:
        with found:
            sizes = {member: found.zip.getinfo(f"{member}.npy").file_size for member in largest or ()}
            if largest is None or all(sizes[member] <= most for member, most in largest.items()):
                return {member: found[member] for member in (found if largest is None else largest)}
    except Exception as error:
        raise _unreadable(error, name, refusal) from None
    member, most = next((member, most) for member, most in largest.items() if sizes[member] > most)
    raise ModelError(f"{name}: {member} has {sizes[member]} bytes, allowed for this model are at most {most}")


def _loaded(source, name: str, refusal: str) -> Any:
    try:
        return np.load(source, allow_pickle=False)
    except FileNotFoundError:
        raise ModelError(f"{name}: file not found") from None
    except Exception as error:
        raise _unreadable(error, name, refusal) from None


def _unreadable(error: Exception, name: str, refusal: str) -> ModelError:
    """Returns a ModelError for a reader's error: zipfile, zlib, tokenize and NumPy raise many types for bad bytes."""
    return ModelError(f"{name}: {refusal} ({type(error).__name__}: {error})")


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yields a temporary path in the folder of `path`; renames it to `path` at the end, removes it on an error.

    Raises:
        OSError: the system refuses to write, for example on a full disk; with the name `path`.
    """
    try:
        with tempfile.TemporaryDirectory(prefix=PREFIX, dir=path.parent) as folder:
            part = Path(folder) / path.name
            yield part
            with part.open("rb+") as file:
                os.fsync(file.fileno())
            os.replace(part, path)
    except OSError as error:
        if error.errno is not None and PREFIX in str(error.filename or PREFIX):  # else it is about another file
            error.filename = str(path)
        raise
