"""Calls kernels from Python, uncompiled: on a record that a test makes, or on that of a workspace."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType, SimpleNamespace

import numpy as np

from featherlane.engine.lanes.record import Objects, Rows, python_record
from featherlane.engine.simulation.tile.library import RECORDS

LAYOUTS = tuple(RECORDS[record][0] for record in ("m", "d"))
FIELDS = {f.name: (layout, f) for layout in LAYOUTS for f in layout.fields}


def record(width: int, dtype=np.float64, **fields) -> SimpleNamespace:
    """Returns a record of these fields only: an integer is a size, integers are a table, others real rows.

    A dict is a record within the record, of its fields.
    """
    return _record(width, dtype, "", {k: n for k, n in fields.items() if isinstance(n, int)}, fields)


def _record(width, dtype, within: str, sizes: dict[str, int], fields) -> SimpleNamespace:
    """Returns a record whose names have a prefix in their declarations."""
    out = SimpleNamespace(width=width, shape=(width,), dtype=np.dtype(dtype))
    for name, value in fields.items():
        if isinstance(value, dict):
            value = _record(width, dtype, f"{name}.", sizes, value)
        elif not isinstance(value, int):
            rows = np.array(value)
            if rows.dtype.kind == "f":
                rows = np.array(np.broadcast_to(rows.reshape(len(rows), -1), (len(rows), width)), dtype)
            value = typed(rows, within + name, sizes)
        setattr(out, name, value)
    for layout in LAYOUTS:
        for name, prefix in layout.groups.items():
            if not within and not hasattr(out, name) and any(field.startswith(prefix) for field in fields):
                setattr(out, name, Objects(out, prefix))
    return out


def typed(array: np.ndarray, name: str, sizes: Mapping[str, int] = MappingProxyType({})) -> Rows:
    """Returns the rows of a field of the model or of a tile, with row type and indices of its declaration."""
    if name not in FIELDS:
        return Rows(array, name)
    layout, f = FIELDS[name]
    inner = tuple(n if isinstance(n, int) else sizes.get(n) for n in layout.inner(f))
    return Rows(array, name, f.rows, () if None in inner else inner)


def records(workspace) -> tuple[SimpleNamespace, SimpleNamespace]:
    """Returns (m, d) of a workspace, sharing its memory."""
    return python_record(workspace.rows.record), python_record(workspace.record)


def call(kernel, *arguments):
    """Returns a kernel's result; both sides of a `where` are computed."""
    with np.errstate(all="ignore"):
        return kernel.function(*arguments)
