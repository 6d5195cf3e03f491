"""Sensors of accelerations, forces and energy."""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.body.object_motion import object_acceleration
from featherlane.engine.sensor.position import copy_outputs, write_values


@kernel
def wrench_at_site(m, d, s):
    """Returns the (force, moment) [N, N m] of its parent on the body of site s: at the site, in the site's axes."""
    b, R = m.site_bodyid[s], d.site_xmat[s]
    f = d.cfrc_int[b]
    arm = d.site_xpos[s] - d.subtree_com[m.body_rootid[b]]
    return R.T @ f.translation, R.T @ (f.moment + cross(f.translation, arm))


@kernel
def tendon_actuator_force(m, d, t):
    """Returns the sum of the forces of all actuators of tendon t [N]."""
    total = 0.0
    for k in range(m.nactuator):
        if m.actuator_trntype[k] == TRN_TENDON and m.actuator_trnid[k, 0] == t:
            total = total + d.actuator_force[m.actuator_outadr[k]]
    return total


@kernel
def accelerometer(m, d, i):
    """Writes sensor i: linear acceleration [m/s^2] of a site, in its axes; gravity included: at rest g upwards."""
    s = m.sensor_objid[i]
    write_values(m, d, i, d.site_xmat[s].T @ object_acceleration(m, d, OBJ_SITE, s).linear)


@kernel
def frameangacc(m, d, i):
    """Writes sensor i: angular acceleration [rad/s^2] of an object, in world axes."""
    write_values(m, d, i, object_acceleration(m, d, m.sensor_objtype[i], m.sensor_objid[i]).angular)


@kernel
def framelinacc(m, d, i):
    """Writes sensor i: linear acceleration [m/s^2] of an object, in world axes; at rest g upwards."""
    write_values(m, d, i, object_acceleration(m, d, m.sensor_objtype[i], m.sensor_objid[i]).linear)


@kernel
def force(m, d, i):
    """Writes sensor i: force [N] of a parent on the body of a site, in the site's axes."""
    write_values(m, d, i, wrench_at_site(m, d, m.sensor_objid[i])[0])


@kernel
def torque(m, d, i):
    """Writes sensor i: moment [N m] of a parent on the body of a site, at the site, in its axes."""
    write_values(m, d, i, wrench_at_site(m, d, m.sensor_objid[i])[1])


@kernel
def actuatorfrc(m, d, i):
    """Writes sensor i: forces [N, N m] of an actuator."""
    copy_outputs(m, d, i, d.actuator_force)


@kernel
def jointactfrc(m, d, i):
    """Writes sensor i: force [N, N m] of all actuators on a slide or hinge."""
    d.sensor_now[m.sensor_adr[i]] = d.qfrc_actuator[m.jnt_dofadr[m.sensor_objid[i]]]


@kernel
def tendonactfrc(m, d, i):
    """Writes sensor i: force [N] of all actuators on a tendon."""
    d.sensor_now[m.sensor_adr[i]] = tendon_actuator_force(m, d, m.sensor_objid[i])


@kernel
def e_potential(m, d, i):
    """Writes sensor i: potential energy [J]."""
    d.sensor_now[m.sensor_adr[i]] = d.energy[0]


@kernel
def e_kinetic(m, d, i):
    """Writes sensor i: kinetic energy [J]."""
    d.sensor_now[m.sensor_adr[i]] = d.energy[1]
