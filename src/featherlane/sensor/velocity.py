"""Sensors of velocities."""

from __future__ import annotations

from featherlane.lanes import kernel
from featherlane.model.enums import (
    OBJ_SITE,
    SENS_ACTUATORVEL,
    SENS_BALLANGVEL,
    SENS_FRAMEANGVEL,
    SENS_FRAMELINVEL,
    SENS_GYRO,
    SENS_JOINTVEL,
    SENS_SUBTREEANGMOM,
    SENS_SUBTREELINVEL,
    SENS_TENDONVEL,
    SENS_VELOCIMETER,
)
from featherlane.sensor.frame import object_mat, object_pos, object_velocity
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
    if kind in (SENS_GYRO, SENS_VELOCIMETER):
        R, (w, v) = load9(d.site_xmat, 9 * x), object_velocity(m, d, OBJ_SITE, x)
        store3(out, a, mat_t_mul_vec(R, w if kind == SENS_GYRO else v))
    elif kind in (SENS_FRAMELINVEL, SENS_FRAMEANGVEL):
        w, v = frame_velocity(m, d, i)
        store3(out, a, w if kind == SENS_FRAMEANGVEL else v)
    elif kind == SENS_SUBTREELINVEL:
        store3(out, a, load3(d.subtree_linvel, 3 * x))
    elif kind == SENS_SUBTREEANGMOM:
        store3(out, a, load3(d.subtree_angmom, 3 * x))
    elif kind == SENS_JOINTVEL:
        out[a] = d.qvel[m.jnt_dofadr[x]]
    elif kind == SENS_BALLANGVEL:
        store3(out, a, load3(d.qvel, m.jnt_dofadr[x]))
    elif kind == SENS_TENDONVEL:
        out[a] = d.ten_velocity[x]
    elif kind == SENS_ACTUATORVEL:
        copy(d, a, d.actuator_velocity, m.actuator_outadr[x], m.sensor_dim[i])
