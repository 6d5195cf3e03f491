"""Defines `Runner`, which runs the calls of a batch: threads, workspaces, transfers of tiles, pieces of long calls.

A long call runs in pieces.  A piece runs within one bytecode of the calling thread (`tile.work`), so at an interrupt
(Ctrl-C) all worlds of the call are at the same step.  The Python code around a piece only prepares it and changes no
world.  A call may step several batches: each has a `Share` in it, and all shares use the same threads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence, Set
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from featherlane.errors import warn_of_non_finite
from featherlane.lanes import Kernel, Stage, processor
from featherlane.lanes.record import address, aligned
from featherlane.model.arguments import one_of
from featherlane.model.enums import SENS_E_KINETIC, SENS_E_POTENTIAL, Disable, Enable
from featherlane.model.fields import MODEL
from featherlane.model.model import Model
from featherlane.model.status import NON_FINITE
from featherlane.simulation.batch.arrays import (
    COUNTS,
    DROPPED,
    EVOLVING,
    LASTING,
    MOCAP,
    REPORTS,
    SLEEP_ROWS,
    WorldArrays,
)
from featherlane.simulation.batch.order import TileOrder
from featherlane.simulation.batch.recorder import Recorder
from featherlane.simulation.query.moving import reads_rows
from featherlane.simulation.query.query import Query
from featherlane.simulation.step.forward import ACCELERATION, POSITION, VELOCITY
from featherlane.simulation.tile.call_lock import Turn, hold
from featherlane.simulation.tile.calls import fields_called_for
from featherlane.simulation.tile.fields import DATA, WANTED
from featherlane.simulation.tile.team import Team
from featherlane.simulation.tile.tiles import run_tiles
from featherlane.simulation.tile.transfer import NONE, Plan, Rows, Transfer, field_arrays, transfers
from featherlane.simulation.tile.work import work
from featherlane.simulation.tile.workspace import ModelRows, Workspace
from featherlane.simulation.user.control import control_function
from featherlane.simulation.user.function import UserFunction
from featherlane.simulation.user.sensor import fields_read, plain_sensors, write_user_sensors
from featherlane.simulation.world.recordings import inputs_of_rollout

NAMED = 8  # worlds that a warning lists
PIECE_SECONDS = 0.2  # approximate delay of an interrupt
ROWS_KEPT = 1 << 20  # bytes of the rows of a call whose plan is kept for the next call
STAGES = {"position": POSITION, "velocity": VELOCITY, "acceleration": ACCELERATION}
AT_ONCE = 1000  # world steps in the first piece, whose duration is not known yet


def _every_other(rows: dict[str, np.ndarray], W: int) -> dict[str, np.ndarray]:
    """Returns views of rows (n, number, ...) for transfers whose place is a query and whose steps are W queries."""
    return {
        name: as_strided(a, (1, a.shape[1] // W, *a.shape[2:]), (a.strides[1], W * a.strides[1], *a.strides[2:]))
        for name, a in rows.items()
    }


class Runner:
    """Runs calls on the arrays of worlds, one call at a time.

    Args:
        arrays: the worlds.
        team: the threads.
        recorder: records the last steps of each world; None: nothing is recorded.
        warned: True if a `NonFiniteWarning` has been emitted or none is wanted.
        at_once: world steps that take about PIECE_SECONDS.

    Attributes:
        width: worlds of a tile.
        turn: a lock, held during a call.
        team: the threads.
        watcher: function called at the end of each call, or None.
        disabled: bits of `opt.disableflags` that are set for these worlds in addition to the model's.
        options: integer options that replace the model's for these worlds, by field; set before the first call.
    """

    def __init__(
        self,
        arrays: WorldArrays,
        team: Team,
        recorder: Recorder | None = None,
        warned: bool = False,
        at_once: int = AT_ONCE,
    ):
        self.arrays, self.recorder, self.warned, self.at_once = arrays, recorder, warned, at_once
        self.model: Model = arrays.model
        self.width, self.disabled, self.options = processor.tile_width(arrays.dtype), 0, {}
        self.turn, self.team = Turn("batch"), team
        self.watcher: Callable[[], None] | None = None
        self.workspaces: dict[int, list[Workspace]] = {}  # by width, one for each thread
        self._shared: dict[int, ModelRows] = {}
        self._plans: dict[tuple[bool, bool, int], Plan] = {}  # of plain steps and forward passes
        self._rows_plan: tuple[tuple, Plan] | None = None  # the last one with rows of the call, and their addresses
        self._planned = (0, 0)  # revision of the arrays and number of expanded fields when the plans were made
        self._orders: dict[int, TileOrder] = {}
        self._prepared: list[tuple] = [(), ()]  # state of model and arrays for which plain steps and passes are ready
        self._controls: dict[Kernel, UserFunction] = {}
        self._memory: np.ndarray | None = None

    def __getstate__(self):
        kept = {"recorder": self.recorder, "warned": self.warned, "at_once": self.at_once}
        return {"arrays": self.arrays, "team": (self.team.nthread, self.team.cpus), **kept}

    def __setstate__(self, state):
        self.__init__(**state | {"team": Team(*state["team"])})

    # ---- steps -------------------------------------------------------------------------------------------------------
    def run(
        self, nstep: int, chosen: np.ndarray, brought: Rows = NONE, taken: Rows = NONE, control=None, stage: int = 0
    ) -> None:
        """Runs steps of the chosen worlds, or a forward pass; the arguments are those of `Share`."""
        if not len(chosen):
            return
        plain = not (brought or taken or control or stage) and nstep <= self.at_once
        state = self.model._stamp, self.arrays.revision, self.disabled
        if plain and self._prepared[nstep == 0] == state:
            hold((self.turn,), self._repeat, nstep, chosen)
        else:
            run_shares(nstep, [Share(self, chosen, brought, taken, control, stage)])
            if plain and self._is_plain():
                self._prepared[nstep == 0] = (self.model._stamp, *state[1:]) if self.model._stamp is not None else ()
        if nstep and not self.warned:
            self.warn_of_bad()

    def _is_plain(self) -> bool:
        """Returns whether a call has nothing to prepare: one world in float64, whose tile reads the model's memory."""
        arrays, model = self.arrays, self.model
        special = arrays.expanded or model.user_sensors or model.user_actuators or "tree_asleep" in arrays.rows
        alone = arrays.nworld == 1 and arrays.dtype == np.float64 and self.recorder is None and not self.team.cpus
        return alone and not special

    def _repeat(self, nstep: int, chosen: np.ndarray) -> None:
        """Runs a plain call without preparation, which takes half of the time of a call of one small world."""
        plan = self._plans[nstep == 0, False, 1]
        plan.begin(nstep, chosen, chosen, 0, max(nstep - 1, 0))
        plan.run[0](0, 0, 1)
        if self.watcher is not None:
            self.watcher()

    def begin(self, nstep: int, share: Share) -> list[tuple[Plan, int]]:
        """Returns plans that are ready to loop over their tiles, and the number of tiles of each."""
        begun = []
        for width, part in self.parts(share.chosen):
            workspaces = self.prepare(width)
            plan = self.step_plan(nstep, width, share)
            unread = 0 if share.control else self._unread(plan, nstep, share.stage)  # a control kernel reads outputs
            begun.append(self._begun(plan, nstep, share.chosen, part, share.stage, unread))
            for w in workspaces if share.control else ():
                w.record.set_size("user_control", w.calls.address(share.control))
        return begun

    def ready(self) -> None:
        """Allocates the arrays that a call may need."""
        self.arrays.keep_sleep()
        if "sensordata" in self.arrays.bound:
            for name in fields_read(self.model) - {"sensordata"}:
                self._array(name)
        self.arrays.computed = True

    def after(self, chosen: np.ndarray) -> None:
        """Evaluates user-defined sensors in plain Python and calls the watcher, after the steps of a call."""
        bound, model = self.arrays.bound, self.model
        if "sensordata" in bound and plain_sensors(model) and not model.opt_disableflags & Disable.SENSOR:
            values, read = bound["sensordata"][chosen], lambda name: DATA[name].public(self._array(name))[chosen]
            write_user_sensors(model, values, read, self.arrays.expanded.shared_or_own("sensor_cutoff", chosen))
            bound["sensordata"][chosen] = values
        if self.watcher is not None:
            self.watcher()

    def _array(self, name: str) -> np.ndarray:
        """Returns the array of a state field or of an output."""
        return self.arrays.lasting(name) if name in LASTING else self.arrays.output(name)

    def warn_of_bad(self, first: int = 0, found: np.ndarray | None = None) -> None:
        """Warns once of worlds with non-finite or out-of-range values.

        Args:
            first: number of the first world.
            found: (n,) bool, which worlds had such values; None for those that have counted them since their reset.
        """
        flags = [w.arrays["found_bad"] for some in self.workspaces.values() for w in some]
        if self.warned or not any(map(itemgetter(0), flags)):
            return
        rows = self.arrays.rows
        worlds = first + np.flatnonzero(rows["warning"][:, NON_FINITE] if found is None else found)
        self.warned = bool(len(worlds))
        if not self.warned:  # the worlds were reset since
            for each in flags:
                each[0] = 0
            return
        more = f" and {len(worlds) - NAMED} more" * (len(worlds) > NAMED)
        who = f"world {worlds[0]}" if len(worlds) == 1 else f"worlds {', '.join(map(str, worlds[:NAMED]))}{more} each"
        was_reset = found is not None or bool(rows["nreset"].any())
        warn_of_non_finite(who, was_reset, "batch", 3)

    # ---- rollouts ----------------------------------------------------------------------------------------------------
    def control_kernel(self, control: Kernel) -> UserFunction:
        """Returns the kernel as a user function, checked at its first use with the present model."""
        known = self._controls.get(control)
        if known is None:
            known = self._controls[control] = control_function(self.model, control)
        return known

    def share(
        self, nstep: int, chosen: np.ndarray, control, result: Mapping[str, np.ndarray]
    ) -> tuple[Share, dict[str, np.ndarray]]:
        """Returns a rollout's share of a call, and the recordings that user-defined sensors read, by field.

        Args:
            nstep: steps.
            chosen: (n,) the worlds.
            control: (n, nstep, nu) or (nstep, nu) controls, a dict of inputs by field, a kernel, or None.
            result: field -> (n, nstep, ...) array to record into.
        """
        kernel, brought, reads, dtype = None, {}, {}, self.arrays.dtype
        if isinstance(control, Kernel):
            kernel = self.control_kernel(control)
            for name in kernel.sets():
                self.arrays.lasting(name)
        elif control is not None:
            for name, values in inputs_of_rollout(control, (len(chosen), nstep), self.arrays.dims).items():
                self.arrays.lasting(name)
                brought[name] = np.ascontiguousarray(values, DATA[name].stored_as(dtype))
        for name in fields_read(self.model) - {"sensordata"} if "sensordata" in result else ():
            reads[name] = np.empty((len(chosen), nstep, *self.arrays.dims(name)), DATA[name].stored_as(dtype))
        return Share(self, chosen, brought, [*result.items(), *reads.items()], kernel), reads

    def measure_recorded(self, chosen: np.ndarray, reads: Mapping[str, np.ndarray], result) -> None:
        """Computes user-defined sensors from the recordings of a rollout."""
        if "sensordata" in result and plain_sensors(self.model):
            cutoffs = self.arrays.expanded.shared_or_own("sensor_cutoff", chosen)
            write_user_sensors(self.model, result["sensordata"], lambda name: reads[name], cutoffs)

    # ---- queries -----------------------------------------------------------------------------------------------------
    def query(self, query: Query, chosen: np.ndarray) -> Any:
        """Returns the answer to a query about the present states of worlds, without changing them.

        Args:
            query: of `featherlane.simulation.query`, for as many worlds.
            chosen: (n,) numbers of the worlds.
        """
        if len(chosen):
            hold((self.turn,), self._answer, query, chosen)
        return query.answer()

    def _answer(self, query: Query, chosen: np.ndarray) -> None:
        for workspace in self.prepare(self.width):
            query.enter(workspace)
        W = self.width if query.fills_lanes else 1
        rows = [_every_other(a, W) if query.fills_lanes else a for a in (query.brought(), query.taken())]
        plan = self.plan(query.loop, W * self.arrays.nworld, *rows, keeps=query.reads, sizes=query.sizes)
        for own in plan.own:
            for name, table in query.tables.items():
                own[0].arrays[name][: table.size] = table.ravel()
        if query.fills_lanes:
            # lane l of world w takes the queries l, l + W, l + 2 W, ...
            nstep = query.number // W
            place = np.arange(len(chosen))[:, None] * query.number + np.arange(W)
            plan.begin(nstep, np.repeat(chosen, W), place.ravel())
            begun = plan, len(chosen)
        else:
            begun = self._begun(plan, query.number, chosen)
        work([begun], self.team)

    # ---- plans -------------------------------------------------------------------------------------------------------
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
        """
        workspaces = self.prepare(width or self.width)
        kinds = {"load": [*self._load(keeps), *transfers(loop, load)]}
        kinds |= {"control": transfers(loop, brought), "record": transfers(loop, taken)}
        flags = self._flags({t.field for t in kinds["record"] if t.layout is DATA})
        plan = Plan(workspaces, kinds, n, flags, loop, memory, sizes)
        workspaces[0].calls.require(loop)
        return plan

    def loop_plan(self, loop: Stage, kept: Rows, load: Rows, brought: Rows, taken: Rows, sizes: Mapping) -> Plan:
        """Returns the plan of a loop with a separate record, which steps all worlds and stores them.

        Args:
            loop: the stage that loops over tiles.
            kept: rows (n, ...) of the loop's record that tiles load and store.
            load, brought, taken, sizes: as for `plan`.
        """
        workspaces = self.prepare(self.width)
        kinds = {"load": [*self._load((*LASTING, *COUNTS)), *transfers(loop, kept), *transfers(loop, load)]}
        kinds |= {"control": transfers(loop, brought), "record": transfers(loop, taken)}
        kinds["store"] = [*transfers(run_tiles, self._stored()), *transfers(loop, kept)]
        flags = self._flags(set(self.arrays.bound))
        plan = Plan(workspaces, kinds, self.arrays.nworld, flags, loop, self.pair_memory(), sizes)
        workspaces[0].calls.require(loop)
        return plan

    def begun(self, plan: Plan, nstep: int) -> tuple[Plan, int]:
        """Returns a plan of all worlds that is ready to loop over its tiles, and the number of tiles."""
        return self._begun(plan, nstep, np.arange(self.arrays.nworld))

    def _stored(self, forward: bool = False) -> dict[str, np.ndarray]:
        """Returns the rows that a step or a forward pass stores, by field.

        Inputs are stored, too: a rollout sets controls, and the reset of a world clears its inputs.
        """
        rows, lasts = self.arrays.rows, () if forward else (*EVOLVING, *SLEEP_ROWS, *MOCAP, *DROPPED)
        return {name: rows[name] for name in (*lasts, *REPORTS) if name in rows} | self.arrays.bound

    def step_plan(self, nstep: int, width: int, share: Share) -> Plan:
        """Returns the plan of steps or a forward pass.

        Cached are plans without rows of the call, and one plan with at most ROWS_KEPT bytes of rows, which the next
        call reuses if its rows are in the same memory.
        """
        forward, recorder = nstep == 0, self.recorder if nstep > 1 else None
        key, plain = (forward, recorder is not None, width), not share.brought and not share.taken
        if plain and not share.control and key in self._plans:
            return self._plans[key]
        memory_key = None if plain or share.control or recorder else (key, *_memory_key(share))
        if memory_key and self._rows_plan and self._rows_plan[0] == memory_key:
            return self._rows_plan[1]
        taken = transfers(run_tiles, share.taken)
        fields = (
            self.arrays.bound.keys() | {t.field for t in taken} | (share.control.fields if share.control else set())
        )
        kinds = {"load": self._load((*LASTING, *COUNTS)), "control": transfers(run_tiles, share.brought)}
        kinds["record"] = taken + (transfers(run_tiles, recorder.written(self.arrays)) if recorder else [])
        kinds["store"] = transfers(run_tiles, self._stored(forward))
        memory = self.pair_memory()
        plan = Plan(self.workspaces[width], kinds, self.arrays.nworld, self._flags(fields), memory=memory)
        if plain and not share.control:
            self._plans[key] = plan
        elif memory_key and share.nbytes <= ROWS_KEPT:
            self._rows_plan = memory_key, plan
        return plan

    def _load(self, names) -> list[Transfer]:
        """Returns transfers of the batch's fields and of per-world model fields into tiles."""
        rows, expanded = self.arrays.rows, self.arrays.expanded
        load = [Transfer(name, rows[name]) for name in names if name in rows]
        return load + [Transfer(name, a, MODEL) for name, a in expanded.items()]

    def _flags(self, fields: Set[str]) -> dict[str, int]:
        return step_flags(self.model, self.arrays.nworld, fields)

    def _begun(
        self,
        plan: Plan,
        nstep: int,
        chosen: np.ndarray,
        part: np.ndarray | None = None,
        stage: int = 0,
        nunread: int = 0,
    ) -> tuple[Plan, int]:
        """Returns a plan that is ready to loop over its tiles, and the number of tiles."""
        plan.workspaces[0].calls.require(plan.loop)
        order = self.arrange(chosen if part is None else part, plan.width, nstep)
        plan.begin(nstep, order, self._places(chosen, order) if plan.has_places else order, stage, nunread)
        return plan, -(-len(order) // plan.width)

    def _unread(self, plan: Plan, nstep: int, stage: int) -> int:
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
        if len(chosen) == self.arrays.nworld and (chosen[1:] > chosen[:-1]).all():
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
            self._plans.clear()
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


class Share(NamedTuple):
    """Describes the part of a call that one batch runs.

    Attributes:
        runner: runner of the batch.
        chosen: (n,) numbers of the worlds to step.
        brought, taken: rows (n, nstep, ...) that each step reads and writes, by field.
        control: the kernel that each step calls.
        stage: the last stage that is computed of the state after the steps; 0: none.
    """

    runner: Runner
    chosen: np.ndarray
    brought: Rows = NONE
    taken: Rows = NONE
    control: UserFunction | None = None
    stage: int = 0

    @property
    def nbytes(self) -> int:
        """Returns the size of the rows in bytes."""
        return sum(a.nbytes for rows in (self.brought, self.taken) for _, a in field_arrays(rows))

    def of_steps(self, start: int, n: int) -> Share:
        """Returns the share of n steps from number `start` on."""
        brought, taken = (
            [(name, a[:, start : start + n]) for name, a in field_arrays(r)] for r in (self.brought, self.taken)
        )
        return Share(self.runner, self.chosen, brought, taken, self.control, self.stage)


def _memory_key(share: Share) -> list[tuple]:
    """Returns fields, addresses, shapes and strides of the rows of a share."""
    given = (field_arrays(share.brought), ((None, None),), field_arrays(share.taken))
    return [(name, None if a is None else (address(a), a.shape, a.strides)) for rows in given for name, a in rows]


def run_shares(nstep: int, shares: Sequence[Share]) -> None:
    """Advances all worlds of the shares by nstep steps, or runs a forward pass if it is 0.

    Args:
        nstep: steps.
        shares: one for each batch, at least one.

    Raises:
        RuntimeError: another call of one of the batches is running.
    """
    hold([share.runner.turn for share in shares], _run, nstep, shares)


def _run(nstep: int, shares: Sequence[Share]) -> None:
    """Runs the call, while the batches are locked against other calls."""
    recorded, number = False, 0
    for share in shares:
        share.runner.ready()
        recorded |= share.runner.recorder is not None
        number += len(share.chosen)
    if nstep == 0 or (not recorded and nstep * number <= shares[0].runner.at_once):
        _advance(nstep, shares)
    else:
        _advance_in_pieces(nstep, shares, number)


def _advance_in_pieces(nstep: int, shares: Sequence[Share], number: int) -> None:
    """Advances worlds in pieces, for a long call or one that is recorded."""
    first, done = shares[0].runner, 0
    while done < nstep:
        n = _piece(nstep - done, shares, number)
        parts = shares if n == nstep else [share.of_steps(done, n) for share in shares]
        start = time.perf_counter()
        for runner, chosen, brought, _, control, _ in parts:
            if runner.recorder is not None:
                kernel = control.function if control else None
                runner.recorder.before(runner.arrays, chosen, dict(field_arrays(brought)), kernel)
        _advance(n, parts)
        for runner, chosen, *_ in parts:
            if runner.recorder is not None:
                runner.recorder.after(runner.arrays, chosen, n)
        done += n
        seconds = time.perf_counter() - start
        first.at_once = max(1, int(n * number * PIECE_SECONDS / max(seconds, 1e-9)))


def _piece(nstep: int, shares: Sequence[Share], number: int) -> int:
    """Returns how many of nstep steps to run as one piece."""
    recorders = [(s.runner.recorder, s.runner.arrays) for s in shares if s.runner.recorder is not None]
    pieces = [recorder.piece(nstep, arrays) for recorder, arrays in recorders]
    return min(pieces) if pieces else min(nstep, max(1, shares[0].runner.at_once // number))


def _advance(nstep: int, shares: Sequence[Share]) -> None:
    """Advances all worlds of a call by nstep steps, or runs a forward pass."""
    work([part for share in shares for part in share.runner.begin(nstep, share)], shares[0].runner.team)
    for share in shares:
        share.runner.after(share.chosen)


def stage_number(stage: str | None) -> int:
    """Returns the number of a stage; 0 for None.

    Raises:
        ModelError: an unknown stage.
    """
    return 0 if stage is None else STAGES[one_of("stage", stage, STAGES)]


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
    return {name: int(value) for name, value in flags.items()} | {"user_control": 0}


def begun_rollout(runner: Runner, control: np.ndarray, record: Mapping[str, np.ndarray]) -> Plan:
    """Returns the prepared plan of a rollout of all worlds, for a caller that runs its loop over the tiles.

    Args:
        runner: runner of the worlds.
        control: (nworld, nstep, nu) controls.
        record: field -> (nworld, nstep, n) array to record into.
    """
    every, nstep = np.arange(runner.arrays.nworld), control.shape[1]
    runner.prepare(runner.width)
    plan = runner.step_plan(nstep, runner.width, Share(runner, every, {"ctrl": control}, record))
    plan.workspaces[0].calls.require(plan.loop)
    plan.begin(nstep, every, every)
    return plan
