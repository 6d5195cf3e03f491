"""Derivatives of a world or a batch by formulas alone, for calls that differ from an earlier one only in the state.

Memory, tiles and plan are kept with the model.  The plan reads the memory of the `Data` or `Batch` without copies and
without repeated checks, and writes into the returned arrays if they are large; small results are copied.
All other cases (additional differences, recursion, float32, fields of the model that differ by world) use
`ImplicitWorlds`.
"""

from __future__ import annotations

import operator
import os
from typing import Any

import numpy as np

from featherlane.engine.lanes import Stage
from featherlane.engine.lanes.record import address
from featherlane.engine.model.model import Model, check_model
from featherlane.engine.simulation.batch.arrays import ON_DEMAND, WorldArrays
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.tile.library import library
from featherlane.engine.simulation.tile.transfer import NONE
from featherlane.engine.simulation.world.data import Data, ready
from featherlane.tools.sensitivity.rates.coordinates import Seeds
from featherlane.tools.sensitivity.rates.records import KNOWN, NEAREST
from featherlane.tools.sensitivity.systems.served import needs_formulas_only, noslip_capacity
from featherlane.tools.sensitivity.worlds.displaced_worlds import KEPT, OwnWorlds, each_step

COPIED = 1 << 15  # bytes up to which a copy of the results is faster than a new address in the record
SKIPPED = 15  # calls after one with states without formulas: such states are frequent in some models


