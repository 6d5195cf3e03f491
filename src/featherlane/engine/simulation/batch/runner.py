"""Defines `Runner`, which runs the calls of a batch one at a time, long ones in pieces.

A long call runs in pieces.  A piece runs within one bytecode of the calling thread (`tile.work`), so at an interrupt
(Ctrl-C) all worlds of the call are at the same step.  The Python code around a piece only prepares it and changes no
world.  A call may step several batches: each has a `Share` in it, and all shares use the same threads.
"""

from __future__ import annotations

import functools
import operator
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from featherlane.engine.lanes import Kernel
from featherlane.engine.model.arguments import one_of
from featherlane.engine.model.enums import Disable
from featherlane.engine.model.model import Model
from featherlane.engine.model.status import CONTACTS_FULL, FOUND_FULL, FOUND_NON_FINITE, NON_FINITE, ROWS_FULL
from featherlane.engine.simulation.batch.arrays import LASTING, WorldArrays
from featherlane.engine.simulation.batch.plans import Plans
from featherlane.engine.simulation.batch.recorder import Recorder
from featherlane.engine.simulation.query.query import Query
from featherlane.engine.simulation.step.forward import ACCELERATION, POSITION, VELOCITY
from featherlane.engine.simulation.tile.call_lock import Turn, hold
from featherlane.engine.simulation.tile.capacity import full_pair
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.engine.simulation.tile.team import Team
from featherlane.engine.simulation.tile.transfer import NONE, Plan, Rows, field_arrays
from featherlane.engine.simulation.tile.work import work
from featherlane.engine.simulation.user.control import NUMBERS, Controller, control_function
from featherlane.engine.simulation.user.function import UserFunction
from featherlane.engine.simulation.user.sensor import fields_read, plain_sensors, write_user_sensors
from featherlane.engine.simulation.world.recordings import inputs_of_rollout
from featherlane.errors import few, warn_of_full, warn_of_non_finite

NAMED = 8  # worlds that a warning lists
EVERY = FOUND_NON_FINITE | FOUND_FULL
PIECE_SECONDS = 0.2  # approximate delay of an interrupt
STAGES = {"position": POSITION, "velocity": VELOCITY, "acceleration": ACCELERATION}
AT_ONCE = 1000  # world steps in the first piece, whose duration is not known yet


