"""Sensors of accelerations, forces and energy."""

from __future__ import annotations

from featherlane.lanes import kernel, real
from featherlane.model.enums import (
    OBJ_SITE,
    SENS_ACCELEROMETER,
    SENS_ACTUATORFRC,
    SENS_E_KINETIC,
    SENS_E_POTENTIAL,
    SENS_FORCE,
    SENS_FRAMEANGACC,
    SENS_FRAMELINACC,
    SENS_JOINTACTFRC,
    SENS_TENDONACTFRC,
    SENS_TORQUE,
    TRN_TENDON,
)
from featherlane.sensor.frame import object_acceleration
from featherlane.sensor.position import copy
from featherlane.spatial.vector import add3, cross, load3, load6, load9, mat_t_mul_vec, store3, sub3


@kernel
def wrench_at_site(m, d, s):
    """(force, moment) that the body of site s exerts on its parent, turned round: at the site, in its axes."""
    b, R = m.site_bodyid[s], load9(d.site_xmat, 9 * s)
    f = load6(d.cfrc_int, 6 * b)
    force = (f[3], f[4], f[5])
    arm = sub3(load3(d.site_xpos, 3 * s), load3(d.subtree_com, 3 * m.body_rootid[b]))
    moment = add3((f[0], f[1], f[2]), cross(force, arm))
    return mat_t_mul_vec(R, force), mat_t_mul_vec(R, moment)


@kernel
def tendon_actuator_force(m, d, t):
    """Sum of the forces of all actuators that pull tendon t."""
    total = real(d, 0.0)
    for k in range(m.nactuator):
        if m.actuator_trntype[k] == TRN_TENDON and m.actuator_trnid[2 * k] == t:
            total = total + d.actuator_force[m.actuator_outadr[k]]
    return total


@kernel
def acceleration_sensor(m, d, i):
    """The value of sensor i, if its type is one of accelerations, forces or energy.

    Source: MuJoCo's documentation, XML reference, sensor.
    Reads:  cacc, cvel, cfrc_int, actuator_force, qfrc_actuator, energy.   Writes: sensor_now.
    """
    kind, x, a, out = m.sensor_type[i], m.sensor_objid[i], m.sensor_adr[i], d.sensor_now
    if kind == SENS_ACCELEROMETER:
        _, v = object_acceleration(m, d, OBJ_SITE, x)
        store3(out, a, mat_t_mul_vec(load9(d.site_xmat, 9 * x), v))
    elif kind in (SENS_FRAMELINACC, SENS_FRAMEANGACC):
        w, v = object_acceleration(m, d, m.sensor_objtype[i], x)
        store3(out, a, w if kind == SENS_FRAMEANGACC else v)
    elif kind in (SENS_FORCE, SENS_TORQUE):
        f, t = wrench_at_site(m, d, x)
        store3(out, a, f if kind == SENS_FORCE else t)
    elif kind == SENS_ACTUATORFRC:
        copy(d, a, d.actuator_force, m.actuator_outadr[x], m.sensor_dim[i])
    elif kind == SENS_JOINTACTFRC:
        out[a] = d.qfrc_actuator[m.jnt_dofadr[x]]
    elif kind == SENS_TENDONACTFRC:
        out[a] = tendon_actuator_force(m, d, x)
    elif kind == SENS_E_POTENTIAL:
        out[a] = d.energy[0]
    elif kind == SENS_E_KINETIC:
        out[a] = d.energy[1]
