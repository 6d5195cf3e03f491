"""Actuators as they are loaded: which optional activations each has, and parameters that make no actuator."""

from __future__ import annotations

import mujoco
import numpy as np

from featherlane.errors import ModelError

DYN, GAIN, BIAS = mujoco.mjtDyn, mujoco.mjtGain, mujoco.mjtBias


def actuator_ints(mj) -> dict[str, np.ndarray]:
    """`actuator_states` (nactuator,): bits of the optional activations that each pid and each dcmotor has."""
    return {"actuator_states": np.array([_states(mj, i) for i in range(mj.nactuator)], int)}


def _states(mj, i: int) -> int:
    """1 slewed setpoint, 2 integral, 4 temperature, 8 bristle, 16 current."""
    dynprm, gainprm = mj.actuator_dynprm[i], mj.actuator_gainprm[i]
    if mj.actuator_dyntype[i] == int(DYN.mjDYN_PID):
        present = [dynprm[1] > 0, gainprm[0] > 0]
    elif mj.actuator_dyntype[i] == int(DYN.mjDYN_DCMOTOR) or mj.actuator_gaintype[i] == int(GAIN.mjGAIN_DCMOTOR):
        present = [dynprm[7] > 0, gainprm[5] > 0, dynprm[2] > 0, dynprm[5] > 0, dynprm[0] > 0]
    else:
        present = []
    return sum(1 << k for k, there in enumerate(present) if there)


def check_actuators(mj) -> None:
    """Refuse parameters with which an actuator would blow up or mean nothing.

    Raises:
        ModelError: a gear, a rod, a time constant, a length range, a delay or a number of activations; with the
            actuator's name, what was given and what is allowed.
    """
    for i in range(mj.nactuator):
        wrong = _wrong(mj, i)
        if wrong:
            name = mujoco.mj_id2name(mj, mujoco.mjtObj.mjOBJ_ACTUATOR, i)
            raise ModelError(f"actuator {name!r}: {wrong}" if name else f"actuator #{i}: {wrong}")


def _wrong(mj, i: int) -> str:
    """What is wrong with actuator i, or ""."""
    kind, dynprm = DYN(int(mj.actuator_dyntype[i])), mj.actuator_dynprm[i]
    if kind in (DYN.mjDYN_FILTER, DYN.mjDYN_FILTEREXACT) and not dynprm[0] > 0:
        return f"time constant dynprm[0] is {dynprm[0]:g}, allowed is > 0"
    if kind == DYN.mjDYN_MUSCLE and not (dynprm[0] > 0 and dynprm[1] > 0):
        return f"time constants dynprm[:2] are {dynprm[0]:g} and {dynprm[1]:g}, allowed is > 0"
    if kind in (DYN.mjDYN_PID, DYN.mjDYN_DCMOTOR):
        number = int(_states(mj, i)).bit_count()
        if number != mj.actuator_actnum[i]:
            return f"has {mj.actuator_actnum[i]} activations, its parameters mean {number}"
    wrong = _wrong_transmission(mj, i)
    if wrong:
        return wrong
    delay, samples = mj.actuator_delay[i], mj.actuator_history[i, 0]
    if delay < 0 or (delay > 0 and samples <= 0):
        return f"delay is {delay:g} with {samples} samples, allowed is 0, or > 0 with samples"
    return _wrong_muscle(mj, i)


def _wrong_transmission(mj, i: int) -> str:
    """What is wrong with what actuator i acts on, or ""."""
    first, rod = mj.actuator_outadr[i], mj.actuator_cranklength[i]
    gear = mj.actuator_gear[first : first + mj.actuator_outnum[i]]
    if not np.isfinite(gear).all():
        return f"gear is {gear.ravel().tolist()}, allowed are finite numbers"
    if mj.actuator_trntype[i] == int(mujoco.mjtTrn.mjTRN_SLIDERCRANK) and not 0 < rod < np.inf:
        return f"cranklength is {rod:g}, allowed is > 0"
    return ""


def _wrong_muscle(mj, i: int) -> str:
    """What is wrong with the ranges of a muscle, or ""."""
    low, high = mj.actuator_lengthrange[mj.actuator_outadr[i]]
    prms = {"gain": (mj.actuator_gaintype[i] == int(GAIN.mjGAIN_MUSCLE), mj.actuator_gainprm[i])}
    prms["bias"] = (mj.actuator_biastype[i] == int(BIAS.mjBIAS_MUSCLE), mj.actuator_biasprm[i])
    for name, (present, prm) in prms.items():
        if present and not low < high:
            return f"lengthrange is {low:g} to {high:g}, allowed for a muscle is a range that is not empty"
        if present and not prm[0] < prm[1]:
            return f"range {name}prm[:2] of the muscle is {prm[0]:g} to {prm[1]:g}, allowed is lower < upper"
    return ""
