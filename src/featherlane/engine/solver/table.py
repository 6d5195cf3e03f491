"""The available solvers of the convex problem: MuJoCo's.

Source: MuJoCo, chapter Computation, "Algorithms".
"""

from featherlane.engine.model.enums import CG, NEWTON, PGS
from featherlane.engine.model.solver import (
    ConvexSolver,
    in_forces,
    reads_factor,
    reads_hessian,
    reads_inertia,
    register,
    run,
)
from featherlane.engine.solver.dual.pgs import pgs
from featherlane.engine.solver.primal.cg import cg
from featherlane.engine.solver.primal.newton import newton

__all__ = ["BUILT_IN", "in_forces", "reads_factor", "reads_hessian", "reads_inertia", "run"]

BUILT_IN = (
    ConvexSolver(NEWTON, "newton", newton, reads_hessian=True, reads_inertia=False),
    ConvexSolver(CG, "cg", cg, reads_factor=True),
    ConvexSolver(PGS, "pgs", pgs, reads_factor=True, in_forces=True, takes_couplings=False),
)

for solver in BUILT_IN:
    register(solver)
