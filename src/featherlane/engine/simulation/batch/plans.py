"""Defines `Plans`: the workspaces of a batch, and the plans of what its calls copy into tiles and back."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence, Set

import numpy as np

from featherlane.engine.lanes import Stage, processor
from featherlane.engine.lanes.record import address, aligned
from featherlane.engine.model.enums import SENS_E_KINETIC, SENS_E_POTENTIAL, Enable
from featherlane.engine.model.fields import MODEL
from featherlane.engine.model.model import Model
from featherlane.engine.simulation.batch.arrays import (
    COUNTS,
    DROPPED,
    EVOLVING,
    LASTING,
    MOCAP,
    REPORTED,
    SLEEP_ROWS,
    WorldArrays,
)
from featherlane.engine.simulation.batch.order import TileOrder
from featherlane.engine.simulation.batch.recorder import Recorder
from featherlane.engine.simulation.query.moving import reads_rows
from featherlane.engine.simulation.query.query import Query
from featherlane.engine.simulation.step.forward import VELOCITY
from featherlane.engine.simulation.tile.calls import fields_called_for
from featherlane.engine.simulation.tile.fields import DATA, WANTED
from featherlane.engine.simulation.tile.team import Team
from featherlane.engine.simulation.tile.tiles import run_tiles
from featherlane.engine.simulation.tile.transfer import NONE, Plan, Rows, Transfer, field_arrays, transfers
from featherlane.engine.simulation.tile.workspace import ModelRows, Workspace
from featherlane.engine.simulation.user.function import UserFunction

ROWS_KEPT = 1 << 20  # bytes of the rows of a call whose plan is kept for the next call
QUERIES_KEPT = 8  # plans of queries


class Plans:
    """Prepares the workspaces of a batch's threads, and plans of passes over its worlds.

    Args:
        arrays: the worlds.
        team: the threads.
        recorder: records steps of long calls, or None.

    Attributes:
        width: worlds of a tile.
        team: the threads.
        disabled: bits of `opt.disableflags` that are set for these worlds in addition to the model's.
        options: integer options that replace the model's for these worlds, by field; set before the first call.
        workspaces: by width, one for each thread.
        plain: plans without rows of the call, by (whether a forward pass, whether recorded, width).
    """

    def __init__(self, arrays: WorldArrays, team: Team, recorder: Recorder | None = None):
        self.arrays, self.team, self.recorder = arrays, team, recorder
        self.model: Model = arrays.model
        self.width, self.disabled, self.options = processor.tile_width(arrays.dtype), 0, {}
        self.workspaces: dict[int, list[Workspace]] = {}
        self.plain: dict[tuple[bool, bool, int], Plan] = {}
        self._shared: dict[int, ModelRows] = {}
        self._rows_plan: tuple[tuple, Plan] | None = None  # the last one with rows of the call, and their addresses
        self._query_plans: dict[tuple, Plan] = {}  # the last ones, by what they depend on
        self._kept_plans: dict[Query, Plan] = {}
        self._planned = (0, 0)  # revision of the arrays and number of expanded fields when the plans were made
        self._orders: dict[int, TileOrder] = {}
        self._memory: np.ndarray | None = None

    def plan(
        self,
        loop: Stage,
        n: int,
        brought: Rows = NONE,
        taken: Rows = NONE,
        load: Rows = NONE,
        *,
        keeps: Sequence[str] = LASTING,
        width: int = 0,
        memory: np.ndarray | None = None,
        sizes: Mapping[str, int] = NONE,
        store: Rows | None = None,
    ) -> Plan:
        """Returns a prepared plan of a pass over at most n worlds, or copies or points of them.

        Args:
            loop: the stage that loops over tiles.
            n: worlds.
            brought, taken: rows (n, nstep, ...) of each step, by field.
            load: additional rows (n, ...) of each world, by field.
            keeps: fields of the worlds that tiles load.
            width: worlds of a tile; 0: the default.
            memory: (nworld, n) cached data of candidate pairs.
            sizes: sizes of the loop's record.
            store: of a loop that steps the worlds: rows (n, ...) that it stores in addition to those of a step.
        """
        workspaces = self.prepare(width or self.width)
        kinds = {"load": [*self._load(keeps), *transfers(loop, load)]}
        kinds |= {"control": transfers(loop, brought), "record": transfers(loop, taken)}
        fields = {t.field for t in kinds["record"] if t.layout is DATA}
        if store is not None:
            kinds["store"] = [*transfers(run_tiles, self._stored()), *transfers(loop, store)]
            fields, memory = set(self.arrays.refreshed), self.pair_memory()
        plan = Plan(workspaces, kinds, n, step_flags(self.model, self.arrays.nworld, fields), loop, memory, sizes)
        workspaces[0].calls.require(loop)
        return plan

    def loop_plan(
        self, loop: Stage, kept: Mapping[str, np.ndarray], load: Mapping[str, np.ndarray], brought, taken, sizes
    ) -> Plan:
        """Returns the plan of a loop with a separate record, which steps all worlds and stores them.

        Args:
            loop: the stage that loops over tiles.
            kept: rows (n, ...) of the loop's record that tiles load and store.
            load, brought, taken, sizes: as for `plan`.
        """
        n, load = self.arrays.nworld, {**kept, **load}
        return self.plan(loop, n, brought, taken, load, keeps=(*LASTING, *COUNTS), sizes=sizes, store=kept)

    def query_plan(self, query: Query, n: int, brought: Rows, taken: Rows) -> Plan:
        """Returns the plan of a query with at most n places, after `prepare`.

        The last plans with at most ROWS_KEPT bytes of rows are reused: only addresses and other numbers are replaced.
        A new plan takes longer than many queries.
        """
        if query.is_kept and query in self._kept_plans:
            return self._kept_plans[query]
        rows = [(kind, [*field_arrays(given)]) for kind, given in (("control", brought), ("record", taken))]
        forms = tuple((name, a.shape, a.strides) for _, given in rows for name, a in given)
        dims = _dimensions(query.loop)
        key = query.loop, n, query.reads, forms, tuple(item for item in query.sizes.items() if item[0] in dims)
        plan = self._query_plans.get(key)
        if plan is None:
            plan = self.plan(query.loop, n, brought, taken, keeps=query.reads, sizes=query.sizes)
            if query.is_kept:
                self._kept_plans[query] = plan
            elif sum(a.nbytes for _, given in rows for _, a in given) <= ROWS_KEPT:
                if len(self._query_plans) == QUERIES_KEPT:
                    self._query_plans.clear()
                self._query_plans[key] = plan
            return plan
        for kind, given in rows:
            plan.addresses(kind)[...] = [address(a) for _, a in given if a.size]
        for (own,) in plan.own if query.sizes else ():
            for name, value in query.sizes.items():
                own.set_size(name, value)
        return plan

    def step_plan(
        self, nstep: int, width: int, brought: Rows, taken: Rows, control: UserFunction | None, numbers: Rows = NONE
    ) -> Plan:
        """Returns the plan of steps or a forward pass; rows, control and numbers are those of a `Share` of the call.

        Cached are plans without rows of the call, and one plan with at most ROWS_KEPT bytes of rows, which the next
        call reuses if its rows are in the same memory and its control is the same.
        """
        forward, recorder = nstep == 0, self.recorder if nstep > 1 else None
        key, plain = (forward, recorder is not None, width), not (brought or taken or control)
        if plain and key in self.plain:
            return self.plain[key]
        memory_key = None if plain or recorder else (key, control, *_memory_key(brought, taken, numbers))
        if memory_key and self._rows_plan and self._rows_plan[0] == memory_key:
            return self._rows_plan[1]
        record = transfers(run_tiles, taken)
        fields = self.arrays.refreshed.keys() | {t.field for t in record} | (control.fields if control else set())
        kinds = {"load": self._load((*LASTING, *COUNTS)), "control": transfers(run_tiles, brought)}
        kinds["record"] = record + (transfers(run_tiles, recorder.written(self.arrays)) if recorder else [])
        kinds["store"] = transfers(run_tiles, self._stored(forward))
        own = control.own if numbers and control else None
        if own:
            for kind in ("load", "store"):
                kinds[kind] += [Transfer(name, rows, own) for name, rows in field_arrays(numbers)]
        flags, memory = step_flags(self.model, self.arrays.nworld, fields), self.pair_memory()
        plan = Plan(self.workspaces[width], kinds, self.arrays.nworld, flags, memory=memory, numbers=own)
        if plain:
            self.plain[key] = plan
        elif memory_key and sum(a.nbytes for rows in (brought, taken) for _, a in field_arrays(rows)) <= ROWS_KEPT:
            self._rows_plan = memory_key, plan
        return plan

    def rollout_plan(self, control: np.ndarray, record: Mapping[str, np.ndarray]) -> Plan:
        """Returns the prepared plan of a rollout of all worlds, for a caller that runs its loop over the tiles.

        Args:
            control: (nworld, nstep, nu) controls.
            record: field -> (nworld, nstep, n) array to record into.
        """
        every, nstep = np.arange(self.arrays.nworld), control.shape[1]
        self.prepare(self.width)
        plan = self.step_plan(nstep, self.width, {"ctrl": control}, record, None)
        plan.workspaces[0].calls.require(plan.loop)
        plan.begin(nstep, every, every)
        return plan

    def _stored(self, forward: bool = False) -> dict[str, np.ndarray]:
        """Returns the rows that a step or a forward pass stores, by field.

        Inputs are stored, too: a rollout sets controls, and the reset of a world clears its inputs.
        """
        rows, lasts = self.arrays.rows, () if forward else (*EVOLVING, *SLEEP_ROWS, *MOCAP, *DROPPED)
        return {name: rows[name] for name in (*lasts, *REPORTED) if name in rows} | self.arrays.refreshed

    def _load(self, names) -> list[Transfer]:
        """Returns transfers of the batch's fields and of per-world model fields into tiles."""
        rows, expanded = self.arrays.rows, self.arrays.expanded
        load = [Transfer(name, rows[name]) for name in names if name in rows]
        return load + [Transfer(name, a, MODEL) for name, a in expanded.items()]

    def begun(
        self, plan: Plan, nstep: int, chosen: np.ndarray, part: np.ndarray, stage: int = 0, nunread: int = 0
    ) -> tuple[Plan, int]:
        """Returns a plan that is ready to loop over tiles of the worlds `part` of a call, and the number of tiles."""
        plan.workspaces[0].calls.require(plan.loop)
        order = self.arrange(part, plan.width, nstep)
        plan.begin(nstep, order, self._places(chosen, order) if plan.has_places else order, stage, nunread)
        return plan, -(-len(order) // plan.width)

    def unread(self, plan: Plan, nstep: int, stage: int) -> int:
        """Returns how many steps of a call need not compute outputs, because those of `stage` are computed after them.

        User-defined actuators read outputs in every step; trees keep their outputs when they fall asleep.  The last
        step computes the outputs of later stages; without a stage, all.
        """
        if plan.has_places or not self.skips_outputs:
            return 0
        if not stage:
            return max(nstep - 1, 0)
        later = stage < VELOCITY or any(plan.flags[name] for name in ("want_all", "want_energy", "want_wrenches"))
        if not later and plan.flags["want_sensors"]:
            later = bool((self.model.sensor_needstage > VELOCITY).any()) or reads_rows(self.model)
        return nstep - later

    @property
    def skips_outputs(self) -> bool:
        """Returns whether steps need not compute outputs that no call returns: no user-defined actuator, no sleep."""
        return not (self.model.user_actuators or self.model.opt_enableflags & Enable.SLEEP)

    def _places(self, chosen: np.ndarray, order: np.ndarray) -> np.ndarray:
        """Returns indices of worlds in the list of a call, which may contain all of them in another order."""
        if chosen[-1] == len(chosen) - 1 and (chosen[1:] > chosen[:-1]).all():  # 0, 1, 2, ...
            return order
        return np.argsort(chosen)[np.searchsorted(np.sort(chosen), order)]

    def pair_memory(self) -> np.ndarray:
        """Returns each world's cached data of candidate pairs, (nworld, n); it saves time, and changes no result."""
        if self._memory is None:
            n = Workspace.sizes_of(self.model, self.arrays.ngiven, self.width)["nmemory"]
            self._memory = aligned((self.arrays.nworld, n))
        return self._memory

    # ---- tiles -------------------------------------------------------------------------------------------------------
    def parts(self, chosen: np.ndarray) -> list[tuple[int, np.ndarray]]:
        """Returns widths of tiles, and the worlds that step in them.

        Piles of bodies share few couplings, so in a common tile most lanes would be empty; a pile is 2.3 times as fast
        in a tile of one world.  A world without others for its tile is 1.2 to 1.4 times as fast in a tile of one world.
        (Kernels for one world exist in float64 only.)
        """
        if self.width == 1 or self.arrays.dtype != np.float64:
            return [(self.width, chosen)]
        if len(chosen) == 1:
            return [(1, chosen)]
        ordered = self.arrays.rows["ordered"]
        if len(chosen) % self.width != 1 and not ordered.any():
            return [(self.width, chosen)]
        alone = ordered[chosen, 0] > 0
        if np.count_nonzero(~alone) % self.width == 1:
            alone[np.flatnonzero(~alone)[-1]] = True
        parts = [(self.width, chosen[~alone]), (1, chosen[alone])]
        return [(width, part) for width, part in parts if len(part)]

    def arrange(self, chosen: np.ndarray, width: int, nstep: int) -> np.ndarray:
        """Orders worlds for tiles: worlds with the same contacts in their last step are placed together."""
        if width == 1 or len(chosen) <= width or self.arrays.sizes["ncand"] == 0:
            return chosen
        signature = self.arrays.rows["signature"]
        if width not in self._orders:
            self._orders[width] = TileOrder(self.arrays.nworld, signature.shape[1], width, self.team)
        return self._orders[width].of(chosen, signature, nstep)

    def prepare(self, width: int) -> list[Workspace]:
        """Returns workspaces of a width, one for each thread, updated to the present arrays and model."""
        arrays = self.arrays
        state, in_use = (arrays.revision, len(arrays.expanded)), arrays.expanded.in_use()
        if state != self._planned:
            self.plain.clear()
            self._query_plans.clear()
            self._kept_plans.clear()
            self._rows_plan = None
            if state[1] != self._planned[1]:
                self.workspaces, self._shared = {}, {}
            self._planned = state
        if width not in self.workspaces:
            shared = self._shared[width] = ModelRows(self.model, width, arrays.dtype)
            names = list(arrays.expanded)

            def make() -> Workspace:
                rows = shared.own(names, in_use) if names else shared
                return Workspace(self.model, width, arrays.dtype, rows, arrays.ngiven)

            self.workspaces[width] = self.team.build(make)
        shared = self._shared[width]
        shared.refresh()
        arrays.check_edits()
        for w in self.workspaces[width]:
            if w.rows is not shared:
                w.rows.refresh_sizes(in_use)
            if self.disabled:
                w.rows.record.set_size("opt_disableflags", self.model.opt_disableflags | self.disabled)
            for name, value in self.options.items():
                w.rows.record.set_size(name, value)
            w.calls.connect()
        return self.workspaces[width]


@functools.cache
def _dimensions(loop: Stage) -> Set[str | int]:
    """Returns the sizes by which the arrays of a loop's own record are allocated."""
    return {name for layout in loop.records.values() for field in layout.stored for name in field.shape}


def _memory_key(*given: Rows) -> tuple[tuple, ...]:
    """Returns, for each kind of rows of a call, fields, addresses, shapes and strides."""
    return tuple(tuple((name, address(a), a.shape, a.strides) for name, a in field_arrays(rows)) for rows in given)


def step_flags(model: Model, nworld: int, fields: Set[str] = frozenset()) -> dict[str, int]:
    """Returns sizes of a step's record that select what it computes: bound outputs and histories of sensors (state)."""
    sensors = "sensordata" in fields or bool((model.sensor_history[:, 0] > 0).any())
    fields = fields | fields_called_for(model, sensors)
    by_sensors = sensors and bool(np.isin(model.sensor_type, (SENS_E_POTENTIAL, SENS_E_KINETIC)).any())
    flags = {size: not fields.isdisjoint(names) for size, names in WANTED.items()}
    flags |= {"want_sensors": sensors, "want_frames": sensors or flags["want_frames"]}
    flags["want_all"] |= by_sensors
    flags["keeps_list"] = nworld == 1
    # `Runner.begin` sets the address of the control kernel
    return {name: int(value) for name, value in flags.items()} | {"user_control": 0, "control_record": 0}
