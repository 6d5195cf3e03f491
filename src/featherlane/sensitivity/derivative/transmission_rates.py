"""Derivatives of the forces of actuators on sites, slider-cranks, balls and free joints.

The force F(l, l', u) of an output acts along its row J of moments, which for some is not the derivative of l:

    dtau = J^T (F_l dl + F_l' (J dv + dJ v)) + dJ^T F
"""

from featherlane.prelude import *
from featherlane.dynamics.actuator.control import is_disabled
from featherlane.dynamics.actuator.rate import force_by_length, force_by_velocity
from featherlane.dynamics.actuator.site_transmission import site_quat
from featherlane.dynamics.actuator.transmission import drives_joint
from featherlane.dynamics.integrator.runge_kutta import rotation_rate
from featherlane.sensitivity.derivative.ball_rates import unit3
from featherlane.sensitivity.derivative.moved_force import add_moved_force, point_motion


@kernel
def _is_bent(m, i):
    """Returns whether actuator i acts on neither a slide, a hinge nor a tendon, and is enabled."""
    plain = drives_joint(m, i) and is_scalar(m.jnt_type[m.actuator_trnid[i, 0]])
    return not (plain or m.actuator_trntype[i] == TRN_TENDON or is_disabled(m, i))


@kernel
def _joint(m, d, p, i, k):
    """Computes `_bend` of an actuator on a ball or free joint."""
    j, o = m.actuator_trnid[i, 0], m.actuator_outadr[i]
    joint = m.joint[j]
    a, v, axis, change = joint.qposadr, joint.dofadr, m.actuator_gear[o].force, 0.0
    if is_free_joint(joint.type):
        a, v, axis = a + 3, v + 3, m.actuator_gear[o].torque
    if k >= v:
        x, q = unit3(k - v), Quat(d.qpos[a : a + 4]).unit
        turn = Vec3(zeros(3))
        if m.actuator_trntype[i] == TRN_JOINTINPARENT:
            axis = q.T @ axis
            turn = cross(axis, x)
        p.ten_bend[v : v + 3] = turn
        if is_ball(joint.type):
            r = quat_log(q)
            change = dot(axis, rotation_rate(r, x)) + dot(r, turn)
    return change


@kernel
def _site(m, d, p, i, k):
    """Computes `_bend` of an actuator on a site, with or without a reference."""
    o, s, r = m.actuator_outadr[i], m.actuator_trnid[i, 0], m.actuator_trnid[i, 1]
    push, twist, change = m.actuator_gear[o].force, m.actuator_gear[o].torque, 0.0
    x, b = d.site_xpos[s], m.site_bodyid[s]
    w, u = point_motion(m, d, b, k, x)
    if r < 0:
        R = d.site_xmat[s]
        f, n = R @ push, R @ twist
        add_moved_force(m, d, p.ten_bend, b, k, (x, u), (f, n), (cross(w, f), cross(w, n)))
    else:
        R, y, c = d.site_xmat[r], d.site_xpos[r], m.site_bodyid[r]
        f, n = R @ push, R @ twist
        z, v = point_motion(m, d, c, k, y)
        df, dn, away = cross(z, f), cross(z, n), x - y
        turn = quat_sub(site_quat(m, d, s), site_quat(m, d, r))
        relative = d.site_xmat[s].T @ (w - z)
        change = dot(f, (u - v) - cross(z, away)) + dot(twist, rotation_rate(turn, relative))
        add_moved_force(m, d, p.ten_bend, b, k, (x, u), (f, n), (df, dn))
        f, n, df, dn = -f, -n, -df, -dn
        add_moved_force(m, d, p.ten_bend, c, k, (y, v), (f, n), (df, dn))
    return change


