"""Fields of the integrators: forces without constraints, derivatives by velocity, matrices of a step."""

from featherlane.lanes.layout import Field

FIELDS = (
    Field(
        "energy",
        "real",
        (2,),
        "J",
        "potential and kinetic energy; `fl.energy` right after a step would mix old positions with new velocities",
        "energy",
        "output",
        asked="want_energy want_all",
    ),
    Field("qfrc_smooth", "real", ("nv",), "N, N m", "force without constraints", "smooth_acceleration", "output"),
    Field(
        "qacc_smooth",
        "real",
        ("nv",),
        "m/s^2, rad/s^2",
        "acceleration without constraints",
        "smooth_acceleration",
        "output",
    ),
    Field(
        "qDeriv",
        "real",
        ("nD",),
        "N s/m, N m s/rad",
        "d (passive + actuator - bias force) / d qvel",
        "smooth_vel",
        "detail",
    ),
    Field("qLU", "real", ("nD",), "1", "M - h qDeriv = U L, L with ones on the diagonal", "implicit", "detail"),
    Field("qH", "real", ("nC",), "1", "L^T D L of the inertia with implicit damping", "euler", "scratch"),
    Field("qHDiagInv", "real", ("nv",), "1/(kg m^2)", "1 / D of qH", "euler", "scratch"),
    Field("Mhat", "real", ("nC",), "kg, kg m, kg m^2", "M + h D + h^2 K, on M's pattern", "discrete_metric", "scratch"),
    Field(
        "qfrc_step",
        "real",
        ("nv",),
        "N, N m",
        "under discrete: force without constraints at the end of the step, to first order",
        "discrete_smooth",
        "scratch",
    ),
    Field("block", "real", (36,), "1", "inertia with implicit forces of one free body", "implicitfast", "scratch"),
    Field("qacc_step", "real", ("nv",), "m/s^2, rad/s^2", "acceleration that the integrator takes", "euler", "detail"),
    # the fourth-order step
    Field(
        "rk_qpos", "real", ("nq",), "m, rad, quaternion", "position at the start of the step", "rk4_start", "scratch"
    ),
    Field("rk_qvel", "real", ("nv",), "m/s, rad/s", "velocity at the start of the step", "rk4_start", "scratch"),
    Field("rk_act", "real", ("na",), "1", "activation at the start of the step", "rk4_start", "scratch"),
    Field("rk_act_dot", "real", ("na",), "1/s", "weighted sum of the stages' act_dot", "rk4_stage", "scratch"),
    Field("rk_length", "real", ("nout",), "m, rad", "actuator length at the start of the step", "rk4_start", "scratch"),
    Field("rk_rate_of_length", "real", ("nout",), "m/s, rad/s", "its rate there", "rk4_start", "scratch"),
    Field("rk_time", "real", (1,), "s", "time at the start of the step", "rk4_start", "scratch", dtype="float64"),
    Field(
        "rk_ten_length",
        "real",
        ("ntendon",),
        "m",
        "tendon length at the start, where springs yield",
        "rk4_start",
        "scratch",
    ),
    Field("rk_ten_J", "real", ("nJten",), "1, m", "Jacobian of the lengths there", "rk4_start", "scratch"),
    Field(
        "rk_velocity", "real", ("nv",), "m/s, rad/s", "weighted sum of the stages' velocities", "rk4_stage", "scratch"
    ),
    Field(
        "rk_acceleration", "real", ("nv",), "m/s^2, rad/s^2", "weighted sum of the stages' qacc", "rk4_stage", "scratch"
    ),
    Field(
        "rk_rate",
        "real",
        ("nv",),
        "m/s, rad/s",
        "velocity of one stage, seen from the start of the step",
        "rk4_stage",
        "scratch",
    ),
)
