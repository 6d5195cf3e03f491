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
from .problem import ASYMMETRY, ProblemError, _check_findex, _refuse, _rows
from .solve import find_method
from .tile import Structure, Tile

TOLERANCE = 1e-10  # residual of a solution by pivots
PASSES = 12  # of block pivoting: what is not solved by then goes on by single pivots
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
    batch = _Batch(A, b, lo, hi, findex, add, J, Minv, cfm, x)
    if batch.structure.columns and found.form != ROWS:
        raise OptionError(f"method {method!r} needs A, allowed with J and Minv are apgd and pgs")
    if found.form == ROWS:
        return batch.unload_rows(batch.run(found.stage, numbers, parameters, threads))
    return batch.unload(_pivot(batch, numbers, threads))


def _pivot(batch: _Batch, numbers: list[int], threads: int) -> np.ndarray:
    """Dantzig's method: in lanes by blocks, what that leaves by single pivots, and what is left then one by one."""
    if numbers[0]:  # limits that follow the normals
        return batch.run(solve_lane_by_lane, numbers, [TOLERANCE], threads)
    status, n = 4 * batch.structure.n, batch.structure.n
    out = batch.run(solve_lane_blocks, [PASSES], [TOLERANCE], threads)
    for stage, given in ((solve_lane_dantzig, [PIVOTS_PER_ROW * n]), (solve_lane_by_lane, numbers)):
        left = np.flatnonzero(out[:, status] != Status.SOLVED)
        if len(left):
            out[left] = batch.run(stage, given, [TOLERANCE], threads, left)
    return out