def _every_other(rows: Mapping[str, np.ndarray], W: int) -> dict[str, np.ndarray]:
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
        warned: bits of the conditions of which a warning has been emitted or none is wanted: FOUND_NON_FINITE,
            FOUND_FULL.
        at_once: world steps that take about PIECE_SECONDS.
        turn: the lock of the worlds; None: a new one.

    Attributes:
        turn: a lock, held during a call.
        plans: the threads' workspaces, and plans of what calls copy into tiles and back.
        watcher: function called at the end of each call, or None.
    """

    def __init__(
        self,
        arrays: WorldArrays,
        team: Team,
        recorder: Recorder | None = None,
        warned: int = 0,
        at_once: int = AT_ONCE,
        turn: Turn | None = None,
    ):
        self.arrays, self.recorder, self.warned, self.at_once = arrays, recorder, warned, at_once
        self.model: Model = arrays.model
        self.turn, self.plans = turn or Turn("batch"), Plans(arrays, team, recorder)
        self.watcher: Callable[[], None] | None = None
        self._prepared: list[tuple] = [(), ()]  # state of model and arrays for which plain steps and passes are ready
        self._controls: dict[tuple[Kernel, str], UserFunction] = {}  # by kernel and signature of its own numbers

    def __getstate__(self):
        kept = {"recorder": self.recorder, "warned": self.warned, "at_once": self.at_once}
        return {"arrays": self.arrays, "team": (self.plans.team.nthread, self.plans.team.cpus), **kept}

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
        state = self.model._stamp, self.arrays.revision, self.plans.disabled
        if plain and self._prepared[nstep == 0] == state:
            hold((self.turn,), self._repeat, nstep, chosen)
        else:
            run_shares(nstep, [Share(self, chosen, brought, taken, control, stage)])
            if plain and self._is_plain():
                self._prepared[nstep == 0] = (self.model._stamp, *state[1:]) if self.model._stamp is not None else ()
        if self.warned != EVERY:
            self.warn_of_found(nstep)

    def _is_plain(self) -> bool:
        """Returns whether a call has nothing to prepare: one world in float64, whose tile reads the model's memory."""
        arrays, model = self.arrays, self.model
        special = arrays.expanded or model.user_sensors or model.user_actuators or "tree_asleep" in arrays.rows
        alone = arrays.nworld == 1 and arrays.dtype == np.float64 and self.recorder is None and not self.plans.team.cpus
        return alone and not special

    def _repeat(self, nstep: int, chosen: np.ndarray) -> None:
        """Runs a plain call without preparation, which takes half of the time of a call of one small world."""
        plan = self.plans.plain[nstep == 0, False, 1]
        plan.begin(nstep, chosen, chosen, 0, max(nstep - 1, 0))
        plan.run[0](0, 0, 1)
        if self.watcher is not None:
            self.watcher()

    def begin(self, nstep: int, share: Share) -> list[tuple[Plan, int]]:
        """Returns plans that are ready to loop over their tiles, and the number of tiles of each."""
        begun, plans, (_, chosen, brought, taken, control, stage, numbers) = [], self.plans, share
        for width, part in plans.parts(chosen):
            workspaces = plans.prepare(width)
            plan = plans.step_plan(nstep, width, brought, taken, control, numbers)
            unread = 0 if control else plans.unread(plan, nstep, stage)  # a control kernel reads outputs
            begun.append(plans.begun(plan, nstep, chosen, part, stage, unread))
            for w, record in zip(workspaces, plan.numbers, strict=True) if control else ():
                w.calls.set_control(control, record)
        return begun

    def reset(self, chosen: np.ndarray, keys: np.ndarray) -> None:
        """Sets worlds to the defaults or to keyframes, within a call."""
        self.forget(chosen)
        self.arrays.reset(chosen, keys)

    def forget(self, worlds: slice | np.ndarray) -> None:
        """Discards the recorded steps of worlds whose state is about to be set."""
        if self.recorder is not None:
            self.recorder.forget(worlds)

    def ready(self) -> None:
        """Allocates the arrays that a call may need."""
        self.arrays.keep_sleep()
        if "sensordata" in self.arrays.bound:
            for name in fields_read(self.model) - {"sensordata"}:
                self._array(name)

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

    def warn_of_found(self, nstep: int = 1, first: int = 0, found: np.ndarray | None = None, level: int = 4) -> None:
        """Warns once of worlds with non-finite or out-of-range values, and once of worlds that lost contacts or rows.

        Args:
            nstep: steps of the call; a forward pass (0) does not warn of non-finite values.
            first: number of the first world.
            found: (n,) bool, which worlds had non-finite values; None for those that have counted them since their
                reset.
            level: number of frames above this one at which the user's call stands.
        """
        flags = [w.arrays["found_bad"] for some in self.plans.workspaces.values() for w in some]
        bits = functools.reduce(operator.or_, map(operator.itemgetter(0), flags), 0) & ~self.warned
        if bits & FOUND_NON_FINITE and nstep:
            self._warn_of_bad(first, found, flags, level + 1)
        if bits & FOUND_FULL:
            self.warned |= FOUND_FULL
            full = first + np.flatnonzero(self.arrays.rows["warning"][:, [CONTACTS_FULL, ROWS_FULL]].any(axis=1))
            pair = full_pair(self.model, [w for some in self.plans.workspaces.values() for w in some])
            capacity = self.arrays.sizes["nmanifold" if pair else "nconmax"]
            warn_of_full(_who(full), capacity, pair=pair, owner="batch", level=level)

    def _warn_of_bad(self, first: int, found: np.ndarray | None, flags: Sequence[np.ndarray], level: int) -> None:
        """Warns of worlds with non-finite or out-of-range values, unless they were reset since."""
        rows = self.arrays.rows
        worlds = first + np.flatnonzero(rows["warning"][:, NON_FINITE] if found is None else found)
        if not len(worlds):
            for each in flags:
                each[0] &= ~FOUND_NON_FINITE
            return
        self.warned |= FOUND_NON_FINITE
        warn_of_non_finite(_who(worlds), found is not None or bool(rows["nreset"].any()), owner="batch", level=level)

    # ---- rollouts ----------------------------------------------------------------------------------------------------
    def control_kernel(self, control: Kernel | Controller) -> UserFunction:
        """Returns the kernel as a user function, checked at its first use with the present model."""
        form = (control.function, control.layout.signature()) if isinstance(control, Controller) else (control, "")
        known = self._controls.get(form)
        if known is None:
            known = self._controls[form] = control_function(self.model, control)
        return known

    def share(
        self, nstep: int, chosen: np.ndarray, control, result: Mapping[str, np.ndarray]
    ) -> tuple[Share, dict[str, np.ndarray]]:
        """Returns a rollout's share of a call, and the recordings that user-defined sensors read, by field.

        Args:
            nstep: steps.
            chosen: (n,) the worlds.
            control: (n, nstep, nu) or (nstep, nu) controls, a dict of inputs by field, a kernel, a controller, or None.
            result: field -> (n, nstep, ...) array to record into.
        """
        kernel, brought, reads, dtype, numbers = None, {}, {}, self.arrays.dtype, NONE
        if isinstance(control, Kernel | Controller):
            if isinstance(control, Controller):
                numbers = control.rows_for(self.arrays.nworld, dtype)
            kernel = self.control_kernel(control)
            for name in kernel.sets():
                self.arrays.lasting(name)
        elif control is not None:
            for name, values in inputs_of_rollout(control, (len(chosen), nstep), self.arrays.dims).items():
                self.arrays.lasting(name)
                brought[name] = np.ascontiguousarray(values, DATA[name].stored_as(dtype))
        for name in fields_read(self.model) - {"sensordata"} if "sensordata" in result else ():
            reads[name] = np.empty((len(chosen), nstep, *self.arrays.dims(name)), DATA[name].stored_as(dtype))
        return Share(self, chosen, brought, [*result.items(), *reads.items()], kernel, numbers=numbers), reads

    def measure_recorded(self, chosen: np.ndarray, reads: Mapping[str, np.ndarray], result) -> None:
        """Computes user-defined sensors from the recordings of a rollout."""
        if "sensordata" in result and plain_sensors(self.model):
            cutoffs = self.arrays.expanded.shared_or_own("sensor_cutoff", chosen)
            write_user_sensors(self.model, result["sensordata"], lambda name: reads[name], cutoffs)

    # ---- queries -----------------------------------------------------------------------------------------------------
    def query(self, query: Query, chosen: np.ndarray) -> Any:
        """Returns the answer to a query about the present states of worlds, without changing them.

        Args:
            query: of `featherlane.engine.simulation.query`, for as many worlds.
            chosen: (n,) numbers of the worlds.
        """
        if len(chosen):
            hold((self.turn,), self._answer, query, chosen)
        return query.answer()

    def _answer(self, query: Query, chosen: np.ndarray) -> None:
        plans = self.plans
        for workspace in plans.prepare(plans.width):
            query.enter(workspace)
        W = plans.width if query.fills_lanes else 1
        rows = [_every_other(a, W) if query.fills_lanes else a for a in (query.brought, query.taken)]
        plan = plans.query_plan(query, W * self.arrays.nworld, *rows)
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
            begun = plans.begun(plan, query.number, chosen, chosen)
        work([begun], plans.team)


