"""Fields of the dual problem: rows whitened, block by block."""

from featherlane.lanes.layout import Field

FIELDS = (
    Field("ndualmax", "size", doc="capacity: blocks of the dual problem: one-dof rows, general rows, contacts"),
    Field("ndualdofmax", "size", doc="capacity: dofs of all blocks"),
    Field("ndualYmax", "size", doc="capacity: entries of all blocks' rows"),
    Field("ndual", "int", (1,), "1", "blocks of the dual problem", "solve", "scratch"),
    Field("dual_dofadr", "int", ("ndualmax",), "1", "first entry of the block in dual_dof", "solve", "table"),
    Field("dual_dofnum", "int", ("ndualmax",), "1", "dofs of the block", "solve", "table"),
    Field("dual_rowadr", "int", ("ndualmax",), "1", "first entry of the block's first row in dual_Y", "solve", "table"),
    Field("dual_mark", "int", ("nv",), "1", "1: the dof is one of the block that is being made", "solve", "scratch"),
    Field("dual_place", "int", ("nv",), "1", "where the dof stands among those of the block", "solve", "scratch"),
    Field("dual_dof", "int", ("ndualdofmax",), "1", "dofs of a block and all above them, descending", "solve", "table"),
    Field("dual_Y", "real", ("ndualYmax",), "1", "rows of J L^-1 D^-1/2, M = L^T D L: A = Y Y^T + R", "solve", "table"),
    Field("dual_A", "real", ("ndualmax", 21), "1/kg", "Y Y^T of each block, lower triangle", "solve", "table"),
    Field(
        "dual_f", "real", ("ndualmax", 10), "N, N m", "force of each row, of each edge of a pyramid", "solve", "table"
    ),
    Field("dual_old", "real", ("ndualmax", 10), "N, N m", "dual_f before the momentum of a sweep", "solve", "table"),
    Field("dual_z", "real", ("nv",), "1", "Y^T f", "solve", "scratch"),
    Field(
        "visit_key", "long", ("ndualmax",), "1", "blocks in the order of a sweep, in the lower 31 bits", "solve", "room"
    ),
    Field("visit_room", "long", ("ndualmax",), "1", "room to sort them", "solve", "room"),
    Field("dual_room", "real", (96,), "1", "room for the problem of one block", "solve", "scratch"),
)
