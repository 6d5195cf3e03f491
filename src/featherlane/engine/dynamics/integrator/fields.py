"""Fields of the integrators: smooth forces, their derivatives with respect to velocity, matrices of implicit steps."""

from featherlane.engine.lanes.layout import Declare, size

_energy_output = Declare("energy", "output", condition="want_energy want_all")
_smooth_acceleration_output = Declare("smooth_acceleration", "output")
_smooth_vel_detail = Declare("smooth_vel", "detail", condition="want_derivative")
_implicit_detail = Declare("implicit", "detail")
_euler_scratch = Declare("euler", "scratch")
_discrete_metric_scratch = Declare("discrete_metric", "scratch")
_discrete_smooth_scratch = Declare("discrete_smooth", "scratch")
_implicitfast_scratch = Declare("implicitfast", "scratch")
_euler_detail = Declare("euler", "detail")
_rk = Declare("rk4_start", "scratch", record="rk")
_rk_scratch = Declare("rk4_stage", "scratch", record="rk")
_rk_finish = Declare("rk4_finish", "scratch", record="rk")

FIELDS = (
    _energy_output.real("energy", "2", "J", "potential and kinetic energy of the state before the step"),
    _smooth_acceleration_output.real("qfrc_smooth", "nv", "N, N m", "force without constraints"),
    _smooth_acceleration_output.real("qacc_smooth", "nv", "m/s^2, rad/s^2", "acceleration without constraints"),
    size("want_derivative", "1: the integrator implicitfast computes qDeriv, which `implicit` always computes"),
    _smooth_vel_detail.real(
        "qDeriv", "nD", "N s/m, N m s/rad", "d (passive + actuator - bias force) / d qvel; implicitfast: without bias"
    ),
    _implicit_detail.real("qLU", "nD", "1", "M - h qDeriv = U L, L with ones on the diagonal"),
    _euler_scratch.real("qH", "nC", "1", "L^T D L of the inertia with implicit damping"),
    _euler_scratch.real("qHDiagInv", "nv", "1/(kg m^2)", "1 / D of qH"),
    _discrete_metric_scratch.real("Mhat", "nC", "kg, kg m, kg m^2", "M + h D + h^2 K, on M's pattern"),
    _discrete_smooth_scratch.real(
        "qfrc_step", "nv", "N, N m", "discrete: force without constraints at the end of the step, to first order"
    ),
    _implicitfast_scratch.real("block", "36", "1", "inertia with implicit forces of one free body, and its factors"),
    _implicitfast_scratch.real("block_inverse", "6", "1", "1 / pivots of block"),
    _implicitfast_scratch.real("block_x", "6", "1", "right-hand side and solution of the system with block"),
    _euler_detail.real("qacc_step", "nv", "m/s^2, rad/s^2", "acceleration used by the integrator"),
    # the fourth-order Runge-Kutta step
    _rk.real("qpos", "nq", "m, rad, quaternion", "position at the start of the step"),
    _rk.real("qvel", "nv", "m/s, rad/s", "velocity at the start of the step"),
    _rk.real("act", "na", "1", "activation at the start of the step"),
    _rk_scratch.real("act_dot", "na", "1/s", "weighted sum of the stages' act_dot"),
    _rk.real("length", "nout", "m, rad", "actuator length at the start of the step"),
    _rk.real("rate_of_length", "nout", "m/s, rad/s", "rate of the actuator length at the start of the step"),
    _rk.real("time", "1", "s", "time at the start of the step", dtype="float64"),
    _rk.real("ten_length", "ntendon", "m", "tendon length at the start of the step, with plastic springs"),
    _rk.real("ten_J", "nJten", "1, m", "Jacobian of the tendon lengths at the start of the step"),
    _rk_scratch.real("velocity", "nv", "m/s, rad/s", "weighted sum of the stages' velocities"),
    _rk_scratch.real("acceleration", "nv", "m/s^2, rad/s^2", "weighted sum of the stages' qacc"),
    _rk_finish.real("last_qpos", "nq", "m, rad, quaternion", "position of the last stage"),
    _rk_finish.real("last_qvel", "nv", "m/s, rad/s", "velocity of the last stage"),
    _rk_finish.real("last_act", "na", "1", "activation of the last stage"),
    _rk_scratch.real("rate", "nv", "m/s, rad/s", "velocity of a stage, in the tangent space at the start of the step"),
)
