"""Fields of actuators: controls that act, lengths, activations, forces."""

from featherlane.lanes.layout import Field

FIELDS = (
    Field("actuator_length", "real", ("nout",), "m, rad", "actuator length", "transmission", "output"),
    Field(
        "actuator_moment",
        "real",
        ("nmoment",),
        "1, m",
        "actuator moments, rows of moment_colind",
        "transmission",
        "output",
    ),
    Field("actuator_velocity", "real", ("nout",), "m/s, rad/s", "actuator velocity", "output_velocities", "output"),
    Field(
        "actuator_input", "real", ("nu",), "1", "control that acts: delayed, clamped, slewed", "read_controls", "output"
    ),
    Field("badctrl", "real", (1,), "1", "1: a control was no number, all counted as 0", "read_controls", "detail"),
    Field("act_dot", "real", ("na",), "1/s", "rate of the activation", "activation", "output"),
    Field(
        "user_actuator",
        "long",
        ("nactuator", 3),
        "1",
        "addresses of the user's activation, gain, bias; 0: none",
        role="address",
    ),
    Field("user_term", "real", (1,), "N, N m", "gain or bias that a function of the user gave", "actuation", "scratch"),
    Field("actuator_force", "real", ("nout",), "N, N m", "actuator force before gearing", "actuation", "output"),
    Field(
        "tendon_actuatorfrc",
        "real",
        ("ntendon",),
        "N",
        "sum of actuator forces on a limited tendon",
        "actuation",
        "detail",
    ),
    Field("qfrc_actuator", "real", ("nv",), "N, N m", "actuator force in joint space", "actuation", "output"),
    Field(
        "actuator_rate",
        "real",
        ("nactuator", 2),
        "N/m, N s/m",
        "slope of the force in length, rate",
        "actuator_rates",
        "detail",
    ),
)
