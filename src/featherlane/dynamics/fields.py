"""What lasts of a world: its state, which a step moves on, and what the user gives."""

from featherlane.lanes.layout import Field

FIELDS = (
    Field("time", "real", (1,), "s", "simulation time", "integrate", "state", dtype="float64"),
    Field("qpos", "real", ("nq",), "m, rad, quaternion", "position", "integrate", "state"),
    Field("qvel", "real", ("nv",), "m/s, rad/s", "velocity", "integrate", "state"),
    Field("act", "real", ("na",), "1", "actuator activation", "integrate", "state"),
    Field(
        "history",
        "real",
        ("nhistory",),
        "1",
        "past controls and sensor values of those with a delay",
        "sensor_history",
        "state",
        dtype="float64",
    ),
    Field(
        "plastic",
        "real",
        ("nplastic",),
        "m, rad, quaternion",
        "references of springs that yield",
        "yield_springs",
        "state",
    ),
    Field(
        "qacc_warmstart",
        "real",
        ("nv",),
        "m/s^2, rad/s^2",
        "acceleration that the solver starts from",
        "integrate",
        "state",
    ),
    Field("ctrl", "real", ("nu",), "1", "control (given by the user)", role="drive"),
    Field(
        "qfrc_applied",
        "real",
        ("nv",),
        "N, N m",
        "applied generalized force (given by the user)",
        role="drive",
        asked="use",
    ),
    Field(
        "xfrc_applied",
        "real",
        ("nbody", 6),
        "N, N m",
        "applied force and torque at body coms (given by the user)",
        role="drive",
        asked="use",
    ),
    Field("mocap_pos", "real", ("nmocap", 3), "m", "positions of mocap bodies (given by the user)", role="input"),
    Field("mocap_quat", "real", ("nmocap", 4), "1", "orientations of mocap bodies (given by the user)", role="input"),
    Field(
        "eq_active", "real", ("neq",), "1", "1: the equality constraint acts, 0: not (given by the user)", role="input"
    ),
)
