"""Solves LCPs by the name of a method: single problems, or many with memory that is allocated once."""

from __future__ import annotations

import functools
import importlib
import math
import pkgutil
import threading
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.lanes import Record, allocate
from featherlane.engine.model.arguments import one_of, whole_argument
from featherlane.engine.simulation.tile.library import library
from featherlane.engine.solver import lcp
from featherlane.engine.solver.lcp.fields import PROBLEM
from featherlane.engine.solver.lcp.method import METHODS, ONE, Method, OptionError
from featherlane.engine.solver.lcp.status import Status
from featherlane.errors import ArgumentError
from featherlane.lcp.problem import Problem, ProblemError
from featherlane.lcp.standard_form import StandardForm

KEPT, KEPT_ROWS = 8, 256  # solvers that `solve` caches in each thread, and their most rows
MOST_ROWS = 1 << 15  # most rows of a solver: a dense A of 8 GiB
TOLERANCE = 1e-10  # residual of a solution by a standard form


@dataclass(frozen=True)
class Solution:
    """Result of a solver.

    Attributes:
        x: (n,) solution, always finite.
        w: (n,) A x - b.
        status: status code of the solver.
        iterations: iterations or pivots.
        residual: complementarity residual under the bounds in effect; see `Problem.residual`.
        lower: (n,) lower bounds in effect.
        upper: (n,) upper bounds in effect.
    """

    x: np.ndarray
    w: np.ndarray
    status: Status
    iterations: int
    residual: float
    lower: np.ndarray
    upper: np.ndarray


def methods() -> dict[str, Method]:
    """Returns all methods by name: the built-in ones, and those of `register`."""
    return dict(sorted((built_in_methods() | METHODS).items()))


@functools.cache
def built_in_methods() -> dict[str, Method]:
    """Returns the methods that the files of featherlane/engine/solver/lcp declare, by name."""
    found: dict[str, Method] = {}
    for info in pkgutil.walk_packages(lcp.__path__, "featherlane.engine.solver.lcp."):
        module = importlib.import_module(info.name)
        for value in vars(module).values():
            if isinstance(value, Method) and found.setdefault(value.name, value) is not value:
                raise ArgumentError(f"two methods have the name {value.name!r}")
    return found


def find_method(name: str) -> Method:
    """Returns the method of this name.

    Raises:
        OptionError: unknown name.
    """
    found = methods()
    return found[one_of("method", name, found, OptionError)]


class Solver:
    """A method with its options, and memory for problems of up to n rows, for solving many problems one by one.

    Args:
        n: most rows.
        method: name of the method.
        **options: options of the method.

    Attributes:
        method: the method.
        n: most rows.
        numbers: arguments of `run`, from the options.
        arrays: the fields of the record (solver/lcp/fields.py), for callers that fill them themselves.
        run: the compiled stage on them; `run(*numbers)` takes a few microseconds for a dozen rows.

    Raises:
        OptionError: an unknown method or option, or an invalid value of an option.
    """

    def __init__(self, n: int, method: str = "dantzig", **options: Any):
        self.method = find_method(method)
        self.n = whole_argument("n", n, 0, MOST_ROWS, OptionError)
        self.numbers, parameters = self.method.settings(options)
        self.arrays, self.run = _workspace(self.method, self.n if self.method.bounded else 2 * self.n)
        self.arrays["lcp.parameter"][: len(parameters), 0] = parameters

    def solve(self, problem: Problem, x: ArrayLike | None = None) -> Solution:
        """Solves one problem.

        Args:
            problem: of at most `n` rows.
            x: (n,) initial guess of iterative methods, 0 by default; pivoting methods ignore it.

        Raises:
            ProblemError: more than `n` rows, a problem that the method does not support, or an x that is not
                finite.
        """
        self._check(problem)
        start = None if x is None else _start(problem, x)
        if not self.method.bounded and not _is_standard(problem):
            return self._solve_standard(problem)
        if self.method.form == ONE:
            _load_one(self.arrays, problem)
            self.run(*self.numbers)
            return _unload_one(self.arrays, problem)
        _load_rows(self.arrays, problem, start)
        self.run(*self.numbers)
        return _unload_rows(self.arrays, problem)

    def _check(self, problem: Problem) -> None:
        name = self.method.name
        if not isinstance(problem, Problem):
            raise ProblemError(f"problem is a {type(problem).__name__}, allowed is a Problem")
        if problem.n > self.n:
            raise ProblemError(f"the problem has {problem.n} rows, allowed in this solver are at most {self.n}")
        if self.method.symmetric and not problem.symmetric:
            raise ProblemError(f"method {name!r} requires a symmetric A")

    def _solve_standard(self, problem: Problem) -> Solution:
        """Solves the problem by its standard form."""
        form = StandardForm(problem)
        _load_one(self.arrays, form.problem)
        self.run(*self.numbers)
        found = _unload_one(self.arrays, form.problem)
        x = form.solution_of(found.x)
        residual, status = problem.residual(x), found.status
        if residual <= TOLERANCE:
            status = Status.SOLVED
        elif status == Status.SOLVED:
            status = Status.INACCURATE
        with np.errstate(over="ignore", invalid="ignore"):
            w = problem.multiply(x) - problem.b
        return _finite(problem, Solution(x, w, status, found.iterations, residual, *problem.bounds(x)))


