"""Many calls in one instruction of Python's: an interrupt (Ctrl-C) finds all of them done, or none.

Python raises interrupts between two instructions of its main thread.  A chain of functions that are written in C is one
instruction, as long as none of them runs Python or looks at signals.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Iterable
from itertools import starmap
from typing import Any

import numpy as np

Assignment = tuple[np.ndarray, Any, Any]  # rows, which of them, values that broadcast to these


def take_all(elements: Iterable) -> None:
    """Take all elements of an iterator in C."""
    deque(elements, 0)


def call_all(calls: list[tuple]) -> None:
    """Call functions in C, each given as a tuple with its arguments."""
    deque(starmap(operator.call, calls), 0)


def set_all(values: list[Assignment]) -> None:
    """Set rows of arrays."""
    deque(starmap(operator.setitem, values), 0)
