"""Decides which derivatives have formulas, for a model as a whole; kernels check the parameters of its worlds."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from featherlane.dynamics.inertia.articulated import recurses
from featherlane.dynamics.integrator.free_body import is_single_free_body
from featherlane.model import enums
from featherlane.model.joint import is_scalar
from featherlane.model.model import Model

GAINS = enums.GAIN_FIXED, enums.GAIN_AFFINE, enums.GAIN_MUSCLE
BIASES = enums.BIAS_NONE, enums.BIAS_AFFINE, enums.BIAS_MUSCLE
DYNAMICS = enums.DYN_NONE, enums.DYN_INTEGRATOR, enums.DYN_FILTER, enums.DYN_FILTEREXACT, enums.DYN_MUSCLE
TRANSMISSIONS = enums.TRN_JOINT, enums.TRN_JOINTINPARENT, enums.TRN_TENDON, enums.TRN_SITE, enums.TRN_SLIDERCRANK
INTEGRATORS = enums.EULER, enums.IMPLICITFAST, enums.IMPLICIT, enums.RK4
# if one of these is not 0 under implicitfast, p is differenced; the second line: if there are tendons
FLUID = ("opt_density", "opt_viscosity")
DAMPING = ("tendon_dampingpoly", "actuator_dampingpoly")
NOSLIP_ROWS = 96  # capacity of a tile: rows of friction (nslipmax)


def serves(model: Model) -> bool:
    """Returns whether formulas apply to the model.  Kernels check the parameters of its worlds."""
    excluded = enums.ENABLE_DIAGEXACT | enums.ENABLE_SPECULATIVE
    if model.opt_integrator not in INTEGRATORS or model.opt_enableflags & excluded:
        return False
    if model.nadhesion or model.user_actuators or not _motors_serve(model) or not noslip_serves(model):
        return False
    return model.opt_gyroscopic == enums.GYRO_EXPLICIT and not (model.body_gyroscopic > enums.GYRO_EXPLICIT).any()


def _drive_scalars(model: Model) -> np.ndarray:
    """Returns the mask of actuators on slides and hinges."""
    on_joint = model.actuator_trntype <= enums.TRN_JOINTINPARENT
    joints = np.where(on_joint, model.actuator_trnid[:, 0], 0)
    return on_joint & is_scalar(model.jnt_type[joints]) if model.njnt else on_joint


def _motors_serve(model: Model) -> bool:
    """Returns whether all actuators have formulas: forces by length, velocity and control or activation."""
    plain = np.isin(model.actuator_trntype, TRANSMISSIONS)
    plain &= np.isin(model.actuator_gaintype, GAINS) & np.isin(model.actuator_biastype, BIASES)
    plain &= np.isin(model.actuator_dyntype, DYNAMICS) & (model.actuator_states & enums.PID_PLUGIN == 0)
    return bool(plain.all())


def motors_are_affine(model: Model) -> bool:
    """Returns whether all actuators have forces affine in length, velocity and control, on slides, hinges, tendons."""
    plain = _drive_scalars(model) | (model.actuator_trntype == enums.TRN_TENDON)
    plain &= (model.actuator_gaintype != enums.GAIN_MUSCLE) & (model.actuator_biastype != enums.BIAS_MUSCLE)
    return bool(plain.all()) and _motors_serve(model)


def differences_lag(model: Model) -> bool:
    """Returns whether the integrator's correction p has no formula."""
    return bool(lags_of_worlds(model, {}, 1)[0])


def lags_of_worlds(model: Model, own: Mapping[str, np.ndarray], nworld: int) -> np.ndarray:
    """Returns (nworld,) whether each world's correction p has no formula.

    Args:
        model: the model.
        own: fields with separate values for each world, (nworld, ...) by name.
        nworld: number of worlds.
    """
    fast = model.opt_integrator == enums.IMPLICITFAST
    found = np.full(nworld, model.opt_integrator == enums.IMPLICIT or (fast and _parts_turn(model)))
    for name in ((*FLUID, *DAMPING) if model.ntendon else FLUID) if fast else ():
        numbers = own[name] if name in own else getattr(model, name)[None]
        found |= (numbers.reshape(len(numbers), -1) != 0.0).any(1)
    return found


def _parts_turn(model: Model) -> bool:
    """Returns whether the derivatives of forces in implicitfast change with the state, for all parameters."""
    spatial = model.wrap_type[model.tendon_adr] != enums.WRAP_JOINT
    fixed = (model.actuator_gaintype == enums.GAIN_FIXED).all()
    return bool(spatial.any()) or not (fixed and motors_are_affine(model))


def acts_at_once(model: Model) -> bool:
    """Returns whether all controls act as forces without delay."""
    plain = (model.actuator_dyntype == enums.DYN_NONE) & (model.actuator_states & enums.PID_PLUGIN == 0)
    return bool(plain.all() and model.nhistory == 0)


def noslip_serves(model: Model) -> bool:
    """Returns whether formulas apply to the model's no-slip solver, or it is disabled."""
    fast = model.opt_integrator == enums.IMPLICITFAST
    single = fast and any(is_single_free_body(model, i) for i in range(1, model.nbody))
    euler = (fast or model.opt_integrator == enums.EULER) and not single
    return model.opt_noslip_iterations == 0 or (euler and model.opt_cone == enums.PYRAMIDAL and not recurses(model))


def noslip_capacity(model: Model) -> int:
    """Returns the size nslipmax of the record of formulas."""
    return NOSLIP_ROWS if model.opt_noslip_iterations > 0 else 0


def lcp_serves(model: Model) -> bool:
    """Returns whether the model uses the LCP, without actuator forces that act through contacts."""
    return bool(model.opt_contact_model == enums.LCP and model.nv and not model.nadhesion)
