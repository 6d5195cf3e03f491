"""Arrays in files that somebody else wrote, without pickles: every error of a reader is a ModelError."""

from __future__ import annotations

import os
from typing import Any, BinaryIO

import numpy as np

from featherlane.errors import ModelError


def read_array(path: str | os.PathLike[str], name: str) -> np.ndarray:
    """Reads the array of a .npy file.

    Args:
        path: the file.
        name: what errors call it.

    Raises:
        ModelError: there is no such file, or it holds no array of numbers.
    """
    found = _loaded(path, name, "cannot be read as a NumPy array")
    if isinstance(found, np.ndarray):
        return found
    found.close()
    raise ModelError(f"{name}: cannot be read as a NumPy array: it is an archive of several, .npz")


def read_arrays(source: str | os.PathLike[str] | BinaryIO, name: str, refusal: str) -> dict[str, np.ndarray]:
    """Reads all arrays of a .npz file.

    Args:
        source: the file.
        name: what errors call it.
        refusal: what errors say of a file that cannot be read.

    Raises:
        ModelError: there is no such file, or it cannot be read.
    """
    found = _loaded(source, name, refusal)
    if isinstance(found, np.ndarray):
        raise ModelError(f"{name}: {refusal}: it is a single array, .npy")
    try:
        with found:
            return dict(found)
    except Exception as error:
        raise _unreadable(error, name, refusal) from None


def read_member(
    source: str | os.PathLike[str] | BinaryIO, name: str, refusal: str, member: str, most: int
) -> np.ndarray:
    """Reads one array of a .npz file, if it has at most `most` bytes: a few KB may be compressed from gigabytes.

    Args:
        source, name, refusal: as of `read_arrays`.
        member: the array's name in the file.
        most: bytes of the array and its header.

    Raises:
        ModelError: it cannot be read, or it is larger.
    """
    found = _loaded(source, name, refusal)
    try:
        with found:
            size = found.zip.getinfo(f"{member}.npy").file_size
            if size <= most:
                return found[member]
    except Exception as error:
        raise _unreadable(error, name, refusal) from None
    raise ModelError(f"{name}: {member} has {size} bytes, allowed are {most}: is it of another model?")


def _loaded(source, name: str, refusal: str) -> Any:
    try:
        return np.load(source, allow_pickle=False)
    except FileNotFoundError:
        raise ModelError(f"{name}: no such file") from None
    except Exception as error:
        raise _unreadable(error, name, refusal) from None


def _unreadable(error: Exception, name: str, refusal: str) -> ModelError:
    """zipfile, zlib, tokenize and NumPy raise errors of many classes for bytes that they do not understand."""
    return ModelError(f"{name}: {refusal} ({type(error).__name__}: {error})")
