"""Computes motors at a stop: there the stop has the row, and the motor is an applied force.

Elsewhere a motor is a row of the LCP that tracks its velocity with a bounded force (solver/lcp/rows/motor.py).  A motor
of velocity 0 pushes into the stop.  One that drives away from it applies only the fraction `fudge` of its force, since
it would jump otherwise.  If both stops coincide, the motor is inactive.
Source: ODE manual, sec. "Stops and motor parameters" (dParamFudgeFactor).
"""

from featherlane.prelude import *
from featherlane.dynamics.body.com import point_wrench
from featherlane.dynamics.body.link import link_axis, link_point
from featherlane.model.link import LINK_HINGE


@kernel
def joint_at_stop(m, d, j):
    """Returns (mask below the lower limit, mask above the upper one) of slide or hinge j, as for limit rows."""
    joint = m.joint[j]
    x, limited = d.qpos[joint.qposadr], 0.0
    if joint.limited != 0 and m.opt_disableflags & DISABLE_LIMIT == 0:
        limited = 1.0
    return (limited > 0.0) & (x < joint.range.lower), (limited > 0.0) & (x > joint.range.upper)


@kernel
def link_at_stop(m, d, k):
    """Returns (mask at the lower stop, mask at the upper one) of link k."""
    x, limited = d.link_position[k], 0.0
    if m.link_limited[k] != 0 and m.opt_disableflags & DISABLE_LIMIT == 0:
        limited = 1.0
    low = (limited > 0.0) & (x <= m.link_range[k].lower)
    return low, (limited > 0.0) & (x >= m.link_range[k].upper) & not_(low)


@kernel
def _push(velocity, force, fudge, low, high):
    """Returns the force of a motor at a stop, 0 elsewhere."""
    s = where(velocity > 0.0, 1.0, where(velocity < 0.0, -1.0, where(high, 1.0, -1.0)))
    away = (low & (velocity > 0.0)) | (high & (velocity < 0.0))
    return where((low | high) & (force > 0.0), s * force * where(away, fudge, 1.0), 0.0)


@kernel
def _push_along(m, d, k, side, s, result):
    """result += J^T of s times the axis of link k, as a torque or a force on one of its bodies."""
    b, u = m.link_body[k, side], s * link_axis(m, d, k, 0)
    force, torque = u, Vec3(zeros(3))
    if m.link_type[k] == LINK_HINGE:
        force, torque = torque, force
    wrench = point_wrench(d, force, torque, link_point(m, d, k, side), m.body_rootid[b])
    i = m.body_lastdof[b]
    while i >= 0:
        result[i] = where(s != 0.0, result[i] + dot(d.cdof[i], wrench), result[i])
        i = m.dof_parentid[i]


@kernel
def _push_link(m, d, k, result):
    """result += the force of link k's motor at its stop."""
    low, high = link_at_stop(m, d, k)
    apart = m.link_range[k].lower < m.link_range[k].upper
    f = _push(m.link_motor_vel[k], m.link_motor_force[k], m.link_motor_fudge[k], low & apart, high & apart)
    if any_(f != 0.0):
        _push_along(m, d, k, 0, f, result)
        _push_along(m, d, k, 1, -f, result)


@kernel
def push_at_stops(m, d, result):
    """result += the forces of all motors at a stop, of joints and of links.

    Reads:  qpos, link_position, cdof, subtree_com, frames of bodies.   Writes: result (nv,) [N, N m].
    """
    if m.opt_disableflags & DISABLE_CONSTRAINT == 0:
        for j in range(m.njnt):
            joint = m.joint[j]
            if is_scalar(joint.type) and joint.limited != 0:
                low, high = joint_at_stop(m, d, j)
                i, apart = joint.dofadr, joint.range.lower < joint.range.upper
                f = _push(joint.motor_vel, joint.motor_force, joint.motor_fudge, low & apart, high & apart)
                result[i] = where(f != 0.0, result[i] + f, result[i])
        if m.opt_disableflags & DISABLE_EQUALITY == 0:
            for k in range(m.nlink):
                _push_link(m, d, k, result)
