"""Contacts with exact Coulomb friction for a given Delassus matrix: Newton's method inside a proximal-point iteration.

    w = A x - b,   0 <= x_n _|_ w_n >= 0,   |s| <= x_n with s_i = x_i / mu_i, or = x_n against the slip

A is positive semidefinite and may be singular.  A proximal-point iteration makes the rigid law compliant about the last
solution p: with u_n = w_n - c (x_n - p_n) held at 0 by the force of a spring,

    g_n = max(0, p_n - w_n / c_n),   g_t = the point p_t - w_t / c_t, projected to the disc |s| <= g_n

whose fixed point x = p is a solution.  With A = Y Y^T and v = Y^T x, the compliant problem is that of the contact model
`coulomb` with inertia 1 (featherlane/engine/solver/primal/proximal.py), and its solver is the same:

    residual    r(v) = v - Y^T g(Y v - b)
    Newton      full step of the nonsymmetric derivative, if it halves |r|
    otherwise   a step along the symmetric derivative, to the minimum of the cost with the bounds of the current point

Matrices are dense; the work is that of LAPACK, O(rank^3) for an iteration.
Source: P. Alart and A. Curnier (1991) for the augmented Lagrangian; V. Acary, F. Cadoux, C. Lemarechal and J. Malick,
    "A formulation of the linear discrete Coulomb friction problem via convex optimization" (2011) for the bounds held
    fixed; R. T. Rockafellar, "Monotone operators and the proximal point algorithm" (1976).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.model.arguments import whole_argument
from featherlane.engine.solver.lcp.status import Status
from featherlane.lcp.problem import Problem, ProblemError
from featherlane.lcp.solve import Solution

SOFTEST, STIFFEST, GROWTH = 1e-2, 1e-8, 0.2  # compliance c over the diagonal of A: first, last, change after a success
INEXACT = 1e-2  # the compliant problem is solved to this part of the residual
INNER = 30  # most iterations for one compliance
FEW = 8  # after at most so many iterations, the next compliance is stiffer
PATIENCE = 20  # compliances without a smaller residual, after which the best point is returned
MISSING = 1e-2  # largest error of a solution relative to b
RANK = 1e-14  # smaller eigenvalues of A count as 0, relative to the largest
NEGATIVE = 1e-6  # most negative eigenvalue of A, relative to the largest
TINY = 1e-300


class _Contacts:
    """The rows of a problem by contact, scaled to the unit cone: s = x for normals, s_i = x_i / mu_i for friction.

    Arrays by contact have the shape (nc, r): a contact's normal, then its friction rows, padded with 0 to r rows.

    Attributes:
        there: (nc, r) whether a contact has this row.
        row: (nc, r) row of the problem, 0 if there is none.
        scale: (nc, r) x / s: 1 for normals, mu for friction rows, 0 if there is none.
        diagonal: max A_ii.
        Y: (nc, r, rank) scaled rows of Y, A = Y Y^T.
        b: (nc, r) scaled right-hand side.
    """

    def __init__(self, problem: Problem):
        normals = np.flatnonzero(problem.findex < 0)
        self._check(problem, normals)
        counts = np.bincount(np.searchsorted(normals, np.arange(problem.n), side="right") - 1, minlength=len(normals))
        place = np.arange(counts.max(initial=1))
        self.there = place < counts[:, None]
        self.row = np.where(self.there, normals[:, None] + place, 0)
        mu = np.where(problem.findex < 0, 1.0, problem.hi)
        self.scale = np.where(self.there, mu[self.row], 0.0)
        self.diagonal = max(float(problem.diagonal().max(initial=0.0)), TINY)
        values, vectors = np.linalg.eigh(problem.matrix)
        kept = values > RANK * max(values.max(initial=0.0), TINY)
        if values.min(initial=0.0) < -NEGATIVE * max(values.max(initial=0.0), TINY):
            raise ProblemError(f"A has the eigenvalue {values.min():.3g}, allowed are positive semidefinite matrices")
        root = vectors[:, kept] * np.sqrt(values[kept])
        self.Y = self.scale[:, :, None] * root[self.row]
        self.b = self.gather(problem.b) * self.scale

    @staticmethod
    def _check(problem: Problem, normals: np.ndarray) -> None:
        free = (problem.findex < 0) & ~((problem.lo == 0.0) & np.isposinf(problem.hi))
        if free.any():
            i = int(np.argmax(free))
            raise ProblemError(f"row {i} has the bounds {problem.lo[i]} to {problem.hi[i]}, allowed are 0 to inf")
        for i in np.flatnonzero(problem.findex >= 0):
            k = normals[np.searchsorted(normals, i) - 1] if len(normals) and normals[0] < i else -1
            if problem.findex[i] != k:
                raise ProblemError(
                    f"findex[{i}] is {problem.findex[i]}, allowed is the last row without findex before it"
                )
            if problem.add[i] != 0.0 or not np.isfinite(problem.hi[i]):
                raise ProblemError(
                    f"friction row {i} has mu {problem.hi[i]} and add {problem.add[i]}, allowed is add 0"
                )

    def gather(self, x: np.ndarray) -> np.ndarray:
        """Returns values of rows (n,) by contact, 0 where a contact has fewer rows."""
        return np.where(self.there, x[self.row], 0.0)

    def spread(self, s: np.ndarray) -> np.ndarray:
        """Returns the forces x (n,) of forces in the unit cone."""
        x = np.zeros(self.there.sum())
        x[self.row[self.there]] = (self.scale * s)[self.there]
        return x

    def within(self, x: np.ndarray) -> np.ndarray:
        """Returns forces of rows (n,) in the unit cone: s_i = x_i / mu_i."""
        return np.where(self.scale > 0.0, self.gather(x) / np.where(self.scale > 0.0, self.scale, 1.0), 0.0)


def _shrink(length: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """Returns the factors that bring vectors of these lengths within the limits."""
    outside = length > limit
    return np.where(outside, limit / np.where(outside, length, 1.0), 1.0)


class _Compliant:
    """The compliant law about the last solution p, with stiffnesses D = 1 / c, and its derivatives.

    p, D, z and forces are arrays (nc, r) by contact in the unit cone;  v = Y^T s (rank,).
    """

    def __init__(self, contacts: _Contacts, p: np.ndarray, D: np.ndarray):
        self.Y, self.b, self.p, self.D = contacts.Y, contacts.b, p, D
        self.flat = self.Y.reshape(-1, self.Y.shape[2])

    def trial(self, v: np.ndarray) -> np.ndarray:
        """Returns the trial values z = p - D w, with w = Y v - b."""
        return self.p - self.D * ((self.flat @ v).reshape(self.b.shape) - self.b)

    def force(self, z: np.ndarray, bound: np.ndarray | None = None) -> np.ndarray:
        """Returns the forces g of the trial values z; bound: (nc,) fixed friction limits, None: the normal forces."""
        normal = np.maximum(z[:, 0], 0.0)
        limit = normal if bound is None else bound
        length = np.linalg.norm(z[:, 1:], axis=1)
        part = _shrink(length, limit)
        return np.concatenate([normal[:, None], part[:, None] * z[:, 1:]], axis=1)

    def residual(self, v: np.ndarray, z: np.ndarray, bound: np.ndarray | None = None) -> np.ndarray:
        """Returns r = v - Y^T g, for the trial values z of v."""
        return v - self.force(z, bound).ravel() @ self.flat

    def derivative(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns (H, N): dr / dv = H - N; the symmetric H is the derivative with fixed friction limits."""
        count = z.shape[1]
        held, length = z[:, 0] > 0.0, np.linalg.norm(z[:, 1:], axis=1)
        slips = held & (length > z[:, 0])
        t = z[:, 1:] / np.maximum(length, TINY)[:, None]
        part = np.where(slips, z[:, 0] / np.maximum(length, TINY), held)
        B = np.zeros((len(z), count, count))
        B[:, 0, 0] = held
        B[:, 1:, 1:] = part[:, None, None] * (np.eye(count - 1) - (slips[:, None] * t)[:, :, None] * t[:, None, :])
        B *= self.D[:, None, :]
        flat = self.flat
        H = np.eye(flat.shape[1]) + flat.T @ (B @ self.Y).reshape(flat.shape)
        slope = np.where(slips, self.D[:, 0], 0.0)[:, None] * t
        across = (slope[:, None, :] @ self.Y[:, 1:])[:, 0]
        return H, -across.T @ self.Y[:, 0]

    def length(self, v: np.ndarray, d: np.ndarray, z: np.ndarray) -> float:
        """Returns the step length along d from v to the minimum of the cost with the friction limits of v.

        z: trial values of v.  The root of the slope d^T r is found by regula falsi, alternating with bisection.
        """
        bound, dz = np.maximum(z[:, 0], 0.0), -self.D * (self.flat @ d).reshape(z.shape)

        def slope(a: float) -> float:
            return float(d @ self.residual(v + a * d, z + a * dz, bound))

        low, high = (0.0, slope(0.0)), (1.0, slope(1.0))
        while high[1] < 0.0 and high[0] < 1e6:
            low, high = high, (4.0 * high[0], slope(4.0 * high[0]))
        for k in range(20):
            middle = 0.5 * (low[0] + high[0]) if k % 2 else (low[0] * high[1] - high[0] * low[1]) / (high[1] - low[1])
            found = middle, slope(middle)
            if abs(found[1]) <= 1e-3 * abs(low[1]) or high[0] - low[0] <= 1e-12 * high[0]:
                return middle
            low, high = (found, high) if found[1] < 0.0 else (low, found)
        return low[0] or high[0]

    def solve(self, v: np.ndarray, enough: float, most: int) -> tuple[np.ndarray, int, bool]:
        """Iterates from v until |r| <= enough, at most `most` times; returns (best v, iterations, success)."""
        z = self.trial(v)
        r = self.residual(v, z)
        size = best = float(np.linalg.norm(r))
        point, iterations, idle = v, 0, 0
        while best > enough and iterations < most and idle < 8:
            H, N = self.derivative(z)
            try:
                full = v - np.linalg.solve(H - N, r)
            except np.linalg.LinAlgError:
                full = v
            z_full = self.trial(full)
            r_full = self.residual(full, z_full)
            if np.linalg.norm(r_full) <= 0.5 * size:
                v, z, r = full, z_full, r_full
            else:
                d = -np.linalg.solve(H, r)
                v = v + self.length(v, d, z) * d
                z = self.trial(v)
                r = self.residual(v, z)
            iterations, size = iterations + 1, float(np.linalg.norm(r))
            idle = 0 if size < 0.9 * best else idle + 1
            if size < best:
                point, best = v, size
        return point, iterations, best <= enough


