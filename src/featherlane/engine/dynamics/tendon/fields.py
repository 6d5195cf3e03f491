"""Fields of tendons."""

from featherlane.engine.lanes.layout import Declare

_tendon_output = Declare("tendon", "output")
_tendon_velocity_output = Declare("tendon_velocity", "output")

FIELDS = (
    _tendon_output.real("ten_length", "ntendon", "m", "tendon length"),
    _tendon_output.real("ten_J", "nJten", "1, m", "Jacobian of the tendon lengths, rows of ten_J_colind"),
    _tendon_velocity_output.real("ten_velocity", "ntendon", "m/s", "rate of the tendon length"),
)
