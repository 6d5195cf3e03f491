"""Sensors of positions: frames, coordinates, lengths, light and fields."""

from __future__ import annotations

from featherlane.lanes import kernel
from featherlane.model.enums import (
    SENS_ACTUATORPOS,
    SENS_BALLQUAT,
    SENS_CAMPROJECTION,
    SENS_CLOCK,
    SENS_FRAMEPOS,
    SENS_FRAMEQUAT,
    SENS_FRAMEXAXIS,
    SENS_FRAMEZAXIS,
    SENS_GEOMDIST,
    SENS_GEOMFROMTO,
    SENS_INSIDESITE,
    SENS_JOINTPOS,
    SENS_MAGNETOMETER,
    SENS_RANGEFINDER,
    SENS_SUBTREECOM,
    SENS_TENDONPOS,
)
from featherlane.sensor.camera import project
from featherlane.sensor.distance import nearest_geoms
from featherlane.sensor.frame import object_mat, object_pos, object_quat
from featherlane.sensor.inside import insidesite
from featherlane.sensor.rangefinder import rangefinder
from featherlane.spatial.quaternion import quat_conj, quat_mul, quat_normalize
from featherlane.spatial.vector import load3, load4, load9, mat_t_mul_vec, store3, store4, sub3


@kernel
def axis_of(R, c):
    """Column c of a matrix."""
    return (R[0], R[3], R[6]) if c == 0 else (R[1], R[4], R[7]) if c == 1 else (R[2], R[5], R[8])


@kernel
def frame_vector(m, d, i, kind):
    """Position or axis of an object, in world axes or as the reference sees it."""
    on, x, ref, r = m.sensor_objtype[i], m.sensor_objid[i], m.sensor_reftype[i], m.sensor_refid[i]
    if kind == SENS_FRAMEPOS:
        v = object_pos(d, on, x)
        if r >= 0:
            v = sub3(v, object_pos(d, ref, r))
    else:
        v = axis_of(object_mat(m, d, on, x), kind - SENS_FRAMEXAXIS)
    if r >= 0:
        v = mat_t_mul_vec(object_mat(m, d, ref, r), v)
    return v


@kernel
def frame_quat(m, d, i):
    """Orientation of an object, from the world's or from the reference's axes."""
    q = object_quat(m, d, m.sensor_objtype[i], m.sensor_objid[i])
    if m.sensor_refid[i] >= 0:
        q = quat_mul(quat_conj(object_quat(m, d, m.sensor_reftype[i], m.sensor_refid[i])), q)
    return q


@kernel
def copy(d, a, rows, first, n):
    """sensor_now[a ..] <- n numbers of a field."""
    for c in range(n):
        d.sensor_now[a + c] = rows[first + c]


@kernel
def position_sensor(m, d, i):
    """The value of sensor i, if its type is one of positions.

    Source: MuJoCo's documentation, XML reference, sensor.
    Reads:  frames, qpos, subtree_com, lengths.   Writes: sensor_now.
    """
    kind, x, a, out = m.sensor_type[i], m.sensor_objid[i], m.sensor_adr[i], d.sensor_now
    if kind == SENS_FRAMEPOS or (kind >= SENS_FRAMEXAXIS and kind <= SENS_FRAMEZAXIS):
        store3(out, a, frame_vector(m, d, i, kind))
    elif kind == SENS_FRAMEQUAT:
        store4(out, a, frame_quat(m, d, i))
    elif kind == SENS_SUBTREECOM:
        store3(out, a, load3(d.subtree_com, 3 * x))
    elif kind == SENS_MAGNETOMETER:
        store3(out, a, mat_t_mul_vec(load9(d.site_xmat, 9 * x), load3(m.opt_magnetic, 0)))
    elif kind == SENS_CAMPROJECTION:
        out[a], out[a + 1] = project(m, d, m.sensor_refid[i], load3(d.site_xpos, 3 * x))
    elif kind == SENS_JOINTPOS:
        out[a] = d.qpos[m.jnt_qposadr[x]]
    elif kind == SENS_BALLQUAT:
        store4(out, a, quat_normalize(load4(d.qpos, m.jnt_qposadr[x])))
    elif kind == SENS_TENDONPOS:
        out[a] = d.ten_length[x]
    elif kind == SENS_ACTUATORPOS:
        copy(d, a, d.actuator_length, m.actuator_outadr[x], m.sensor_dim[i])
    elif kind == SENS_CLOCK:
        out[a] = d.time[0]
    elif kind == SENS_INSIDESITE:
        insidesite(m, d, i)
    elif kind == SENS_RANGEFINDER:
        rangefinder(m, d, i)
    elif kind >= SENS_GEOMDIST and kind <= SENS_GEOMFROMTO:
        nearest_geoms(m, d, i)
