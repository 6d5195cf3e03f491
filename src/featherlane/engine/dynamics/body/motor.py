"""Computes motors at a stop: there the stop has the row, and the motor is an applied force.

Elsewhere a motor is a row of the LCP that tracks its velocity with a bounded force (solver/lcp/rows/motor.py).  A motor
of velocity 0 pushes into the stop.  One that drives away from it applies only the fraction `fudge` of its force, since
it would jump otherwise.  If both stops coincide, the motor is inactive.

link_axis(m, d, k, side) is the axis of link k carried by its body 0 or 1, link_point(m, d, k, side) the point of that
body where the forces of the link act.  `point_wrench` returns the spatial force of a force at a point and a moment, at
the centre of mass of the tree, to which the motion axes cdof refer.

Source: ODE manual, sec. "Stops and motor parameters" (dParamFudgeFactor).
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.body.com import point_wrench
from featherlane.engine.dynamics.body.link import link_axis, link_point
from featherlane.engine.model.link import LINK_HINGE


@kernel
def joint_at_stop(m, d, j):
    """Returns (mask below the lower limit, mask above the upper one) of slide or hinge j, as for limit rows."""
    joint = m.joint[j]
    position = d.qpos[joint.qposadr]
    limited = 0.0  # a limit that is off, or disabled, is reached in no world
    if joint.limited != 0 and m.opt_disableflags & DISABLE_LIMIT == 0:
        limited = 1.0
    below = (limited > 0.0) & (position < joint.range.lower)
    return below, (limited > 0.0) & (position > joint.range.upper)


@kernel
def link_at_stop(m, d, k):
    """Returns (mask at the lower stop, mask at the upper one) of link k; if both are reached, the lower one counts."""
    position = d.link_position[k]
    limited = 0.0  # a limit that is off, or disabled, is reached in no world
    if m.link_limited[k] != 0 and m.opt_disableflags & DISABLE_LIMIT == 0:
        limited = 1.0
    low = (limited > 0.0) & (position <= m.link_range[k].lower)
    return low, (limited > 0.0) & (position >= m.link_range[k].upper) & not_(low)


@kernel
def _motor_force_at_stop(velocity, force, fudge, low, high):
    """Returns the signed force of a motor at a stop, 0 elsewhere.

    The force has the sign of the velocity; a motor of velocity 0 pushes into the stop, downwards at the lower one.
    velocity, force: the motor's target velocity and maximum force;  fudge: the fraction applied away from the stop;
    low, high: masks of worlds at the lower and upper stop.
    """
    sign = where(velocity > 0.0, 1.0, where(velocity < 0.0, -1.0, where(high, 1.0, -1.0)))
    leaves_stop = (low & (velocity > 0.0)) | (high & (velocity < 0.0))
    return where((low | high) & (force > 0.0), sign * force * where(leaves_stop, fudge, 1.0), 0.0)


@kernel
def _add_axial_force(m, d, k, side, s, result):
    """result += J^T of s times the axis of link k: a torque for a hinge, else a force, on its body 0 or 1 (side)."""
    b = m.link_body[k, side]
    axial = s * link_axis(m, d, k, side=0)
    zero = Vec3(zeros(3))
    force, torque = axial, zero
    if m.link_type[k] == LINK_HINGE:
        force, torque = zero, axial
    wrench = point_wrench(d, force, moment=torque, point=link_point(m, d, k, side), root=m.body_rootid[b])
    # the DoFs that move the body
    i = m.body_lastdof[b]
    while i >= 0:
        result[i] = where(s != 0.0, result[i] + dot(d.cdof[i], wrench), result[i])
        i = m.dof_parentid[i]


@kernel
def _add_link_motor(m, d, k, result):
    """result += the force of link k's motor at its stop, on both bodies."""
    low, high = link_at_stop(m, d, k)
    # if both stops coincide, the motor is inactive
    has_range = m.link_range[k].lower < m.link_range[k].upper
    f = _motor_force_at_stop(
        m.link_motor_vel[k], m.link_motor_force[k], m.link_motor_fudge[k], low & has_range, high & has_range
    )
    if any_(f != 0.0):
        _add_axial_force(m, d, k, side=0, s=f, result=result)
        _add_axial_force(m, d, k, side=1, s=-f, result=result)


@kernel
def add_motors_at_stops(m, d, result):
    """result += the forces of all motors at a stop, of joints and of links.

    Reads:  qpos, link_position, cdof, subtree_com, frames of bodies.   Writes: result (nv,) [N, N m].
    """
    if m.opt_disableflags & DISABLE_CONSTRAINT == 0:
        for j in range(m.njnt):
            joint = m.joint[j]
            if is_scalar(joint.type) and joint.limited != 0:
                low, high = joint_at_stop(m, d, j)
                i = joint.dofadr
                # if both stops coincide, the motor is inactive
                has_range = joint.range.lower < joint.range.upper
                f = _motor_force_at_stop(
                    joint.motor_vel, joint.motor_force, joint.motor_fudge, low & has_range, high & has_range
                )
                result[i] = where(f != 0.0, result[i] + f, result[i])
        if m.opt_disableflags & DISABLE_EQUALITY == 0:
            for k in range(m.nlink):
                _add_link_motor(m, d, k, result)
