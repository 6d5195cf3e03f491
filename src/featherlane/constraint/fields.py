"""Fields of constraint rows. The worlds of a tile share slots. In a world without a slot's row, efc_D is 0."""

from featherlane.lanes.layout import Declare, size

_scratch = Declare("make_rows", "scratch")
_slot = Declare("make_rows", "slot")
_exact = Declare("make_rows", "scratch", record="exact")
_report = Declare("make_rows", "report")

FIELDS = (
    _report.real("nefc", "1", "1", "number of rows of each world", dtype="int64"),
    size("ndofrowmax", "capacity: one-dof rows (friction loss, limits of slides and hinges)"),
    size("ngenrowmax", "capacity: general rows (equalities, limits of ball joints and tendons)"),
    size("ngenJmax", "capacity: Jacobian entries of the general rows"),
    # friction loss, and limits of slides and hinges: one dof per row
    _scratch.int("ndofrow", "1", "1", "number of one-dof row slots of the tile: friction loss first, then limits"),
    _scratch.int("nfrictionrow", "1", "1", "number of one-dof row slots of friction loss"),
    _slot.int("dofrow_dof", "ndofrowmax", "1", "dof of the row"),
    _slot.int("dofrow_type", "ndofrowmax", "1", "mjtConstraint"),
    _slot.int("dofrow_id", "ndofrowmax", "1", "dof (friction loss) or joint (limit) of the row"),
    _slot.real("dofrow_present", "ndofrowmax", "1", "1: the world has this row"),
    _slot.real("dofrow_J", "ndofrowmax", "1", "Jacobian entry"),
    _slot.real("dofrow_pos", "ndofrowmax", "m, rad", "position error"),
    _slot.real("dofrow_margin", "ndofrowmax", "m, rad", "margin"),
    _slot.real("dofrow_vel", "ndofrowmax", "m/s, rad/s", "velocity J v"),
    _slot.real("dofrow_D", "ndofrowmax", "kg, kg m^2", "1 / R, 0 if the world does not have the row"),
    _slot.real("dofrow_aref", "ndofrowmax", "m/s^2, rad/s^2", "reference acceleration"),
    _slot.real("dofrow_lo", "ndofrowmax", "N, N m", "smallest force"),
    _slot.real("dofrow_hi", "ndofrowmax", "N, N m", "largest force"),
    # equalities, limits of balls and tendons: any dofs
    _scratch.int("ngenrow", "1", "1", "number of general row slots of the tile"),
    _slot.int("genrow_dofadr", "ngenrowmax", "1", "first entry of the row in genrow_dof and genrow_J"),
    _slot.int("genrow_dofnum", "ngenrowmax", "1", "number of entries of the row"),
    _slot.int("genrow_rownum", "ngenrowmax", "1", "number of consecutive rows, from this one on, with the same dofs"),
    _slot.int("genrow_dof", "ngenJmax", "1", "dof of each entry, ascending within a row"),
    _slot.int("genrow_type", "ngenrowmax", "1", "mjtConstraint"),
    _slot.int("genrow_id", "ngenrowmax", "1", "equality or joint of the row"),
    _slot.real("genrow_present", "ngenrowmax", "1", "1: the world has this row"),
    _slot.real("genrow_J", "ngenJmax", "1", "Jacobian entries"),
    _slot.real("genrow_pos", "ngenrowmax", "m, rad", "position error"),
    _slot.real("genrow_margin", "ngenrowmax", "m, rad", "margin"),
    _slot.real("genrow_vel", "ngenrowmax", "m/s, rad/s", "velocity J v"),
    _slot.real("genrow_D", "ngenrowmax", "kg, kg m^2", "1 / R, 0 if the world does not have the row"),
    _slot.real("genrow_aref", "ngenrowmax", "m/s^2, rad/s^2", "reference acceleration"),
    _slot.real("genrow_lo", "ngenrowmax", "N, N m", "smallest force"),
    _slot.real("genrow_hi", "ngenrowmax", "N, N m", "largest force"),
    # the exact diagonal of J M^-1 J^T, and the ratio of the metric to M
    _exact.int("dof", "nv", "1", "dofs of a row of J and their ancestors, descending"),
    _exact.int("place", "nv", "1", "position of each of these dofs in the list"),
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
