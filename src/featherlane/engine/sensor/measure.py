"""The sensor stages that a step calls.

position, velocity   when the fields that they read are valid
rows                 while the rows of a world are in the tile: contacts, limits, external forces
acceleration         after the solve; then the values are published

The call sets want_...: 1 requests a result.  unread is 1 in a step whose results nobody reads.  in_stage is FIRST_PASS
in the forward pass of a step, WITHIN in a later one whose results are discarded, LAST_STAGE in the last stage of an
integrator.
"""

from featherlane.engine.prelude import *
from featherlane.engine.model.sensor import ENERGIES, MOMENTA, WRENCHES
from featherlane.engine.sensor.momentum import subtree_vel
from featherlane.engine.sensor.position import clock
from featherlane.engine.sensor.publish import publish, sample_sensors
from featherlane.engine.sensor.table import measure_acceleration, measure_position, measure_rows, measure_velocity
from featherlane.engine.sensor.wrench import external_forces, interaction_forces

FIRST_PASS, WITHIN, LAST_STAGE = range(3)  # values of `in_stage`


# ---- requested results -----------------------------------------------------------------------------------------------
@kernel
def measures(m, d):
    """Returns whether sensors are computed in this pass.

    Not in stages of an integrator (in_stage), nor in steps whose results are not read, unless sensors have a history.
    """
    enabled = m.nsensor > 0 and m.opt_disableflags & DISABLE_SENSOR == 0
    return enabled and d.want_sensors != 0 and d.in_stage[0] == FIRST_PASS and (d.unread[0] == 0 or m.nhistory > 0)


@kernel
def is_needed(m, d, result, wanted):
    """Returns whether a result is computed: on request, or for a sensor that reads it.

    A requested result belongs to the last state of a step, like all other fields.

    Args:
        result: ENERGIES, MOMENTA or WRENCHES, a bit of sensor_reads.
        wanted: 1: the caller requests the result.
    """
    requested = wanted != 0 and d.in_stage[0] != WITHIN and d.unread[0] == 0
    return requested or (m.sensor_reads & result != 0 and measures(m, d))


@kernel
def needs_energy(m, d):
    """Returns whether the energy is computed."""
    return is_needed(m, d, ENERGIES, d.want_energy)


# ---- the stages of a step -------------------------------------------------------------------------------------------
@stage
def sensor_pos(m, d):
    """Computes position sensors.

    Source: MuJoCo mj_sensorPos.
    Reads:  qpos, time, ten_length, actuator_length, subtree_com; frames of bodies, of geoms, of sites, of cameras.
    Writes: sensor_now; what `nearest_geoms` and `rangefinder` write.
    """
    if measures(m, d):
        for i in range(m.nsensor):
            measure_position(m, d, i)


@stage
def sensor_vel(m, d):
    """Computes velocities of subtrees, and velocity sensors.

    Source: MuJoCo mj_sensorVel.
    Reads:  qvel, cvel, ten_velocity, actuator_velocity, subtree_com; frames of bodies, of geoms, of sites, of cameras.
    Writes: sensor_now; on request subtree_linvel, subtree_angmom.
    """
    if is_needed(m, d, MOMENTA, d.want_subtree):
        subtree_vel(m, d)
    if measures(m, d):
        for i in range(m.nsensor):
            measure_velocity(m, d, i)


@stage
def sensor_rows(m, d):
    """Computes contact and limit sensors, in the worlds whose rows are in the tile.

    Reads:  con_*, row_* and their forces.   Writes: sensor_now, cfrc_ext of these worlds.
    """
    if is_needed(m, d, WRENCHES, d.want_wrenches):
        external_forces(m, d)
    if measures(m, d):
        for i in range(m.nsensor):
            measure_rows(m, d, i)


@stage
def sensor_acc(m, d):
    """Computes forces between bodies, acceleration and force sensors; then publishes all sensors.

    Source: MuJoCo mj_sensorAcc.
    Reads:  qacc, qvel, qfrc_actuator, actuator_force, energy, cdof, cvel, cinert, cfrc_ext, history, time; the frames.
    Writes: sensor_now, sensordata (nsensordata,); on request cacc, cfrc_int (nbody, 6).
    """
    if is_needed(m, d, WRENCHES, d.want_wrenches):
        interaction_forces(m, d)
    if measures(m, d):
        for i in range(m.nsensor):
            measure_acceleration(m, d, i)
        for i in range(m.nsensor):
            function = d.user_sensor[i]  # the user's compiled function.   Source: MuJoCo mjcb_sensor
            if function != 0:
                call(function, m, d, i)
        publish(m, d)


@stage
def sensor_history(m, d):
    """Samples sensors with a history, between the forward pass of a step and its integration.

    Reads:  sensor_now, time.   Writes: history.
    """
    if m.nhistory > 0 and measures(m, d):
        sample_sensors(m, d)


@stage
def sensor_clocks(m, d):
    """Updates clock sensors; all other position sensors are constant while everything sleeps.

    Reads:  time.   Writes: sensor_now.
    """
    if measures(m, d):
        for i in range(m.nsensor):
            if m.sensor_type[i] == SENS_CLOCK:
                clock(m, d, i)
