"""Solves many LCPs of one structure at once, in SIMD lanes and in several threads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.lanes import Stage
from featherlane.engine.lanes.processor import tile_width
from featherlane.engine.lanes.runtime import mode
from featherlane.engine.model.arguments import whole_argument
from featherlane.engine.solver.lcp.method import ROWS, OptionError
from featherlane.engine.solver.lcp.pivot.lane_blocks import solve_lane_blocks
from featherlane.engine.solver.lcp.pivot.lane_by_lane import solve_lane_by_lane
from featherlane.engine.solver.lcp.status import Status
from featherlane.lcp.problem import friction_limits
from featherlane.lcp.problems import Matrices, Problems
from featherlane.lcp.solve import find_method, methods
from featherlane.lcp.tile import tile_of_thread

TOLERANCE = 1e-10  # residual of a solution by a pivoting method
PASSES = 12  # passes of block pivoting; problems unsolved after them are solved one by one
LANES = 60  # most rows for lanes: 36 rows take 0.6 of the time of one by one, 72 rows 1.1


@dataclass(frozen=True)
class BatchSolution:
    """Results of N problems of n rows; see `Solution`.

    Attributes:
        x: (N, n) solutions, finite in every case.
        w: (N, n) A x - b.
        status: (N,) numbers of `Status`.
        iterations: (N,) iterations or pivots.
        residual: (N,) complementarity residuals under the bounds in effect.
        lower: (N, n) lower bounds in effect.
        upper: (N, n) upper bounds in effect.
    """

    x: np.ndarray
    w: np.ndarray
    status: np.ndarray
    iterations: np.ndarray
    residual: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    @property
    def solved(self) -> np.ndarray:
        """Returns (N,) whether each problem is solved."""
        return self.status == Status.SOLVED


def solve_batch(
    A: ArrayLike | None,
    b: ArrayLike,
    *,
    lo: ArrayLike = 0.0,
    hi: ArrayLike = np.inf,
    findex: ArrayLike | None = None,
    add: ArrayLike | None = None,
    J: ArrayLike | None = None,
    Minv: ArrayLike | None = None,
    cfm: ArrayLike = 0.0,
    x: ArrayLike | None = None,
    method: str = "dantzig",
    threads: int = 1,
    **options: Any,
) -> BatchSolution:
    """Solves N boxed LCPs with the same friction rows: A x = b + w, lo <= x <= hi; see `solve` and `Problem`.

    A problem's result does not depend on the other problems, nor on the number of threads.

    Args:
        A: (N, n, n), symmetric; None if J and Minv are given: then A = J Minv J^T + diag(cfm), which is never formed.
        b: (N, n).
        lo, hi: numbers, (n,) or (N, n).
        findex: (n,), common to all problems.
        add: as lo.
        J: (N, n, nv).
        Minv: (nv, nv) or (N, nv, nv), positive definite, or its diagonal (nv,).
        cfm: a number, (n,) or (N, n), >= 0.
        x: (N, n) initial guess of iterative methods, None: 0.
        method: "pgs", "apgd", a registered solver, or "dantzig" for a dense A.  With frozen friction and up to 60
            rows, "dantzig" first uses block pivoting in lanes; it solves all remaining problems one by one.
        threads: number of threads.
        **options: options of the method.

    Raises:
        ProblemError: as `Problem`; the first index in its message is that of the problem.
        OptionError: as `solve`; a method without batches, or J and Minv for a method that needs a dense A.
    """
    found = find_method(method)
    numbers, parameters = found.settings(options)
    if found.form != ROWS and found.name != "dantzig":
        raise OptionError(
            f"method is {method!r}, allowed for a batch are {', '.join(sorted({'dantzig', *_in_lanes()}))}"
        )
    whole_argument("threads", threads, 1, error=OptionError)
    batch = Problems(Matrices(A, J, Minv, cfm), b, lo, hi, findex, add, x)
    if batch.structure.columns and found.form != ROWS:
        raise OptionError(
            f"method is {method!r}, which requires A; allowed with J and Minv are {', '.join(_in_lanes())}"
        )
    results = _Results(*batch.b.shape)
    if found.form == ROWS:
        _run(batch, results, found.stage, numbers, parameters, threads, check=found.check)
        results.set_bounds(batch)
    else:
        _pivot(batch, results, numbers, threads)
    results.make_finite(batch)
    return results.solution()


def _in_lanes() -> list[str]:
    """Returns the names of the methods that solve W problems at once."""
    return [name for name, method in methods().items() if method.form == ROWS]


def _pivot(batch: Problems, results: _Results, numbers: list[int], threads: int) -> None:
    """Solves by Dantzig's method: by block pivoting in lanes if faster, then the unsolved problems one by one."""
    left = None
    if numbers[0] == 0 and batch.structure.n <= LANES:  # friction is frozen
        _run(batch, results, solve_lane_blocks, [PASSES], [TOLERANCE], threads)
        left = results.left
    if left is None or len(left):
        _run(batch, results, solve_lane_by_lane, numbers, [TOLERANCE], threads, left)


