"""Which rows of memory a batch call moves into tiles and out again: the record that `run_tiles` reads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..lanes import Record
from ..lanes.record import address
from .tiles import ROWS

KINDS = ("load", "control", "record", "store")


class Transfer(NamedTuple):
    """One field's way between rows and tile.

    Attributes:
        field: name of the field of the tile, or of the model where `of_model`.
        array: C-contiguous; the first axis counts worlds, and for control and record the second counts steps.
    """

    field: str
    array: np.ndarray
    of_model: bool = False


def transfer_record(workspaces, nworld: int, nstep: int, transfers: dict[str, list[Transfer]], order, place) -> Record:
    """The record of one call.

    Args:
        workspaces: one for each thread.
        nworld: worlds of the call.
        nstep: steps, 0 for a forward pass.
        transfers: lists by kind (`load`, `control`, `record`, `store`).
        order: (nworld,) int64, worlds in the order in which they fill tiles.
        place: (nworld,) int64, their places in the call.
    """
    first = workspaces[0]
    everything = [(kind, t) for kind in KINDS for t in transfers.get(kind, ()) if t.array.size]
    sizes = {"nworld": nworld, "nstep": nstep, "nthread": len(workspaces), "ntransfer": len(everything)}
    sizes["real_bytes"] = first.dtype.itemsize
    arrays = {
        "order": order,
        "place": place,
        "tile_address": np.zeros((len(workspaces), max(len(everything), 1)), np.int64),
    }
    for k, (_, t) in enumerate(everything):
        for thread, w in enumerate(workspaces):
            tile = w.rows.record.arrays[t.field] if t.of_model else w.arrays[t.field]
            arrays["tile_address"][thread, k] = address(tile)
    arrays["tile_address"] = arrays["tile_address"].reshape(-1)
    for kind in KINDS:
        rows = [(k, t.array) for k, (kind_k, t) in enumerate(everything) if kind_k == kind]
        sizes[f"n{kind}"] = len(rows)
        per_step = kind in ("control", "record")
        columns = {
            "row": [address(a) for _, a in rows],
            "tile": [k for k, _ in rows],
            "count": [a[0, 0].size if per_step else a[0].size for _, a in rows],
            "stride": [a[0].size for _, a in rows],
            "step": [a[0, 0].size if per_step else 0 for _, a in rows],
        }
        for name, values in columns.items():
            arrays[f"{kind}_{name}"] = np.asarray(values or [0], np.int64)
    return Record(ROWS, sizes, arrays, first.width, first.dtype)
