"""Computes transmissions: length and moment of each actuator output; the moment is the length's gradient by the DoFs.

The moments are rows of a sparse matrix whose pattern is fixed when the model is loaded (moment_rownnz, moment_rowadr,
moment_colind).  On a joint the moment is the gear: one value for a slide or a hinge, an axis for a ball, six values
for a free joint.  On a tendon it is the gear times the tendon's Jacobian.  Transmissions at points of bodies have
separate files: site_transmission.py, slider_crank.py, and adhesion.py for contacts.
"""

from featherlane.prelude import *
from featherlane.dynamics.actuator.site_transmission import orientation_transmission, site_transmission
from featherlane.dynamics.actuator.slider_crank import slider_crank


@kernel
def drives_joint(m, i):
    """Returns whether actuator i acts on a joint."""
    return m.actuator_trntype[i] == TRN_JOINT or m.actuator_trntype[i] == TRN_JOINTINPARENT


@kernel
def _rotation_moment(m, d, i, a, axis):
    """Computes the moment on three rotational DoFs about an axis in body axes; the joint's quaternion is at qpos[a]."""
    if m.actuator_trntype[i] == TRN_JOINTINPARENT:
        axis = Quat(d.qpos[a : a + 4]).unit.T @ axis
    return axis


@kernel
def _joint_transmission(m, d, i):
    """Computes length and moment of an actuator on a joint."""
    o, j = m.actuator_outadr[i], m.actuator_trnid[i, 0]
    e, a, kind, gear = m.moment_rowadr[o], m.jnt_qposadr[j], m.jnt_type[j], m.actuator_gear[o]
    if is_scalar(kind):
        d.actuator_moment[e] = gear[0]
        d.actuator_length[o] = d.qpos[a] * gear[0]
    elif is_ball(kind):
        axis = _rotation_moment(m, d, i, a, gear.force)
        d.actuator_moment[e : e + 3] = axis
        d.actuator_length[o] = dot(quat_log(Quat(d.qpos[a : a + 4]).unit), axis)
    else:
        d.actuator_moment[e : e + 3] = gear.force
        d.actuator_moment[e + 3 : e + 6] = _rotation_moment(m, d, i, a + 3, gear.torque)
        d.actuator_length[o] = 0.0


@kernel
def _tendon_transmission(m, d, i):
    """Computes length and moment of an actuator on a tendon, whose row of ten_J has the same DoFs."""
    o, t = m.actuator_outadr[i], m.actuator_trnid[i, 0]
    e, a, gear = m.moment_rowadr[o], m.ten_J_rowadr[t], m.actuator_gear[o][0]
    d.actuator_length[o] = d.ten_length[t] * gear
    for c in range(m.ten_J_rownnz[t]):
        d.actuator_moment[e + c] = d.ten_J[a + c] * gear


@stage
def transmission(m, d):
    """Computes lengths and moments of the actuators, except those that act through contacts.

    Slide and hinge: gear times the coordinate.  Ball: gear is an axis, the length is the rotation vector's component on
    it.  Free joint: gear is a force and a moment, the length 0.  Tendon: gear times its length.  Site, slider-crank and
    orientation: see their files.
    Source: MuJoCo mj_transmission.
    Reads:  qpos, ten_length, ten_J, site_xpos, site_xmat, xquat, cdof, subtree_com.
    Writes: actuator_length (nout,) [m, rad], actuator_moment (nmoment,).
    """
    for i in range(m.nactuator):
        kind = m.actuator_trntype[i]
        if drives_joint(m, i):
            _joint_transmission(m, d, i)
        elif kind == TRN_TENDON:
            _tendon_transmission(m, d, i)
        elif kind == TRN_SITE:
            site_transmission(m, d, i)
        elif kind == TRN_SLIDERCRANK:
            slider_crank(m, d, i)
        elif kind == TRN_SO3:
            orientation_transmission(m, d, i)


@kernel
def output_velocity(m, d, o):
    """Returns the rate of the length of output o: moment times qvel."""
    rate = 0.0
    for e in range(m.moment_rowadr[o], m.moment_rowadr[o] + m.moment_rownnz[o]):
        rate = fma(d.actuator_moment[e], d.qvel[m.moment_colind[e]], rate)
    return rate


@kernel
def add_output_force(m, d, o, force, x):
    """x += moment^T force of output o; x is (nv,)."""
    for e in range(m.moment_rowadr[o], m.moment_rowadr[o] + m.moment_rownnz[o]):
        v = m.moment_colind[e]
        x[v] = fma(d.actuator_moment[e], force, x[v])
