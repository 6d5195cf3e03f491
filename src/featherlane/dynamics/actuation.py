"""Forces of actuators: from control, length and velocity, and their effect on the dofs."""

from __future__ import annotations

from featherlane.lanes import clip, fabs, fma, kernel, not_, real, rint, stage, where
from featherlane.spatial.quaternion import PI
from featherlane.spatial.vector import load3, norm3

from .flags import (
    BALL,
    BIAS_AFFINE,
    DISABLE_ACTUATION,
    DISABLE_CLAMPCTRL,
    DISABLE_GRAVITY,
    GAIN_AFFINE,
    GAIN_FIXED,
    SLIDE,
)
from .transmission import add_output_force, drives_joint, output_velocity

MAXVAL = 1e10  # a control beyond this is no number to trust


@kernel
def is_disabled(m, i):
    """Is the actuator's group switched off?  Groups beyond 30 cannot be."""
    g = m.actuator_group[i]
    return g >= 0 and g <= 30 and ((m.opt_disableactuator >> g) & 1) == 1


@kernel
def _clamped_control(m, d, u):
    """Control u within its range; a NaN stays one."""
    x = d.ctrl[u]
    if m.actuator_ctrllimited[u] and not (m.opt_disableflags & DISABLE_CLAMPCTRL):
        x = where(x == x, clip(x, m.actuator_ctrlrange[2 * u], m.actuator_ctrlrange[2 * u + 1]), x)
    return x


@kernel
def _check_controls(m, d):
    """badctrl <- 1 in worlds where a control is NaN or beyond MAXVAL after clamping."""
    bad = real(d, 0.0)
    for u in range(m.nu):
        bad = where(fabs(_clamped_control(m, d, u)) <= MAXVAL, bad, 1.0)
    d.badctrl[0] = bad


@kernel
def control(m, d, u):
    """The control that acts: clamped, and 0 in a world with any bad control."""
    return where(d.badctrl[0] > 0.0, 0.0, _clamped_control(m, d, u))


@kernel
def _nearest_setpoint(m, d, i, x):
    """A position servo on a ball aims at the nearest of the setpoints that mean the same rotation."""
    o = m.actuator_outadr[i]
    if (
        drives_joint(m, i)
        and m.jnt_type[m.actuator_trnid[2 * i]] == BALL
        and m.actuator_gaintype[i] == GAIN_FIXED
        and m.actuator_biastype[i] == BIAS_AFFINE
    ):
        period = 2.0 * PI * norm3(load3(m.actuator_gear, 6 * o))
        servo = (m.actuator_gainprm[10 * i] == -m.actuator_biasprm[10 * i + 1]) & (period > 0.0)
        period = where(servo, period, 1.0)
        x = where(servo, fma(-period, rint((x - d.actuator_length[o]) / period), x), x)
    return x


@kernel
def _affine(prm, a, length, rate):
    """prm[0] + prm[1] length + prm[2] rate."""
    return fma(prm[a + 2], rate, fma(prm[a + 1], length, prm[a]))


@kernel
def _force(m, d, i):
    """gain * control + bias, clamped to the force range."""
    o = m.actuator_outadr[i]
    length, rate = d.actuator_length[o], d.actuator_velocity[o]
    x = real(d, 0.0)
    if m.actuator_ctrlnum[i] > 0:
        x = control(m, d, m.actuator_ctrladr[i])
    x = _nearest_setpoint(m, d, i, x)
    gain = m.actuator_gainprm[10 * i]
    if m.actuator_gaintype[i] == GAIN_AFFINE:
        gain = _affine(m.actuator_gainprm, 10 * i, length, rate)
    force = gain * x
    if m.actuator_biastype[i] == BIAS_AFFINE:
        force = force + _affine(m.actuator_biasprm, 10 * i, length, rate)
    if m.actuator_forcelimited[i]:
        force = clip(force, m.actuator_forcerange[2 * i], m.actuator_forcerange[2 * i + 1])
    return force


