"""Many LCPs of one structure at once, in the lanes of the processor and over threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..lanes import Stage
from ..lanes.processor import tile_width
from ..solver.lcp.lane_blocks import solve_lane_blocks
from ..solver.lcp.lane_by_lane import solve_lane_by_lane
from ..solver.lcp.lane_pivots import solve_lane_dantzig
from ..solver.lcp.method import ROWS, OptionError
from ..solver.lcp.status import Status
from .problems import Problems
from .solve import find_method
from .tile import Tile

TOLERANCE = 1e-10  # residual of a solution by pivots
PASSES = 12  # of block pivoting: what is not solved by then goes on by single pivots
GROUP = 8  # tiles whose vectors are gathered at once: they stay in the cache
PIVOTS_PER_ROW = 20  # in lanes; a problem that needs more is solved alone


@dataclass(frozen=True)
class BatchSolution:
    """What was found for N problems of n rows; see `Solution`.

    Attributes:
        x: (N, n) solutions, finite in every case.
        w: (N, n) A x - b.
        status: (N,) numbers of `Status`.
        iterations: (N,) iterations or pivots.
        residual: (N,) of complementarity, under the bounds in effect.
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
        """(N,) which problems are solved."""
        return self.status == Status.SOLVED


def solve_batch(
    A: ArrayLike | None,
    b: ArrayLike,
    lo: ArrayLike = 0.0,
    hi: ArrayLike = np.inf,
    findex: ArrayLike | None = None,
    add: ArrayLike | None = None,
    *,
    J: ArrayLike | None = None,
    Minv: ArrayLike | None = None,
    cfm: ArrayLike = 0.0,
    x: ArrayLike | None = None,
    method: str = "dantzig",
    threads: int = 1,
    **options: Any,
) -> BatchSolution:
    """Solve N boxed LCPs with the same rows of friction: A x = b + w, lo <= x <= hi; see `solve` and `Problem`.

    A problem's result does not depend on the others, nor on threads.

    Args:
        A: (N, n, n), symmetric; None where J and Minv are given, A = J Minv J^T + diag(cfm), which is never formed.
        b: (N, n).
        lo, hi: numbers, (n,) or (N, n).
        findex: (n,), common to all.
        add: as lo.
        J: (N, n, nv), with
        Minv: (nv, nv) or (N, nv, nv), positive definite, or (nv,), its diagonal, and
        cfm: a number, (n,) or (N, n), >= 0.
        x: (N, n) where iterative methods begin, None: 0.
        method: "pgs", "apgd", or "dantzig" for a dense A: in lanes where friction is frozen, and one by one where it is
            consistent, or where a problem is not solved in lanes.
        threads: how many.
        **options: the method's own.

    Raises:
        ProblemError: as `Problem`; the first index in its message is that of the problem.
        OptionError: as `solve`; a method that does not solve batches, or factors for one that needs A dense.
    """
    found = find_method(method)
    numbers, parameters = found.settings(options)
    if found.form != ROWS and found.name != "dantzig":
        raise OptionError(f"method is {method!r}, for a batch allowed are apgd, dantzig, pgs")
    if not isinstance(threads, int) or threads < 1:
        raise OptionError(f"threads is {threads!r}, allowed are whole numbers >= 1")
    batch = Problems(A, b, lo, hi, findex, add, J, Minv, cfm, x)
    if batch.structure.columns and found.form != ROWS:
        raise OptionError(f"method {method!r} needs A, allowed with J and Minv are apgd and pgs")
    results = _Results(*batch.b.shape)
    if found.form == ROWS:
        _run(batch, results, found.stage, numbers, parameters, threads)
        results.set_bounds(batch)
    else:
        _pivot(batch, results, numbers, threads)
    return results.solution()


def _pivot(batch: Problems, results: _Results, numbers: list[int], threads: int) -> None:
    """Dantzig's method: in lanes by blocks, what that leaves by single pivots, and what is left then one by one."""
    stages: list[tuple[Stage, list[int]]] = [(solve_lane_by_lane, numbers)]
    if numbers[0] == 0:  # friction is frozen
        stages = [(solve_lane_blocks, [PASSES]), (solve_lane_dantzig, [PIVOTS_PER_ROW * batch.structure.n]), *stages]
    left = None
    for stage, given in stages:
        _run(batch, results, stage, given, [TOLERANCE], threads, left)
        left = np.flatnonzero(results.numbers[0] != Status.SOLVED)
        if not len(left):
            break


def _run(batch: Problems, results: _Results, stage: Stage, numbers, parameters, threads: int, which=None) -> None:
    """Solve those problems (None: all) tile by tile."""
    W, n = tile_width(np.float64), batch.structure.n
    count = len(batch.b) if which is None else len(which)
    starts = range(0, count, GROUP * W)
    threads = max(min(threads, len(starts)), 1)

    def work(part):
        tile, vectors = Tile(batch.structure, W, parameters), np.empty((GROUP * W, 5 * n))
        solve = tile.bind(stage)
        for k in starts[part * len(starts) // threads : (part + 1) * len(starts) // threads]:
            m = min(GROUP * W, count - k)
            for c, values in enumerate(batch.vectors):
                vectors[:m, c * n : (c + 1) * n] = values[k : k + m] if which is None else values[which[k : k + m]]
            for j in range(0, m, W):
                here = slice(k + j, k + min(j + W, m))
                rows = here if which is None else which[here]
                tile.load(batch.matrix[rows], vectors[j : min(j + W, m)], None if batch.x is None else batch.x[rows])
                solve(*numbers)
                tile.store(results.rows, results.numbers, rows)

    if threads == 1:
        work(0)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, range(threads)))


class _Results:
    """Memory of a solution: x, w and the bounds (4, N, n), and status, iterations and residual (3, N)."""

    def __init__(self, count: int, n: int):
        self.rows, self.numbers = np.empty((4, count, n)), np.empty((3, count))

    def set_bounds(self, batch: Problems) -> None:
        """The bounds in effect at x, for methods whose limits are live."""
        x, _, lower, upper = self.rows
        lower[...], upper[...] = batch.lo, batch.hi
        rows = np.flatnonzero(batch.findex >= 0)
        force, mu = np.abs(x[:, batch.findex[rows]]), batch.hi[:, rows]
        upper[:, rows] = np.multiply(mu, force, out=np.zeros(mu.shape), where=force > 0.0) + batch.add[:, rows]
        lower[:, rows] = -upper[:, rows]

    def solution(self) -> BatchSolution:
        """As the caller gets it."""
        status, iterations, residual = self.numbers
        x, w, lower, upper = self.rows
        return BatchSolution(x, w, status.astype(int), iterations.astype(int), residual, lower, upper)
