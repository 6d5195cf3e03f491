"""Position sensors: frames, coordinates, lengths, camera projection and magnetic field."""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.body.object_motion import object_mat, object_pos, object_quat
from featherlane.engine.sensor.camera import project


@kernel
def write_values(m, d, i, values):
    """Writes sensor i: the values of a row or tuple."""
    a = m.sensor_adr[i]
    for x in values:
        d.sensor_now[a] = x
        a += 1


@kernel
def in_reference_axes(m, d, i, v):
    """Returns a world vector in the axes of sensor i's reference frame, if it has one."""
    if m.sensor_refid[i] >= 0:
        v = object_mat(m, d, m.sensor_reftype[i], m.sensor_refid[i]).T @ v
    return v


@kernel
def framepos(m, d, i):
    """Writes sensor i: position [m] of an object, in world axes or relative to the reference frame."""
    sensor = m.sensor[i]
    v = object_pos(d, sensor.objtype, sensor.objid)
    if sensor.refid >= 0:
        v = v - object_pos(d, sensor.reftype, sensor.refid)
    write_values(m, d, i, in_reference_axes(m, d, i, v))


@kernel
def frameaxis(m, d, i):
    """Writes sensor i: an axis of an object, in world axes or in the reference frame."""
    R = object_mat(m, d, m.sensor_objtype[i], m.sensor_objid[i])
    write_values(m, d, i, in_reference_axes(m, d, i, R.columns[m.sensor_type[i] - SENS_FRAMEXAXIS]))


@kernel
def framequat(m, d, i):
    """Writes sensor i: orientation of an object, relative to the world or to the reference frame."""
    sensor = m.sensor[i]
    q = object_quat(m, d, sensor.objtype, sensor.objid)
    if sensor.refid >= 0:
        q = object_quat(m, d, sensor.reftype, sensor.refid).T @ q
    write_values(m, d, i, q)


@kernel
def subtreecom(m, d, i):
    """Writes sensor i: centre of mass [m] of a subtree."""
    write_values(m, d, i, d.subtree_com[m.sensor_objid[i]])


@kernel
def magnetometer(m, d, i):
    """Writes sensor i: the magnetic field in the axes of a site."""
    R = d.site_xmat[m.sensor_objid[i]]
    write_values(m, d, i, R.T @ m.opt_magnetic[0])


@kernel
def camprojection(m, d, i):
    """Writes sensor i: the pixel coordinates of a site in a camera."""
    write_values(m, d, i, project(m, d, m.sensor_refid[i], d.site_xpos[m.sensor_objid[i]]))


@kernel
def jointpos(m, d, i):
    """Writes sensor i: coordinate [m, rad] of a slide or hinge."""
    d.sensor_now[m.sensor_adr[i]] = d.qpos[m.jnt_qposadr[m.sensor_objid[i]]]


@kernel
def ballquat(m, d, i):
    """Writes sensor i: orientation of a ball joint, a quaternion."""
    a = m.jnt_qposadr[m.sensor_objid[i]]
    write_values(m, d, i, Quat(d.qpos[a : a + 4]).unit)


@kernel
def tendonpos(m, d, i):
    """Writes sensor i: length [m] of a tendon."""
    d.sensor_now[m.sensor_adr[i]] = d.ten_length[m.sensor_objid[i]]


@kernel
def copy_outputs(m, d, i, rows):
    """Writes sensor i: the values of an actuator's outputs in `rows`, a field with one value per output."""
    a, first = m.sensor_adr[i], m.actuator_outadr[m.sensor_objid[i]]
    for c in range(m.sensor_dim[i]):
        d.sensor_now[a + c] = rows[first + c]


@kernel
def actuatorpos(m, d, i):
    """Writes sensor i: lengths [m, rad] of an actuator's outputs."""
    copy_outputs(m, d, i, d.actuator_length)


@kernel
def clock(m, d, i):
    """Writes sensor i: the time [s]."""
    d.sensor_now[m.sensor_adr[i]] = d.time[0]
