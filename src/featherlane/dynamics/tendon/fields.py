"""Fields of tendons."""

from featherlane.lanes.layout import Field

FIELDS = (
    Field("ten_length", "real", ("ntendon",), "m", "tendon length", "tendon", "output"),
    Field(
        "ten_J", "real", ("nJten",), "1, m", "Jacobian of the tendon lengths, rows of ten_J_colind", "tendon", "output"
    ),
    Field("ten_velocity", "real", ("ntendon",), "m/s", "rate of the tendon length", "tendon_velocity", "output"),
)