@kernel
def _crank(m, d, p, i, k):
    """Computes `_bend` of an actuator on a slider-crank; see dynamics/actuator/slider_crank.py."""
    actuator = m.actuator[i]
    o, crank, slider = actuator.outadr, actuator.trnid[0], actuator.trnid[1]
    pin, end = d.site_xpos[crank], d.site_xpos[slider]
    b, c = m.site_bodyid[crank], m.site_bodyid[slider]
    a = d.site_xmat[slider].columns[2]
    v, gear, rod, none = pin - end, m.actuator_gear[o][0], actuator.cranklength, Vec3(zeros(3))
    _, u = point_motion(m, d, b, k, pin)
    w, z = point_motion(m, d, c, k, end)
    dv, da, av = u - z, cross(w, a), dot(a, v)
    det = fma(av, av, fma(rod, rod, -dot(v, v)))
    reaches = det > 0.0
    s = sqrt(where(reaches, det, 1.0))
    dav = dot(da, v) + dot(a, dv)
    ds = (av * dav - dot(v, dv)) / s
    along, across = where(reaches, 1.0 - av / s, 1.0), where(reaches, 1.0 / s, 0.0)
    dalong, dacross = where(reaches, (av * ds / s - dav) / s, 0.0), where(reaches, -ds / (s * s), 0.0)
    f, by_axis = fma(across, v, along * a), along * v
    df = fma(dacross, v, across * dv) + fma(dalong, a, along * da)
    n = cross(a, by_axis)
    dn = cross(da, by_axis) + cross(a, fma(dalong, v, along * dv))
    f, n, df, dn = gear * f, gear * n, gear * df, gear * dn
    add_moved_force(m, d, p.ten_bend, b, k, (pin, u), (f, none), (df, none))
    add_moved_force(m, d, p.ten_bend, c, k, (end, z), (-f, n), (-df, dn))
    return dot(f, dv) + gear * dot(by_axis, da)


@kernel
def _bend(m, d, p, i, k):
    """ten_bend <- the derivative of the moments of actuator i by the position of dof k; returns that of its length."""
    o = m.actuator_outadr[i]
    for e in range(m.moment_rowadr[o], m.moment_rowadr[o] + m.moment_rownnz[o]):
        p.ten_bend[m.moment_colind[e]] = 0.0
    if drives_joint(m, i):
        change = _joint(m, d, p, i, k)
    elif m.actuator_trntype[i] == TRN_SITE:
        change = _site(m, d, p, i, k)
    else:
        change = _crank(m, d, p, i, k)
    return change


@kernel
def _moment(m, d, o, k):
    """Returns whether output o has dof k in its row, and its moment there."""
    found, moment = 0, 0.0
    for e in range(m.moment_rowadr[o], m.moment_rowadr[o] + m.moment_rownnz[o]):
        if m.moment_colind[e] == k:
            found, moment = 1, d.actuator_moment[e] + 0.0
    return found, moment


@kernel
def _subtract(m, d, p, i, k, moment, by_velocity):
    """dg -= rates of the force of actuator i by the position or the velocity of dof k, which has that moment."""
    o, longer, rate = m.actuator_outadr[i], 0.0, moment
    first, last, force = m.moment_rowadr[o], m.moment_rowadr[o] + m.moment_rownnz[o], d.actuator_force[o] + 0.0
    if not by_velocity:
        longer, rate = _bend(m, d, p, i, k), 0.0
        for e in range(first, last):
            j = m.moment_colind[e]
            rate = fma(p.ten_bend[j], d.qvel[j], rate)
            p.dg[j] = fma(-force, p.ten_bend[j], p.dg[j])
    change = fma(force_by_length(m, d, i), longer, force_by_velocity(m, d, i) * rate)
    for e in range(first, last):
        j = m.moment_colind[e]
        p.dg[j] = fma(-change, d.actuator_moment[e], p.dg[j])


@kernel
def subtract_transmissions(m, d, p, k, by_velocity):
    """dg -= rates of these actuators' forces by the position or the velocity of dof k."""
    if not (m.opt_disableflags & DISABLE_ACTUATION):
        for i in range(m.nactuator):
            if _is_bent(m, i):
                found, moment = _moment(m, d, m.actuator_outadr[i], k)
                if found:
                    _subtract(m, d, p, i, k, moment, by_velocity)