def _who(worlds: np.ndarray) -> str:
    """Returns the subject of a warning about worlds; without any, they were reset since."""
    if len(worlds) < 2:
        return f"world {worlds[0]}" if len(worlds) else "a world"
    return f"worlds {few(worlds, NAMED)} each"


class Share(NamedTuple):
    """Describes the part of a call that one batch runs.

    Attributes:
        runner: runner of the batch.
        chosen: (n,) numbers of the worlds to step.
        brought, taken: rows (n, nstep, ...) that each step reads and writes, by field.
        control: the kernel that each step calls.
        stage: the last stage that is computed of the state after the steps; 0: none.
        numbers: the kernel's own numbers of all worlds, name -> (nworld, n).
    """

    runner: Runner
    chosen: np.ndarray
    brought: Rows = NONE
    taken: Rows = NONE
    control: UserFunction | None = None
    stage: int = 0
    numbers: Rows = NONE

    def of_steps(self, start: int, n: int) -> Share:
        """Returns the share of n steps from number `start` on."""
        brought, taken = (
            [(name, a[:, start : start + n]) for name, a in field_arrays(r)] for r in (self.brought, self.taken)
        )
        return self._replace(brought=brought, taken=taken)


def run_shares(nstep: int, shares: Sequence[Share]) -> None:
    """Advances all worlds of the shares by nstep steps, or runs a forward pass if it is 0.

    Args:
        nstep: steps.
        shares: one for each batch, at least one.

    Raises:
        RuntimeError: another call of one of the batches is running.
    """
    hold([share.runner.turn for share in shares], _run, nstep, shares)


