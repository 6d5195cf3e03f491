"""Fields of constraint rows. The worlds of a tile share slots. In a world without a slot's row, efc_D is 0."""

from featherlane.engine.lanes.layout import Declare, size

_scratch = Declare("make_rows", "scratch")
_slot = Declare("make_rows", "slot")
_exact = Declare("make_rows", "scratch", record="exact")
_report = Declare("make_rows", "report")

FIELDS = (
    _report.real("nefc", "1", "1", "number of rows of each world", dtype="int64"),
    size("nrowmax", "capacity: scalar rows (friction loss, limits, equalities, terms of the metric)"),
    size("nrowJmax", "capacity: Jacobian entries of the scalar rows"),
    # scalar rows: all but those of contacts.  The first ndofrow have one entry each: entry k is that of row k
    _scratch.int("nrow", "1", "1", "number of scalar row slots of the tile"),
    _scratch.int("ndofrow", "1", "1", "number of one-dof rows among them: friction loss first, then limits"),
    _scratch.int("nfrictionrow", "1", "1", "number of one-dof rows of friction loss"),
    _slot.int("row_dofadr", "nrowmax", "1", "first entry of the row in row_dof and row_J"),
    _slot.int("row_dofnum", "nrowmax", "1", "number of entries of the row"),
    _slot.int("row_rownum", "nrowmax", "1", "number of consecutive rows, from this one on, with the same dofs"),
    _slot.int("row_dof", "nrowJmax", "1", "dof of each entry, ascending within a row"),
    _slot.int("row_type", "nrowmax", "1", "mjtConstraint"),
    _slot.int("row_id", "nrowmax", "1", "dof, joint, tendon or equality of the row"),
    _slot.real("row_present", "nrowmax", "1", "1: the world has this row"),
    _slot.real("row_J", "nrowJmax", "1", "Jacobian entries"),
    _slot.real("row_pos", "nrowmax", "m, rad", "position error"),
    _slot.real("row_margin", "nrowmax", "m, rad", "margin"),
    _slot.real("row_vel", "nrowmax", "m/s, rad/s", "velocity J v"),
    _slot.real("row_D", "nrowmax", "kg, kg m^2", "1 / R, 0 if the world does not have the row"),
    _slot.real("row_aref", "nrowmax", "m/s^2, rad/s^2", "reference acceleration"),
    _slot.real("row_lo", "nrowmax", "N, N m", "smallest force"),
    _slot.real("row_hi", "nrowmax", "N, N m", "largest force"),
    # the exact diagonal of J M^-1 J^T, and the ratio of the metric to M
    _exact.int("dof", "nv", "1", "dofs of a row of J and their ancestors, descending"),
    _exact.int("position", "nv", "1", "position of each of these dofs in the list"),
    _exact.real("row", "nv", "m/s^2, rad/s^2", "entries of the row of J at these dofs, then of L^-T J^T"),
    _exact.real("diagonal", "nv", "kg, kg m^2", "diagonal of the metric"),
    # contacts: no Jacobian is stored; it follows from their bodies
    _slot.real("con_D", "nconmax", "kg", "1 / R of the normal row, and of every row of a pyramid; 0: no row"),
    _slot.real("con_Dt", "nconmax", "kg", "elliptic: 1 / R of friction row i over friction_i^2"),
    _slot.real("con_slip", "nconmax", "kg", "elliptic: D / (1 + mu^2) of a sliding contact"),
    _slot.real("con_damping", "nconmax", "1/s", "B of each row: aref = -B J v - con_stiffpos"),
    _slot.real("con_frictiondamping", "nconmax", "1/s", "B of the friction rows: aref = -B J v"),
    _slot.real("con_stiffpos", "nconmax", "m/s^2", "K imp (dist - includemargin) - adhesion / D"),
)
