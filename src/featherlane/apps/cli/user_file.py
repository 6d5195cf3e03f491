"""Loads functions from Python files of the user: `--controls FILE.py:NAME`, and `FILE.py:NAME` in a sweep's file."""

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
    """Runs a file and returns the function with this name.

    Args:
        allowed: allowed kinds of functions, for the message.

    Raises:
        ModelError: the file does not exist, it fails, or it does not define the function.
    """
    if not path.is_file():
        raise ModelError(f"{path}: file not found")
    try:
        found = runpy.run_path(str(path))
    except (Exception, SystemExit) as error:
        raise ModelError(f"{path}: {failure(error)}") from error
    if not callable(found.get(name)):
        known = [n for n in found if callable(found[n])]
        raise ModelError(f"{path}: does not define a {allowed}{near(name, known)}")
    return found[name]


def with_model_errors(function: Callable[..., Any], what: str) -> Callable[..., Any]:
    """Wraps a user function so that its errors become a ModelError that starts with `what`; kernels are unchanged."""
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
    """Formats an error of a user function in one line: its class, its text, and the line that raised it."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(frame.filename).name}, line {frame.lineno})"
