"""Prepares rollouts and their adjoints for the XLA handler: memory, plans of tiles, tables of calls and copies."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from featherlane.engine.model.enums import Disable
from featherlane.engine.simulation.batch.arrays import EVOLVING
from featherlane.engine.simulation.tile.transfer import Plan
from featherlane.integrations.jax.handler import BYTES, CALL, COPY, HEAD, NARROW, WIDEN, Handler
from featherlane.tools.sensitivity.adjoint.dynamics import STATE, Dynamics
from featherlane.tools.sensitivity.adjoint.product_worlds import ProductWorlds
from featherlane.tools.sensitivity.adjoint.products import REPORTS
from featherlane.tools.sensitivity.adjoint.trajectory import worlds_like
from featherlane.tools.sensitivity.systems.served import has_products


class Native:
    """A table for the handler.

    Attributes:
        place, token: reference of programs to the table; place -1: no table, because these worlds need Python code, or
            the registry is full.
    """

    place, token = -1, 0

    def _register(self, handler: Handler, calls, before, after, alive) -> None:
        """Builds and registers the table if everything that it calls is compiled."""
        if any(call is None for call in calls):
            return
        before, after = ([copy for copy in copies if copy[3]] for copies in (before, after))
        head = [len(calls), len(before), len(after)]
        table = np.array([*head, *np.reshape([*calls], -1), *np.reshape([*before, *after], -1)], np.int64)
        assert table.size == HEAD + CALL * len(calls) + COPY * (len(before) + len(after))
        self.place, self.token = handler.add(self, table, (calls, alive))


class NativeRollout(Native):
    """Rollouts of one length: (qpos, qvel, act, control) to states after each step.

    Args:
        dynamics: dynamics of the worlds.
        nstep: number of steps.
        dtype: dtype of arguments and results, float64 or float32.
        handler: XLA handler.
    """

    def __init__(self, dynamics: Dynamics, nstep: int, dtype: np.dtype, handler: Handler):
        # one thread: the thread pool is Python's, and compiled programs run without Python
        worlds = worlds_like(dynamics.start(), 1, 1)
        nworld, ends = worlds.nworld, zip(STATE, dynamics.sizes, strict=True)
        control = np.zeros((nworld, nstep, worlds.model.nu), worlds.dtype)
        results = {name: np.zeros((nworld, nstep, n), worlds.dtype) for name, n in ends}
        plan = worlds.runner.plans.rollout_plan(control, results)
        kept = {name: rows.copy() for name, rows in worlds.rows.items()}
        before = [_copy(worlds.rows[name], rows, -1, None) for name, rows in kept.items()]
        arguments = [*(worlds.rows[name] for name in STATE), control]
        before += [_copy(rows, None, k, dtype) for k, rows in enumerate(arguments)]
        after = [_copy(None, rows, k, dtype) for k, rows in enumerate(results.values())]
        self._register(handler, [_call(plan, nworld)], before, after, (worlds, plan, kept, control, results))


class NativeAdjoint(Native):
    """A rollout of one length and its adjoint, with the results of `ProductWorlds`, for worlds in float64.

    Steps are stored in reverse, as there: row `nstep - k` has the state before step k, row 0 the final state.

    Args:
        dynamics, nstep, dtype, handler: as for `NativeRollout`.

    Attributes:
        nrow: rows of each world.
        arguments: shapes of the program's inputs: qpos, qvel, act; these in separate rows; controls and the derivative
            of the loss with respect to the states, in rows.
        results: shapes of the outputs: costates, gradients and reports, in rows; number of resets of each world.
        nreset: number of resets before the rollout.
    """

    def __init__(self, dynamics: Dynamics, nstep: int, dtype: np.dtype, handler: Handler):
        source, model = dynamics.start(), dynamics.model
        worlds, nworld = worlds_like(source, 1, 1), source.nworld
        fields = tuple(name for name in EVOLVING if source.rows[name].size)
        disabled = 0 if dynamics.frictionloss else int(Disable.FRICTIONLOSS)
        back = ProductWorlds(model, source, 1, disabled, nstep + 1, fields)
        back.load(source)
        recorded = {name: rows[:, nstep - 1 :: -1] for name, rows in back.states.items() if name in fields}
        plan = worlds.runner.plans.rollout_plan(back.states["ctrl"][:, nstep:0:-1], recorded)
        kept = {name: rows.copy() for name, rows in worlds.rows.items()}
        for name in fields:
            back.states[name][:, nstep] = kept[name].reshape(nworld, -1)
        width = back.width if nworld > 1 else 1
        plan_back = back.prepared(np.arange(nworld), 1, nstep, width)
        before = [_copy(worlds.rows[name], rows, -1, None) for name, rows in kept.items()]
        in_rows = [back.states.get(name, np.zeros((nworld, back.nrow, 0))) for name in (*STATE, "ctrl")]
        arguments = [*(worlds.rows[name] for name in STATE), *in_rows, back.direct]
        results = [back.found, worlds.rows["nreset"]]
        before += [_copy(rows, None, k, dtype) for k, rows in enumerate(arguments)]
        after = [_copy(None, rows, k, dtype) for k, rows in enumerate(results)]
        self.nrow, self.nreset = back.nrow, kept["nreset"]
        self.arguments, self.results = [a.shape for a in arguments], [a.shape for a in results]
        calls = [_call(plan, nworld), _call(plan_back, nworld)]
        self._register(handler, calls, before, after, (worlds, back, plan, plan_back, kept, arguments, results))

    @staticmethod
    def serves(dynamics: Dynamics) -> bool:
        """Returns whether matrix-free products can be used for the worlds."""
        return dynamics.dtype == np.float64 and has_products(dynamics.model)


def split_adjoint_results(found, nx: int, nu: int):
    """Splits results of an adjoint: initial costates, gradients by controls, whether formulas served all steps."""
    return found[:, -1, :nx], found[:, :1:-1, nx : nx + nu], (found[:, 2:, -REPORTS] > 0.0).all()


def _call(plan: Plan, nworld: int) -> list[int] | None:
    """Returns a call of the table; None if the callee is not a compiled function, or calls Python."""
    run: Any = plan.run[0]
    if plan.workspaces[0].calls.calls_python or not isinstance(run, functools.partial):
        return None
    function: Any = run.func  # of ctypes
    records = [*run.args, 0][:4]
    return [ctypes.cast(function, ctypes.c_void_p).value or 0, *records, -(-nworld // plan.width)]


def _copy(to: np.ndarray | None, source: np.ndarray | None, index: int, outside: np.dtype | None) -> list[int]:
    """Returns a copy of the table: between our memory and a buffer of dtype `outside`, or within our memory."""
    ours = source if to is None else to
    assert ours is not None and ours.flags.c_contiguous
    if outside is None or outside == ours.dtype:
        kind, n = BYTES, ours.nbytes
    else:
        wide = (outside if to is None else ours.dtype) == np.float64
        kind, n = WIDEN if wide else NARROW, ours.size
    return [*(0 if a is None else a.ctypes.data for a in (to, source)), index, n, kind]
