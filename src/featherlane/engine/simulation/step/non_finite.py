"""Finds, counts and resets worlds with non-finite or out-of-range values; other worlds of the tile are not affected.

Source: MuJoCo mj_checkPos, mj_checkVel, mj_checkAcc, mj_resetData.  Deviation: activations, time, mocap poses and
    eq_active are checked, too, because a contact with a body at a NaN position would be missed without a report.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.actuator.history import reset_histories
from featherlane.engine.dynamics.awake import sleeping
from featherlane.engine.model.status import FOUND_NON_FINITE
from featherlane.engine.sensor.measure import measures, needs_energy
from featherlane.engine.simulation.step.wake import unsettle_trees

LARGEST = 1e10  # a larger value is bad, as is NaN
BAD_POSITION, BAD_VELOCITY = 1, 2  # values of bad_part


@kernel
def is_out_of_range(x, n):
    """Returns the mask of worlds where one of the n values of the field x is NaN or beyond LARGEST."""
    bad = 0.0
    for i in range(n):
        bad = where(fabs(x[i]) <= LARGEST, bad, 1.0)
    return bad > 0.0


@kernel
def has_bad_state(m, d):
    """Returns the mask of worlds with a bad position, velocity, activation, time, mocap pose or eq_active."""
    bad = is_out_of_range(d.qpos, m.nq) | is_out_of_range(d.qvel, m.nv) | is_out_of_range(d.time, 1)
    if m.na > 0:
        bad = bad | is_out_of_range(d.act, m.na)
    if m.nmocap > 0:
        bad = bad | is_out_of_range(flat(d.mocap_pos), 3 * m.nmocap)
        bad = bad | is_out_of_range(flat(d.mocap_quat), 4 * m.nmocap)
    if m.neq > 0:
        bad = bad | is_out_of_range(d.eq_active, m.neq)
    return bad


@kernel
def has_bad_acceleration(m, d):
    """Returns the mask of worlds with a bad acceleration."""
    return is_out_of_range(d.qacc, m.nv)


@kernel
def clear_field(x, n, mask):
    """Sets the n values of the field x to zero in the worlds of the mask."""
    for i in range(n):
        x[i] = where(mask, 0.0, x[i])


@kernel
def reset_references(m, d, mask):
    """Resets references of plastic springs to those of the model in the worlds of the mask."""
    if m.nplastic > 0:
        for j in range(m.njnt):
            qposadr, adr = m.jnt_qposadr[j], m.jnt_plasticadr[j]
            if adr >= 0:  # the joint's spring is plastic
                for k in range(4 if is_ball(m.jnt_type[j]) else 1):
                    d.plastic[adr + k] = where(mask, m.qpos_spring[qposadr + k], d.plastic[adr + k])
        for t in range(m.ntendon):
            adr = m.tendon_plasticadr[t]
            if adr >= 0:
                d.plastic[adr : adr + 2] = where(mask, m.tendon_lengthspring[t], Range(d.plastic[adr : adr + 2]))


@kernel
def reset_worlds(m, d, mask):
    """Resets the worlds of the mask to the model's default state: qpos0, initial inputs, all else zero."""
    for i in range(m.nq):
        d.qpos[i] = where(mask, m.qpos0[i], d.qpos[i])
    reset_references(m, d, mask)
    clear_field(d.qvel, m.nv, mask)
    clear_field(d.act, m.na, mask)
    reset_histories(m, d, mask)
    clear_field(d.qacc_warmstart, m.nv, mask)
    clear_field(d.time, 1, mask)
    clear_field(d.ctrl, m.nu, mask)
    clear_field(d.qfrc_applied, m.nv, mask)
    clear_field(flat(d.xfrc_applied), 6 * m.nbody, mask)
    # contacts that the user has given
    clear_field(d.given_present, d.ngiven, mask)
    clear_field(d.given_replace, 1, mask)
    for e in range(m.neq):
        d.eq_active[e] = where(mask, 1.0 * m.eq_active0[e], d.eq_active[e])
    for b in range(m.nbody):
        k = m.body_mocapid[b]
        if k >= 0:
            d.mocap_pos[k] = where(mask, m.body_pos[b], d.mocap_pos[k])
            d.mocap_quat[k] = where(mask, m.body_quat[b].unit, d.mocap_quat[k])


@kernel
def restart_sleep(m, d, mask):
    """Puts trees that sleep in the initial state to sleep again, in the worlds of the mask."""
    unsettle_trees(m, d)  # fields of the trees are computed again
    for t in range(m.ntree):
        d.tree_asleep[t] = where(mask, 1.0 * m.tree_asleep0[t], d.tree_asleep[t])
    for i in range(m.nq):
        d.sleep_qpos[i] = where(mask, m.qpos0[i], d.sleep_qpos[i])
    for k in range(m.nmocap):
        d.sleep_mocap[k] = where(mask, join(d.mocap_pos[k], d.mocap_quat[k]), d.sleep_mocap[k])


@kernel
def is_infinite(x, n):
    """Returns the mask of worlds where one of the n values of the field x is infinite or NaN."""
    bad = 0.0
    for i in range(n):
        bad = where(x[i] - x[i] == 0.0, bad, 1.0)  # inf - inf is NaN
    return bad > 0.0


@kernel
def has_infinite_output(m, d):
    """Returns the mask of worlds with an infinite or NaN energy or sensor value, among those that are computed."""
    mask = false_mask(d)
    if needs_energy(m, d):
        mask = is_infinite(d.energy, 2)
    if measures(m, d):
        mask = mask | is_infinite(d.sensordata, m.nsensordata)
    return mask


@kernel
def warn_non_finite(m, d, mask):
    """Counts the worlds of the mask as non-finite.

    Writes: warning; bad_part, which part of their state is bad (0: other); found_bad.
    """
    if any_(mask):
        warn(d, NON_FINITE, mask)
        part = where(is_out_of_range(d.qvel, m.nv), 1.0 * BAD_VELOCITY, 0.0)
        part = where(is_out_of_range(d.qpos, m.nq), 1.0 * BAD_POSITION, part)
        d.bad_part[0] = where(mask, part, d.bad_part[0])
        d.found_bad[0] = d.found_bad[0] | FOUND_NON_FINITE


@stage
def reset_bad(m, d, acceleration):
    """Counts worlds with bad values in the state or in the acceleration; with autoreset, resets them.

    Args:
        acceleration: 1 checks qacc; 0 checks the state and the inputs that `has_bad_state` lists.

    Source: MuJoCo mj_checkPos, mj_checkVel, mj_checkAcc.
    Reads:  qpos, qvel, act, time, mocap_pos, mocap_quat, eq_active; qacc.
    Writes: warning (non-finite), bad_part, found_bad, nreset; of these worlds time, qpos, qvel, act, history, plastic,
            qacc_warmstart, ctrl, qfrc_applied, xfrc_applied, mocap_pos, mocap_quat, eq_active, given_present,
            given_replace, tree_asleep, tree_settled, sleep_qpos, sleep_mocap.
    """
    if acceleration:
        mask = has_bad_acceleration(m, d)
    else:
        mask = has_bad_state(m, d)
    if any_(mask):
        warn_non_finite(m, d, mask)
        if m.opt_disableflags & DISABLE_AUTORESET == 0:
            d.nreset[0] = where(mask, d.nreset[0] + 1.0, d.nreset[0])
            reset_worlds(m, d, mask)
            if sleeping(m):
                restart_sleep(m, d, mask)
