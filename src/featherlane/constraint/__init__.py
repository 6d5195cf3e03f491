"""Rows: what friction, limits and contacts ask of the acceleration, and how softly.

impedance   how hard a row is (impedance), how it pulls back (reference)
discrete    the same at the end of a step, in its metric: the integrator discrete
row         the stages: friction loss, limits, contacts
efc         the same rows of one world as MuJoCo's `efc_` arrays
"""

from featherlane.constraint.row import make_contact_rows, make_dof_rows, make_general_rows, make_rows, row_capacity

__all__ = ["make_contact_rows", "make_dof_rows", "make_general_rows", "make_rows", "row_capacity"]
