"""Inverse of the constraint solve: computes every row's force from a given acceleration, without iterations.

At the primal problem's optimum f = -ds/dx at x = J a - aref (primal/problem.py, rows/cone.py); with a given, nothing is
left to minimise.
Source: MuJoCo mj_invConstraint; its documentation, Computation, "Inverse dynamics".
"""

from featherlane.engine.prelude import *
from featherlane.engine.solver.dual.problem import forces_at_rows
from featherlane.engine.solver.primal.problem import apply_row_forces, compute_rows_at, store_primal_forces
from featherlane.engine.solver.rows.rows import prepare_contacts
from featherlane.engine.solver.solve import uses_blocks
from featherlane.engine.solver.vectors import clear_vector


@stage
def constraint_forces(m, d, store):
    """Computes forces of all rows at the acceleration qacc.

    Args:
        store: 1 also writes row_force, con_force and dual.f; 0 keeps those of the solver.

    Reads:  qacc, cvel, all rows.
    Writes: qfrc_constraint (nv,) [N, N m]; row_force, con_force, dual.*.
    Scratch: con_body, con_arm, con_basis, con_motion, con_wrench, primal.*, body_reached.
    Cost:   O(nv + contacts).
    """
    if d.ncon_slot[0] + d.nrow[0] == 0:
        clear_vector(m, d.qfrc_constraint)
    else:
        prepare_contacts(m, d)  # writes con_body, con_arm, con_basis
        # rows x = J a - aref, then their forces
        compute_rows_at(m, d, d.qacc, d.primal.row_x, d.primal.con_y)
        apply_row_forces(m, d)  # writes qfrc_constraint
        if store:
            store_primal_forces(m, d)
            if uses_blocks(m):  # a dual solver and the no-slip solver also keep forces in dual.f
                forces_at_rows(m, d)
        for i in range(m.nv):
            # absent rows may have changed the sign of a zero: + 0 restores it
            d.qfrc_constraint[i] = d.qfrc_constraint[i] + 0.0
