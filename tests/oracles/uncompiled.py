"""Calls kernels from Python, uncompiled: on a record that a test makes, or on that of a workspace."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from featherlane.lanes.record import Rows, python_record
from featherlane.simulation.tile.library import RECORDS

ROW_TYPES = {f.name: f.rows for record in ("m", "d") for f in RECORDS[record][0].fields}


def record(width: int, dtype=np.float64, **fields) -> SimpleNamespace:
    """Returns a record of these fields only: an integer is a size, integers are a table, others real rows.

    A dict is a record within the record, of its fields.
    """
    out = SimpleNamespace(width=width, shape=(width,), dtype=np.dtype(dtype))
    for name, value in fields.items():
        if isinstance(value, dict):
            value = record(width, dtype, **value)
        elif not isinstance(value, int):
            rows = np.array(value)
            if rows.dtype.kind == "f":
                rows = np.array(np.broadcast_to(rows.reshape(len(rows), -1), (len(rows), width)), dtype)
            value = typed(rows, name)
        setattr(out, name, value)
    return out


def typed(array: np.ndarray, name: str) -> Rows:
    """Returns the rows of a field of the model or of a tile, with the row type of its declaration."""
    return Rows(array, name, ROW_TYPES.get(name))


def records(workspace) -> tuple[SimpleNamespace, SimpleNamespace]:
    """Returns (m, d) of a workspace, sharing its memory."""
    return python_record(workspace.rows.record), python_record(workspace.record)


def call(kernel, *arguments):
    """Returns a kernel's result; both sides of a `where` are computed."""
    with np.errstate(all="ignore"):
        return kernel.function(*arguments)
