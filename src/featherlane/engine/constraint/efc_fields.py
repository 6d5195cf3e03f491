"""Fields of MuJoCo's `efc_` arrays of one world."""

from __future__ import annotations

from featherlane.engine.lanes import Field, Layout


def _int(name: str, shape: tuple, doc: str) -> Field:
    return Field(name, "int", shape, "1", doc, "efc_rows", "scratch")


def _real(name: str, shape: tuple, unit: str, doc: str) -> Field:
    return Field(name, "real", shape, unit, doc, "efc_rows", "scratch")


ALL, EQUALITIES, LOSSES, LIMITS, CONTACTS = range(5)  # places in efc_count: numbers of rows, the last one of contacts
ROWS = ("efc_nrow",)
EFC = Layout(
    "Efc",
    (
        Field("efc_nv", "size", doc="dofs"),
        Field("efc_nrow", "size", doc="capacity: rows"),
        Field("efc_ncon", "size", doc="capacity: contacts"),
        _int("efc_count", (5,), "number of rows: all, equalities, friction loss, limits; number of contacts"),
        _int("efc_source", ROWS, "number of the source row, from `_list_sources`"),
        _int("efc_type", ROWS, "mjtConstraint"),
        _int("efc_id", ROWS, "equality, dof, tendon, joint or contact"),
        _int("efc_state", ROWS, "mjtConstraintState"),
        _int("contact_slot", ("efc_ncon",), "slot of each contact"),
        _int("contact_row", ("efc_ncon",), "first row of each contact, -1: none"),
        _real("efc_J", ("efc_nrow", "efc_nv"), "1, m", "Jacobian"),
        _real("efc_pos", ROWS, "m, rad", "position error"),
        _real("efc_margin", ROWS, "m, rad", "margin"),
        _real("efc_frictionloss", ROWS, "N, N m", "friction loss"),
        _real("efc_diagA", ROWS, "1/kg", "estimate of the diagonal of J M^-1 J^T"),
        _real("efc_KBIP", ("efc_nrow", 4), "1/s^2, 1/s, 1, 1/m", "stiffness, damping, impedance, its derivative"),
        _real("efc_D", ROWS, "kg", "1 / R"),
        _real("efc_R", ROWS, "1/kg", "regularisation"),
        _real("efc_vel", ROWS, "m/s, rad/s", "velocity J v"),
        _real("efc_aref", ROWS, "m/s^2, rad/s^2", "reference acceleration"),
        _real("efc_force", ROWS, "N, N m", "force"),
        # of the current contact, along normal, tangents, and rotations about the three
        _real("direction_J", (6, "efc_nv"), "1, m", "Jacobian"),
        _real("direction_vel", (6,), "m/s, rad/s", "velocity"),
    ),
)
