"""Kernels called from Python, uncompiled: on a record that a test makes up, or on that of a workspace."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from featherlane.lanes.record import Rows, python_record


def record(width: int, dtype=np.float64, **fields) -> SimpleNamespace:
    """A record of these fields alone: a whole number is a size, whole numbers are a table, others real rows.

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
    """(m, d) of a workspace, whose memory they share."""
    return python_record(workspace.rows.record), python_record(workspace.record)


def call(kernel, *arguments):
    """What a kernel returns; both sides of a `where` are computed."""
    with np.errstate(all="ignore"):
        return kernel.function(*arguments)
