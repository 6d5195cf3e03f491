"""Makes many calls in one bytecode, so that after an interrupt (Ctrl-C) all of them are done, or none.

Python raises interrupts between two bytecodes of its main thread.  A chain of C functions runs within one bytecode, if
none of them runs Python code or checks for signals.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Iterable
from itertools import starmap
from typing import Any

import numpy as np

Assignment = tuple[np.ndarray, Any, Any]  # rows, an index into them, values that broadcast to the indexed rows


def take_all(elements: Iterable) -> None:
    """Exhausts an iterator that is implemented in C."""
    deque(elements, 0)


def call_all(calls: list[tuple]) -> list[Any]:
    """Calls C functions, each given as a tuple with its arguments; returns their results."""
    return list(starmap(operator.call, calls))


def set_all(values: list[Assignment]) -> None:
    """Assigns to rows of arrays."""
    deque(starmap(operator.setitem, values), 0)
