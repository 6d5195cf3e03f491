"""A rollout made ready for the handler: memory of its own, the plan of its tiles, the table of what is copied."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from featherlane.jax.handler import BYTES, COPY, HEAD, NARROW, WIDEN, Handler
from featherlane.simulation.adjoint.dynamics import STATE, Dynamics
from featherlane.simulation.adjoint.trajectory import worlds_like
from featherlane.simulation.tile.transfer import Plan, Transfer


class NativeRollout:
    """Rollouts of one length in a table that the handler reads.

    Args:
        dynamics: the worlds.
        nstep: steps.
        dtype: of arguments and results, float64 or float32.
        handler: the handler.

    Attributes:
        place, token: by which programs name the table; place -1: there is none, for these worlds step by plain
            Python, or the registry is full.
    """

    def __init__(self, dynamics: Dynamics, nstep: int, dtype: np.dtype, handler: Handler):
        # threads are Python's: a program that was compiled has one
        worlds = self._worlds = worlds_like(dynamics.start(), 1, 1)
        nworld, every, self.place, self.token = worlds.nworld, np.arange(worlds.nworld), -1, 0
        control = np.zeros((nworld, nstep, worlds.model.nu), worlds.dtype)
        ends = zip(STATE, dynamics.sizes, strict=True)
        results = {name: np.zeros((nworld, nstep, n), worlds.dtype) for name, n in ends}
        extra = {"control": [Transfer("ctrl", control)], "record": [Transfer(name, a) for name, a in results.items()]}
        worlds._prepare(worlds.width)
        plan: Plan = worlds._plan(nstep, extra, worlds.width)
        plan.workspaces[0].calls.require(plan.loop)
        plan.begin(nstep, every, every)
        run = plan.run[0]
        if plan.workspaces[0].calls.calls_python or not isinstance(run, functools.partial):
            return
        kept = {name: rows.copy() for name, rows in worlds._arrays.items()}
        before = [_copy(worlds._arrays[name], rows, -1, None) for name, rows in kept.items()]
        arguments = [*(worlds._arrays[name] for name in STATE), control]
        before += [_copy(rows, None, k, dtype) for k, rows in enumerate(arguments)]
        after = [_copy(None, rows, k, dtype) for k, rows in enumerate(results.values())]
        before, after = ([copy for copy in copies if copy[3]] for copies in (before, after))
        function: Any = run.func  # of ctypes
        address = ctypes.cast(function, ctypes.c_void_p).value
        ntile = -(-nworld // plan.width)
        head = [address, *run.args, ntile, len(before), len(after)]
        head += [0] * (HEAD - len(head))
        table = np.array([*head, *np.reshape([*before, *after], -1)], np.int64)
        assert table.size == HEAD + COPY * (len(before) + len(after))
        self.place, self.token = handler.add(self, table, (worlds, plan, kept, control, results, run))


def _copy(to: np.ndarray | None, source: np.ndarray | None, index: int, outside: np.dtype | None) -> list[int]:
    """A copy of the table: between memory of ours and a buffer of `outside`, or within ours."""
    ours = source if to is None else to
    assert ours is not None and ours.flags.c_contiguous
    if outside is None or outside == ours.dtype:
        kind, n = BYTES, ours.nbytes
    else:
        wide = (outside if to is None else ours.dtype) == np.float64
        kind, n = WIDEN if wide else NARROW, ours.size
    return [*(0 if a is None else a.ctypes.data for a in (to, source)), index, n, kind]
