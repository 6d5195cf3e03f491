"""Sensors of velocities."""

from __future__ import annotations

from featherlane.lanes import kernel
from featherlane.sensor.frame import object_mat, object_pos, object_velocity
from featherlane.sensor.kinds import (
    ACTUATORVEL,
    BALLANGVEL,
    FRAMEANGVEL,
    FRAMELINVEL,
    GYRO,
    JOINTVEL,
    SITE,
    SUBTREEANGMOM,
    SUBTREELINVEL,
    TENDONVEL,
    VELOCIMETER,
)
from featherlane.sensor.position import copy
from featherlane.spatial.vector import add3, cross, load3, load9, mat_t_mul_vec, store3, sub3


@kernel
def frame_velocity(m, d, i):
    """(angular, linear) velocity of an object, in world axes or as the reference sees it, which may turn itself."""
    on, x, ref, r = m.sensor_objtype[i], m.sensor_objid[i], m.sensor_reftype[i], m.sensor_refid[i]
    w, v = object_velocity(m, d, on, x)
    if r >= 0:
        R, (u, s) = object_mat(m, d, ref, r), object_velocity(m, d, ref, r)
        arm = sub3(object_pos(d, on, x), object_pos(d, ref, r))
        w, v = mat_t_mul_vec(R, sub3(w, u)), mat_t_mul_vec(R, add3(sub3(v, s), cross(arm, u)))
    return w, v


@kernel
def velocity_sensor(m, d, i):
    """The value of sensor i, if its type is one of velocities.

    Source: MuJoCo's documentation, XML reference, sensor.
    Reads:  cvel, qvel, subtree_linvel, subtree_angmom, rates of lengths.   Writes: sensor_now.
    """
    kind, x, a, out = m.sensor_type[i], m.sensor_objid[i], m.sensor_adr[i], d.sensor_now
    if kind in (GYRO, VELOCIMETER):
        R, (w, v) = load9(d.site_xmat, 9 * x), object_velocity(m, d, SITE, x)
        store3(out, a, mat_t_mul_vec(R, w if kind == GYRO else v))
    elif kind in (FRAMELINVEL, FRAMEANGVEL):
        w, v = frame_velocity(m, d, i)
        store3(out, a, w if kind == FRAMEANGVEL else v)
    elif kind == SUBTREELINVEL:
        store3(out, a, load3(d.subtree_linvel, 3 * x))
    elif kind == SUBTREEANGMOM:
        store3(out, a, load3(d.subtree_angmom, 3 * x))
    elif kind == JOINTVEL:
        out[a] = d.qvel[m.jnt_dofadr[x]]
    elif kind == BALLANGVEL:
        store3(out, a, load3(d.qvel, m.jnt_dofadr[x]))
    elif kind == TENDONVEL:
        out[a] = d.ten_velocity[x]
    elif kind == ACTUATORVEL:
        copy(d, a, d.actuator_velocity, m.actuator_outadr[x], m.sensor_dim[i])
