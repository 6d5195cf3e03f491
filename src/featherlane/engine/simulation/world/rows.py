"""Returns contacts and rows of one world as Python arrays, computed when they are read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from featherlane.engine.collision.contact import contacts
from featherlane.engine.collision.motion import sweeping
from featherlane.engine.constraint.efc import efc_numbers, efc_rows
from featherlane.engine.constraint.efc_fields import EFC
from featherlane.engine.lanes.record import allocated
from featherlane.engine.simulation.tile.library import library
from featherlane.engine.simulation.tile.workspace import Workspace

CONTACT_ROWS = 10  # largest number of rows of a contact: a pyramid of dimension 6
COLUMNS = tuple("J type id pos margin frictionloss diagA KBIP D R vel aref force state".split())


class RowsBuffer:
    """Holds memory for the rows of one world, and stages bound to it that fill it.

    It has memory for the present number of slots, and up to twice as many: the rows of all contacts that the tile could
    hold, each with an entry for every dof, may need terabytes.
    """

    def __init__(self, workspace: Workspace):
        size = workspace.sizes
        self.slots = min(2 * int(workspace.arrays["ncon_slot"][0]) + 1, size["nconmax"])
        rows = size["nrowmax"] + CONTACT_ROWS * self.slots
        record = allocated(EFC, {"efc_nv": size["nv"], "efc_nrow": rows, "efc_ncon": self.slots}, 1, np.float64)
        records = workspace.rows.record, workspace.record, record
        self.count_rows, self.make_rows = (library().bind(stage, *records) for stage in (efc_numbers, efc_rows))
        self.count, self.slot = record.arrays["efc_count"], record.arrays["contact_slot"]
        self.row, widths = record.arrays["contact_row"], {"J": size["nv"], "KBIP": 4}
        arrays = {name: record.arrays[f"efc_{name}"] for name in COLUMNS}
        self.columns = {
            name: a[: rows * widths[name]].reshape(rows, widths[name]) if name in widths else a.reshape(-1)
            for name, a in arrays.items()
        }


def _take_buffer(workspace: Workspace) -> RowsBuffer:
    """Returns memory for the present rows, exclusive to the calling thread until `put_back`."""
    buffer = workspace.take_buffer(RowsBuffer)
    return buffer if buffer.slots >= workspace.arrays["ncon_slot"][0] else RowsBuffer(workspace)


def efc_column(workspace: Workspace, name: str) -> np.ndarray:
    """Returns a column of the rows, (nefc, ...), a copy; `name` is MuJoCo's without `efc_`."""
    buffer = _take_buffer(workspace)
    buffer.make_rows()
    found = buffer.columns[name][: buffer.count[0]].copy()
    workspace.put_back(buffer)
    return found


def row_counts(workspace: Workspace) -> tuple[int, int, int, int]:
    """Returns the number of rows, and how many of them are equalities, friction loss and limits."""
    buffer = _take_buffer(workspace)
    buffer.count_rows()
    nefc, ne, nf, nl, _ = buffer.count.tolist()
    workspace.put_back(buffer)
    return nefc, ne, nf, nl


class WorldRows(NamedTuple):
    """Holds the contacts and rows of one world.

    Attributes:
        contacts: (ncon,), as `Data.contact`.
        counts: number of all rows, of equalities, friction loss and limits.
        columns: (nefc, ...) by MuJoCo's names without `efc_`.
    """

    contacts: np.recarray
    counts: tuple[int, int, int, int]
    columns: dict[str, np.ndarray]


def rows_of_world(workspace: Workspace, with_rows: bool) -> WorldRows:
    """Returns contacts and, if wanted, rows of one world, copies."""
    buffer = _take_buffer(workspace)
    (buffer.make_rows if with_rows else buffer.count_rows)()
    nefc, ne, nf, nl, n = buffer.count.tolist()
    first = buffer.row[:n] if with_rows else np.full(n, -1)
    model = workspace.model
    found = contacts(workspace.arrays, buffer.slot[:n], first, model.flg_adhesion, sweeping(model))
    counts = (nefc, ne, nf, nl) if with_rows else (0, 0, 0, 0)
    columns = {name: column[: counts[0]].copy() for name, column in buffer.columns.items()}
    workspace.put_back(buffer)
    return WorldRows(found, counts, columns)


def contact_list(workspace: Workspace) -> np.recarray:
    """Returns the contacts of one world in MuJoCo's order, with the names of its `mjData.contact`; a read-only copy."""
    buffer = _take_buffer(workspace)
    buffer.count_rows()
    n = int(buffer.count[4])
    model = workspace.model
    found = contacts(workspace.arrays, buffer.slot[:n], buffer.row[:n], model.flg_adhesion, sweeping(model))
    workspace.put_back(buffer)
    return found