def cone_residual(problem: Problem, x: ArrayLike) -> float:
    """Returns the distance of x from a solution with exact Coulomb friction; 0 at solutions only.

    max |x - P(x - w / a)| / max(|x|, |b| / a) with w = A x - b, a = max A_ii: P clips normal rows to x >= 0 and
    projects the friction rows of a contact to its disc.  `solve(..., friction="cone")` returns the same residual.

    Args:
        problem: normal rows from 0 to infinity, each followed by its friction rows.
        x: (n,) forces.

    Raises:
        ProblemError: another kind of row, or a wrong shape.
    """
    contacts = _Contacts(problem)
    return _residual(problem, contacts, problem._point(x))[0]


def _residual(problem: Problem, contacts: _Contacts, x: np.ndarray) -> tuple[float, float]:
    """Returns (`cone_residual`, the same error relative to b alone).

    Forces that grow along a ray make the residual small, but not the error relative to b.
    """
    w, s, a = contacts.gather(problem.multiply(x) - problem.b), contacts.within(x), contacts.diagonal
    scale = contacts.scale
    rough = scale[:, 1:].max(1, initial=0.0)[:, None]
    share = np.where(rough > 0.0, scale[:, 1:] / np.where(rough > 0.0, rough, 1.0) ** 2, 0.0)
    normal = np.maximum(s[:, 0] - w[:, 0] / a, 0.0) - s[:, 0]
    z = s[:, 1:] - w[:, 1:] * share / a  # steps equal in the metric of s
    length, limit = np.linalg.norm(z, axis=1), np.maximum(s[:, 0], 0.0)
    part = _shrink(length, limit)
    across = scale[:, 1:] * (part[:, None] * z - s[:, 1:])
    load = float(np.abs(problem.b).max(initial=0.0)) / a
    size = max(float(np.abs(x).max(initial=0.0)), load)
    error = float(max(np.abs(normal).max(initial=0.0), np.abs(across).max(initial=0.0)))
    return error / (size or 1.0), error / (load or 1.0)