class _Batch:
    """Problems, checked and side by side."""

    def __init__(self, A, b, lo, hi, findex, add, J, Minv, cfm, x):
        b = np.asarray(b, float)
        if b.ndim != 2:
            raise ProblemError(f"b has the shape {b.shape}, allowed is (N, n)")
        self.count, n = b.shape
        shape = b.shape
        b = _numbers("b", b, shape)
        self.b, self.lo, self.hi = b, _numbers("lo", lo, shape, infinite=True), _numbers("hi", hi, shape, infinite=True)
        self.add = _numbers("add", 0.0 if add is None else add, shape)
        self.x = None if x is None else _numbers("x", x, shape)
        self.findex = _rows("findex", np.full(n, -1) if findex is None else findex, n)
        _check_findex(self.findex)
        _refuse("lo", self.lo, (self.findex < 0) & (self.lo > 0.0), "<= 0")
        _refuse("hi", self.hi, self.hi < 0.0, ">= 0")
        _refuse("add", self.add, self.add < 0.0, ">= 0")
        if (A is None) == (J is None) or (J is None) != (Minv is None):
            raise ProblemError("allowed are either A, or J and Minv")
        columns = self._take_dense(A) if A is not None else self._take_factors(J, Minv, cfm)
        self.vectors = np.hstack([self.diagonal, self.b, self.lo, self.hi, self.add])
        self.structure = Structure(n, tuple(map(int, self.findex)), columns)

    def _take_dense(self, A) -> int:
        N, n = self.b.shape
        A = _numbers("A", A, (N, n, n), whole=True)
        gap = np.abs(A - A.transpose(0, 2, 1)).max(axis=(1, 2), initial=0.0)
        bad = gap > ASYMMETRY * np.abs(A).max(axis=(1, 2), initial=0.0)
        if bad.any():
            raise ProblemError(f"A[{bad.argmax()}] is not symmetric, by {gap[bad.argmax()]}")
        self.diagonal, self.matrix = np.einsum("kii->ki", A), A.reshape(N, n * n)
        return 0

    def _take_factors(self, J, Minv, cfm) -> int:
        """Y = J L with Minv = L L^T."""
        N, n = self.b.shape
        J = np.asarray(J, float)
        if J.ndim != 3 or J.shape[:2] != (N, n) or not J.shape[2]:
            raise ProblemError(f"J has the shape {J.shape}, allowed is ({N}, {n}, nv)")
        nv = J.shape[2]
        J, cfm = _numbers("J", J, J.shape, whole=True), _numbers("cfm", cfm, (N, n))
        _refuse("cfm", cfm, cfm < 0.0, ">= 0")
        Minv = np.asarray(Minv, float)
        if Minv.ndim == 1:
            Minv = _numbers("Minv", Minv, (nv,))
            _refuse("Minv", Minv, Minv < 0.0, ">= 0")
            Y = J * np.sqrt(Minv)
        else:
            Minv = _numbers("Minv", Minv, (N, nv, nv) if Minv.ndim == 3 else (nv, nv), whole=True)
            try:
                Y = J @ np.linalg.cholesky(Minv)
            except np.linalg.LinAlgError as e:
                raise ProblemError("Minv is not positive definite") from e
        self.diagonal = np.einsum("kij,kij->ki", Y, Y) + cfm
        self.matrix = np.hstack([Y.reshape(N, n * nv), cfm])
        return nv

    def run(self, stage: Stage, numbers, parameters, threads: int, which=slice(None)) -> np.ndarray:
        """Solve those problems, tile by tile; returns (N, 4 n + 3), see `Tile.store`."""
        W, matrix, vectors = tile_width(np.float64), self.matrix[which], self.vectors[which]
        start = None if self.x is None else self.x[which]
        out = np.empty((len(vectors), 4 * self.structure.n + 3))
        starts = range(0, len(vectors), W)
        threads = max(min(threads, len(starts)), 1)

        def work(part):
            tile = Tile(self.structure, W, parameters)
            solve = tile.bind(stage)
            for k in starts[part * len(starts) // threads : (part + 1) * len(starts) // threads]:
                here = slice(k, k + W)
                tile.load(matrix[here], vectors[here], None if start is None else start[here])
                solve(*numbers)
                tile.store(out[here])

        if threads == 1:
            work(0)
        else:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(work, range(threads)))
        return out

    def unload(self, out: np.ndarray) -> BatchSolution:
        """Results of methods that write the bounds in effect."""
        n = self.structure.n
        x, w, lower, upper = (out[:, k * n : (k + 1) * n].copy() for k in range(4))
        status, iterations = out[:, 4 * n].astype(int), out[:, 4 * n + 1].astype(int)
        return BatchSolution(x, w, status, iterations, out[:, 4 * n + 2].copy(), lower, upper)

    def unload_rows(self, out: np.ndarray) -> BatchSolution:
        """Results of methods whose bounds are those at x."""
        n, rows = self.structure.n, np.flatnonzero(self.findex >= 0)
        lower, upper = out[:, 2 * n : 3 * n], out[:, 3 * n : 4 * n]
        lower[...], upper[...] = self.lo, self.hi
        force, mu = np.abs(out[:, self.findex[rows]]), self.hi[:, rows]
        upper[:, rows] = np.multiply(mu, force, out=np.zeros(mu.shape), where=force > 0.0) + self.add[:, rows]
        lower[:, rows] = -upper[:, rows]
        return self.unload(out)


def _numbers(name, value, shape, infinite=False, whole=False) -> np.ndarray:
    """An array of that shape, or, unless it has to be `whole`, what is the same for all problems."""
    try:
        given = np.asarray(value, float)
    except (TypeError, ValueError) as e:
        raise ProblemError(f"{name} is {value!r}, allowed are numbers") from e
    allowed = [shape] if whole or len(shape) < 2 else [shape, shape[1:], ()]
    if given.shape not in allowed:
        raise ProblemError(f"{name} has the shape {given.shape}, allowed is {' or '.join(map(str, allowed))}")
    bad, says = (np.isnan(given), "no NaN") if infinite else (~np.isfinite(given), "finite numbers")
    _refuse(name, given, bad, says) if given.ndim else _refuse(name, given[None], bad[None], says)
    return np.ascontiguousarray(np.broadcast_to(given, shape))
