"""Limits of joints and tendons as sensors see them: of the row that acts, its distance, its velocity, its force."""

from __future__ import annotations

from featherlane.lanes import kernel, not_, real, where

from .kinds import (
    JOINTLIMITPOS,
    JOINTLIMITVEL,
    LIMIT_JOINT,
    LIMIT_TENDON,
    TENDONLIMITFRC,
    TENDONLIMITPOS,
    TENDONLIMITVEL,
)


@kernel
def is_limit_sensor(kind):
    """Does a sensor of this type read the rows of limits?"""
    return kind >= JOINTLIMITPOS and kind <= TENDONLIMITFRC


@kernel
def limit_sensor(m, d, i, active):
    """Sensor i: of the first limit row of its joint or tendon that each active world has; 0 where it has none.

    Reads:  dofrow_*, genrow_*.   Writes: sensor_now.
    """
    kind, wanted, x = m.sensor_type[i], LIMIT_JOINT, m.sensor_objid[i]
    if kind >= TENDONLIMITPOS:
        wanted = LIMIT_TENDON
    value, missing = real(d, 0.0), active
    for k in range(d.ndofrow[0]):
        if d.dofrow_type[k] == wanted and d.dofrow_id[k] == x:
            here = missing & (d.dofrow_present[k] > 0.0)
            value = where(here, dofrow_value(d, kind, k), value)
            missing = missing & not_(here)
    for k in range(d.ngenrow[0]):
        if d.genrow_type[k] == wanted and d.genrow_id[k] == x:
            here = missing & (d.genrow_present[k] > 0.0)
            value = where(here, genrow_value(d, kind, k), value)
            missing = missing & not_(here)
    a = m.sensor_adr[i]
    d.sensor_now[a] = where(active, value, d.sensor_now[a])


@kernel
def dofrow_value(d, kind, k):
    """What the sensor's type asks of a one-dof row."""
    if kind in (JOINTLIMITPOS, TENDONLIMITPOS):
        value = d.dofrow_pos[k] - d.dofrow_margin[k]
    elif kind in (JOINTLIMITVEL, TENDONLIMITVEL):
        value = d.dofrow_vel[k]
    else:
        value = d.dofrow_force[k]
    return value


@kernel
def genrow_value(d, kind, k):
    """What the sensor's type asks of a general row."""
    if kind in (JOINTLIMITPOS, TENDONLIMITPOS):
        value = d.genrow_pos[k] - d.genrow_margin[k]
    elif kind in (JOINTLIMITVEL, TENDONLIMITVEL):
        value = d.genrow_vel[k]
    else:
        value = d.genrow_force[k]
    return value