def solve_cone(
    problem: Problem, x: ArrayLike | None = None, *, tolerance: float = 1e-8, iterations: int = 500
) -> Solution:
    """Solves contacts with exact Coulomb friction on second-order cones.

    Args:
        problem: normal rows from 0 to infinity, each followed by its friction rows (`findex`, `hi` = mu), A positive
            semidefinite.
        x: (n,) initial guess, 0 by default.
        tolerance: of `cone_residual`.
        iterations: most iterations, each with the factorization of a dense matrix of the rank of A.

    Returns:
        x, w, status, iterations, residual and the bounds in effect.  The status is ITERATIONS if the tolerance was not
        reached, and INFEASIBLE if only forces that grow without limit reach it; x is the best point found.

    Raises:
        ProblemError: another kind of row, an A with a negative eigenvalue, or a wrong shape.

    Source: see featherlane/lcp/cone.py.
    """
    most = whole_argument("iterations", iterations, 0, error=ProblemError)
    contacts = _Contacts(problem)
    s = contacts.within(np.zeros(problem.n) if x is None else problem._point(x))
    best = contacts.spread(s)
    least, missing = _residual(problem, contacts, best)
    diagonal = contacts.scale**2 * contacts.gather(problem.diagonal())
    weight = np.where(diagonal.max(1) > 0.0, diagonal.max(1), contacts.diagonal)
    size = max(float(np.linalg.norm(contacts.b)), TINY)
    done, soft, last, stalls = 0, SOFTEST, least, 0
    v = np.einsum("kij,ki->j", contacts.Y, s)
    while (least > tolerance or missing > MISSING) and done < most and stalls < PATIENCE:
        law = _Compliant(contacts, s, np.repeat(1.0 / (soft * weight)[:, None], s.shape[1], 1))
        enough = INEXACT * min(last, 1.0) * size / np.sqrt(contacts.diagonal)
        point, used, converged = law.solve(v, enough, min(INNER, most - done))
        force = law.force(law.trial(point))
        done += max(used, 1)
        residual, part = _residual(problem, contacts, contacts.spread(force))
        stalls = 0 if residual < 0.9 * least else stalls + 1
        if residual < least:
            best, least, missing = contacts.spread(force), residual, part
        if converged or residual < last:
            v, s, last = point, force, residual
        if not converged:
            soft = soft / GROWTH
        elif used <= FEW:
            soft = max(soft * GROWTH, STIFFEST)
    w = problem.multiply(best) - problem.b
    status = Status.ITERATIONS if least > tolerance else Status.SOLVED if missing <= MISSING else Status.INFEASIBLE
    return Solution(best, w, status, done, least, *problem.bounds(best))
