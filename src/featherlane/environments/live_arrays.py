"""Arrays of an environment that are parts of its batch's memory, and the same parts of a copy's memory.

A task keeps live arrays (`self.mass = worlds.expand("body_mass")[:, 1]`).  `copy.deepcopy` and pickle copy the values
of such an array; the copy has to be a part of the copied batch again.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from featherlane.lanes.record import address
from featherlane.model.model import Model
from featherlane.simulation.batch.batch import Batch

TABLES = ("rows", "bound", "expanded_fields")  # of a batch
ELSEWHERE = (type, FunctionType, ModuleType, Model, Batch)  # not looked into


class LiveArray(NamedTuple):
    """Where an array is held, and which part of the batch's memory it is.

    Attributes:
        path: attributes and keys that lead to it.
        field: the table of the batch and the name of the field.
        offset: bytes from the field's first number.
        shape, strides, dtype, writeable: of the array.
    """

    path: tuple[str | int, ...]
    field: tuple[str, str]
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype
    writeable: bool


def live_arrays(batch: Batch, holder: object) -> list[LiveArray]:
    """Returns the arrays in attributes, dicts and lists below an object that are parts of the batch's memory."""
    memory = {(table, name): rows for table in TABLES for name, rows in getattr(batch, table).items()}
    found, seen, todo = [], set(), [((), holder)]
    while todo:
        path, thing = todo.pop()
        if isinstance(thing, np.ndarray):
            found += [_live(path, thing, field, rows) for field, rows in memory.items() if _is_part(thing, rows)]
        elif id(thing) not in seen:
            seen.add(id(thing))
            todo += [((*path, key), inner) for key, inner in _inside(thing)]
    return found


def attach(batch: Batch, holder: Any, arrays: list[LiveArray]) -> None:
    """Puts parts of the batch's memory where a copy holds copies of them."""
    for array in arrays:
        table, name = array.field
        rows: Any = batch.expanded(name) if table == "expanded_fields" else getattr(batch, table)[name]
        part = np.ndarray(array.shape, array.dtype, rows, array.offset, array.strides)
        part.flags.writeable = array.writeable
        target = holder
        for key in array.path[:-1]:
            target = _container(target)[key]
        _container(target)[array.path[-1]] = part


def _container(thing: Any) -> Any:
    """What holds the inner objects of a dict, a list or another object, by key."""
    return thing if isinstance(thing, dict | list) else vars(thing)


def _inside(thing: Any) -> Iterator[tuple[str | int, Any]]:
    """The objects in an object, by key."""
    if isinstance(thing, list):
        yield from enumerate(thing)
    elif isinstance(thing, dict) or (hasattr(thing, "__dict__") and not isinstance(thing, ELSEWHERE)):
        yield from ((key, inner) for key, inner in _container(thing).items() if isinstance(key, str | int))


def _live(path: tuple, array: np.ndarray, field: tuple[str, str], rows: np.ndarray) -> LiveArray:
    offset = address(array) - address(rows)
    return LiveArray(path, field, offset, array.shape, array.strides, array.dtype, array.flags.writeable)


def _is_part(array: np.ndarray, rows: np.ndarray) -> bool:
    """Whether an array lies within the memory of a field."""
    return bool(array.size and rows.flags.c_contiguous and np.may_share_memory(array, rows))
