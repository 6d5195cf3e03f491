"""Limits of joints and tendons as sensors see them: of the row that acts, its distance, its velocity, its force."""

from featherlane.prelude import *


@kernel
def limit_sensor(m, d, i):
    """Sensor i: of the first limit row of its joint or tendon that each active world has; 0 where it has none.

    Reads:  dofrow_*, genrow_*.   Writes: sensor_now.
    """
    active = d.active[0] > 0.0
    kind, wanted, x = m.sensor_type[i], LIMIT_JOINT, m.sensor_objid[i]
    if kind >= SENS_TENDONLIMITPOS:
        wanted = LIMIT_TENDON
    value, missing = zero(d), active
    for k in range(d.ndofrow[0]):
        if d.dofrow_type[k] == wanted and d.dofrow_id[k] == x:
            here = missing & (d.dofrow_present[k] > 0.0)
            found = row_value(kind, k, d.dofrow_pos, d.dofrow_margin, d.dofrow_vel, d.dofrow_force)
            value = where(here, found, value)
            missing = missing & not_(here)
    for k in range(d.ngenrow[0]):
        if d.genrow_type[k] == wanted and d.genrow_id[k] == x:
            here = missing & (d.genrow_present[k] > 0.0)
            found = row_value(kind, k, d.genrow_pos, d.genrow_margin, d.genrow_vel, d.genrow_force)
            value = where(here, found, value)
            missing = missing & not_(here)
    a = m.sensor_adr[i]
    d.sensor_now[a] = where(active, value, d.sensor_now[a])


@kernel
def row_value(kind, k, pos, margin, vel, force):
    """What the sensor's type asks of row k, whose fields are in these arrays."""
    if kind in (SENS_JOINTLIMITPOS, SENS_TENDONLIMITPOS):
        value = pos[k] - margin[k]
    elif kind in (SENS_JOINTLIMITVEL, SENS_TENDONLIMITVEL):
        value = vel[k]
    else:
        value = force[k]
    return value