def solve(
    A: ArrayLike | Problem,
    b: ArrayLike | None = None,
    *,
    lo: ArrayLike = 0.0,
    hi: ArrayLike = np.inf,
    findex: ArrayLike | None = None,
    add: ArrayLike | None = None,
    method: str = "dantzig",
    **options: Any,
) -> Solution:
    """Solves a boxed LCP: A x = b + w, lo <= x <= hi.

    Args:
        A: (n, n), or a `Problem`; with a `Problem`, only method and options may be given.
        b: (n,).
        lo, hi, findex, add: as `Problem` takes them.
        method: name of the solver, see `methods`.
        **options: options of the method.  `dantzig` has `friction`, "frozen" (limits are computed once from the
            normals without friction, as in ODE) or "consistent" (limits follow from the solution), and `iterations`,
            the most passes towards consistent limits.

    Returns:
        x, w = A x - b, status, iterations, residual and the bounds in effect.  x is always finite; check `status`
        and `residual` for its accuracy.

    Raises:
        ProblemError: see `Problem`; a problem that the method does not support.
        OptionError: an unknown method or option, or an invalid value of an option.
    """
    if not isinstance(A, Problem):
        if b is None:
            raise ProblemError("b is missing, required with a matrix A")
        symmetric = find_method(method).symmetric
        problem = Problem(A, b, lo=lo, hi=hi, findex=findex, add=add, symmetric=symmetric)
    else:
        problem = A
        is_given = b is not None or findex is not None or add is not None
        if is_given or not (_is_default(lo, 0.0) and _is_default(hi, np.inf)):
            raise ProblemError("b, lo, hi, findex, add: allowed only with a matrix A; a Problem already contains them")
    return _kept_solver(problem.n, method, options).solve(problem)


_kept = threading.local()  # cached solvers of this thread, by method and options


def _kept_solver(n: int, method: str, options: dict[str, Any]) -> Solver:
    """Returns a solver for n rows, cached between calls if it is small: creating one takes a millisecond."""
    if n > KEPT_ROWS:
        return Solver(n, method, **options)
    found = find_method(method)
    found.settings(options)  # rejects options that are not hashable
    solvers = vars(_kept).setdefault("solvers", {})
    key = found.stage, *sorted(options.items())  # a name may have been registered again
    if key not in solvers or solvers[key].n < n:
        if len(solvers) >= KEPT:
            solvers.clear()
        solvers[key] = Solver(max(16, 1 << (n - 1).bit_length()), method, **options)
    return solvers[key]


def _is_default(value, default: float) -> bool:
    return isinstance(value, float) and value == default


