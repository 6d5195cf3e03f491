"""Decides which method differentiates a model as a whole; kernels check the parameters of its worlds.

serves                 the residual has formulas
solves_implicitly      implicit differentiation applies to its steps; else whole steps are differenced
lcp_serves             the same for the contact model lcp
needs_formulas_only    formulas apply to all parts of its steps: one pass computes them (worlds/direct_worlds.py)
has_products           costates are propagated without derivatives (adjoint/products.py)
differences_lag        the integrator's correction p of solution.py is differenced
are_analytic           differences may be long (worlds/implicit_worlds.py)
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from featherlane.engine.dynamics.inertia.articulated import recurses
from featherlane.engine.dynamics.integrator.free_body import is_single_free_body
from featherlane.engine.model import enums
from featherlane.engine.model.joint import is_scalar
from featherlane.engine.model.model import Model

GAINS = enums.GAIN_FIXED, enums.GAIN_AFFINE, enums.GAIN_MUSCLE
BIASES = enums.BIAS_NONE, enums.BIAS_AFFINE, enums.BIAS_MUSCLE
DYNAMICS = enums.DYN_NONE, enums.DYN_INTEGRATOR, enums.DYN_FILTER, enums.DYN_FILTEREXACT, enums.DYN_MUSCLE
TRANSMISSIONS = enums.TRN_JOINT, enums.TRN_JOINTINPARENT, enums.TRN_TENDON, enums.TRN_SITE, enums.TRN_SLIDERCRANK
EULERS = enums.EULER, enums.IMPLICITFAST
INTEGRATORS = enums.EULER, enums.IMPLICITFAST, enums.IMPLICIT, enums.RK4
# if one of these is not 0 under implicitfast, p is differenced; the second line: if there are tendons
FLUID = ("opt_density", "opt_viscosity")
DAMPING = ("tendon_dampingpoly", "actuator_dampingpoly")
# if one of these is not 0, forces are nonsmooth
BENDING = (
    "jnt_actfrclimited",
    "actuator_forcelimited",
    "jnt_stiffnesspoly",
    "dof_dampingpoly",
    "actuator_dampingpoly",
    "opt_density",
    "opt_viscosity",
)
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


def _has_single_bodies(model: Model) -> bool:
    """Returns whether K of implicitfast has the unsymmetric blocks of single free bodies."""
    fast = model.opt_integrator == enums.IMPLICITFAST
    return fast and any(is_single_free_body(model, i) for i in range(1, model.nbody))


def noslip_serves(model: Model) -> bool:
    """Returns whether formulas apply to the model's no-slip solver, or it is disabled."""
    euler = model.opt_integrator in EULERS and not _has_single_bodies(model)
    return model.opt_noslip_iterations == 0 or (euler and model.opt_cone == enums.PYRAMIDAL and not recurses(model))


def noslip_capacity(model: Model) -> int:
    """Returns the size nslipmax of the record of formulas."""
    return NOSLIP_ROWS if model.opt_noslip_iterations > 0 else 0


def lcp_serves(model: Model) -> bool:
    """Returns whether the model uses the LCP, without actuator forces that act through contacts."""
    return bool(model.opt_contact_model == enums.LCP and model.nv and not model.nadhesion)


def solves_implicitly(model: Model) -> bool:
    """Returns whether implicit differentiation supports the model's solver and integrator."""
    served = serves(model) if model.opt_noslip_iterations > 0 else True
    if model.opt_integrator == enums.RK4:
        # the chain rule of rk4 is not implemented for activations and plastic springs
        served = served and model.na == 0 and model.nplastic == 0
    return served and model.opt_contact_model != enums.LCP and model.nv > 0


def needs_formulas_only(model: Model, torques: bool) -> bool:
    """Returns whether formulas alone apply to the model, its solver and its integrator.

    Args:
        model: the model.
        torques: whether the acceleration is differentiated, not the next state.
    """
    refused = model.opt_enableflags & enums.Enable.SLEEP or model.nminimized or model.opt_contact_model == enums.LCP
    steps = torques or model.opt_integrator != enums.RK4
    if refused or not (steps and model.nv > 0 and serves(model)):
        return False
    return not (differences_lag(model) or recurses(model))


def has_products(model: Model) -> bool:
    """Returns whether products apply to the model.  A single world may still report that they do not."""
    convex = model.opt_contact_model == enums.CONVEX and model.opt_noslip_iterations == 0
    # the transposed system of K is that of K itself only if K is symmetric
    euler = model.opt_integrator in EULERS and not _has_single_bodies(model)
    served = convex and euler and model.nv and serves(model) and not differences_lag(model)
    return bool(served) and not recurses(model)


def are_analytic(model: Model, disabled: int, own: Mapping[str, np.ndarray], worlds: np.ndarray) -> np.ndarray:
    """Returns (k,) whether a world's residual is an analytic function of position and velocity, far around its state.

    It has no rows, no clamped forces, no fluid, and only polynomials of a joint's own coordinate.

    Args:
        model: the model.
        disabled: flags that are set in addition to the model's.
        own: fields with separate values for each world, (nworld, ...) by name.
        worlds: (k,) indices of the worlds to check.
    """
    rows = not (model.opt_disableflags | disabled) & enums.DISABLE_CONSTRAINT
    bends = np.zeros(len(worlds), bool)
    if rows or model.ntendon or model.nplastic or model.user_actuators or not motors_are_affine(model):
        return bends
    for name in BENDING:
        if name in own:
            bends |= (own[name][worlds].reshape(len(worlds), -1) != 0.0).any(1)
        elif getattr(model, name).any():
            bends[:] = True
    return ~bends
