"""Fields of the rows; a slot is a row that some world of the tile has, a world that lacks it has D = 0 there."""

from featherlane.lanes.layout import Field

FIELDS = (
    Field("ndofrowmax", "size", doc="capacity: one-dof rows (friction loss, limits of slides and hinges)"),
    Field("ngenrowmax", "size", doc="capacity: general rows (equalities, limits of balls)"),
    Field("ngenJmax", "size", doc="capacity: Jacobian entries of the general rows"),
    # friction loss, and limits of slides and hinges: one dof each
    Field(
        "ndofrow", "int", (1,), "1", "one-dof row slots of the tile: friction loss, then limits", "make_rows", "scratch"
    ),
    Field("nfrictionrow", "int", (1,), "1", "how many of them are friction loss", "make_rows", "scratch"),
    Field("dofrow_dof", "int", ("ndofrowmax",), "1", "dof of the row", "make_rows", "slot"),
    Field("dofrow_type", "int", ("ndofrowmax",), "1", "mjtConstraint", "make_rows", "slot"),
    Field(
        "dofrow_id", "int", ("ndofrowmax",), "1", "dof (friction loss) or joint (limit) of the row", "make_rows", "slot"
    ),
    Field(
        "dofrow_present", "real", ("ndofrowmax",), "1", "1 where the world has this row, else 0", "make_rows", "slot"
    ),
    Field("dofrow_J", "real", ("ndofrowmax",), "1", "the one Jacobian entry", "make_rows", "slot"),
    Field("dofrow_pos", "real", ("ndofrowmax",), "m, rad", "position error", "make_rows", "slot"),
    Field("dofrow_margin", "real", ("ndofrowmax",), "m, rad", "margin", "make_rows", "slot"),
    Field("dofrow_vel", "real", ("ndofrowmax",), "m/s, rad/s", "velocity J v", "make_rows", "slot"),
    Field("dofrow_D", "real", ("ndofrowmax",), "kg, kg m^2", "1 / R, 0 where absent", "make_rows", "slot"),
    Field("dofrow_aref", "real", ("ndofrowmax",), "m/s^2, rad/s^2", "reference acceleration", "make_rows", "slot"),
    Field("dofrow_lo", "real", ("ndofrowmax",), "N, N m", "smallest force", "make_rows", "slot"),
    Field("dofrow_hi", "real", ("ndofrowmax",), "N, N m", "largest force", "make_rows", "slot"),
    # equalities, limits of balls and tendons: any dofs
    Field("ngenrow", "int", (1,), "1", "general row slots of the tile", "make_rows", "scratch"),
    Field(
        "genrow_dofadr",
        "int",
        ("ngenrowmax",),
        "1",
        "first entry of the row in genrow_dof and genrow_J",
        "make_rows",
        "slot",
    ),
    Field("genrow_dofnum", "int", ("ngenrowmax",), "1", "entries of the row", "make_rows", "slot"),
    Field(
        "genrow_rownum", "int", ("ngenrowmax",), "1", "rows from this one on that share its dofs", "make_rows", "slot"
    ),
    Field("genrow_dof", "int", ("ngenJmax",), "1", "dof of each entry, ascending within a row", "make_rows", "slot"),
    Field("genrow_type", "int", ("ngenrowmax",), "1", "mjtConstraint", "make_rows", "slot"),
    Field("genrow_id", "int", ("ngenrowmax",), "1", "equality or joint of the row", "make_rows", "slot"),
    Field(
        "genrow_present", "real", ("ngenrowmax",), "1", "1 where the world has this row, else 0", "make_rows", "slot"
    ),
    Field("genrow_J", "real", ("ngenJmax",), "1", "Jacobian entries", "make_rows", "slot"),
    Field("genrow_pos", "real", ("ngenrowmax",), "m, rad", "position error", "make_rows", "slot"),
    Field("genrow_margin", "real", ("ngenrowmax",), "m, rad", "margin", "make_rows", "slot"),
    Field("genrow_vel", "real", ("ngenrowmax",), "m/s, rad/s", "velocity J v", "make_rows", "slot"),
    Field("genrow_D", "real", ("ngenrowmax",), "kg, kg m^2", "1 / R, 0 where absent", "make_rows", "slot"),
    Field("genrow_aref", "real", ("ngenrowmax",), "m/s^2, rad/s^2", "reference acceleration", "make_rows", "slot"),
    Field("genrow_lo", "real", ("ngenrowmax",), "N, N m", "smallest force", "make_rows", "slot"),
    Field("genrow_hi", "real", ("ngenrowmax",), "N, N m", "largest force", "make_rows", "slot"),
    # contacts: no Jacobian, their bodies have it
    Field(
        "con_D",
        "real",
        ("nconmax",),
        "kg",
        "1 / R of the normal row, of every row of a pyramid; 0: no row",
        "make_rows",
        "slot",
    ),
    Field(
        "con_Dt", "real", ("nconmax",), "kg", "elliptic: 1 / R of friction row i over friction_i^2", "make_rows", "slot"
    ),
    Field(
        "con_slip", "real", ("nconmax",), "kg", "elliptic: D / (1 + mu^2), of a contact that slips", "make_rows", "slot"
    ),
    Field(
        "con_damping", "real", ("nconmax",), "1/s", "B: aref = -B J v - con_stiffpos, row by row", "make_rows", "slot"
    ),
    Field(
        "con_frictiondamping", "real", ("nconmax",), "1/s", "B of the friction rows: aref = -B J v", "make_rows", "slot"
    ),
    Field(
        "con_stiffpos",
        "real",
        ("nconmax",),
        "m/s^2",
        "K imp (dist - includemargin) - adhesion / D",
        "make_rows",
        "slot",
    ),
)
