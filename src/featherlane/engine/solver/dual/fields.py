"""Fields of the dual problem: whitened rows in blocks."""

from featherlane.engine.lanes.layout import Declare, size

_dual = Declare("solve", "scratch", record="dual")
_dual_table = Declare("solve", "table", record="dual")
_disc = Declare("solve", "scratch", record="disc")
_dual_room = Declare("solve", "room", record="dual")

FIELDS = (
    size("ndualmax", "capacity: blocks of the dual problem: scalar rows, contacts"),
    size("ndualdofmax", "capacity: dofs of all blocks"),
    size("ndualYmax", "capacity: entries of all blocks' rows"),
    _dual.int("ndual", "1", "1", "number of blocks of the dual problem"),
    _dual_table.int("dofadr", "ndualmax", "1", "first entry of the block in dual.dof"),
    _dual_table.int("dofnum", "ndualmax", "1", "number of dofs of the block"),
    _dual_table.int("rowadr", "ndualmax", "1", "first entry of the block's first row in dual.Y"),
    _dual.int("mark", "nv", "1", "bodies that the dof moves in the list under construction: bits; 0: not in the list"),
    _dual.int("position", "nv", "1", "index of the dof within the block"),
    _dual_table.int("dof", "ndualdofmax", "1", "dofs of a block and their ancestors, descending"),
    _dual_table.real("Y", "ndualYmax", "1", "rows of J L^-1 D^-1/2, M = L^T D L: A = Y Y^T + R"),
    _dual_table.real("A", "ndualmax 21", "1/kg", "Y Y^T of each block, lower triangle"),
    _dual_table.real("f", "ndualmax 10", "N, N m", "force of each row, or of each edge of a pyramid"),
    _dual_table.real("old", "ndualmax 10", "N, N m", "dual.f before the momentum step of a sweep"),
    _dual.real("z", "nv", "1", "Y^T f"),
    _dual.real("start", "nv", "m/s^2, rad/s^2", "the main solver's acceleration, before the no-slip solver"),
    _dual.real("nsweep", "1", "1", "number of sweeps of the no-slip solver"),
    _dual_room.long("visit_key", "ndualmax", "1", "blocks in the order of a sweep, in the lower 31 bits"),
    _dual_room.long("visit_room", "ndualmax", "1", "buffer of the sort"),
    # the block that a sweep updates
    _dual.real("block_y", "6", "m/s^2, rad/s^2", "accelerations along its rows"),
    _dual.real("block_change", "6", "N, N m", "change of its forces along the basis"),
    _dual.real("block_force", "10", "N, N m", "its forces, or those of the edges of a pyramid"),
    _dual.real("block_ray", "6", "1", "direction in which its force grows"),
    # the friction of an elliptic contact at a fixed normal force
    _disc.real("t", "5", "N, N m", "friction across the normal"),
    _disc.real("b", "5", "m/s^2, rad/s^2", "accelerations without friction"),
    _disc.real("w", "5", "N, N m", "solution of one more equation"),
    _disc.real("A", "15", "1/kg", "matrix, its lower triangle"),
    _disc.real("L", "15", "1", "factor, its lower triangle"),
)
