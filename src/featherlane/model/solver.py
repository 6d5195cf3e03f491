"""The solvers of the convex contact model: each is registered with how it solves, and what it reads.

Whoever wants to know something of the model's solver asks one of the kernels here; uncompiled they take anything with
`opt_solver`.  `solver/table.py` registers those that there are.
"""

from __future__ import annotations

from typing import NamedTuple

from featherlane.errors import ArgumentError
from featherlane.lanes import Choice, Kernel, kernel
from featherlane.lanes.choice import being, doing, no, nothing


class ConvexSolver(NamedTuple):
    """A solver of the convex problem.

    Attributes:
        number: an `opt_solver`.
        name: as `model.opt.solver` takes it.
        solve: the kernel or stage of (m, d) that writes, from the rows and what it reads, qacc, qfrc_constraint and the
            forces of the rows, its iterations, its residual and its gap, counts what did not converge, and records
            each iteration.
        reads_hessian: whether it solves with the Hessian: the pattern of the rows' couplings is found before.
        reads_inertia: whether it reads M where accelerations are found without it.
        reads_factor: whether it reads the factor of M.
        in_forces: whether it works on forces: it reads the whitened blocks of the dual problem, and ends with the force
            of each of their rows.
        takes_couplings: whether parts of the metric of `discrete` that leave the pattern of M may be rows of their own.
    """

    number: int
    name: str
    solve: Kernel
    reads_hessian: bool = False
    reads_inertia: bool = True
    reads_factor: bool = False
    in_forces: bool = False
    takes_couplings: bool = True


SOLVERS: dict[int, ConvexSolver] = {}  # by number


@kernel
def _solver(m):
    return m.opt_solver


_act, _is = doing(_solver), being(_solver)


# ---- the questions ---------------------------------------------------------------------------------------------------
run = Choice(_act, nothing)  # (m, d): the solve
reads_hessian = Choice(_is, no)  # (m): is the pattern of the Hessian to be found?
reads_inertia = Choice(_is, no)  # (m): does it read M itself?
reads_factor = Choice(_is, no)  # (m): does it read the factor of M?
in_forces = Choice(_is, no)  # (m): does it work on the forces of the dual problem's blocks?
takes_couplings = Choice(_is, no)  # (m): may rows carry parts of the metric?


def register(solver: ConvexSolver) -> None:
    """Take up a solver, before the stages that ask for it are compiled.

    Raises:
        ValueError: the number or the name is registered already.
    """
    if solver.number in SOLVERS or solver.name in {other.name for other in SOLVERS.values()}:
        raise ArgumentError(f"a solver {solver.number}, {solver.name!r} is registered already")
    SOLVERS[solver.number] = solver
    run.add(solver.number, solver.solve)
    for question, is_so in (
        (reads_hessian, solver.reads_hessian),
        (reads_inertia, solver.reads_inertia),
        (reads_factor, solver.reads_factor),
        (in_forces, solver.in_forces),
        (takes_couplings, solver.takes_couplings),
    ):
        if is_so:
            question.add(solver.number)
