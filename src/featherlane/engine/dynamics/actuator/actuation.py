"""Computes the forces of actuators, their limits, and the resulting forces of the DoFs.

i is the index of an actuator, o that of an output; most actuators have one output, an orientation servo (GAIN_SO3) has
three.  `actuator.simple`: the actuator has only what `simple_force` computes.  The bit PID_PLUGIN of actuator_states:
its force is that of the plugin mujoco.pid.

Imported kernels:

    early_activation(m, d, i, a)               act[a], or with `actearly` its value after the step
    pid_plugin_force(m, d, i, setpoint, rate)  force of the plugin mujoco.pid
    gain_force, simple_force                   force before its limits
    store_orientation_torque, bound_torque     write the three outputs of an orientation servo, and bound them together
    add_output_force(m, d, o, force, x)        x += moment^T force, x by DoF
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.actuator.activation import activation, early_activation
from featherlane.engine.dynamics.actuator.control import is_disabled, limit_controls
from featherlane.engine.dynamics.actuator.dcmotor import mechanical_force
from featherlane.engine.dynamics.actuator.gain import gain_force, simple_force
from featherlane.engine.dynamics.actuator.orientation import bound_torque, store_orientation_torque
from featherlane.engine.dynamics.actuator.pid_plugin import pid_plugin_force
from featherlane.engine.dynamics.actuator.transmission import add_output_force, output_velocity


@kernel
def is_on_limited_tendon(m, i):
    """Returns whether the actuator pulls on a tendon with a limited sum of forces."""
    return m.actuator_trntype[i] == TRN_TENDON and m.tendon_actfrclimited[m.actuator_trnid[i, 0]] != 0


@kernel
def _bound_tendon_forces(m, d):
    """Scales the forces actuator_force of the actuators on a limited tendon, so that their sum is in its range.

    tendon_actuatorfrc <- the sum before it is scaled.
    """
    for t in range(m.ntendon):
        d.tendon_actuatorfrc[t] = 0.0
    for i in range(m.nactuator):
        if is_on_limited_tendon(m, i):
            t = m.actuator_trnid[i, 0]
            d.tendon_actuatorfrc[t] = d.tendon_actuatorfrc[t] + d.actuator_force[m.actuator_outadr[i]]
    for i in range(m.nactuator):
        if is_on_limited_tendon(m, i):
            t, o = m.actuator_trnid[i, 0], m.actuator_outadr[i]
            total = d.tendon_actuatorfrc[t]
            bounded = clip(total, m.tendon_actfrcrange[t].lower, m.tendon_actfrcrange[t].upper)
            # a sum of 0 cannot be scaled into its range
            is_unchanged = (bounded == total) | (total == 0.0)
            scale = bounded / where(total == 0.0, 1.0, total)
            d.actuator_force[o] = where(is_unchanged, d.actuator_force[o], d.actuator_force[o] * scale)


@kernel
def _bound_forces(m, d):
    """Clamps each actuator_force to the actuator's range.

    A disabled actuator has the force 0, which is clamped as well: its range may exclude 0.
    """
    for i in range(m.nactuator):
        actuator = m.actuator[i]
        if actuator.forcelimited:
            if actuator.gaintype == GAIN_SO3:
                bound_torque(m, d, i)
            else:
                for o in range(actuator.outadr, actuator.outadr + actuator.outnum):
                    low, high = actuator.forcerange.lower, actuator.forcerange.upper
                    d.actuator_force[o] = clip(d.actuator_force[o], low, high)


@kernel
def _add_mechanical_forces(m, d):
    """Adds cogging and friction of motors to actuator_force; they are not part of the limited force."""
    for i in range(m.nactuator):
        if m.actuator_biastype[i] == BIAS_DCMOTOR and not is_disabled(m, i):
            o = m.actuator_outadr[i]
            d.actuator_force[o] = d.actuator_force[o] + mechanical_force(m, d, i)


@kernel
def _pid_force(m, d, i):
    """Returns the force of the plugin mujoco.pid, whose setpoint is a control or the last activation."""
    actuator = m.actuator[i]
    if actuator.dyntype == DYN_NONE:
        setpoint = d.actuator_input[actuator.ctrladr]
        rate = 0.0
    else:
        last = actuator.actadr + actuator.actnum - 1
        setpoint = early_activation(m, d, i, last)
        rate = d.act_dot[last]
    return pid_plugin_force(m, d, i, setpoint, rate)


@kernel
def _store_forces(m, d):
    """actuator_force <- forces of all actuators that are not disabled, within their limits.

    Reads:  actuator_input, act, act_dot, actuator_length, actuator_velocity.
    Writes: actuator_force, which is 0 before; tendon_actuatorfrc.
    """
    for i in range(m.nactuator):
        actuator = m.actuator[i]
        if not is_disabled(m, i):
            if actuator.simple:
                d.actuator_force[actuator.outadr] = simple_force(m, d, i)
            elif actuator.gaintype == GAIN_SO3:
                store_orientation_torque(m, d, i)  # three outputs of actuator_force
            elif actuator.states & PID_PLUGIN:
                d.actuator_force[actuator.outadr] = _pid_force(m, d, i)
            else:
                d.actuator_force[actuator.outadr] = gain_force(m, d, i)
    # nbounded: number of tendons whose sum of forces is limited; ndcmotor: number of DC motors
    if m.nbounded > 0:
        _bound_tendon_forces(m, d)
    _bound_forces(m, d)
    if m.ndcmotor > 0:
        _add_mechanical_forces(m, d)


@kernel
def _bound_joint_forces(m, d):
    """Adds gravity compensation that counts as actuation to qfrc_actuator; clamps the sum on a slide or hinge."""
    compensated = m.ngravcomp > 0 and not (m.opt_disableflags & DISABLE_GRAVITY)
    for i in range(m.nv):
        j = m.dof_jntid[i]
        joint = m.joint[j]
        if compensated and joint.actgravcomp:
            d.qfrc_actuator[i] = d.qfrc_actuator[i] + d.qfrc_gravcomp[i]
        if joint.actfrclimited and is_scalar(joint.type):
            d.qfrc_actuator[i] = clip(d.qfrc_actuator[i], joint.actfrcrange.lower, joint.actfrcrange.upper)


@kernel
def output_velocities(m, d):
    """Computes the rates of the actuators' lengths; 0 if actuation is disabled."""
    if m.opt_disableflags & DISABLE_ACTUATION:
        for o in range(m.nout):
            d.actuator_velocity[o] = 0.0
    else:
        for o in range(m.nout):
            d.actuator_velocity[o] = output_velocity(m, d, o)


