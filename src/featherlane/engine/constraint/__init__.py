"""Constraint rows of equalities, friction loss, limits and contacts: MuJoCo's soft constraint model.

impedance    impedance and reference acceleration (stiffness, damping) of a row
end_of_step  the same at the end of a step, in the metric of the integrator discrete
row          the stages: equalities, friction loss, limits, contacts
efc          the rows of one world as MuJoCo's `efc_` arrays
"""

from featherlane.engine.constraint.row import (
    make_contact_rows,
    make_dof_rows,
    make_general_rows,
    make_rows,
    row_capacity,
)

__all__ = ["make_contact_rows", "make_dof_rows", "make_general_rows", "make_rows", "row_capacity"]
