"""Fields of the solution: acceleration, row forces, convergence diagnostics."""

from featherlane.lanes.layout import Declare, size

_output = Declare("solve", "output")
_report = Declare("solve", "report")
_slot = Declare("solve", "slot")
_solve_scratch = Declare("solve", "scratch")
_detail = Declare("islands", "detail")
_mark_touched_scratch = Declare("mark_touched", "scratch")

HISTORY_SIZES = (
    size("nrecord", "capacity: points in the record of a solve, the start included"),
    size("want_history", "1: record each iteration of the solver"),
)

FIELDS = (
    *HISTORY_SIZES,
    _output.real("qacc", "nv", "m/s^2, rad/s^2", "acceleration"),
    _output.real("qfrc_constraint", "nv", "N, N m", "constraint force"),
    _report.real("solver_niter", "1", "1", "solver iterations", dtype="int64"),
    _report.real("solver_residual", "1", "1", "norm of the scaled gradient at the end"),
    _report.real("solver_gap", "1", "1", "scaled duality gap at the end: bounds the cost above its minimum"),
    _slot.real("dofrow_force", "ndofrowmax", "N, N m", "force of the row"),
    _slot.real("genrow_force", "ngenrowmax", "N, N m", "force of the row"),
    _slot.real("con_force", "nconmax 6", "N, N m", "force along normal and tangents, moment about them"),
    _solve_scratch.real("con_motion", "nbody 6", "rad/s^2, m/s^2", "body motion that a joint-space vector makes"),
    # islands
    _detail.real("nisland", "1", "1", "constraint islands", dtype="int64"),
    _detail.real("tree_island", "ntree", "1", "island of the tree, -1: no row acts on it"),
    _detail.real("dof_island", "nv", "1", "island of the dof, -1: no row acts on its tree"),
    _mark_touched_scratch.real("dof_touched", "nv", "1", "of a tree's first dof: 1 where rows or servos act there"),
)