def roll_shares(nstep: int, parts: Sequence[tuple[Runner, np.ndarray, Any, Mapping[str, np.ndarray]]]) -> None:
    """Runs steps with controls and recordings, and evaluates the recorded user-defined sensors.

    Args:
        nstep: steps.
        parts: runner, worlds, control and recordings of each batch, as for `Runner.share`.

    Raises:
        RuntimeError: another call of one of the batches is running.
    """
    shares = [runner.share(nstep, chosen, control, result) for runner, chosen, control, result in parts]
    used = [share for share, _ in shares if len(share.chosen)]
    if used:
        run_shares(nstep, used)
    for (runner, chosen, _, result), (_, reads) in zip(parts, shares, strict=True):
        runner.measure_recorded(chosen, reads, result)


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
        for runner, chosen, brought, _, control, _, numbers in parts:
            if runner.recorder is not None:
                kernel, given = control.function if control else None, dict(field_arrays(brought))
                given |= {NUMBERS + name: rows[chosen][:, None] for name, rows in field_arrays(numbers)}
                scratch = {f.name: f.count({}) for f in control.own.fields} if control else {}
                scratch = {name: n for name, n in scratch.items() if NUMBERS + name not in given}
                runner.recorder.before(runner.arrays, chosen, given, kernel, scratch)
        _advance(n, parts)
        for runner, chosen, *_ in parts:
            if runner.recorder is not None:
                runner.recorder.after(runner.arrays, chosen, n)
        done += n
        seconds = time.perf_counter() - start
        first.at_once = max(1, int(n * number * PIECE_SECONDS / max(seconds, 1e-9)))


def _piece(nstep: int, shares: Sequence[Share], number: int) -> int:
    """Returns how many of nstep steps to run as one piece."""
    recorders = [(s.runner.recorder, s) for s in shares if s.runner.recorder is not None]
    # a kernel's own numbers are recorded between pieces only
    pieces = [1 if s.numbers else recorder.piece(nstep, s.runner.arrays) for recorder, s in recorders]
    return min(pieces) if pieces else min(nstep, max(1, shares[0].runner.at_once // number))


def _advance(nstep: int, shares: Sequence[Share]) -> None:
    """Advances all worlds of a call by nstep steps, or runs a forward pass."""
    work([part for share in shares for part in share.runner.begin(nstep, share)], shares[0].runner.plans.team)
    for share in shares:
        share.runner.after(share.chosen)


def stage_number(stage: str | None) -> int:
    """Returns the number of a stage; 0 for None.

    Raises:
        ModelError: an unknown stage.
    """
    return 0 if stage is None else STAGES[one_of("stage", stage, STAGES)]
