"""Checks for actuators without effect, and for actuators that are too strong."""

from __future__ import annotations

from collections.abc import Iterator

import mujoco
import numpy as np

from featherlane.apps.doctor.examined_model import ExaminedModel
from featherlane.apps.doctor.finding import NOTE, WARNING, Sign
from featherlane.apps.doctor.modes import actuator_moments, drives, is_off
from featherlane.apps.doctor.registry import check
from featherlane.enums import (
    BIAS_AFFINE,
    BIAS_NONE,
    DYN_FILTER,
    DYN_FILTEREXACT,
    DYN_MUSCLE,
    GAIN_FIXED,
    TRN_BODY,
    TRN_JOINTINPARENT,
)

LEAP = 0.1  # in mean body sizes, or rad, in one step from rest


@check("actuator-idle", WARNING, "the actuator exerts no force, whatever its control")
def idle_actuators(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds actuators without effect: the gear, the moment at every start, gain and bias, or the range of force or
    control is zero."""
    m = examined.model
    for i in range(m.nactuator):
        reason = _idle_reason(examined, i)
        if reason:
            yield Sign("actuator", i, reason, "set a non-zero gear, gain or range, or remove the actuator")


def _idle_reason(examined: ExaminedModel, i: int) -> str:
    """Returns why an actuator gives no force or has no control; empty if it works."""
    m = examined.model
    o, u = int(m.actuator_outadr[i]), int(m.actuator_ctrladr[i])
    gain, bias = int(m.actuator_gaintype[i]), int(m.actuator_biastype[i])
    reasons = {
        "gear is 0": not m.actuator_gear[o].any(),
        "no moment on any DoF in any initial state": _moves_nothing(examined, i),
        "gain and bias are 0": gain == GAIN_FIXED
        and not m.actuator_gainprm[i, 0]
        and (bias == BIAS_NONE or (bias == BIAS_AFFINE and not m.actuator_biasprm[i, :3].any())),
        "forcerange is 0 0": bool(m.actuator_forcelimited[i]) and not m.actuator_forcerange[i].any(),
        "ctrlrange is {:g} {:g}".format(*m.actuator_ctrlrange[u] if m.actuator_ctrlnum[i] else (0, 0)): bool(
            m.actuator_ctrlnum[i] and m.actuator_ctrllimited[u] and np.ptp(m.actuator_ctrlrange[u]) == 0
        ),
        "actuatorfrcrange of its joint is 0 0": _joint_is_dead(examined, i),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _moves_nothing(examined: ExaminedModel, i: int) -> bool:
    """Returns whether every moment is zero, except moments through contacts, which exist only while bodies touch."""
    if examined.model.actuator_trntype[i] == TRN_BODY:
        return False
    return not any(row.any() for start in examined.starts for row in actuator_moments(examined, start, i))


def _joint_is_dead(examined: ExaminedModel, i: int) -> bool:
    m = examined.model
    if m.actuator_trntype[i] > TRN_JOINTINPARENT:
        return False
    j = int(m.actuator_trnid[i, 0])
    return bool(m.jnt_actfrclimited[j]) and not m.jnt_actfrcrange[j].any()


@check("actuator-off", NOTE, "the actuator exerts no force until its group is enabled")
def switched_off(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds actuators in a group that `actuatorgroupdisable` disables."""
    for i in range(examined.model.nactuator):
        if is_off(examined, i):
            seen = f"actuator group {examined.model.actuator_group[i]} is disabled"
            yield Sign("actuator", i, seen, "set model.opt.disableactuator = 0")


@check("actuator-violent", WARNING, "at full control the joint moves too far in one time step")
def violent(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds motors (force independent of length) that at full force F move the joint too far in the first step from
    rest: h^2 F / (I + h d) above 0.1 rad, or above a tenth of the mean body size.  Activation dynamics with time
    constant T scale this by h / T."""
    m, h = examined.model, examined.h
    damped = examined.inverse_of(examined.start.M + np.diag(h * np.abs(m.dof_damping)))
    for i in range(m.nactuator):
        force = full_force(examined, i)
        for a in actuator_moments(examined, examined.start, i):
            x = damped @ a
            dof = int(np.abs(x).argmax()) if m.nv else 0
            limit, unit = (examined.size, "m") if x.any() and examined.is_linear(dof) else (1.0, "rad")
            step = h * h * force * float(np.abs(x).max(initial=0.0))
            if np.isfinite(force) and step > LEAP * limit:
                inertia = 1 / float(a @ x)
                seen = f"{force:.3g} N (or N m) on an effective inertia of {inertia:.3g} (with damping): "
                seen += f"{step:.2g} {unit} in one step"
                advice = "reduce the gain, set a forcerange, add armature to the joint, or reduce the time step"
                yield Sign("actuator", i, seen, advice)
                break


def full_force(examined: ExaminedModel, i: int) -> float:
    """Computes the largest force of a motor at rest, within its ranges; inf if it depends on length or is unknown."""
    m = examined.model
    constant = m.actuator_biastype[i] == BIAS_NONE or not m.actuator_biasprm[i, 1:3].any()
    if m.actuator_gaintype[i] != GAIN_FIXED or m.actuator_biastype[i] not in (BIAS_NONE, BIAS_AFFINE) or not constant:
        return np.inf
    ends = drives(examined, examined.start, i)
    ends = ends if len(ends) > 1 else (*ends, -1.0, 1.0)  # no range: environments use -1 to 1
    bias = m.actuator_biasprm[i, 0] * (m.actuator_biastype[i] == BIAS_AFFINE)
    force = max(abs(float(m.actuator_gainprm[i, 0] * u + bias)) for u in ends)
    if m.actuator_dyntype[i] in (DYN_FILTER, DYN_FILTEREXACT, DYN_MUSCLE):
        force *= min(1.0, examined.h / max(float(m.actuator_dynprm[i, 0]), mujoco.mjMINVAL))
    if m.actuator_forcelimited[i]:
        force = min(force, float(np.abs(m.actuator_forcerange[i]).max()))
    if m.actuator_trntype[i] <= TRN_JOINTINPARENT and m.jnt_actfrclimited[m.actuator_trnid[i, 0]]:
        gear = float(np.abs(m.actuator_gear[m.actuator_outadr[i]]).max()) or 1.0
        force = min(force, float(np.abs(m.jnt_actfrcrange[m.actuator_trnid[i, 0]]).max()) / gear)
    return force
