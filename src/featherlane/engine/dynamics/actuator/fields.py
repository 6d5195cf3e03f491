"""Fields of actuators: applied controls, lengths, activations, forces."""

from featherlane.engine.lanes.layout import Declare
from featherlane.engine.spatial.types import Vec2

_transmission_output = Declare("transmission", "output")
_output_velocities_output = Declare("output_velocities", "output")
_limit_controls_output = Declare("limit_controls", "output")
_limit_controls_detail = Declare("limit_controls", "detail")
_activation_output = Declare("activation", "output")
_address = Declare("", "address")
_scratch = Declare("actuation", "scratch")
_actuation_output = Declare("actuation", "output")
_actuation_detail = Declare("actuation", "detail")
_actuator_rates_detail = Declare("actuator_rates", "detail")

FIELDS = (
    _transmission_output.real("actuator_length", "nout", "m, rad", "actuator length"),
    _transmission_output.real("actuator_moment", "nmoment", "1, m", "actuator moments, rows of moment_colind"),
    _output_velocities_output.real("actuator_velocity", "nout", "m/s, rad/s", "actuator velocity"),
    _limit_controls_output.real("actuator_input", "nu", "1", "effective control: delayed, clamped, slew-limited"),
    _limit_controls_detail.real("badctrl", "1", "1", "1: a control was NaN, so all controls were replaced by 0"),
    _activation_output.real("act_dot", "na", "1/s", "rate of the activation"),
    _address.long(
        "user_actuator", "nactuator 3", "1", "addresses of the user-defined activation, gain and bias; 0: none"
    ),
    _scratch.real("user_term", "1", "N, N m", "gain or bias returned by a user callback"),
    _actuation_output.real("actuator_force", "nout", "N, N m", "actuator force before gearing"),
    _actuation_detail.real("tendon_actuatorfrc", "ntendon", "N", "sum of actuator forces on a limited tendon"),
    _actuation_output.real("qfrc_actuator", "nv", "N, N m", "actuator force in joint space"),
    _actuator_rates_detail.rows(
        Vec2, "actuator_rate", "nactuator", "N/m, N s/m", "derivatives of the force by length and velocity"
    ),
)
