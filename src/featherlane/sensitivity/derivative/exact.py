"""Derivatives of a step and of forward dynamics by the implicit function theorem: no solver runs at moved points.

Worlds that the theorem does not serve go by differences of whole steps: the pass against slip, and activations under
the integrator rk4; `docs/derivatives.md` says which are which.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from featherlane.errors import UnsupportedFeatureError
from featherlane.model.assignment import flag
from featherlane.model.enums import CONVEX, DISCRETE, EULER, IMPLICIT, IMPLICITFAST, RK4, Disable
from featherlane.model.model import Model
from featherlane.sensitivity.derivative.implicit import ImplicitWorlds
from featherlane.sensitivity.derivative.lcp_worlds import LcpWorlds, lcp_serves
from featherlane.sensitivity.derivative.moved import OwnWorlds, as_given, borrowed, in_use_of
from featherlane.sensitivity.derivative.one_world import rates_of_one_world
from featherlane.sensitivity.derivative.parameters import Parameters
from featherlane.sensitivity.derivative.rk4 import rk4_rates
from featherlane.sensitivity.derivative.sensor_rates import sensor_rates
from featherlane.sensitivity.derivative.transition import SensorTransition, check, threads, transition_fd
from featherlane.simulation.batch.batch import Batch
from featherlane.simulation.world.data import Data

FRICTIONLOSS = int(Disable.FRICTIONLOSS)
SERVED = (EULER, IMPLICIT, IMPLICITFAST, DISCRETE, RK4)


class StepDerivatives(NamedTuple):
    """Derivatives of the next state x' and of the sensors s: dx' = A dx + B du, ds = C dx + D du.

    Attributes:
        A: (..., 2 nv + na, 2 nv + na), x = (position by dof, velocity, activation).
        B: (..., 2 nv + na, nu).
        C: (..., nsensordata, 2 nv + na), or None where sensors were not asked for.
        D: (..., nsensordata, nu), or None.
        P: name of a model field, or of entries of it as they were asked for -> (..., 2 nv + na, their shape): dx' =
            P dp; empty where none was asked for.
        switching: (...) how near the next switch of a constraint is, 1 at most: where a contact begins or ends to push,
            a cone to slip, friction to give way.  Below some 1e-4 derivatives from the two sides may differ.  NaN for
            worlds that went by differences of steps.
    """

    A: np.ndarray
    B: np.ndarray
    C: np.ndarray | None
    D: np.ndarray | None
    P: dict[str, np.ndarray]
    switching: np.ndarray


class AccelerationDerivatives(NamedTuple):
    """Derivatives of forward dynamics' acceleration a, contacts included.

    Attributes:
        DaDq: (..., nv, nv) by position, dof by dof: DaDq[..., i, j] = da_i / dq_j.
        DaDv: (..., nv, nv) by velocity.
        DaDact: (..., nv, na) by activation.
        DaDu: (..., nv, nu) by control.
        DaDtau: (..., nv, nv) by generalized force: the inverse of the solver's Hessian; where nothing touches of M.
        switching: (...) as in `StepDerivatives`.
    """

    DaDq: np.ndarray
    DaDv: np.ndarray
    DaDact: np.ndarray
    DaDu: np.ndarray
    DaDtau: np.ndarray
    switching: np.ndarray


def transition(
    model: Model,
    data: Data | Batch,
    sensors: bool = False,
    parameters: Sequence[str] = (),
    nthread: int = 0,
    frictionloss: bool = True,
) -> StepDerivatives:
    """Derivatives of `step` by state and controls, at the present state, without stepping from moved points.

    The acceleration a solves g(a; x, u) = M a + c - tau - J^T f(J a - aref) = 0, so that da = -H^-1 dg at fixed a, with
    the Hessian H of the solver; the integrator follows by the chain rule.  dg is taken by formulas, and of forces that
    have none by central differences: no solver, no tolerance (docs/derivatives.md).  Under the contact model lcp forces
    change as the linear system of its free rows says.  Contacts that are there move with the bodies; the derivative is
    that of the active set at hand, and `switching` says how near another one is.

    Controls, histories and `frictionloss` are taken as by `transition_fd`.  Where the theorem does not serve (the pass
    against slip, rk4 with activations) the result is that of `transition_fd`; C and D are under the contact model lcp,
    and derivatives by `parameters` are differences of steps there and under rk4.

    Args:
        model: the model.
        data: the world, or a batch of the model; neither is changed.
        sensors: derivatives of `sensordata`, too.
        parameters: names of real model fields (`body_mass`, `geom_friction`, `opt.gravity`) by whose numbers the next
            state is differentiated, too, world by world, with what follows from them (`set_const`); or of entries of
            them, by name or number: `body_mass[torso]`, `geom_friction[floor, 0]`, `opt.gravity[2]`.
        nthread: threads, 0: as many as the work is worth.
        frictionloss: with the dry friction of joints and tendons.

    Returns:
        `StepDerivatives`; for a batch with a leading axis of worlds.

    Raises:
        ModelError: the model is not the data's; a parameter is no real field of it, or the timestep; no such entry.
        UnknownNameError: entries of something that has another name.
        TypeError: `data` is neither a Data nor a Batch.
        UnsupportedFeatureError: `sensors`, where a sensor of the model is not computed; the flag `sleep` is on.

    Source: implicit function theorem; MuJoCo mjd_transitionFD, which differences steps.
    """
    sensors, frictionloss = flag("sensors", sensors), flag("frictionloss", frictionloss)
    nthread = threads(nthread)
    none = isinstance(parameters, tuple) and not parameters
    if none and isinstance(data, Data) and not sensors:
        one = rates_of_one_world(model, data, False, 0 if frictionloss else FRICTIONLOSS)
        if one is not None:
            rates, near = one
            nx = rates.shape[1]
            return StepDerivatives(rates[:nx].T, rates[nx:].T, None, None, {}, near)
    sizes = check(model, data)
    nx = 2 * sizes["nv"] + sizes["na"]
    asked = None if none else Parameters(model, parameters)
    if asked is not None and not asked.n:
        asked = None
    served, disabled = _served(sizes) or lcp_serves(model, in_use_of(data)), 0 if frictionloss else FRICTIONLOSS
    lcp, rk4 = sizes["opt_contact_model"] != CONVEX, sizes["opt_integrator"] == RK4
    C, D, P = None, None, {}
    if asked is not None and (not served or lcp or rk4):
        P, asked = asked.parts(_by_steps(asked, model, data, nthread, disabled)), None
    if not served:
        found = transition_fd(model, data, 1e-6, True, sensors, nthread, frictionloss)
        if isinstance(found, SensorTransition):
            C, D = found.C, found.D
        unknown = np.full((data.nworld,) if isinstance(data, Batch) else (), np.nan)
        return StepDerivatives(found.A, found.B, C, D, P, unknown)
    if sensors:
        C, D = _sensors(model, data, nx, nthread, disabled)
    n = nx + sizes["nu"]
    if asked is not None:
        worlds = ImplicitWorlds(model, data, False, nthread, disabled, True, asked)
        worlds.load(data)
        out, _, nearest, left = worlds.rates()
    else:
        with borrowed(LcpWorlds if lcp else ImplicitWorlds, model, data, False, nthread, disabled) as worlds:
            out, _, nearest, left = rk4_rates(worlds) if rk4 and isinstance(worlds, ImplicitWorlds) else worlds.rates()
    out = out.swapaxes(1, 2)
    if len(left):
        A, B = transition_fd(model, data, 1e-6, True, False, nthread, frictionloss)[:2]
        out[left, :, :n] = np.concatenate([A, B], -1).reshape(len(out), nx, -1)[left]
        if asked is not None:
            out[left, :, n:] = _by_steps(asked, model, data, nthread, disabled).reshape(len(out), nx, -1)[left]
        nearest[left] = np.nan
    out, nearest = as_given(data, out), as_given(data, nearest)
    if asked is not None:
        P = asked.parts(out[..., n:])
    return StepDerivatives(out[..., :nx], out[..., nx:n], C, D, P, nearest)


def acceleration_derivatives(
    model: Model, data: Data | Batch, nthread: int = 0, frictionloss: bool = True
) -> AccelerationDerivatives:
    """Derivatives of the acceleration of `forward` by position, velocity, activation, control and generalized force.

    With contacts, limits and equality constraints: da = -H^-1 dg, see `transition`.  Under the integrator discrete the
    acceleration is that of the step.

    Args:
        model: the model.
        data: the world, or a batch of the model; neither is changed.
        nthread: threads, 0: as many as the work is worth.
        frictionloss: with the dry friction of joints and tendons.

    Returns:
        `AccelerationDerivatives`; for a batch with a leading axis of worlds.

    Raises:
        ModelError: the model is not the data's.
        TypeError: `data` is neither a Data nor a Batch.
        UnsupportedFeatureError: the pass against slip, actuators that act through contacts under the contact model
            lcp, a world whose rows found no room; the flag `sleep` is on.

    Source: implicit function theorem.
    """
    frictionloss = flag("frictionloss", frictionloss)
    nthread = threads(nthread)
    if isinstance(data, Data):
        one = rates_of_one_world(model, data, True, 0 if frictionloss else FRICTIONLOSS)
        if one is not None:
            return _by_coordinate(one[0].T, 0, one[1])
    sizes, kind = check(model, data), ImplicitWorlds
    if model.opt_contact_model != CONVEX:
        kind = LcpWorlds
        if model.nv and not lcp_serves(model, in_use_of(data)):
            raise UnsupportedFeatureError(
                ["adhesion under the contact model lcp"], what="there are no derivatives of the acceleration with it"
            )
    if model.opt_noslip_iterations > 0:
        raise UnsupportedFeatureError(
            ["option noslip_iterations"], what="there are no derivatives of the acceleration with it"
        )
    nworld, nv, na, nu = 1 if isinstance(data, Data) else data.nworld, sizes["nv"], sizes["na"], sizes["nu"]
    disabled = 0 if frictionloss else FRICTIONLOSS
    out, nearest = np.empty((nworld, na + nu, nv)), np.ones(nworld)
    if nv:
        with borrowed(kind, model, data, True, nthread, disabled) as worlds:
            _, out, nearest, left = worlds.rates()
        if len(left):
            raise UnsupportedFeatureError(
                [f"world {w}: its rows found no room" for w in left],
                what="there are no derivatives of the acceleration with it",
            )
    return _by_coordinate(as_given(data, out.swapaxes(1, 2)), na, as_given(data, nearest))


def _by_coordinate(rates: np.ndarray, na: int, nearest: np.ndarray) -> AccelerationDerivatives:
    """The parts of rates (..., nv, 3 nv + na + nu)."""
    nv, n = rates.shape[-2:]
    act, force = 2 * nv + na, n - nv
    by_state = rates[..., :nv], rates[..., nv : 2 * nv], rates[..., 2 * nv : act]
    return AccelerationDerivatives(*by_state, rates[..., act:force], rates[..., force:], nearest)


def _sensors(model: Model, data: Data | Batch, nx: int, nthread: int, disabled: int) -> tuple[np.ndarray, np.ndarray]:
    """C and D, of worlds without room for all their rows by differences of steps."""
    from featherlane.model.features import refuse_sensors  # imports mujoco

    refuse_sensors(model)
    if model.opt_contact_model == CONVEX:
        rates, left = sensor_rates(model, data, threads(nthread), disabled)
        out = rates.swapaxes(1, 2)
    else:
        # forces of the LCP follow from no acceleration
        left = np.arange(1 if isinstance(data, Data) else data.nworld)
        out = np.empty((len(left), model.nsensordata, nx + model.nu))
    if len(left):
        found = transition_fd(model, data, 1e-6, True, True, nthread, disabled == 0)
        assert isinstance(found, SensorTransition)
        out[left] = np.concatenate([found.C, found.D], -1).reshape(out.shape)[left]
    out = as_given(data, out)
    return out[..., :nx], out[..., nx:]


# ---- models ----------------------------------------------------------------------------------------------------------
def _by_steps(asked: Parameters, model: Model, data: Data | Batch, nthread: int, disabled: int) -> np.ndarray:
    """(..., nx, n) derivatives of the next state by parameters, as differences of whole steps."""
    worlds = OwnWorlds(model, data, 2 * asked.n, nthread, disabled)
    worlds.load(data)
    return as_given(data, asked.rates_of_steps(worlds).swapaxes(1, 2))


def _served(sizes: dict[str, int]) -> bool:
    """Does the theorem serve the model's solver and integrator?"""
    convex = sizes["opt_contact_model"] == CONVEX and sizes["opt_noslip_iterations"] == 0
    if sizes["opt_integrator"] == RK4:
        # what it makes of activations, and of springs that yield, has no chain here
        convex = convex and sizes["na"] == 0 and sizes["nplastic"] == 0
    return convex and sizes["opt_integrator"] in SERVED and sizes["nv"] > 0
