"""Inputs of a batch: vectors are checked here, dense matrices while they are copied into lanes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.model.assignment import reals
from featherlane.engine.model.ordered_sums import cholesky, matrix_product
from featherlane.engine.solver.lcp.lane_memory import ASYMMETRY
from featherlane.errors import ModelError
from featherlane.lcp.problem import ProblemError, _check_findex, _refuse, _rows
from featherlane.lcp.tile import Structure


class Matrices(NamedTuple):
    """The matrices of a batch as they are given: A, or J and Minv with cfm."""

    A: ArrayLike | None = None
    J: ArrayLike | None = None
    Minv: ArrayLike | None = None
    cfm: ArrayLike = 0.0


class Problems:
    """N problems of one structure; see `solve_batch`.

    Attributes:
        structure: common structure of the problems.
        fields: fields of a record -> (N, rows): A or its factors, its diagonal, b, lo, hi, add, and the initial x.
        findex: (n,).
    """

    def __init__(self, matrices: Matrices, b, lo, hi, findex, add, x=None):
        A, J, Minv, cfm = matrices
        b = _reals("b", b)
        if b.ndim != 2:
            raise ProblemError(f"b has the shape {b.shape}, allowed is (N, n)")
        n = b.shape[1]
        shape = b.shape
        b = _numbers("b", b, shape)
        self.b, self.lo, self.hi = b, _numbers("lo", lo, shape, infinite=True), _numbers("hi", hi, shape, infinite=True)
        self.add = _numbers("add", 0.0 if add is None else add, shape)
        x = _numbers("x", 0.0 if x is None else x, shape)
        self.findex = _rows("findex", np.full(n, -1) if findex is None else findex, n)
        _check_findex(self.findex)
        _refuse("lo", self.lo, (self.findex < 0) & (self.lo > 0.0), "<= 0")
        _refuse("hi", self.hi, self.hi < 0.0, ">= 0")
        _refuse("add", self.add, self.add < 0.0, ">= 0")
        if (A is None) == (J is None) or (J is None) != (Minv is None):
            raise ProblemError("got neither or both of A and (J, Minv), allowed is one of them")
        self.fields = {"lcp.x": x, "lcp.b": b, "lcp.lo": self.lo, "lcp.hi": self.hi, "lcp.add": self.add}
        columns = self._take_dense(A) if A is not None else self._take_factors(J, Minv, cfm)
        self.structure = Structure(n, tuple(map(int, self.findex)), columns)

    def _take_dense(self, A) -> int:
        N, n = self.b.shape
        A = np.ascontiguousarray(_reals("A", A))
        if A.shape != (N, n, n):
            raise ProblemError(f"A has the shape {A.shape}, allowed is {(N, n, n)}")
        self.fields |= {"lcp.A": A.reshape(N, n * n), "lcp.diag": np.einsum("kii->ki", A).copy()}
        return 0

    def check_matrices(self, which) -> None:
        """Raises an error for a dense A, of the problems `which`, that is not finite or not symmetric."""
        n = self.structure.n
        numbers, A = np.arange(len(self.b))[which], self.fields["lcp.A"][which].reshape(-1, n, n)
        for k, M in zip(numbers, A, strict=True):
            for i, j in np.argwhere(~np.isfinite(M))[:1]:
                raise ProblemError(f"A[{k}, {i}, {j}] is {M[i, j]}, allowed: finite numbers")
            gap = np.abs(M - M.T)
            if gap.max() > ASYMMETRY * np.abs(M).max():
                i, j = (int(v) for v in np.unravel_index(gap.argmax(), gap.shape))
                sides = f"A[{k}, {i}, {j}] is {M[i, j]}, A[{k}, {j}, {i}] is {M[j, i]}"
                raise ProblemError(f"A[{k}] is not symmetric: {sides}")

    def _take_factors(self, J, Minv, cfm) -> int:
        """Computes the factor Y = J L with Minv = L L^T."""
        N, n = self.b.shape
        J = _reals("J", J)
        if J.ndim != 3 or J.shape[:2] != (N, n) or not J.shape[2]:
            raise ProblemError(f"J has the shape {J.shape}, allowed is ({N}, {n}, nv)")
        nv = J.shape[2]
        J, cfm = _numbers("J", J, J.shape, whole=True), _numbers("cfm", cfm, (N, n))
        _refuse("cfm", cfm, cfm < 0.0, ">= 0")
        Minv = _reals("Minv", Minv)
        if Minv.ndim == 1:
            Minv = _numbers("Minv", Minv, (nv,))
            _refuse("Minv", Minv, Minv < 0.0, ">= 0")
            Y = J * np.sqrt(Minv)
        else:
            Minv = _numbers("Minv", Minv, (N, nv, nv) if Minv.ndim == 3 else (nv, nv), whole=True)
            try:
                Y = matrix_product(J, cholesky(Minv))
            except np.linalg.LinAlgError as e:
                raise ProblemError("Minv is not positive definite") from e
        Y = np.ascontiguousarray(Y)
        diagonal = matrix_product(Y[..., None, :], Y[..., None])[..., 0, 0] + cfm
        self.fields |= {"lcp.Y": Y.reshape(N, n * nv), "lcp.cfm": cfm, "lcp.diag": diagonal}
        return nv


def _reals(name, value) -> np.ndarray:
    try:
        return reals(name, value, "are numbers")
    except ModelError as e:
        raise ProblemError(f"{name} is {value!r}, allowed are numbers") from e


def _numbers(name, value, shape, infinite=False, whole=False) -> np.ndarray:
    """Returns an array of that shape, or, unless it must be `whole`, one that all problems share."""
    given = _reals(name, value)
    allowed = [shape] if whole or len(shape) < 2 else [shape, shape[1:], ()]
    if given.shape not in allowed:
        raise ProblemError(f"{name} has the shape {given.shape}, allowed is {' or '.join(map(str, allowed))}")
    bad, allowed_values = (np.isnan(given), "no NaN") if infinite else (~np.isfinite(given), "finite numbers")
    _refuse(name, given, bad, allowed_values) if given.ndim else _refuse(name, given[None], bad[None], allowed_values)
    if given.shape != shape:
        given = np.broadcast_to(given, shape[1:])
    return np.broadcast_to(np.ascontiguousarray(given), shape)
