"""Fields of the solution: acceleration, row forces, convergence diagnostics."""

from featherlane.engine.lanes.layout import Declare, size
from featherlane.engine.spatial.types import Motion, Wrench

_output = Declare("solve", "output")
_report = Declare("solve", "report")
_slot = Declare("solve", "slot")
_solve_scratch = Declare("solve", "scratch")
_detail = Declare("islands", "detail", condition="want_islands")
_mark_touched_scratch = Declare("mark_touched", "scratch")

HISTORY_SIZES = (
    size("nrecord", "capacity: points in the record of a solve, including the start"),
    size("want_history", "1: record each iteration of the solver"),
)

FIELDS = (
    *HISTORY_SIZES,
    _output.real("qacc", "nv", "m/s^2, rad/s^2", "acceleration; after a step of rk4 its mean over the step"),
    _output.real("qfrc_constraint", "nv", "N, N m", "constraint force"),
    _report.real("solver_niter", "1", "1", "number of solver iterations", dtype="int64"),
    _report.real("solver_residual", "1", "1", "norm of the scaled gradient after the last iteration"),
    _report.real(
        "solver_gap", "1", "1", "scaled duality gap after the last iteration, an upper bound of cost minus minimum"
    ),
    _slot.real("row_force", "nrowmax", "N, N m", "force of the row"),
    _slot.rows(Wrench, "con_force", "nconmax", "N, N m", "force along normal and tangents, moment about them"),
    _solve_scratch.rows(Motion, "con_motion", "nbody", "rad/s^2, m/s^2", "body motion of a joint-space vector"),
    size("want_islands", "1: compute constraint islands, which a model with the flag sleep always computes"),
    _detail.real("nisland", "1", "1", "number of constraint islands", dtype="int64"),
    _detail.real("tree_island", "ntree", "1", "island of the tree, -1: no row acts on it"),
    _detail.real("dof_island", "nv", "1", "island of the dof, -1: no row acts on its tree"),
    _mark_touched_scratch.real(
        "dof_touched", "nv", "1", "at the first dof of a tree: 1 if rows or implicit servos act on the tree"
    ),
)
