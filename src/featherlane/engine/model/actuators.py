"""Classifies actuators at load time: their kinds, optional activations, and invalid parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from featherlane.engine.lanes.layout import Declare, size
from featherlane.engine.lanes.rows import row_type
from featherlane.engine.model.derived import derived
from featherlane.engine.model.enums import (
    BIAS_AFFINE,
    BIAS_DCMOTOR,
    BIAS_MUSCLE,
    BIAS_NONE,
    BIAS_USER,
    BRISTLE,
    CURRENT,
    DYN_DCMOTOR,
    DYN_FILTER,
    DYN_FILTEREXACT,
    DYN_INTEGRATOR,
    DYN_NONE,
    DYN_PID,
    DYN_USER,
    GAIN_AFFINE,
    GAIN_DCMOTOR,
    GAIN_FIXED,
    GAIN_MUSCLE,
    GAIN_USER,
    INTEGRAL,
    PID_PLUGIN,
    SLEW,
    TEMPERATURE,
    TRN_BODY,
    TRN_JOINTINPARENT,
)
from featherlane.engine.model.joint import is_scalar
from featherlane.engine.model.names import element
from featherlane.engine.model.plugins import instances, plugin_number
from featherlane.errors import ModelError

_field = Declare()

Pid = row_type("Pid", "kp ki kd imax slewmax")
PID = "mujoco.pid"
PID_COLUMNS = {"kp": 0.0, "ki": 0.0, "kd": 0.0, "imax": np.inf, "slewmax": np.inf}  # attributes, with their defaults
# fields of the user types of actuators, and their number, by kind of function
USER_TYPES = {"activation": ("dyntype", DYN_USER), "gain": ("gaintype", GAIN_USER), "bias": ("biastype", BIAS_USER)}
FILTERED = (DYN_FILTER, DYN_FILTEREXACT, DYN_INTEGRATOR)  # types whose activation is the plugin's setpoint


@derived(
    size("nadhesion", "number of actuators with a body transmission (adhesion)"),
    size("ndcmotor", "number of actuators with the bias type dcmotor"),
    _field.int(
        "actuator_states",
        "nactuator",
        "1",
        "bits of optional activations, in order: 1 slewed setpoint, 2 integral, 4 temperature, 8 bristle, 16 current; "
        "32: the plugin mujoco.pid",
    ),
    _field.rows(
        Pid,
        "actuator_pidprm",
        "nactuator",
        "N/m, N/(m s), N s/m, N, 1/s",
        "of the plugin mujoco.pid: kp, ki, kd, imax and slewmax (inf: unlimited); zeros for other actuators",
    ),
    _field.int("actuator_simple", "nactuator", "1", "1: fixed or affine, without activations, on a slide or hinge"),
)
def actuator_kinds(mj) -> dict[str, Any]:
    """Returns the kinds of actuators in use, so that a model without a kind has no cost for it.

    A simple actuator is a motor or servo: force = gain u + bias with one control u, fixed or affine in length and rate.
    """
    on_joint = mj.actuator_trntype <= TRN_JOINTINPARENT
    joint = mj.jnt_type[np.where(on_joint, mj.actuator_trnid[:, 0], 0)] if mj.njnt else mj.actuator_trntype
    return {
        "nadhesion": np.count_nonzero(mj.actuator_trntype == TRN_BODY),
        "ndcmotor": np.count_nonzero(mj.actuator_biastype == BIAS_DCMOTOR),
        "actuator_states": np.array([_states(mj, i) for i in range(mj.nactuator)], int),
        "actuator_pidprm": np.array([_pid_parameters(mj, i) for i in range(mj.nactuator)], float).reshape(-1, 5),
        "actuator_simple": on_joint
        & is_scalar(joint)
        & (mj.actuator_plugin < 0)
        & (mj.actuator_dyntype == DYN_NONE)
        & np.isin(mj.actuator_gaintype, (GAIN_FIXED, GAIN_AFFINE))
        & np.isin(mj.actuator_biastype, (BIAS_NONE, BIAS_AFFINE))
        & (mj.actuator_actnum == 0)
        & (mj.actuator_ctrlnum == 1)
        & (mj.actuator_outnum == 1),
    }


def _pid_parameters(mj, i: int) -> list[float]:
    """Returns kp, ki, kd, imax and slewmax of the plugin mujoco.pid of actuator i; zeros without it.

    Raises:
        ModelError: an attribute is not a finite number.
    """
    plugin = int(mj.actuator_plugin[i])
    config = instances(mj)[plugin].config if plugin >= 0 else {}
    defaults = PID_COLUMNS if plugin >= 0 else dict.fromkeys(PID_COLUMNS, 0.0)
    return [plugin_number(mj, plugin, config, key, value) for key, value in defaults.items()]


def _states(mj, i: int) -> int:
    """Returns bits of optional activations, in the order SLEW, INTEGRAL, TEMPERATURE, BRISTLE, CURRENT."""
    if mj.actuator_plugin[i] >= 0:
        _, ki, _, _, slewmax = _pid_parameters(mj, i)
        return PID_PLUGIN | (INTEGRAL if ki else 0) | (SLEW if slewmax < np.inf else 0)
    dynprm, gainprm = mj.actuator_dynprm[i], mj.actuator_gainprm[i]
    if mj.actuator_dyntype[i] == DYN_PID:
        present = [dynprm[1] > 0, gainprm[0] > 0]
    elif mj.actuator_dyntype[i] == DYN_DCMOTOR or mj.actuator_gaintype[i] == GAIN_DCMOTOR:
        present = [dynprm[7] > 0, gainprm[5] > 0, dynprm[2] > 0, dynprm[5] > 0, dynprm[0] > 0]
    else:
        present = []
    bits = (SLEW, INTEGRAL, TEMPERATURE, BRISTLE, CURRENT)
    return sum(bit for bit, there in zip(bits, present, strict=False) if there)


def check_actuators(mj) -> None:
    """Raises an error for parameters with which an actuator would be undefined; `limits` checks each field alone.

    Raises:
        ModelError: an invalid gear, length range of a muscle or number of activations; with the actuator's name, the
            given value and the allowed values.
    """
    for i in range(mj.nactuator):
        wrong = _wrong_activations(mj, i) or _wrong_gear(mj, i) or _wrong_muscle(mj, i)
        if wrong:
            raise ModelError(f"{element(mj, 'actuator', i)}: {wrong}")


def _wrong_activations(mj, i: int) -> str:
    """Returns the error of the number of activations of actuator i, or ""."""
    kind, given, states = mj.actuator_dyntype[i], mj.actuator_actnum[i], _states(mj, i)
    if kind in (DYN_PID, DYN_DCMOTOR) and given != states.bit_count():
        return f"has {given} activations, but its parameters require {states.bit_count()}"
    number = (states & (SLEW | INTEGRAL)).bit_count() + (kind in FILTERED)
    if mj.actuator_plugin[i] >= 0 and given != number:
        return f"has {given} activations, but its plugin requires actdim {number}"
    return ""


def _wrong_gear(mj, i: int) -> str:
    """Returns the error of the gear of actuator i, or ""; MuJoCo computes other fields from it."""
    gear = mj.actuator_gear[mj.actuator_outadr[i] :][: mj.actuator_outnum[i]]
    return "" if np.isfinite(gear).all() else f"gear is {gear.ravel().tolist()}, allowed are finite numbers"


def _wrong_muscle(mj, i: int) -> str:
    """Returns the error of a muscle's ranges, or ""."""
    low, high = mj.actuator_lengthrange[mj.actuator_outadr[i]]
    prms = {"gain": (mj.actuator_gaintype[i] == GAIN_MUSCLE, mj.actuator_gainprm[i])}
    prms["bias"] = (mj.actuator_biastype[i] == BIAS_MUSCLE, mj.actuator_biasprm[i])
    for name, (present, prm) in prms.items():
        if present and not low < high:
            return f"lengthrange is {low:g} to {high:g}, allowed for a muscle is lower < upper"
        if present and not prm[0] < prm[1]:
            return f"range {name}prm[:2] of the muscle is {prm[0]:g} to {prm[1]:g}, allowed is lower < upper"
    return ""


def missing_functions(model) -> list[str]:
    """Returns a line for each actuator of the type `user` that lacks a function."""
    lines = []
    for kind, (field, user) in USER_TYPES.items():
        for i in np.flatnonzero(getattr(model, f"actuator_{field}") == user):
            if (int(i), kind) not in model.user_actuators:
                name = model.names("actuator")[i]
                lines.append(f"actuator {name!r}: {kind}" if name else f"actuator #{i}: {kind}")
    return lines
