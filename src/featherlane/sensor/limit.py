"""Limit sensors of joints and tendons: distance, velocity and force of the active limit row."""

from featherlane.prelude import *


@kernel
def limit_sensor(m, d, i):
    """Writes sensor i: the first limit row of its joint or tendon in each active world; 0 if there is none.

    Reads:  dofrow_*, genrow_*.   Writes: sensor_now.
    """
    active = d.active[0] > 0.0
    kind, row_type, obj = m.sensor_type[i], LIMIT_JOINT, m.sensor_objid[i]
    # the sensor types of tendon limits follow those of joint limits
    if kind >= SENS_TENDONLIMITPOS:
        row_type = LIMIT_TENDON
    value, missing = 0.0, active  # missing: worlds without a row so far
    for k in range(d.ndofrow[0]):
        if d.dofrow_type[k] == row_type and d.dofrow_id[k] == obj:
            here = missing & (d.dofrow_present[k] > 0.0)
            row = row_value(kind, k, d.dofrow_pos, d.dofrow_margin, d.dofrow_vel, d.dofrow_force)
            value = where(here, row, value)
            missing = missing & not_(here)
    for k in range(d.ngenrow[0]):
        if d.genrow_type[k] == row_type and d.genrow_id[k] == obj:
            here = missing & (d.genrow_present[k] > 0.0)
            row = row_value(kind, k, d.genrow_pos, d.genrow_margin, d.genrow_vel, d.genrow_force)
            value = where(here, row, value)
            missing = missing & not_(here)
    a = m.sensor_adr[i]
    d.sensor_now[a] = where(active, value, d.sensor_now[a])


@kernel
def row_value(kind, k, pos, margin, vel, force):
    """Returns what a sensor of this type reports of row k: its position less the margin, velocity or force.

    pos, margin, vel, force: the fields of all rows of its kind.
    """
    if kind in (SENS_JOINTLIMITPOS, SENS_TENDONLIMITPOS):
        value = pos[k] - margin[k]
    elif kind in (SENS_JOINTLIMITVEL, SENS_TENDONLIMITVEL):
        value = vel[k]
    else:
        value = force[k]
    return value
