"""Declares persistent fields: the state of a world, which a step advances, and the user's inputs."""

from featherlane.lanes.layout import Declare

_integrate_state = Declare("integrate", "state")
_sensor_history_state = Declare("sensor_history", "state")
_yield_springs_state = Declare("yield_springs", "state")
_drive = Declare("", "drive")
_drive_asked = Declare("", "drive", asked="use")
_input = Declare("", "input")

FIELDS = (
    _integrate_state.real("time", "1", "s", "simulation time", dtype="float64"),
    _integrate_state.real("qpos", "nq", "m, rad, quaternion", "position"),
    _integrate_state.real("qvel", "nv", "m/s, rad/s", "velocity"),
    _integrate_state.real("act", "na", "1", "actuator activation"),
    _sensor_history_state.real(
        "history", "nhistory", "1", "past controls and sensor values of those with a delay", dtype="float64"
    ),
    _yield_springs_state.real("plastic", "nplastic", "m, rad, quaternion", "references of springs that yield"),
    _integrate_state.real("qacc_warmstart", "nv", "m/s^2, rad/s^2", "acceleration that the solver starts from"),
    _drive.real("ctrl", "nu", "1", "control (given by the user)"),
    _drive_asked.real("qfrc_applied", "nv", "N, N m", "applied generalized force (given by the user)"),
    _drive_asked.real("xfrc_applied", "nbody 6", "N, N m", "applied force and torque at body coms (given by the user)"),
    _input.real("mocap_pos", "nmocap 3", "m", "positions of mocap bodies (given by the user)"),
    _input.real("mocap_quat", "nmocap 4", "1", "orientations of mocap bodies (given by the user)"),
    _input.real("eq_active", "neq", "1", "1: the equality constraint acts, 0: not (given by the user)"),
)
