"""Functions in Python files of the user: `--controls FILE.py:NAME`, and `FILE.py:NAME` in a sweep's file."""

from __future__ import annotations

import functools
import runpy
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from featherlane.errors import ModelError, near
from featherlane.lanes import Kernel


def function_in(path: Path, name: str, allowed: str) -> Callable[..., Any]:
    """Runs a file and returns the function of that name.

    Args:
        path: the file.
        name: the function's name.
        allowed: what the function may be, for the message.

    Raises:
        ModelError: there is no such file, it fails, or it has no such function.
    """
    if not path.is_file():
        raise ModelError(f"{path}: no such file")
    try:
        found = runpy.run_path(str(path))
    except (Exception, SystemExit) as error:
        raise ModelError(f"{path}: {failure(error)}") from error
    if not callable(found.get(name)):
        known = [n for n in found if callable(found[n])]
        raise ModelError(f"{path}: has no {allowed}{near(name, known)}")
    return found[name]


def reported(function: Callable[..., Any], what: str) -> Callable[..., Any]:
    """A user's function whose errors are a ModelError that begins with `what`; a kernel as it is: it raises none."""
    if isinstance(function, Kernel):
        return function

    @functools.wraps(function)
    def call(*arguments):
        try:
            return function(*arguments)
        except Exception as error:
            raise ModelError(f"{what}: {failure(error)}") from error

    return call


def failure(error: BaseException) -> str:
    """An error of a user's function in one line: its class, its text, and the line that raised it."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(frame.filename).name}, line {frame.lineno})"
