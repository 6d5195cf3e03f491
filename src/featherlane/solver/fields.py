"""Fields of the solution: the acceleration, the forces of the rows, and how well they were found."""

from featherlane.lanes.layout import Field

HISTORY_SIZES = (
    Field("nrecord", "size", doc="capacity: points in the record of a solve, the start included"),
    Field("want_history", "size", doc="1: record each iteration of the solver"),
)

FIELDS = (
    *HISTORY_SIZES,
    Field("qacc", "real", ("nv",), "m/s^2, rad/s^2", "acceleration", "solve", "output"),
    Field("qfrc_constraint", "real", ("nv",), "N, N m", "constraint force", "solve", "output"),
    Field("solver_niter", "real", (1,), "1", "solver iterations", "solve", "report", dtype="int64"),
    Field("solver_residual", "real", (1,), "1", "norm of the scaled gradient at the end", "solve", "report"),
    Field(
        "solver_gap",
        "real",
        (1,),
        "1",
        "scaled duality gap at the end: bounds the cost above its minimum",
        "solve",
        "report",
    ),
    Field("dofrow_force", "real", ("ndofrowmax",), "N, N m", "force of the row", "solve", "slot"),
    Field("genrow_force", "real", ("ngenrowmax",), "N, N m", "force of the row", "solve", "slot"),
    Field(
        "con_force",
        "real",
        ("nconmax", 6),
        "N, N m",
        "force along normal and tangents, moment about them",
        "solve",
        "slot",
    ),
    Field(
        "con_motion",
        "real",
        ("nbody", 6),
        "rad/s^2, m/s^2",
        "body motion that a joint-space vector makes",
        "solve",
        "scratch",
    ),
    # islands
    Field("nisland", "real", (1,), "1", "constraint islands", "islands", "detail", dtype="int64"),
    Field("tree_island", "real", ("ntree",), "1", "island of the tree, -1: no row acts on it", "islands", "detail"),
    Field("dof_island", "real", ("nv",), "1", "island of the dof, -1: no row acts on its tree", "islands", "detail"),
    Field(
        "dof_touched",
        "real",
        ("nv",),
        "1",
        "of a tree's first dof: 1 where rows or servos act there",
        "mark_touched",
        "scratch",
    ),
)