@kernel
def _joint_limits(m, d):
    """Gravity compensation that counts as actuation, then the range of each joint's sum."""
    compensated = m.ngravcomp > 0 and not (m.opt_disableflags & DISABLE_GRAVITY)
    for i in range(m.nv):
        j = m.dof_jntid[i]
        if compensated and m.jnt_actgravcomp[j]:
            d.qfrc_actuator[i] = d.qfrc_actuator[i] + d.qfrc_gravcomp[i]
        if m.jnt_actfrclimited[j] and m.jnt_type[j] >= SLIDE:
            d.qfrc_actuator[i] = clip(d.qfrc_actuator[i], m.jnt_actfrcrange[2 * j], m.jnt_actfrcrange[2 * j + 1])


@stage
def actuation(m, d):
    """Actuator velocities, forces, and the forces on the dofs.

    force = gain(l, l') ctrl + bias(l, l'), clamped to forcerange;  qfrc_actuator = moment^T force (+ gravity
    compensation where it counts as actuation), clamped to the joint's actfrcrange.  Where a control is NaN or beyond
    1e10 all controls of that world count as 0 and badctrl is 1.
    Source: MuJoCo mj_fwdActuation.
    Reads:  ctrl, qvel, qpos, actuator_length, qfrc_gravcomp.
    Writes: actuator_velocity, actuator_force (nout,), qfrc_actuator (nv,) [N, N m], badctrl (1,).
    Note:   without any actuator, or with actuation disabled, gravity compensation through actuators is lost, too.
    """
    zero = real(d, 0.0)
    d.badctrl[0] = zero
    for i in range(m.nv):
        d.qfrc_actuator[i] = zero
    for o in range(m.nout):
        d.actuator_velocity[o] = zero
        d.actuator_force[o] = zero
    if m.nactuator > 0 and not (m.opt_disableflags & DISABLE_ACTUATION):
        _check_controls(m, d)
        for i in range(m.nactuator):
            o = m.actuator_outadr[i]
            d.actuator_velocity[o] = output_velocity(m, d, o)
            if not is_disabled(m, i):
                force = _force(m, d, i)
                d.actuator_force[o] = force
                add_output_force(m, d, o, force, d.qfrc_actuator)
        _joint_limits(m, d)


@kernel
def is_saturated(m, d, i):
    """Mask: the actuator's force, or the sum on its joint, is clamped, so that it does not depend on the velocity."""
    j, f = m.actuator_trnid[2 * i], d.actuator_force[m.actuator_outadr[i]]
    mask = not_(f == f)
    if m.actuator_forcelimited[i]:
        mask = (f <= m.actuator_forcerange[2 * i]) | (f >= m.actuator_forcerange[2 * i + 1])
    if drives_joint(m, i) and m.jnt_actfrclimited[j] and m.jnt_type[j] >= SLIDE:
        q = d.qfrc_actuator[m.jnt_dofadr[j]]
        mask = mask | (q <= m.jnt_actfrcrange[2 * j]) | (q >= m.jnt_actfrcrange[2 * j + 1])
    return mask


@kernel
def _force_slope(m, d, i, n):
    """Slope of the force of actuator i in its length (n = 1) or velocity (n = 2), 0 where it is saturated."""
    slope = real(d, 0.0)
    if m.actuator_biastype[i] == BIAS_AFFINE:
        slope = slope + m.actuator_biasprm[10 * i + n]
    if m.actuator_gaintype[i] == GAIN_AFFINE and m.actuator_ctrlnum[i] > 0:
        slope = fma(m.actuator_gainprm[10 * i + n], control(m, d, m.actuator_ctrladr[i]), slope)
    return where(is_saturated(m, d, i), 0.0, slope)


@kernel
def length_rate(m, d, i):
    """d force / d length of actuator i, 0 where it is saturated."""
    return _force_slope(m, d, i, 1)


@kernel
def force_rate(m, d, i):
    """d force / d velocity of actuator i, 0 where it is saturated.  Source: MuJoCo mjd_actuator_vel."""
    return _force_slope(m, d, i, 2)
