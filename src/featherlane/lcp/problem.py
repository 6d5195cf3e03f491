"""A boxed LCP: checks of its inputs; the bounds in effect and the residual of a point."""

from __future__ import annotations

import reprlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.model.arguments import instance
from featherlane.engine.model.assignment import converted
from featherlane.engine.simulation.world.data import Data
from featherlane.engine.solver.lcp.status import LARGEST
from featherlane.errors import ArgumentTypeError, FeatherlaneError
from featherlane.lcp.elements import RowElement, row_elements

ASYMMETRY = 1e-10  # relative to the largest entry: products of matrices are symmetric to rounding


class ProblemError(FeatherlaneError, ValueError):
    """Raised for inputs that are not a boxed LCP; the message names the row, the given value and the allowed ones.

    See docs/errors.md#problemerror.
    """


@dataclass(frozen=True)
class Product:
    """The matrix A = J Minv J^T + diag(cfm), not formed.

    Attributes:
        J: (n, nv).
        Minv: (nv, nv), or (nv,) if it is diagonal.
        cfm: (n,).
    """

    J: np.ndarray
    Minv: np.ndarray
    cfm: np.ndarray

    def half(self) -> np.ndarray:
        """Returns J Minv (n, nv)."""
        return self.J * self.Minv if self.Minv.ndim == 1 else self.J @ self.Minv

    def dense(self) -> np.ndarray:
        """Returns A (n, n), bitwise symmetric."""
        A = self.half() @ self.J.T
        return 0.5 * (A + A.T) + np.diag(self.cfm)

    def multiply(self, x: np.ndarray) -> np.ndarray:
        """Returns A x (n,)."""
        v = self.J.T @ x
        return self.J @ (self.Minv * v if self.Minv.ndim == 1 else self.Minv @ v) + self.cfm * x

    def diagonal(self) -> np.ndarray:
        """Returns the diagonal of A (n,)."""
        return np.einsum("ij,ij->i", self.half(), self.J) + self.cfm


