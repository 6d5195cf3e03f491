"""Plans of a batch call: which rows of memory it copies into tiles and back.  `run_tiles` reads their record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from featherlane.engine.lanes import Field, Layout, Record, Stage
from featherlane.engine.lanes.record import address, allocated
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.engine.simulation.tile.library import library
from featherlane.engine.simulation.tile.rows import ROWS
from featherlane.engine.simulation.tile.tiles import run_tiles
from featherlane.errors import ArgumentError

NONE: Mapping[str, Any] = MappingProxyType({})
KINDS = ("load", "control", "record", "store")


class Transfer(NamedTuple):
    """Describes the copy of one field between rows and tile.

    Attributes:
        field: name of the field.
        array: C-contiguous; the first axis counts worlds.  For control and record the second axis counts steps, and the
            array may be a slice of these steps.
        layout: the record that has the field: the tile's, the model's, the loop's own, or that of a control's numbers.
    """

    field: str
    array: np.ndarray
    layout: Layout = DATA

    @property
    def declared(self) -> Field:
        """Returns the field's declaration."""
        return self.layout[self.field]


Rows = Mapping[str, np.ndarray] | Sequence[tuple[str, np.ndarray]]  # arrays by field; a sequence may repeat a field


def field_arrays(rows: Rows) -> Iterable[tuple[str, np.ndarray]]:
    """Returns pairs of a field and its array."""
    return rows.items() if isinstance(rows, Mapping) else rows


def transfers(loop: Stage, rows: Rows) -> list[Transfer]:
    """Returns transfers of arrays by field name, those of the loop's own record first; empty arrays are omitted."""
    own = loop.records.get("p", DATA)
    return [Transfer(name, a, own if name in own else DATA) for name, a in field_arrays(rows) if a.size]


class Plan:
    """Holds transfers prepared for calls: the record, and for each thread the loop over tiles bound to its workspace.

    A plan is reused between calls, which change only the order of the worlds and the number of steps.

    Args:
        workspaces: one for each thread.
        transfers: lists by kind (`load`, `control`, `record`, `store`).
        nworld: the largest number of worlds of a call.
        flags: sizes of the workspaces' records that select what a step computes (`want_frames`, ...).
        loop: the stage that works through tiles.
        memory: (nworld, n) data that worlds store of their pairs of convex shapes to save time; None: nothing.
        sizes: of the loop's own record, if it has one: those that are not sizes of the workspaces.
        numbers: layout of the record of a control's own numbers.

    Attributes:
        numbers: that record for each workspace, or None.
        has_places: whether the call provides or receives rows in the order in which it lists worlds.
    """

    def __init__(
        self,
        workspaces,
        transfers: dict[str, list[Transfer]],
        nworld: int,
        flags: dict[str, int],
        loop=run_tiles,
        memory: np.ndarray | None = None,
        sizes: Mapping[str, int] = NONE,
        numbers: Layout | None = None,
    ):
        self.workspaces, self.transfers, self.memory = workspaces, transfers, memory
        self.flags, self.loop = flags, loop
        self.width = workspaces[0].width
        self.has_places = bool(transfers.get("control") or transfers.get("record"))
        self.order, self.place = (np.zeros(-(-nworld // self.width) * self.width, np.int64) for _ in range(2))
        self._given: tuple[np.ndarray | None, np.ndarray | None] = None, None  # read-only arrays in order and place
        self.own = [
            [allocated(layout, {**w.sizes, **sizes}, w.width, w.dtype) for layout in loop.records.values()]
            for w in workspaces
        ]
        self.numbers = [allocated(numbers, {}, w.width, w.dtype) if numbers else None for w in workspaces]
        self.record = self._make_record()
        self._call: tuple[int, ...] | None = None  # the numbers in the record
        self._call_places = self.record.places(("nworld", "nstep", "stage", "nunread"))
        self._flag_places = workspaces[0].record.places(flags)
        self._flag_values = np.array([*flags.values()], np.int64)
        self.run = [
            library().bind(loop, w.rows.record, w.record, self.record, *own)
            for w, own in zip(workspaces, self.own, strict=True)
        ]

    def begin(self, nstep: int, order: np.ndarray, place: np.ndarray, stage: int = 0, nunread: int = 0) -> None:
        """Prepares a call: nstep steps (0: forward) of these worlds, in the order in which they fill tiles.

        `stage` is the last stage that is computed of the state after the steps; 0: none.  The outputs of the first
        nunread steps are not computed.
        """
        n = len(order)
        if not (order is self._given[0] and place is self._given[1]):
            self._given = None, None  # first: an interrupt may come between any two of these statements
            filled = -(-n // self.width) * self.width  # lanes without a world repeat the last one
            for lanes, given in ((self.order, order), (self.place, place)):
                lanes[:n], lanes[n:filled] = given, given[-1:]
            if not (order.flags.writeable or place.flags.writeable):
                self._given = order, place
        call = n, nstep, stage, nunread
        if call != self._call:
            self._call = None  # first, as above
            self.record.table[self._call_places] = call
            self._call = call
        for w in self.workspaces:
            w.record.table[self._flag_places] = self._flag_values

    def addresses(self, kind: str) -> np.ndarray:
        """Returns addresses of world 0's first real in the transfers of a kind; the caller may change them."""
        first = sum(self.record.size(f"n{k}") for k in KINDS[: KINDS.index(kind)])
        return self.record.arrays["row"][first : first + self.record.size(f"n{kind}")]

    def _make_record(self) -> Record:
        first, nthread = self.workspaces[0], len(self.workspaces)
        kept = {kind: [t for t in self.transfers.get(kind, ()) if t.array.size] for kind in KINDS}
        everything = [(t, kind in ("control", "record")) for kind in KINDS for t in kept[kind]]
        sizes = {"nworld": 0, "nstep": 0, "stage": 0, "nunread": 0, "nthread": nthread, "ntransfer": len(everything)}
        sizes["nlane"] = self.order.size
        sizes |= {f"n{kind}": len(some) for kind, some in kept.items()}
        memory = self.memory
        sizes["recall_row"] = 0 if memory is None or not memory.size else address(memory)
        sizes["recall_stride"] = 0 if memory is None else memory.strides[0]
        tiles = np.zeros((nthread, max(len(everything), 1)), np.int64)
        for k, (t, _) in enumerate(everything):
            expected = t.declared.stored_as(first.dtype)
            if t.array.dtype != expected:
                raise ArgumentError(f"transfer of {t.field}: got rows of {t.array.dtype}, allowed are {expected}")
            for thread, (w, own, numbers) in enumerate(zip(self.workspaces, self.own, self.numbers, strict=True)):
                records = (w.record, w.rows.record, *own, numbers)
                record = next(r for r in records if r is not None and r.layout is t.layout)
                tiles[thread, k] = address(record.arrays[t.field])
        arrays = {"order": self.order, "call_position": self.place, "tile_address": tiles.reshape(-1)}
        columns = {
            "row": [address(t.array) for t, _ in everything],
            "count": [t.array[0, 0].size if per_step else t.array[0].size for t, per_step in everything],
            "stride": [t.array.strides[0] // t.array.itemsize for t, _ in everything],
            "step": [t.array.strides[1] // t.array.itemsize if per_step else 0 for t, per_step in everything],
            "wide": [int(t.declared.is_wide) for t, _ in everything],
        }
        arrays |= {name: np.asarray(values or [0], np.int64) for name, values in columns.items()}
        return Record(ROWS, sizes, arrays, width=first.width, dtype=first.dtype)