class DirectWorlds(OwnWorlds):
    """Holds tiles for the worlds of one `Data` or `Batch` at a time, and the pass of a stage through them.

    Args:
        model, source, nthread, disabled: as for `OwnWorlds`.
        loop: the stage of the whole derivative by formulas.
        torques: whether generalized forces are coordinates, too, and rates of the acceleration are requested.

    Attributes:
        revision: of the model at construction; this object is valid for no other revision.
        serves: whether it applies to this model.
        skips: number of the next calls that are left to `ImplicitWorlds`, with the same bits.
    """

    solves_columns = True

    def __init__(self, model: Model, source: Data | Batch, loop: Stage, torques: bool, nthread: int, disabled: int):
        self.revision, self.serves, self.skips = model.revision, needs_formulas_only(model, torques), 0
        if not self.serves:
            return
        nv, seeds, self.is_one = model.nv, Seeds.of_model(model), isinstance(source, Data)
        nx, n = seeds.state.stop, seeds.input.stop
        super().__init__(model, source, 2 * n, 1 if self.is_one else nthread, disabled)
        for name in () if self.is_one else ON_DEMAND:
            if source.is_left_out(name):
                del self.rows[name]  # zero in all tiles
        nworld = self.batch.nworld
        self.shape = (nworld, n + nv, nv) if torques else (nworld, n, nx)
        parts = {"da": slice(0, nv)}
        if not torques:
            parts = {"dq": seeds.position, "dv": seeds.velocity, "dact": seeds.activation}
            parts = parts if model.na else {name: parts[name] for name in ("dq", "dv")}
        kinds = seeds[:5] if torques else (seeds.state, seeds.control)
        self.split = operator.itemgetter(*((..., kind) for kind in kinds))
        n, out, self.report = self.shape[1], np.empty(self.shape), np.zeros((nworld, KNOWN + 1))
        self.known, self.nearest = self.report[:, KNOWN], self.report[:, NEAREST]
        self.all_known, self.out = np.ones(nworld).tobytes(), out if out.nbytes <= COPIED else None
        taken = {name: out[..., part] for name, part in parts.items()}
        taken["report"] = each_step(self.report, n)
        sizes = {"differences_p": 0, "rate_steps": int(not torques), "nslipmax": noslip_capacity(model)}
        memory = self.batch.pair_memory
        width = 1 if self.is_one else self.width
        self.plan = plan = self.plan_of(loop, nworld, {}, taken, width=width, memory=memory, sizes=sizes)
        every = np.arange(nworld)
        every.flags.writeable = False
        plan.begin(n, every, every)
        first, self.ntile, self.run = plan.workspaces[0], -(-nworld // width), None
        self.calls, self.tile_rows = first.calls, first.rows
        if len(plan.workspaces) == 1:
            records = first.rows.record, first.record, plan.record, *plan.own[0]
            self.run = library().bind(loop, *records, numbers=(0, 0, self.ntile))
        self.names, self.shifts = [t.field for t in plan.transfers["load"]], [8 * part.start for part in parts.values()]
        self.taken, self.given, self.read_from = plan.addresses("load"), plan.addresses("record"), None
        self.is_plain = False

    def _read_data(self, source: Data | Batch) -> None:
        """Makes tiles load the rows of a `Data`."""
        rows = source.__dict__.get("_lasting_rows")
        if rows is None:
            arrays = source.workspace.arrays  # they are valid as long as the data
            rows = source.__dict__["_lasting_rows"] = np.array([address(arrays[name]) for name in self.names])
        self.taken[:] = rows

    def _read_batch(self, arrays: WorldArrays, entry: tuple) -> None:
        """Makes tiles load the rows of a batch.

        is_plain is False if they cannot: rows are float32, or not contiguous, or fields of the model differ.
        """
        self.read_from = None  # first: an interrupt may come between any two of these statements
        rows = {name: a for name, a in arrays.rows.items() if name in self.rows or name in ON_DEMAND}
        plain = not arrays.expanded and arrays.dtype == np.float64 and rows.keys() == self.rows.keys()
        self.is_plain = plain and all(a.flags.c_contiguous for a in rows.values())
        if self.is_plain:
            self.taken[:] = [address(rows[name]) for name in self.names]
        self.read_from = entry

    def rates(self, source: Data | Batch, entry: tuple) -> tuple[np.ndarray, ...] | None:
        """Returns derivatives by each kind of coordinate (..., 2 nv, n), or (..., nv, n), and switching (...).

        The kinds are the state and controls for derivatives of the next state, and those of `AccelerationDerivatives`
        for derivatives of the acceleration.
        Returns None if tiles cannot load the source, or if a state has, or recently had, parts without formulas.

        Args:
            source: the worlds.
            entry: of a batch, the same object until its arrays change.
        """
        if self.skips:
            self.skips -= 1
            return None
        if self.is_one:
            self._read_data(source)
        else:
            self.tile_rows.refresh_values()
            if self.read_from is not entry:
                self._read_batch(source.arrays, entry)
            if not self.is_plain:
                return None
        out = self.out
        if out is None:
            out = np.empty(self.shape)
            first = address(out)
            for k, shift in enumerate(self.shifts):
                self.given[k] = first + shift
        if self.run is not None:
            self.run()
            self.calls.raise_errors()
        else:
            self.go(self.plan, self.ntile)
        if self.known.tobytes() != self.all_known:
            self.skips = SKIPPED
            return None
        out = out if self.out is None else out.copy()
        if self.is_one:
            return *self.split(out[0].mT), self.report[0, NEAREST]
        return *self.split(out.mT), self.nearest.copy()


def direct_rates(
    model: Model, source: Data | Batch, loop: Stage, torques: bool, nthread: int, disabled: int
) -> tuple[Any, ...] | None:
    """Returns `DirectWorlds.rates`, with memory from an earlier call; loop: the stage, the same in all calls.

    Returns None if formulas do not apply to the model or to a world.

    Raises:
        ModelError, TypeError: as `ready` does.
    """
    if type(model) is not Model:
        check_model(model)
    own, entry = model.__dict__, ()
    if isinstance(source, Batch):
        held = source.__dict__  # faster than attributes of a `Batch`
        arrays = held["arrays"]
        # piles are faster in tiles of one world, see `Batch._parts`
        if arrays.model is not model or (arrays.sizes["ngraph"] and np.count_nonzero(arrays.rows["ordered"])):
            return None
        how = torques, disabled, nthread, os.getpid() if nthread != 1 else 0  # threads do not survive a fork
        entry = held.get("_direct_worlds", NONE).get(how)
        if entry is None or entry[0] != arrays.revision:
            key = *how, arrays.ngiven, arrays.nworld, *map(arrays.rows.__contains__, ON_DEMAND)
            entry = arrays.revision, _idle(model, key)
            held.setdefault("_direct_worlds", {})[how] = entry
        idle = entry[1]
    elif isinstance(source, Data):
        stamp = own["_stamp"]
        if stamp is None or source._stamp is not stamp or source.model is not model:
            ready(model, source)
        idle = _idle(model, (torques, disabled, source.workspace.sizes["ngiven"]))
    else:
        return None
    try:
        worlds = idle.pop()
    except IndexError:
        worlds = None
    if worlds is None or worlds.revision != own["revision"]:
        worlds = DirectWorlds(model, source, loop, torques, nthread, disabled)
    found = worlds.rates(source, entry) if worlds.serves else None
    if len(idle) < KEPT:
        idle.append(worlds)
    return found


def _idle(model: Model, key: tuple) -> list[DirectWorlds]:
    """Returns the worlds with a key that no call uses now."""
    return model.__dict__.setdefault("_direct_worlds", {}).setdefault(key, [])