class Problem:
    """A x = b + w with lower <= x <= upper; w >= 0 at the lower bound, w <= 0 at the upper one, w = 0 between.

    The bounds are `lo` and `hi`.  For a friction row, `findex[i] >= 0`, they are -+(hi[i] |x[findex[i]]| + add[i]):
    then `hi` is the friction coefficient, and `lo` is ignored.

    Args:
        A: (n, n), symmetric; use `from_jacobian` for A as a product.
        b: (n,).
        lo: (n,) or a number, <= 0; -inf for none.
        hi: (n,) or a number, >= 0; inf for none.
        findex: (n,) rows whose solutions scale the bounds, -1 for none; such a row must have no findex itself.
        add: (n,) or a number, >= 0: added to hi |x[findex]|; ignored if findex < 0.
        symmetric: False for an asymmetric A, which only some methods accept.

    Raises:
        ProblemError: mismatched shapes, NaN, lo > 0 or hi < 0, an asymmetric A, a findex out of range, to its own row
            or to a row that has one.

    Source: the problem of ODE's dSolveLCP; Cottle, Pang and Stone, The Linear Complementarity Problem (1992).
    """

    def __init__(
        self,
        A: ArrayLike,
        b: ArrayLike,
        *,
        lo: ArrayLike,
        hi: ArrayLike,
        findex: ArrayLike | None = None,
        add: ArrayLike | None = None,
        symmetric: bool = True,
    ):
        self._take_vectors(b, lo, hi, findex, add)
        if not isinstance(symmetric, bool | np.bool_):
            raise ProblemError(f"symmetric is {symmetric!r}, allowed are True and False")
        self.symmetric = bool(symmetric)
        self.product: Product | None = None
        matrix = _array("A", A, (self.n, self.n))
        if symmetric:
            _check_symmetric("A", matrix)
        self._matrix: np.ndarray | None = matrix

    @classmethod
    def from_jacobian(
        cls,
        J: ArrayLike,
        Minv: ArrayLike,
        *,
        cfm: ArrayLike,
        b: ArrayLike,
        lo: ArrayLike,
        hi: ArrayLike,
        findex: ArrayLike | None = None,
        add: ArrayLike | None = None,
    ) -> Problem:
        """Creates the problem with A = J Minv J^T + diag(cfm), which is formed only for methods that need it dense.

        Args:
            J: (n, nv), rows of a Jacobian.
            Minv: (nv, nv), an inverse inertia matrix, or (nv,), its diagonal.
            cfm: (n,) or a number, >= 0.
            b, lo, hi, findex, add: as `Problem` takes them.

        Raises:
            ProblemError: as `Problem`; Minv asymmetric, or cfm < 0.
        """
        self = cls.__new__(cls)
        self._take_vectors(b, lo, hi, findex, add)
        self.symmetric, self._matrix = True, None
        J = _numbers("J", J)
        if J.ndim != 2 or len(J) != self.n:
            raise ProblemError(f"J has the shape {J.shape}, allowed is ({self.n}, nv): one row per entry of b")
        nv = J.shape[1]
        inverse = _array("Minv", Minv, (nv,) if _numbers("Minv", Minv).ndim == 1 else (nv, nv))
        if inverse.ndim == 2:
            _check_symmetric("Minv", inverse)
        softness = _array("cfm", cfm, (self.n,))
        _refuse("cfm", softness, softness < 0.0, ">= 0")
        self.product = Product(_array("J", J, (self.n, nv)), inverse, softness)
        return self

    @classmethod
    def from_data(cls, data: Data) -> Problem:
        """Creates the problem that the last step, or `forward`, of a world solved, under the contact model lcp.

        A = Y Y^T + diag(cfm) with whitened rows Y = J L^-1 D^-1/2, in the units of `data.efc_force` [N, N m]; rows are
        in the engine's order: unbounded rows, rows with constant bounds, then each contact's normal before its
        friction.  `problem.elements[i]` is the element of row i (`RowElement`).

        Args:
            data: the world; of a batch, `batch.get_data(world)`.

        Raises:
            TypeError: no Data.
            ProblemError: another contact model.
        """
        instance("data", data, Data, "a Data", ArgumentTypeError)
        if data.model.opt.contact_model != "lcp":
            raise ProblemError(f"data: got the contact model {data.model.opt.contact_model!r}, allowed is 'lcp'")
        arrays, nv = data.workspace.arrays, data.model.nv
        n = int(arrays["lcp.n"][0])
        Y = np.zeros((n, max(nv, 1)))
        for r in range(n):
            first, count, entry = (int(arrays[f"lcp.{name}"][r]) for name in ("coladr", "colnum", "rowadr"))
            Y[r, arrays["lcp.col"][first : first + count]] = arrays["lcp.Y"][entry : entry + count, 0]
        cfm, b, lo, hi, add = (arrays[f"lcp.{name}"][:n, 0].copy() for name in ("cfm", "b", "lo", "hi", "add"))
        self = cls.from_jacobian(
            Y, np.ones(max(nv, 1)), cfm=cfm, b=b, lo=lo, hi=hi, findex=arrays["lcp.findex"][:n].copy(), add=add
        )
        self.elements = row_elements(data, n)
        return self

    def _take_vectors(self, b, lo, hi, findex, add) -> None:
        self.elements: list[RowElement] = []
        b = _numbers("b", b)
        if b.ndim != 1:
            raise ProblemError(f"b has the shape {b.shape}, allowed is (n,)")
        n = self.n = len(b)
        self.b = _array("b", b, (n,))
        self.lo, self.hi = _array("lo", lo, (n,), infinite=True), _array("hi", hi, (n,), infinite=True)
        self.findex = _rows("findex", np.full(n, -1) if findex is None else findex, n)
        self.add = _array("add", 0.0 if add is None else add, (n,))
        free = self.findex < 0
        _refuse("lo", self.lo, free & (self.lo > 0.0), "<= 0")
        _refuse("hi", self.hi, self.hi < 0.0, ">= 0")
        _refuse("add", self.add, self.add < 0.0, ">= 0")
        _check_findex(self.findex)

    # ---- matrix A ----------------------------------------------------------------------------------------------------
    @property
    def matrix(self) -> np.ndarray:
        """Returns A (n, n); a product is formed at the first call."""
        if self.product is None:
            assert self._matrix is not None
            return self._matrix
        if self._matrix is None:
            self._matrix = self.product.dense()
        return self._matrix

    def multiply(self, x: ArrayLike) -> np.ndarray:
        """Returns A x (n,), without forming A if it is a product."""
        x = self._point(x)
        return self.matrix @ x if self.product is None else self.product.multiply(x)

    def diagonal(self) -> np.ndarray:
        """Returns the diagonal of A (n,)."""
        return np.diagonal(self.matrix) if self.product is None else self.product.diagonal()

    # ---- a point -----------------------------------------------------------------------------------------------------
    def bounds(self, x: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Returns (lower, upper), each (n,): the bounds in effect at x; no friction without a force, for any mu."""
        x = self._point(x)
        lower, upper = self.lo.copy(), self.hi.copy()
        rows = np.flatnonzero(self.findex >= 0)
        force, mu = np.abs(x[self.findex[rows]]), self.hi[rows]
        upper[rows] = friction_limits(mu, force, self.add[rows])
        lower[rows] = -upper[rows]
        return lower, upper

    def residual(self, x: ArrayLike, bounds: tuple[ArrayLike, ArrayLike] | None = None) -> float:
        """Returns the distance of x from a solution; 0 at solutions only.

        max |x - clip(x - w / a, lower, upper)| / max(|x|, |b| / a) with w = A x - b and a = max A_ii.

        Args:
            x: (n,).
            bounds: (lower, upper) instead of those in effect at x, for frozen friction limits.

        Returns:
            The residual, infinite if x is not finite.
        """
        x = self._point(x)
        lower, upper = self.bounds(x) if bounds is None else self._given_bounds(bounds)
        if not np.isfinite(x).all():
            return float("inf")
        a = max(float(self.diagonal().max(initial=0.0)), 0.0)
        step = 1.0 / a if a else 1.0
        with np.errstate(over="ignore", invalid="ignore"):  # the residual of values that overflow is large or infinite
            error = np.abs(x - np.clip(x - step * (self.multiply(x) - self.b), lower, upper)).max(initial=0.0)
            size = min(max(np.abs(x).max(initial=0.0), step * np.abs(self.b).max(initial=0.0)), LARGEST)
        return float(error / size if size else error) if error < np.inf else float("inf")

    def valid(self, x: ArrayLike, tol: float = 1e-10, bounds: tuple[ArrayLike, ArrayLike] | None = None) -> bool:
        """Returns whether the residual at x, under the bounds in effect or the given ones, is at most `tol`."""
        limit = _numbers("tol", tol)
        if limit.ndim or not limit >= 0.0:
            raise ProblemError(f"tol is {tol!r}, allowed is a number >= 0")
        return bool(self.residual(x, bounds) <= limit)

    def _given_bounds(self, bounds) -> tuple[np.ndarray, np.ndarray]:
        try:
            lower, upper = bounds
        except (TypeError, ValueError):
            raise ProblemError(f"bounds is {type(bounds).__name__}, allowed is a pair (lower, upper)") from None
        n = (self.n,)
        return _array("lower", lower, n, infinite=True), _array("upper", upper, n, infinite=True)

    def _point(self, x) -> np.ndarray:
        x = _numbers("x", x)
        if x.shape != (self.n,):
            raise ProblemError(f"x has the shape {x.shape}, allowed is ({self.n},)")
        return x

    def __repr__(self):
        given = "" if self.product is None else f", A = J Minv J^T + cfm with nv = {self.product.J.shape[1]}"
        return f"<Problem of {self.n} rows, {int((self.findex >= 0).sum())} of friction{given}>"


def friction_limits(mu: np.ndarray, force: np.ndarray, add: np.ndarray) -> np.ndarray:
    """Returns mu |f_n| + add; `add` where |f_n| is 0, for mu = inf too, and infinity if the product overflows."""
    with np.errstate(over="ignore"):
        return np.multiply(mu, force, out=np.zeros(mu.shape), where=force > 0.0) + add


# ---- checks ----------------------------------------------------------------------------------------------------------
def _numbers(name, value) -> np.ndarray:
    try:
        given = converted(value)
    except ValueError:
        given = np.zeros(0, object)
    if given.dtype.kind not in "biuf":
        raise ProblemError(f"{name} is {reprlib.repr(value)}, allowed are numbers")
    return given.astype(float)


def _array(name, value, shape, infinite=False) -> np.ndarray:
    given = _numbers(name, value)
    if given.shape != shape and (given.ndim or len(shape) != 1):
        raise ProblemError(f"{name} has the shape {given.shape}, allowed is {shape}")
    array = np.ascontiguousarray(np.broadcast_to(given, shape))
    _refuse(
        name, array, np.isnan(array) if infinite else ~np.isfinite(array), "no NaN" if infinite else "finite numbers"
    )
    return array


def _rows(name, value, n) -> np.ndarray:
    given = _numbers(name, value)
    if given.shape != (n,):
        raise ProblemError(f"{name} has the shape {given.shape}, allowed is ({n},)")
    whole = (np.abs(given) < 2.0**31) & (given == np.rint(given))
    if not whole.all():
        raise ProblemError(f"{name} contains {given[~whole][0]!s}, allowed are whole numbers")
    return given.astype(np.int32)


def _refuse(name, array, bad, allowed) -> None:
    if bad.any():
        place = tuple(int(k) for k in np.argwhere(bad)[0])
        raise ProblemError(f"{name}[{', '.join(map(str, place))}] is {array[place]!s}, allowed: {allowed}")


def _check_symmetric(name, A) -> None:
    gap = np.abs(A - A.T)
    if gap.max(initial=0.0) > ASYMMETRY * np.abs(A).max(initial=0.0):
        i, j = (int(k) for k in np.unravel_index(gap.argmax(), gap.shape))
        raise ProblemError(f"{name} is not symmetric: {name}[{i}, {j}] is {A[i, j]}, {name}[{j}, {i}] is {A[j, i]}")


def _check_findex(findex) -> None:
    n = len(findex)
    for i in np.flatnonzero(findex != -1):
        f = int(findex[i])
        if not 0 <= f < n:
            raise ProblemError(f"findex[{i}] is {f}, allowed are -1 (none) and the rows 0 to {n - 1}")
        if f == i or findex[f] >= 0:
            what = "the row itself" if f == i else f"row {f}, whose own findex is {int(findex[f])}"
            raise ProblemError(f"findex[{i}] is {what}, allowed are other rows with findex -1")
