"""Fields of the primal solvers, Newton and CG."""

from featherlane.lanes.layout import Field

FIELDS = (
    # rows at the present point, along the search direction, at the warm start
    Field("con_y", "real", (2, "nconmax", 3), "m/s^2", "J a - aref along the contact's basis", "solve", "slot"),
    Field("con_z", "real", (2, "nconmax", 3), "m/s^2", "J p along the contact's basis", "solve", "slot"),
    Field("con_warm", "real", (2, "nconmax", 3), "m/s^2", "J a - aref at the warm start", "solve", "slot"),
    Field("dofrow_x", "real", ("ndofrowmax",), "m/s^2, rad/s^2", "J a - aref", "solve", "slot"),
    Field("dofrow_v", "real", ("ndofrowmax",), "m/s^2, rad/s^2", "J p", "solve", "slot"),
    Field("genrow_x", "real", ("ngenrowmax",), "m/s^2, rad/s^2", "J a - aref", "solve", "slot"),
    Field("genrow_v", "real", ("ngenrowmax",), "m/s^2, rad/s^2", "J p", "solve", "slot"),
    Field("Ma", "real", ("nv",), "N, N m", "M a", "solve", "scratch"),
    Field("Mv", "real", ("nv",), "N, N m", "M p", "solve", "scratch"),
    Field("grad", "real", ("nv",), "N, N m", "gradient of the cost", "solve", "scratch"),
    Field("search", "real", ("nv",), "m/s^2, rad/s^2", "search direction p", "solve", "scratch"),
    Field("Mgrad", "real", ("nv",), "m/s^2, rad/s^2", "M^-1 grad", "solve", "scratch"),
    Field("grad_old", "real", ("nv",), "N, N m", "grad one iteration before", "solve", "scratch"),
    Field("Mgrad_old", "real", ("nv",), "m/s^2, rad/s^2", "Mgrad one iteration before", "solve", "scratch"),
    Field("live", "real", (1,), "1", "1: the solver goes on in this world", "solve", "scratch"),
    # the record of a solve
    Field(
        "stat_cost",
        "real",
        ("nrecord",),
        "1",
        "scaled cost after each iteration, the start first",
        "solve",
        "table",
        asked="want_history",
    ),
    Field(
        "stat_gradient",
        "real",
        ("nrecord",),
        "1",
        "norm of the scaled gradient there",
        "solve",
        "table",
        asked="want_history",
    ),
    Field(
        "stat_improvement",
        "real",
        ("nrecord",),
        "1",
        "by how much the iteration lowered the cost",
        "solve",
        "table",
        asked="want_history",
    ),
    Field(
        "stat_step",
        "real",
        ("nrecord",),
        "1",
        "length of its step, in search directions; PGS: momentum",
        "solve",
        "table",
        asked="want_history",
    ),
)
