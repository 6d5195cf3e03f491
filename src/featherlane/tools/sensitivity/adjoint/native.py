"""Rollouts and their adjoints as calls of compiled functions, which programs in other languages run without Python."""

from __future__ import annotations

import ctypes
import functools
from typing import Any, NamedTuple

import numpy as np

from featherlane.engine.model.enums import Disable
from featherlane.engine.simulation.batch.arrays import EVOLVING
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.tile.transfer import Plan
from featherlane.tools.sensitivity.adjoint.cotangent import STATE
from featherlane.tools.sensitivity.adjoint.product_worlds import ProductWorlds
from featherlane.tools.sensitivity.adjoint.products import REPORTS
from featherlane.tools.sensitivity.adjoint.trajectory import worlds_like


class Copy(NamedTuple):
    """Describes a copy between two arrays, or between an array and a buffer of the program that runs the calls.

    Attributes:
        target, source: contiguous arrays; None for the buffer.
        index: number of the buffer among the program's arguments or results; -1: none.
    """

    target: np.ndarray | None
    source: np.ndarray | None
    index: int = -1


class Program:
    """A rollout as a sequence: copies from the arguments, calls, copies to the results.

    Attributes:
        before, after: the copies.
        calls: for each call the address of a C function, the addresses of its records (three or four; the fourth may be
            0), and a number of tiles n: `function(records, int64 0, int64 0, int64 n)`.  None: these worlds need Python
            code.  The addresses are valid as long as this object exists.
    """

    calls: list[list[int]] | None = None

    def __init__(self, plans: list[Plan], nworld: int, before: list[Copy], after: list[Copy]):
        calls = [_call(plan, nworld) for plan in plans]
        if None not in calls:
            self.calls = [call for call in calls if call is not None]
        self.before, self.after = (
            [copy for copy in copies if any(a is not None and a.size for a in copy[:2])] for copies in (before, after)
        )
        self._plans = plans  # owners of the memory


class NativeRollout(Program):
    """Rollouts of one length: (qpos, qvel, act, control) to states after each step.

    Args:
        start: the worlds in their initial state.
        nstep: number of steps.
    """

    def __init__(self, start: Batch, nstep: int):
        # one thread: the thread pool is Python's, and compiled programs run without Python
        worlds, model = worlds_like(start, 1, 1), start.model
        nworld, ends = worlds.nworld, zip(STATE, (model.nq, model.nv, model.na), strict=True)
        control = np.zeros((nworld, nstep, model.nu), worlds.dtype)
        results = {name: np.zeros((nworld, nstep, n), worlds.dtype) for name, n in ends}
        plan = worlds.runner.plans.rollout_plan(control, results)
        before = [Copy(worlds.rows[name], rows.copy()) for name, rows in worlds.rows.items()]
        arguments = [*(worlds.rows[name] for name in STATE), control]
        before += [Copy(rows, None, k) for k, rows in enumerate(arguments)]
        super().__init__([plan], nworld, before, [Copy(None, rows, k) for k, rows in enumerate(results.values())])
        self._worlds = worlds


class NativeAdjoint(Program):
    """A rollout of one length and its adjoint, with the results of `ProductWorlds`, for worlds in float64.

    Steps are stored in reverse, as there: row `nstep - k` has the state before step k, row 0 the final state.

    Args:
        start: the worlds in their initial state.
        nstep: number of steps.
        frictionloss: include dry friction.

    Attributes:
        nrow: rows of each world.
        arguments: shapes of the program's inputs: qpos, qvel, act; these in separate rows; controls and the derivative
            of the loss with respect to the states, in rows.
        results: shapes of the outputs: costates, gradients and reports, in rows; number of resets of each world.
        nreset: number of resets before the rollout.
    """

    def __init__(self, start: Batch, nstep: int, frictionloss: bool):
        worlds, nworld, model = worlds_like(start, 1, 1), start.nworld, start.model
        fields = tuple(name for name in EVOLVING if start.rows[name].size)
        disabled = 0 if frictionloss else int(Disable.FRICTIONLOSS)
        back = ProductWorlds(model, start, 1, disabled, nstep + 1, fields)
        back.load(start)
        recorded = {name: rows[:, nstep - 1 :: -1] for name, rows in back.states.items() if name in fields}
        plan = worlds.runner.plans.rollout_plan(back.states["ctrl"][:, nstep:0:-1], recorded)
        kept = {name: rows.copy() for name, rows in worlds.rows.items()}
        for name in fields:
            back.states[name][:, nstep] = kept[name].reshape(nworld, -1)
        plan_back = back.prepared(np.arange(nworld), 1, nstep, back.width if nworld > 1 else 1)
        before = [Copy(worlds.rows[name], rows) for name, rows in kept.items()]
        in_rows = [back.states.get(name, np.zeros((nworld, back.nrow, 0))) for name in (*STATE, "ctrl")]
        arguments = [*(worlds.rows[name] for name in STATE), *in_rows, back.direct]
        results = [back.found, worlds.rows["nreset"]]
        before += [Copy(rows, None, k) for k, rows in enumerate(arguments)]
        super().__init__([plan, plan_back], nworld, before, [Copy(None, rows, k) for k, rows in enumerate(results)])
        self.nrow, self.nreset, self._worlds, self._back = back.nrow, kept["nreset"], worlds, back
        self.arguments, self.results = [a.shape for a in arguments], [a.shape for a in results]

    @staticmethod
    def split(found: Any, nx: int, nu: int) -> tuple[Any, Any, Any]:
        """Splits the first result: initial costates, gradients by controls, whether formulas served all steps."""
        return found[:, -1, :nx], found[:, :1:-1, nx : nx + nu], (found[:, 2:, -REPORTS] > 0.0).all()


def _call(plan: Plan, nworld: int) -> list[int] | None:
    """Returns a call of a plan; None if the callee is not a compiled function, or calls Python."""
    run: Any = plan.run[0]
    if plan.workspaces[0].calls.calls_python or not isinstance(run, functools.partial):
        return None
    function: Any = run.func  # of ctypes
    records = [*run.args, 0][:4]
    return [ctypes.cast(function, ctypes.c_void_p).value or 0, *records, -(-nworld // plan.width)]
