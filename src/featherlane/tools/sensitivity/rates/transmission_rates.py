"""Derivatives of the forces of actuators on sites, slider-cranks, balls and free joints.

The force F(l, l', u) of an output acts along its row J of moments, which for some is not the derivative of l:

    dtau = J^T (F_l dl + F_l' (J dv + dJ v)) + dJ^T F

The d of this formula is a derivative by the position or the velocity of one dof k.  Results go to the record p
(records.py): p.dg -= dtau, the derivative of the residual g; p.dJ holds dJ, by dof.
actuator_gear[output] is a wrench: the gear's linear part (force) and angular part (torque).  drives_joint: the actuator
acts on a joint.  actuator_outadr[i]: the first output of actuator i.  moment_rowadr, moment_rownnz: first entry and
number of entries of an output's row J, at the dofs moment_colind.  add_dJ_terms, add_square, clear_dJ, has_dof:
see rows.py.
Imported: moved_point, (rotation of a body, a point of it with its change as tangent) by dof k; turned(w, v), a vector v
that turns with w; add_moved_force, which adds to a row of dofs the change of a wrench's generalized forces, from its
point, force and moment with their changes; rotation_rate(r, w), the rate of the rotation vector r at the angular
velocity w in the rotated axes; quat_sub(a, b), the rotation vector from b to a; slider_crank_gradients, (length l,
dl/dv, dl/da).
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.actuator.control import is_disabled
from featherlane.engine.dynamics.actuator.rate import force_by_length, force_by_velocity
from featherlane.engine.dynamics.actuator.site_transmission import site_quat
from featherlane.engine.dynamics.actuator.slider_crank import slider_crank_gradients
from featherlane.engine.dynamics.actuator.transmission import drives_joint
from featherlane.engine.dynamics.integrator.runge_kutta import rotation_rate
from featherlane.tools.sensitivity.rates.paths import add_moved_force, moved_point, turned, unit3
from featherlane.tools.sensitivity.rates.rows import add_dJ_terms, add_square, clear_dJ, has_dof


@kernel
def _joint_dJ(m, d, p, i, k):
    """p.dJ <- dJ of actuator i on a ball or free joint; returns the derivative of its length by dof k's position.

    The length is the gear axis times the rotation vector r of the quaternion q for a ball, 0 for a free joint.
    """
    j, output = m.actuator_trnid[i, 0], m.actuator_outadr[i]
    joint = m.joint[j]
    qposadr, dofadr, axis, length_change = joint.qposadr, joint.dofadr, m.actuator_gear[output].force, 0.0
    if is_free_joint(joint.type):
        # the rotations of a free joint come after its three translations
        qposadr, dofadr, axis = qposadr + 3, dofadr + 3, m.actuator_gear[output].torque
    # translations of a free joint change neither its moments nor its length
    if k >= dofadr:
        turn, q = unit3(k - dofadr), Quat(d.qpos[qposadr : qposadr + 4]).unit
        axis_change = Vec3(zeros(3))  # an axis that is fixed in the joint's body
        if m.actuator_trntype[i] == TRN_JOINTINPARENT:
            # the axis is fixed in the parent, so it turns relative to the joint's own axes
            axis = q.T @ axis
            axis_change = cross(axis, turn)
        p.dJ[dofadr : dofadr + 3] = axis_change
        if is_ball(joint.type):
            r = quat_log(q)
            length_change = dot(axis, rotation_rate(r, turn)) + dot(r, axis_change)  # d(axis . r)
    return length_change


@kernel
def _site_dJ(m, d, p, i, k):
    """p.dJ += dJ of actuator i on a site; returns the derivative of its length by dof k's position.

    The moment is that of a wrench, `force` and `torque`, at the site.  The gear gives it in the axes of the site, or of
    the reference site, which then has the opposite wrench.  Without a reference site the length is 0.
    """
    output, site, ref = m.actuator_outadr[i], m.actuator_trnid[i, 0], m.actuator_trnid[i, 1]
    gear_force, gear_torque, length_change = m.actuator_gear[output].force, m.actuator_gear[output].torque, 0.0
    body = m.site_bodyid[site]
    w, point = moved_point(m, d, body, k, d.site_xpos[site])
    if ref < 0:  # no reference site
        R = d.site_xmat[site]
        add_moved_force(m, d, p.dJ, body, k, point, turned(w, R @ gear_force), turned(w, R @ gear_torque))
    else:
        R, ref_body = d.site_xmat[ref], m.site_bodyid[ref]
        ref_w, ref_point = moved_point(m, d, ref_body, k, d.site_xpos[ref])
        force, torque = turned(ref_w, R @ gear_force), turned(ref_w, R @ gear_torque)
        # length = gear_force . R^T (point - ref_point) + gear_torque . (rotation vector between both sites)
        _, length_change = split_tangents(dot(force, point - ref_point), 1)
        turn = quat_sub(site_quat(m, d, site), site_quat(m, d, ref))
        relative_w = d.site_xmat[site].T @ (w - ref_w)
        length_change = length_change + dot(gear_torque, rotation_rate(turn, relative_w))
        add_moved_force(m, d, p.dJ, body, k, point, force, torque)
        # the opposite wrench on the reference site
        add_moved_force(m, d, p.dJ, ref_body, k, ref_point, -force, -torque)
    return length_change


@kernel
def _crank_dJ(m, d, p, i, k):
    """p.dJ += dJ of actuator i on a slider-crank; returns the derivative of its length by dof k's position.

    The slider's axis a turns with the slider's body, on which the torque a x dl/da acts.
    """
    actuator = m.actuator[i]
    crank, slider, gear = actuator.trnid[0], actuator.trnid[1], m.actuator_gear[actuator.outadr][0]
    crank_body, slider_body = m.site_bodyid[crank], m.site_bodyid[slider]
    # the rod joins the pin, the site of the crank, to the slider, which moves from its site `end` along its axis
    _, pin = moved_point(m, d, crank_body, k, d.site_xpos[crank])
    w, end = moved_point(m, d, slider_body, k, d.site_xpos[slider])
    axis = turned(w, d.site_xmat[slider].columns[2])
    # length l, and its derivatives by v = pin - end and by the axis
    l, dl_dv, dl_da = slider_crank_gradients(m, i, axis, pin - end)
    force, torque = gear * dl_dv, gear * cross(axis, dl_da)
    add_moved_force(m, d, p.dJ, crank_body, k, pin, force, Vec3(zeros(3)))
    add_moved_force(m, d, p.dJ, slider_body, k, end, -force, torque)
    _, length_change = split_tangents(gear * l, 1)
    return length_change


@kernel
def _store_moment_change(m, d, p, i, k):
    """p.dJ <- dJ, J the moments of actuator i, by the position of dof k; returns the derivative of its length."""
    output = m.actuator_outadr[i]
    clear_dJ(p, m.moment_colind, m.moment_rowadr[output], m.moment_rownnz[output])
    if drives_joint(m, i):
        length_change = _joint_dJ(m, d, p, i, k)
    elif m.actuator_trntype[i] == TRN_SITE:
        length_change = _site_dJ(m, d, p, i, k)
    else:
        length_change = _crank_dJ(m, d, p, i, k)
    return length_change


@kernel
def _subtract_actuator(m, d, p, i, k, by_velocity):
    """dg -= dtau of actuator i by the position of dof k, or by its velocity if `by_velocity`."""
    output = m.actuator_outadr[i]
    first, number = m.moment_rowadr[output], m.moment_rownnz[output]
    stiffness = -force_by_length(m, d, i)
    damping = -force_by_velocity(m, d, i)
    if by_velocity:
        add_square(p, d.actuator_moment, m.moment_colind, first, number, k, damping)
    elif has_dof(m.moment_colind, first, number, k):
        length_change = _store_moment_change(m, d, p, i, k)  # writes p.dJ
        along = stiffness * length_change
        row = d.actuator_moment, m.moment_colind, first, number
        add_dJ_terms(d, p, row, force=d.actuator_force[output], along=along, damping=damping, curvature=0.0)


@kernel
def subtract_transmissions(m, d, p, k, by_velocity):
    """dg -= dtau of the actuators of this file by the position of dof k, or by its velocity if `by_velocity`."""
    if not (m.opt_disableflags & DISABLE_ACTUATION):
        for i in range(m.nactuator):
            # actuators on slides, hinges and tendons are in dof_rates.py and tendon_rates.py
            on_scalar = drives_joint(m, i) and is_scalar(m.jnt_type[m.actuator_trnid[i, 0]])
            if not (on_scalar or m.actuator_trntype[i] == TRN_TENDON or is_disabled(m, i)):
                _subtract_actuator(m, d, p, i, k, by_velocity)
