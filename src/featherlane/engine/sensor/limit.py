"""Limit sensors of joints and tendons: distance, velocity and force of the active limit row.

d.active is 1 in the worlds whose rows are in the tile; other worlds keep their values.  The worlds of a tile share its
nrow rows; row_present is 1 in the worlds that have the row.
"""

from featherlane.engine.prelude import *


@kernel
def limit_sensor(m, d, i):
    """Writes sensor i: the first limit row of its joint or tendon in each active world; 0 if there is none.

    Reads:  row_*.   Writes: sensor_now.
    """
    active = d.active[0] > 0.0
    kind = m.sensor_type[i]
    row_type = LIMIT_JOINT
    obj = m.sensor_objid[i]
    # the sensor types of tendon limits follow those of joint limits
    if kind >= SENS_TENDONLIMITPOS:
        row_type = LIMIT_TENDON
    value = 0.0
    missing = active  # worlds without a row so far
    for k in range(d.nrow[0]):
        if d.row_type[k] == row_type and d.row_id[k] == obj:
            here = missing & (d.row_present[k] > 0.0)
            value = where(here, row_value(d, kind, k), value)
            missing = missing & not_(here)
    a = m.sensor_adr[i]
    d.sensor_now[a] = where(active, value, d.sensor_now[a])


@kernel
def row_value(d, kind, k):
    """Returns what a sensor of this type reports of row k: its position less the margin, velocity or force."""
    row = d.row[k]
    if kind in (SENS_JOINTLIMITPOS, SENS_TENDONLIMITPOS):
        value = row.pos - row.margin
    elif kind in (SENS_JOINTLIMITVEL, SENS_TENDONLIMITVEL):
        value = row.vel
    else:
        value = row.force
    return value
