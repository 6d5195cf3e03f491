"""Computes transmissions: length and moment of each actuator output; the moment is the length's gradient by the DoFs.

The moments are rows of a sparse matrix whose pattern is fixed when the model is loaded: row o of output o has
moment_rownnz[o] entries from moment_rowadr[o] on, whose DoFs are in moment_colind.  On a joint the moment is the gear:
one value for a slide or a hinge, an axis for a ball, six values for a free joint.  On a tendon it is the gear times the
tendon's Jacobian.  Transmissions at points of bodies have separate files: site_transmission.py, slider_crank.py,
and adhesion.py for contacts.
i is the index of an actuator, o that of an output.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.actuator.site_transmission import (
    store_orientation_transmission,
    store_site_transmission,
)
from featherlane.engine.dynamics.actuator.slider_crank import store_slider_crank


@kernel
def drives_joint(m, i):
    """Returns whether actuator i acts on a joint."""
    return m.actuator_trntype[i] == TRN_JOINT or m.actuator_trntype[i] == TRN_JOINTINPARENT


@kernel
def _rotation_moment(m, d, i, a, axis):
    """Returns the moment of actuator i on three rotational DoFs, for a gear axis; the joint's quaternion is at qpos[a].

    The DoFs rotate about body axes; TRN_JOINTINPARENT gives the axis in the parent's frame.
    """
    if m.actuator_trntype[i] == TRN_JOINTINPARENT:
        axis = Quat(d.qpos[a : a + 4]).unit.T @ axis
    return axis


@kernel
def _store_joint_transmission(m, d, i):
    """actuator_length, actuator_moment <- those of an actuator on a joint; the moment is the gear.

    Length: gear q of a scalar joint, the rotation vector's component on the gear's axis of a ball, 0 of a free joint.
    """
    o, j = m.actuator_outadr[i], m.actuator_trnid[i, 0]
    row = m.moment_rowadr[o]
    a, kind = m.jnt_qposadr[j], m.jnt_type[j]
    gear = m.actuator_gear[o]
    if is_scalar(kind):
        d.actuator_moment[row] = gear[0]
        d.actuator_length[o] = d.qpos[a] * gear[0]
    elif is_ball(kind):
        axis = _rotation_moment(m, d, i, a, gear.force)
        d.actuator_moment[row : row + 3] = axis
        d.actuator_length[o] = dot(quat_log(Quat(d.qpos[a : a + 4]).unit), axis)
    else:
        d.actuator_moment[row : row + 3] = gear.force
        d.actuator_moment[row + 3 : row + 6] = _rotation_moment(m, d, i, a + 3, gear.torque)
        d.actuator_length[o] = 0.0


@kernel
def _store_tendon_transmission(m, d, i):
    """actuator_length, actuator_moment <- gear times those of a tendon, whose row of ten_J has the same DoFs."""
    o, t = m.actuator_outadr[i], m.actuator_trnid[i, 0]
    moment_row, J_row, gear = m.moment_rowadr[o], m.ten_J_rowadr[t], m.actuator_gear[o][0]
    d.actuator_length[o] = d.ten_length[t] * gear
    for c in range(m.ten_J_rownnz[t]):
        d.actuator_moment[moment_row + c] = d.ten_J[J_row + c] * gear


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
            _store_joint_transmission(m, d, i)
        elif kind == TRN_TENDON:
            _store_tendon_transmission(m, d, i)
        elif kind == TRN_SITE:
            store_site_transmission(m, d, i)
        elif kind == TRN_SLIDERCRANK:
            store_slider_crank(m, d, i)
        elif kind == TRN_SO3:
            store_orientation_transmission(m, d, i)


@kernel
def output_velocity(m, d, o):
    """Returns the rate of the length of output o: its row of the moments times qvel."""
    rate = 0.0
    for e in moment_entries(m, o):
        rate = fma(d.actuator_moment[e], d.qvel[m.moment_colind[e]], rate)
    return rate


@kernel
def add_output_force(m, d, o, force, x):
    """x += moment^T force of output o; x is (nv,)."""
    for e in moment_entries(m, o):
        dof = m.moment_colind[e]
        x[dof] = fma(d.actuator_moment[e], force, x[dof])
