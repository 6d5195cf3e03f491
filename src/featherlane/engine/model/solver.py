"""Registers the solvers of the convex contact model, each with its kernel and the fields that it reads.

Code that depends on the model's solver calls the kernels below; uncompiled they accept any object with
`opt_solver`.  `solver/table.py` registers the solvers.
"""

from __future__ import annotations

from typing import NamedTuple

from featherlane.engine.lanes import Kernel, dispatch, kernel
from featherlane.engine.lanes.choice import Choice
from featherlane.errors import ArgumentError


class ConvexSolver(NamedTuple):
    """A solver of the convex problem.

    Attributes:
        number: value of `opt_solver`.
        name: value of `model.opt.solver`.
        solve: the kernel or stage of (m, d) that computes, from the rows and its inputs, qacc, qfrc_constraint and the
            row forces, its iterations, its residual and its gap; it counts unconverged solves and records
            each iteration.
        reads_hessian: whether it uses the Hessian: the sparsity of the rows' couplings is then computed first.
        reads_inertia: whether it reads M if accelerations are computed without it.
        reads_factor: whether it reads the factor of M.
        in_forces: whether it iterates on forces: it reads the whitened blocks of the dual problem, and returns the
            force of each of their rows.
        takes_couplings: whether terms of the metric of `discrete` outside the sparsity of M may be separate rows.
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
def _number(m):
    return m.opt_solver


def _no(m):
    """Returns False."""
    return False


# ---- properties of the model's solver --------------------------------------------------------------------------------
@dispatch(_number)
def run(m, d):
    """Solves the convex problem."""


reads_hessian = Choice(_no, _number)  # (m): whether the sparsity of the Hessian is needed
reads_inertia = Choice(_no, _number)  # (m): whether it reads M itself
reads_factor = Choice(_no, _number)  # (m): whether it reads the factor of M
in_forces = Choice(_no, _number)  # (m): whether it iterates on the forces of the dual problem's blocks
takes_couplings = Choice(_no, _number)  # (m): whether metric terms may be rows


def register(solver: ConvexSolver) -> None:
    """Registers a solver, before the stages that use it are compiled.

    Raises:
        ValueError: the number or the name is already registered.
    """
    if solver.number in SOLVERS or solver.name in {other.name for other in SOLVERS.values()}:
        raise ArgumentError(f"the solver {solver.number}, {solver.name!r}, is registered already")
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
