"""Transmissions: the length of each actuator's force output, and its moment, the gradient of the length by the dofs.

The moments are rows of a sparse matrix whose pattern is fixed when the model is loaded (moment_rownnz, moment_rowadr,
moment_colind).  On a joint the moment is the gear: one number for a slide or a hinge, an axis for a ball, six numbers
for a free joint.
"""

from __future__ import annotations

from featherlane.lanes import fma, kernel, real, stage
from featherlane.spatial.quaternion import quat_conj, quat_log, quat_normalize, rotate
from featherlane.spatial.vector import dot3, load3, load4, store3

from .flags import BALL, SLIDE, TRN_JOINT, TRN_JOINTINPARENT


@kernel
def drives_joint(m, i):
    """Does actuator i act on a joint?"""
    return m.actuator_trntype[i] == TRN_JOINT or m.actuator_trntype[i] == TRN_JOINTINPARENT


@kernel
def _rotation_moment(m, d, i, a, g):
    """Moment on three rotational dofs: gear g, in the body's axes; the joint's quaternion stands at qpos[a]."""
    axis = load3(m.actuator_gear, g)
    if m.actuator_trntype[i] == TRN_JOINTINPARENT:
        axis = rotate(quat_conj(quat_normalize(load4(d.qpos, a))), axis)
    return axis


@kernel
def _joint_transmission(m, d, i):
    """Length and moment of an actuator on a joint."""
    o, j = m.actuator_outadr[i], m.actuator_trnid[2 * i]
    e, a, kind, g = m.moment_rowadr[o], m.jnt_qposadr[j], m.jnt_type[j], 6 * o
    if kind >= SLIDE:
        d.actuator_moment[e] = m.actuator_gear[g]
        d.actuator_length[o] = d.qpos[a] * m.actuator_gear[g]
    elif kind == BALL:
        axis = _rotation_moment(m, d, i, a, g)
        store3(d.actuator_moment, e, axis)
        d.actuator_length[o] = dot3(quat_log(quat_normalize(load4(d.qpos, a))), axis)
    else:
        store3(d.actuator_moment, e, load3(m.actuator_gear, g))
        store3(d.actuator_moment, e + 3, _rotation_moment(m, d, i, a + 3, g + 3))
        d.actuator_length[o] = real(d, 0.0)


@stage
def transmission(m, d):
    """Lengths and moments of the actuators.

    Slide and hinge: gear times the coordinate.  Ball: gear is an axis, the length its part of the rotation vector.
    Free joint: gear is a force and a moment, the length 0.
    Source: MuJoCo mj_transmission.
    Reads:  qpos.   Writes: actuator_length (nout,) [m, rad], actuator_moment (nmoment,).
    """
    for i in range(m.nactuator):
        _joint_transmission(m, d, i)


@kernel
def output_velocity(m, d, o):
    """Rate of the length of output o: moment times qvel."""
    rate = real(d, 0.0)
    for e in range(m.moment_rowadr[o], m.moment_rowadr[o] + m.moment_rownnz[o]):
        rate = fma(d.actuator_moment[e], d.qvel[m.moment_colind[e]], rate)
    return rate


@kernel
def add_output_force(m, d, o, force, x):
    """x += moment^T force of output o; x is (nv,)."""
    for e in range(m.moment_rowadr[o], m.moment_rowadr[o] + m.moment_rownnz[o]):
        v = m.moment_colind[e]
        x[v] = fma(d.actuator_moment[e], force, x[v])
