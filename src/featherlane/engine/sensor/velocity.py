"""Velocity sensors."""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.body.object_motion import object_mat, object_pos, object_velocity
from featherlane.engine.sensor.position import copy_outputs, write_values


@kernel
def frame_velocity(m, d, i):
    """Returns the velocity of the object of sensor i, in world axes or relative to a reference that may rotate.

    Relative to the reference, in its axes: R^T (v - v_ref - w_ref x arm).
    """
    sensor = m.sensor[i]
    kind, obj, ref_kind, ref = sensor.objtype, sensor.objid, sensor.reftype, sensor.refid
    vel = object_velocity(m, d, kind, obj)
    if ref >= 0:  # -1: no reference
        R = object_mat(m, d, ref_kind, ref)
        ref_vel = object_velocity(m, d, ref_kind, ref)
        arm = object_pos(d, kind, obj) - object_pos(d, ref_kind, ref)
        # - w_ref x arm = arm x w_ref
        linear = vel.linear - ref_vel.linear + cross(arm, ref_vel.angular)
        vel = Motion(join(R.T @ (vel.angular - ref_vel.angular), R.T @ linear))
    return vel


@kernel
def site_velocity(m, d, i):
    """Returns the velocity of the site of sensor i, in its axes."""
    s = m.sensor_objid[i]
    R = d.site_xmat[s]
    v = object_velocity(m, d, OBJ_SITE, s)
    return Motion(join(R.T @ v.angular, R.T @ v.linear))


@kernel
def gyro(m, d, i):
    """Writes sensor i: angular velocity [rad/s] of a site, in its axes."""
    write_values(m, d, i, site_velocity(m, d, i).angular)


@kernel
def velocimeter(m, d, i):
    """Writes sensor i: linear velocity [m/s] of a site, in its axes."""
    write_values(m, d, i, site_velocity(m, d, i).linear)


@kernel
def frameangvel(m, d, i):
    """Writes sensor i: angular velocity [rad/s] of an object, as `frame_velocity`."""
    write_values(m, d, i, frame_velocity(m, d, i).angular)


@kernel
def framelinvel(m, d, i):
    """Writes sensor i: linear velocity [m/s] of an object, as `frame_velocity`."""
    write_values(m, d, i, frame_velocity(m, d, i).linear)


@kernel
def subtreelinvel(m, d, i):
    """Writes sensor i: linear velocity [m/s] of the centre of mass of a subtree."""
    write_values(m, d, i, d.subtree_linvel[m.sensor_objid[i]])


@kernel
def subtreeangmom(m, d, i):
    """Writes sensor i: angular momentum [kg m^2/s] of a subtree about its centre of mass."""
    write_values(m, d, i, d.subtree_angmom[m.sensor_objid[i]])


@kernel
def jointvel(m, d, i):
    """Writes sensor i: velocity [m/s, rad/s] of a slide or hinge."""
    d.sensor_now[m.sensor_adr[i]] = d.qvel[m.jnt_dofadr[m.sensor_objid[i]]]


@kernel
def ballangvel(m, d, i):
    """Writes sensor i: angular velocity [rad/s] of a ball joint, in the axes of its body."""
    dof = m.jnt_dofadr[m.sensor_objid[i]]
    write_values(m, d, i, d.qvel[dof : dof + 3])


@kernel
def tendonvel(m, d, i):
    """Writes sensor i: rate of a tendon's length [m/s]."""
    d.sensor_now[m.sensor_adr[i]] = d.ten_velocity[m.sensor_objid[i]]


@kernel
def actuatorvel(m, d, i):
    """Writes sensor i: rates of an actuator's lengths [m/s, rad/s]."""
    copy_outputs(m, d, i, d.actuator_velocity)