def _is_standard(problem: Problem) -> bool:
    """Returns whether every row has the bounds 0 and infinity, and no friction."""
    return bool((problem.findex < 0).all() and (problem.lo == 0.0).all() and np.isposinf(problem.hi).all())


# ---- records ---------------------------------------------------------------------------------------------------------
def _workspace(method: Method, n: int):
    """Returns (arrays, the bound stage) for problems of one world of up to n rows."""
    one = (n // 8 + 1) * 8  # one more row than n, for methods with an extra variable
    sizes = {f.name: 0 for f in PROBLEM.fields if f.kind == "size"}
    if method.form == ONE:
        sizes |= {"nlcpone": one, "nlcppair": one * one}
    else:
        sizes |= {"nlcp": max(n, 1), "nlcpA": max(n, 1) ** 2}
    arrays = allocate(PROBLEM, sizes, width=1, dtype=np.float64)
    return arrays, library().bind(
        method.stage, Record(PROBLEM, sizes, arrays, width=1, dtype=np.float64), check=method.check
    )


def _load_one(arrays, problem: Problem) -> None:
    n, width = problem.n, -(-problem.n // 8) * 8
    arrays["one.n"][0] = n
    arrays["one.A"][: n * width].reshape(n, width)[:, :n] = problem.matrix
    for name in ("b", "lo", "hi", "add", "findex"):
        arrays[f"one.{name}"][:n] = getattr(problem, name)


def _finite(problem: Problem, found: Solution) -> Solution:
    """Returns the solution, with x = 0 if it is not finite, which an indefinite A can cause."""
    with np.errstate(over="ignore", invalid="ignore"):
        if math.isfinite(found.x.dot(found.w)) and math.isfinite(found.residual):
            return found
        status = Status.INACCURATE if found.status == Status.SOLVED else found.status
        if np.isfinite(found.x).all():
            finite = np.isfinite(found.w).all() and math.isfinite(found.residual)
            residual = found.residual if math.isfinite(found.residual) else math.inf
            return replace(found, status=found.status if finite else status, residual=residual)
        x = np.zeros(problem.n)
        return Solution(x, -problem.b, status, found.iterations, problem.residual(x), *problem.bounds(x))


def _unload_one(arrays, problem: Problem) -> Solution:
    n = problem.n
    x, w, lower, upper = (arrays[f"one.{name}"][:n].copy() for name in ("x", "w", "lower", "upper"))
    status, iterations, residual = (arrays[f"one.{name}"][0] for name in ("status", "niter", "residual"))
    return _finite(problem, Solution(x, w, Status(int(status)), int(iterations), float(residual), lower, upper))


def _start(problem: Problem, x: ArrayLike) -> np.ndarray:
    """Checks and returns the initial guess of an iterative method."""
    point = problem._point(x)
    for i in np.flatnonzero(~np.isfinite(point))[:1]:
        raise ProblemError(f"x[{i}] is {point[i]}, allowed: finite numbers")
    return point


def _load_rows(arrays, problem: Problem, x) -> None:
    n, A = problem.n, problem.matrix
    arrays["lcp.n"][0], arrays["lcp.dense"][0] = n, 1
    arrays["lcp.A"][: n * n, 0] = A.ravel()
    arrays["lcp.diag"][:n, 0] = np.diagonal(A)
    arrays["lcp.findex"][:n] = problem.findex
    for name in ("b", "lo", "hi", "add"):
        arrays[f"lcp.{name}"][:n, 0] = getattr(problem, name)
    arrays["lcp.x"][:n, 0] = 0.0 if x is None else x


def _unload_rows(arrays, problem: Problem) -> Solution:
    x, w = (arrays[f"lcp.{name}"][: problem.n, 0].copy() for name in ("x", "w"))
    status, iterations, residual = (arrays[f"lcp.{name}"][0, 0] for name in ("status", "niter", "residual"))
    found = Solution(x, w, Status(int(status)), int(iterations), float(residual), *problem.bounds(x))
    return _finite(problem, found)
