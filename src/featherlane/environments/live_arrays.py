"""Arrays of an environment that are views of its batch's memory, and the same views of a copied batch's memory.

A task keeps live arrays (`self.mass = worlds.expand("body_mass")[:, 1]`).  `copy.deepcopy` and pickle copy the values
of such an array; afterwards the copy must be a view of the copied batch again.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from featherlane import Batch, MixedBatch, Model
from featherlane.terrain import Terrain

EXPANDED = "expanded_fields"
TABLES = ("rows", "bound", EXPANDED)  # attributes of a batch that hold its arrays
# types whose attributes are neither live nor state
ELSEWHERE = (type, FunctionType, ModuleType, Model, Batch, MixedBatch, Terrain)


class LiveArray(NamedTuple):
    """Describes where an array is held and which part of the batch's memory it views.

    Attributes:
        path: attributes and keys that lead to the array.
        field: number of the group in a `MixedBatch` for expanded fields, else 0; table of the batch; name of the field.
        offset: bytes from the field's first value.
        shape, strides, dtype, writeable: those of the array.
    """

    path: tuple[str | int, ...]
    field: tuple[int, str, str]
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype
    writeable: bool


def live_arrays(batch: Batch | MixedBatch, holder: object) -> list[LiveArray]:
    """Returns the arrays in attributes, dicts and lists below an object that view the batch's memory."""
    memory = memory_of(batch)
    found, seen, todo = [], set(), [((), holder)]
    while todo:
        path, thing = todo.pop()
        if isinstance(thing, np.ndarray):
            found += [_live(path, thing, field, rows) for field, rows in memory if is_part(thing, rows)]
        elif id(thing) not in seen:
            seen.add(id(thing))
            todo += [((*path, key), inner) for key, inner in inside(thing)]
    return found


def memory_of(batch: Batch | MixedBatch) -> list[tuple[tuple[int, str, str], np.ndarray]]:
    """Returns (number of the group, table, field) and array; groups share padded arrays of all but `EXPANDED`."""
    return [
        ((k, table, name), rows)
        for table in TABLES
        for k, group in enumerate(batch.groups if table == EXPANDED else [batch])
        for name, rows in getattr(group, table).items()
    ]


def attach(batch: Batch | MixedBatch, holder: Any, arrays: list[LiveArray]) -> None:
    """Replaces a copy's copied arrays by views of the batch's memory."""
    for array in arrays:
        k, table, name = array.field
        if table == EXPANDED:
            rows: Any = batch.groups[k].expanded(name)
        else:
            rows = getattr(batch, table)[name]
        part = np.ndarray(array.shape, array.dtype, rows, array.offset, array.strides)
        part.flags.writeable = array.writeable
        target = holder
        for key in array.path[:-1]:
            target = container(target)[key]
        container(target)[array.path[-1]] = part


def container(thing: Any) -> Any:
    """Returns the container of the inner objects of a dict, a list or another object."""
    return thing if isinstance(thing, dict | list) else vars(thing)


def inside(thing: Any) -> Iterator[tuple[str | int, Any]]:
    """Yields (key, object) for each object inside an object."""
    if isinstance(thing, list):
        yield from enumerate(thing)
    elif isinstance(thing, dict) or (hasattr(thing, "__dict__") and not isinstance(thing, ELSEWHERE)):
        yield from ((key, inner) for key, inner in container(thing).items() if isinstance(key, str | int))


def _live(path: tuple, array: np.ndarray, field: tuple[int, str, str], rows: np.ndarray) -> LiveArray:
    offset = array.ctypes.data - rows.ctypes.data
    return LiveArray(path, field, offset, array.shape, array.strides, array.dtype, array.flags.writeable)


def is_part(array: np.ndarray, rows: np.ndarray) -> bool:
    """Returns whether an array lies within the memory of a field."""
    return bool(array.size and rows.flags.c_contiguous and np.may_share_memory(array, rows))
