"""Calls kernels from Python, uncompiled: on a record that a test makes, or on that of a workspace."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from featherlane.lanes.record import Rows, python_record


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
            value = Rows(rows, name)
        setattr(out, name, value)
    return out


def records(workspace) -> tuple[SimpleNamespace, SimpleNamespace]:
    """Returns (m, d) of a workspace, sharing its memory."""
    return python_record(workspace.rows.record), python_record(workspace.record)


def call(kernel, *arguments):
    """Returns a kernel's result; both sides of a `where` are computed."""
    with np.errstate(all="ignore"):
        return kernel.function(*arguments)
