"""Gathers results that several batches computed for their worlds, world first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

Arrays = Sequence[np.ndarray | None]


def gather_rows(empty: Arrays, n: int, parts: Iterable[tuple[Any, Arrays]]) -> list[np.ndarray | None]:
    """Returns the arrays of n worlds.

    Args:
        empty: arrays of no world, with the shapes and types of the others; None where there is none.
        n: number of worlds.
        parts: places among the n worlds, and their arrays.
    """
    rows = [None if a is None else np.empty((n, *a.shape[1:]), a.dtype) for a in empty]
    for at, part in parts:
        for whole, own in zip(rows, part, strict=True):
            if whole is not None:
                whole[at] = own
    return rows
