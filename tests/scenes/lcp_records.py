"""Builds records of LCPs for uncompiled kernels: one dense problem, problems in lanes, the rows of a step."""

from __future__ import annotations

from operator import attrgetter
from types import SimpleNamespace

import numpy as np

from featherlane.engine.constraint.row import make_rows
from featherlane.engine.lanes import Record, allocate
from featherlane.engine.lanes.record import python_record
from featherlane.engine.model.enums import LCP
from featherlane.engine.simulation.step.forward import forward_position, forward_velocity
from featherlane.engine.simulation.step.wake import find_contacts
from featherlane.engine.simulation.tile.workspace import Workspace
from featherlane.engine.solver.lcp.fields import PROBLEM
from featherlane.lcp import Problem
from oracles.smooth import dense

NONE = {f.name: 0 for f in PROBLEM.fields if f.kind == "size"}


def empty(width: int = 1, **sizes: int):
    """Returns a record of standalone problems, all zeros."""
    sizes = NONE | sizes
    return python_record(
        Record(PROBLEM, sizes, allocate(PROBLEM, sizes, width=width, dtype=np.float64), width=width, dtype=np.float64)
    )


def one_record(problem: Problem, left: float = np.nan):
    """Returns the record of one dense problem, in one_*, with capacity for one more row, as Lemke's method needs.

    All other values are `left`, as if by another problem.
    """
    n = problem.n
    width, room = -(-n // 8) * 8, -(-(n + 1) // 8) * 8
    r1 = empty(nlcpone=room, nlcppair=room * room)
    for f in PROBLEM.fields:
        if f.kind == "scalar":
            attrgetter(f.name)(r1).array[...] = left
    r1.one.A.array[...] = 0.0
    r1.one.n[0] = n
    r1.one.A.array[: n * width].reshape(n, width)[:, :n] = problem.matrix
    for name in ("findex", "b", "lo", "hi", "add"):
        getattr(r1.one, name).array[:n] = getattr(problem, name)
    return r1


def lane_record(*problems: Problem):
    """Returns the record of problems with the same rows, one per lane, dense; with memory to solve each alone, too."""
    n, width = problems[0].n, -(-problems[0].n // 8) * 8
    p = empty(len(problems), nlcp=n, nlcpA=n * n, nlcpone=width, nlcppair=width * width)
    p.lcp.n[0], p.lcp.dense[0], p.lcp.findex.array[:n] = n, 1, problems[0].findex
    p.lcp.A.array[...] = np.stack([problem.matrix.ravel() for problem in problems], 1)
    p.lcp.diag.array[...] = np.stack([problem.diagonal() for problem in problems], 1)
    for name in ("b", "lo", "hi", "add"):
        getattr(p.lcp, name).array[...] = np.stack([getattr(problem, name) for problem in problems], 1)
    p.lcp.parameter.array[...] = [[1e-10], [1.0]]
    return p


def factored_record(rng, n: int, columns: int, width: int, each: int = 0):
    """Returns a record of sparse rows, A = Y Y^T + diag(cfm); pairs of rows share their columns.

    Args:
        n: rows.
        columns: columns of Y.
        width: number of lanes.
        each: columns of a row, 0: any number.

    Returns:
        The record; Y (width, n, columns) and cfm (width, n), dense.
    """
    room = -(-n // 8) * 8
    p = empty(width, nlcp=n, nlcpcol=n * columns, nlcpY=n * columns, nlcpz=columns, nlcpone=room,
              nlcppair=room * max(room, columns))  # fmt: skip
    Y, at, entry = np.zeros((width, n, columns)), 0, 0
    for i in range(n):
        if i % 2 == 0:
            mine = np.sort(rng.choice(columns, each or int(rng.integers(1, columns + 1)), replace=False))[::-1]
            start, at = at, at + len(mine)
            p.lcp.col.array[start:at] = mine
        p.lcp.coladr[i], p.lcp.colnum[i], p.lcp.rowadr[i] = start, len(mine), entry
        Y[:, i, mine] = rng.standard_normal((width, len(mine)))
        p.lcp.Y.array[entry : entry + len(mine)] = Y[:, i, mine].T
        entry += len(mine)
    cfm = 0.1 + rng.random((width, n))
    p.lcp.n[0], p.lcp.findex.array[...], p.lcp.z.array[...] = n, -1, np.nan
    p.lcp.cfm.array[...], p.lcp.diag.array[...] = cfm.T, ((Y**2).sum(2) + cfm).T
    p.lcp.parameter.array[...] = [[1e-10], [1.0]]
    return p, Y, cfm


class Rows:
    """Returns a tile of a model whose constraint rows are made, and its LCP as dense matrices.

    Args:
        model: the model; its contact model becomes lcp.
        qpos, qvel: of each world, (W, nq) and (W, nv).
        make: kernels of (m, d) to run before the rows are read.
    """

    def __init__(self, model, qpos, qvel):
        model.opt_contact_model = LCP
        self.model, self.width = model, len(qpos)
        self.space = Workspace(model, self.width)
        self.m, self.d = python_record(self.space.rows.record), python_record(self.space.record)
        self.d.qpos.array[: model.nq], self.d.qvel.array[: model.nv] = np.transpose(qpos), np.transpose(qvel)
        for stage in (forward_position, forward_velocity, find_contacts, make_rows):
            self.run(stage)

    def run(self, kernel, *numbers):
        """Calls a kernel or stage of (m, d), uncompiled."""
        with np.errstate(all="ignore"):
            return kernel.function(self.m, self.d, *numbers)

    def inertia(self, world: int = 0) -> np.ndarray:
        """Returns Mh = M + h B, dense."""
        damping = self.model.dof_damping.reshape(self.model.nv, -1)[:, 0]
        return dense(self.model, self.d.M.array[:, world]) + self.model.opt.timestep * np.diag(damping)

    def triangle(self, world: int = 0) -> np.ndarray:
        """Returns S, lower, with Mh = S^T S: whitened rows are J S^-1."""
        return np.linalg.cholesky(self.inertia(world)[::-1, ::-1])[::-1, ::-1].T

    def lcp(self, world: int = 0) -> SimpleNamespace:
        """Returns the expected rows of the LCP of one world: J, c, cfm, lo, hi, findex, add; A and b."""
        d, n, h = self.d, self.d.lcp.n[0], self.model.opt.timestep
        Y = np.zeros((n, self.model.nv))
        for r in range(n):
            at = d.lcp.coladr[r] + np.arange(d.lcp.colnum[r])
            Y[r, d.lcp.col.array[at]] = d.lcp.Y.array[d.lcp.rowadr[r] : d.lcp.rowadr[r] + len(at), world]
        b, cfm, lo, hi, add, diag = (
            getattr(d.lcp, name).array[:n, world].copy() for name in ("b", "cfm", "lo", "hi", "add", "diag")
        )
        J, A = Y @ self.triangle(world), Y @ Y.T + np.diag(cfm)
        np.testing.assert_allclose(diag, A.diagonal(), rtol=1e-12)
        c = h * b + J @ (d.qvel.array[:, world] + h * d.qacc_step.array[:, world])
        findex = d.lcp.findex.array[:n].copy()
        return SimpleNamespace(J=J, c=c, cfm=h * cfm, lo=lo, hi=hi, findex=findex, add=add, A=A, b=b, n=n)
