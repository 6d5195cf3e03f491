"""Registers a user's LCP solver: a kernel that steps and `solve` then run like the built-in ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from featherlane.engine.lanes import Kernel, Record, Stage, allocate
from featherlane.engine.lanes.record import FUNCTION, python_record
from featherlane.engine.model.arguments import whole_argument
from featherlane.engine.model.lcp_solver import REGISTERED_SOLVERS, RegisteredSolver
from featherlane.engine.simulation.user.function import UserFunction
from featherlane.engine.simulation.user.roles import LCP_SOLVER
from featherlane.engine.simulation.user.trial import called
from featherlane.engine.solver.lcp.fields import PROBLEM
from featherlane.engine.solver.lcp.method import METHODS, ROWS, TOLERANCE, Count, Method, Number, OptionError
from featherlane.engine.solver.lcp.sweep.residual import finish
from featherlane.errors import ArgumentTypeError, ModelError
from featherlane.lcp.solve import built_in_methods

WORLDS = 2  # of the trial solve, so that a branch on a value raises an error


def register(name: str, solver: Kernel, *, iterations: int = 1000) -> None:
    """Registers an LCP solver under a name, for `opt.lcp_solver`, `solve` and `solve_batch`.

    `solver(p, iterations)` is a kernel.  It improves `p.lcp.x`, at most `iterations` times, and returns the number of
    iterations: a number, or one per world.  It reads the problem from `p`, the record of W problems of one structure:

        p.lcp.n[0]                        number of rows n
        p.lcp.b[i], p.lcp.diag[i]         right-hand side, diagonal of A
        p.lcp.lo[i], p.lcp.hi[i]          bounds; for a friction row hi is mu
        p.lcp.findex[i], p.lcp.add[i]     friction rows have |x_i| <= mu |x[findex]| + add; -1: no friction row
        p.lcp.parameter[0]                tolerance of the residual; [1]: relaxation factor

    The kernels of `featherlane.lcp.kernels` compute rows of A x and bounds; the form of A, dense or factored, does not
    matter to them.  p.lcp.w, y, g, target, dx, dw, best, step and order are buffers of the solver.  It starts from
    p.lcp.x: 0 in a step.  Afterwards the engine computes w = A x - b, the residual and the status.

    Args:
        name: an identifier, not the name of a built-in method.  A name that is registered again selects the new solver
            from now on; models that have selected the old one keep it.
        solver: the kernel.
        iterations: default of the option `iterations` of `solve`; a step uses `opt.lcp_iterations`.

    Raises:
        OptionError: an invalid name, or the name of a built-in method.
        ArgumentTypeError: the solver is not a kernel.
        ModelError: it has other parameters, breaks a rule of the kernel language, writes to the problem, cannot be
            compiled, fails in a trial solve of two rows, or returns no number there.  Nothing is registered then.
        InstallationError: no compiler is installed.

    Note:
        A world's bits depend only on the world if the solver keeps a converged world unchanged while others iterate.
        Friction pyramids only: a registered solver refuses `lcp_cone="cone"`.  Pickles of models store the kernel's
        name, so it must be importable.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise OptionError(f"register: name is {name!r}, allowed are identifiers")
    if name in built_in_methods():
        raise OptionError(f"register: name is {name!r}, which is a built-in method; allowed are other identifiers")
    if not isinstance(solver, Kernel) or isinstance(solver, Stage):
        raise ArgumentTypeError(
            f"register: solver is {type(solver).__name__}, allowed is a kernel (@featherlane.kernel)"
        )
    count = whole_argument("iterations", iterations, 0, error=OptionError)
    function = UserFunction(LCP_SOLVER, f"LCP solver {name}", solver, 0, 1)
    _try(function)
    function.check_compiled()
    stage = _standalone(function)
    numbers = {"iterations": Count(count, "largest number of iterations")}
    parameters = {
        "tolerance": TOLERANCE,
        "relaxation": Number(1.0, 0.0, 2.0, "relaxation factor, if the solver has one"),
    }
    METHODS[name] = Method(name, stage, ROWS, numbers, parameters, check=FUNCTION)
    REGISTERED_SOLVERS[name] = RegisteredSolver(name, function)


_stages: dict[str, Stage] = {}  # by name, which depends on the whole code: equal solvers share one stage


def _standalone(function: UserFunction) -> Stage:
    """Returns the stage that solves standalone problems by the function."""
    solver = function.function

    def solve(p, iterations):
        p.lcp.niter[0] = solver(p, iterations)
        finish(p, 0)

    solve.__name__ = f"solve_{function.stage.name}"
    return _stages.setdefault(solve.__name__, Stage(solve, {"p": PROBLEM}))


def _try(function: UserFunction) -> None:
    """Solves two rows in two worlds, uncompiled: x = (1, 0) in both."""
    sizes: dict[str, Any] = {f.name: 0 for f in PROBLEM.fields if f.kind == "size"} | {"nlcp": 2, "nlcpA": 4}
    arrays = allocate(PROBLEM, sizes, width=WORLDS, dtype=np.float64)
    arrays["lcp.n"][0], arrays["lcp.dense"][0] = 2, 1
    arrays["lcp.A"][:, :] = np.reshape([2.0, 1.0, 1.0, 2.0], (4, 1))
    arrays["lcp.diag"][:] = 2.0
    arrays["lcp.b"][0], arrays["lcp.b"][1] = 2.0, -1.0
    arrays["lcp.hi"][:] = np.inf
    arrays["lcp.findex"][:] = -1
    arrays["lcp.parameter"][:, :] = np.reshape([1e-8, 1.0], (2, 1))
    before = {name: array.copy() for name, array in arrays.items()}
    record = python_record(Record(PROBLEM, sizes, arrays, width=WORLDS, dtype=np.float64))
    count = called(function, (record, 3), "in a trial solve")
    if isinstance(count, tuple | str | type(None)) or np.shape(count) not in ((), (WORLDS,)):
        raise ModelError(
            f"{function.label}: {function.name} returned {type(count).__name__}, allowed is the number of iterations"
        )
    changed = [
        name for name in before if name not in LCP_SOLVER.sets and not np.array_equal(before[name], arrays[name])
    ]
    if changed:
        raise ModelError(
            f"{function.label}: {function.name} wrote {', '.join(changed)}, allowed are {', '.join(LCP_SOLVER.sets)}"
        )