def _run(batch: Problems, results: _Results, stage: Stage, numbers, parameters, threads: int, which=None, check=0):
    """Solves the problems `which` (None: all) tile by tile; `check` is that of `Library.bind`."""
    given, found = batch.fields, results.fields
    if which is not None:
        given = {name: array[which] for name, array in given.items()}
        found = {name: np.empty((len(which), array.shape[1])) for name, array in found.items()}
    W, count = tile_width(np.float64), len(found["lcp.x"])
    starts = range(0, count, W)
    threads = max(min(threads, len(starts)), 1)

    def work(part):
        tile = tile_of_thread(batch.structure, W, mode(), threading.get_ident())
        tile.serve(given, found, parameters)
        solve = tile.bind(stage, check)
        for k in starts[part * len(starts) // threads : (part + 1) * len(starts) // threads]:
            m = min(W, count - k)
            tile.load(k, m)
            if tile.doubtful:
                batch.check_matrices(slice(k, k + m) if which is None else which[k : k + m])
            solve(*numbers)
            tile.store(k, m)

    if threads == 1:
        work(0)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, range(threads)))
    if which is not None:
        for name, array in found.items():
            results.fields[name][which] = array


class _Results:
    """Buffers of the results; fields of a record -> (N, rows)."""

    def __init__(self, count: int, n: int):
        rows = dict.fromkeys(("lcp.x", "lcp.w", "lcp.lower", "lcp.upper"), n)
        rows |= dict.fromkeys(("lcp.status", "lcp.niter", "lcp.residual"), 1)
        self.fields = {name: np.empty((count, width)) for name, width in rows.items()}

    @property
    def left(self) -> np.ndarray:
        """Indices of the unsolved problems."""
        return np.flatnonzero(self.fields["lcp.status"][:, 0] != Status.SOLVED)

    def set_bounds(self, batch: Problems) -> None:
        """Computes the bounds in effect at x, for methods that update friction limits during the iterations."""
        x, lower, upper = (self.fields[name] for name in ("lcp.x", "lcp.lower", "lcp.upper"))
        lower[...], upper[...] = batch.lo, batch.hi
        rows = np.flatnonzero(batch.findex >= 0)
        force, mu = np.abs(x[:, batch.findex[rows]]), batch.hi[:, rows]
        upper[:, rows] = friction_limits(mu, force, batch.add[:, rows])
        lower[:, rows] = -upper[:, rows]

    def make_finite(self, batch: Problems) -> None:
        """Sets x = 0 if it is not finite; a solved problem with a non-finite w or residual becomes INACCURATE."""
        x, w, lower, upper, status, _, residual = self.fields.values()
        with np.errstate(over="ignore", invalid="ignore"):
            lost = np.flatnonzero(~(np.isfinite(w) & np.isfinite(x)).all(axis=1) | ~np.isfinite(residual[:, 0]))
        status[lost] = np.where(status[lost] == Status.SOLVED, Status.INACCURATE, status[lost])
        residual[lost] = np.inf
        lost = lost[~np.isfinite(x[lost]).all(axis=1)]
        x[lost], w[lost] = 0.0, -batch.b[lost]
        rough = batch.findex >= 0
        upper[lost] = np.where(rough, batch.add[lost], batch.hi[lost])
        lower[lost] = np.where(rough, -batch.add[lost], batch.lo[lost])

    def solution(self) -> BatchSolution:
        """Returns the results for the caller."""
        x, w, lower, upper, status, iterations, residual = self.fields.values()
        return BatchSolution(x, w, status[:, 0].astype(int), iterations[:, 0].astype(int), residual[:, 0], lower, upper)