@stage
def actuation(m, d):
    """Computes actuator velocities, rates of activations, actuator forces, and the forces on the DoFs.

    force = gain(l, l') u + bias(l, l'), where u is a control or an activation.  The sum on a tendon is clamped to its
    actfrcrange, each force to forcerange;  qfrc_actuator = moment^T force (+ gravity compensation if it counts as
    actuation), clamped to the joint's actfrcrange.  If a control is NaN or beyond 1e10, all controls of that world
    count as 0 and badctrl is 1.
    Source: MuJoCo mj_fwdActuation.
    Reads:  ctrl, act, history, time, qvel, actuator_length, actuator_moment, qfrc_gravcomp.
    Writes: actuator_velocity (nout,) [m/s, rad/s], actuator_force (nout,) [N, N m], act_dot (na,) [1/s], qfrc_actuator
            (nv,) [N, N m], badctrl (1,), warning (bad control), tendon_actuatorfrc (ntendon,).
    Scratch: actuator_input (nu,), user_term.
    Note:   without actuators, or with actuation disabled, gravity compensation through actuators is 0, too, and
        act_dot is unchanged.
    """
    d.badctrl[0] = 0.0
    for i in range(m.nv):
        d.qfrc_actuator[i] = 0.0
    output_velocities(m, d)  # writes actuator_velocity
    for o in range(m.nout):
        d.actuator_force[o] = 0.0
    if m.nactuator > 0 and not (m.opt_disableflags & DISABLE_ACTUATION):
        limit_controls(m, d)  # writes actuator_input, badctrl
        if m.na > 0:
            activation(m, d)  # writes act_dot
        _store_forces(m, d)  # writes actuator_force
        for o in range(m.nout):
            add_output_force(m, d, o, d.actuator_force[o], d.qfrc_actuator)
        _bound_joint_forces(m, d)
