"""Declares persistent fields: the state of a world, which a step advances, and the user's inputs."""

from featherlane.engine.lanes.layout import Declare
from featherlane.engine.spatial.types import Quat, Vec3, Wrench

_integrate_state = Declare("integrate", "state")
_sensor_history_state = Declare("sensor_history", "state")
_yield_springs_state = Declare("yield_springs", "state")
_drive = Declare("", "drive")
_drive_conditional = Declare("", "drive", condition="use")
_input = Declare("", "input")

FIELDS = (
    _integrate_state.real("time", "1", "s", "simulation time", dtype="float64"),
    _integrate_state.real("qpos", "nq", "m, rad, quaternion", "position"),
    _integrate_state.real("qvel", "nv", "m/s, rad/s", "velocity"),
    _integrate_state.real("act", "na", "1", "actuator activation"),
    _sensor_history_state.real(
        "history", "nhistory", "1", "past values of delayed controls and sensors", dtype="float64"
    ),
    _yield_springs_state.real("plastic", "nplastic", "m, rad, quaternion", "references of plastic springs"),
    _integrate_state.real("qacc_warmstart", "nv", "m/s^2, rad/s^2", "warm start of the solver"),
    _drive.real("ctrl", "nu", "1", "control (set by the user)"),
    _drive_conditional.real("qfrc_applied", "nv", "N, N m", "applied generalized force (set by the user)"),
    _drive_conditional.rows(
        Wrench, "xfrc_applied", "nbody", "N, N m", "applied force and torque at body coms (set by the user)"
    ),
    _input.rows(Vec3, "mocap_pos", "nmocap", "m", "positions of mocap bodies (set by the user)"),
    _input.rows(Quat, "mocap_quat", "nmocap", "1", "orientations of mocap bodies (set by the user)"),
    _input.real("eq_active", "neq", "1", "1: the equality constraint is active, 0: inactive (set by the user)"),
)
