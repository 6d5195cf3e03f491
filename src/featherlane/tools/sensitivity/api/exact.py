"""Derivatives of a step and of forward dynamics by the implicit function theorem: no solver runs at displaced points.

Whole steps are differenced if it does not apply: with activations under the integrator rk4, and with the no-slip
solver where it has no formulas.  `docs/derivatives.md` lists both cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from featherlane.engine.model.arguments import one_of
from featherlane.engine.model.assignment import flag
from featherlane.engine.model.enums import CONVEX, LCP, RK4, Disable
from featherlane.engine.model.model import Model
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.batch.mixed import MixedBatch
from featherlane.engine.simulation.world.data import Data
from featherlane.errors import ArgumentTypeError, ModelError, UnsupportedFeatureError, page
from featherlane.tools.sensitivity.api.sensor_rates import sensor_rates
from featherlane.tools.sensitivity.api.transition import (
    METHODS,
    Linearization,
    check_differentiable,
    no_differences,
    threads,
    transition_fd,
)
from featherlane.tools.sensitivity.rates.coordinates import Seeds
from featherlane.tools.sensitivity.systems.convex import CONVEX_STAGES
from featherlane.tools.sensitivity.systems.lcp_columns import LCP_STAGES
from featherlane.tools.sensitivity.systems.served import lcp_serves, serves, solves_implicitly
from featherlane.tools.sensitivity.worlds.direct_worlds import direct_rates
from featherlane.tools.sensitivity.worlds.displaced_worlds import OwnWorlds, as_given, borrowed, in_use_of
from featherlane.tools.sensitivity.worlds.implicit_worlds import ImplicitWorlds
from featherlane.tools.sensitivity.worlds.lcp_worlds import LcpWorlds
from featherlane.tools.sensitivity.worlds.parameters import Parameters
from featherlane.tools.sensitivity.worlds.rk4 import rk4_rates

FRICTIONLOSS = int(Disable.FRICTIONLOSS)
SHAPES = ("nq", "nv", "na", "nu", "nsensordata")  # sizes that the models of a `MixedBatch` need in common


class AccelerationDerivatives(NamedTuple):
    """Holds derivatives of the acceleration a of forward dynamics, contacts included.

    Attributes:
        DaDq: (..., nv, nv) by position, dof by dof: DaDq[..., i, j] = da_i / dq_j.
        DaDv: (..., nv, nv) by velocity.
        DaDact: (..., nv, na) by activation.
        DaDu: (..., nv, nu) by control.
        DaDtau: (..., nv, nv) by generalized force: the inverse of the solver's Hessian, or of M without constraints.
        switching: (...) as in `Linearization`.
    """

    DaDq: np.ndarray
    DaDv: np.ndarray
    DaDact: np.ndarray
    DaDu: np.ndarray
    DaDtau: np.ndarray
    switching: np.ndarray


def linearize(
    model: Model | Sequence[Model],
    data: Data | Batch | MixedBatch,
    *,
    method: Literal["analytic", "finite_difference"] = "analytic",
    sensors: bool = False,
    parameters: Sequence[str] = (),
    eps: float | None = None,
    centered: bool | None = None,
    nthread: int = 0,
    frictionloss: bool = True,
) -> Linearization:
    """Computes the derivatives of `step` with respect to state, controls and parameters, in the present state.

    `analytic` uses implicit differentiation: the acceleration a solves g(a; x, u) = M a + c - tau - J^T f(J a - aref) =
    0, so da = -H^-1 dg at fixed a, with the Hessian H of the solver.  dg is computed by formulas, and by central
    differences for forces without a formula (docs/derivatives.md); no solver runs at displaced states.  Under the LCP
    contact model, forces follow from the linear system of the free rows.  The active set of constraints is held fixed;
    `switching` is the distance to its next change.  The sweeps of the no-slip solver are differentiated one by one.
    Where neither applies (the no-slip solver with elliptic cones, RK4 with activations) the steps are differenced.

    `finite_difference` steps from displaced states, as MuJoCo does.  The solver starts where the world itself starts
    it; set `model.opt.tolerance` to 0 for accuracy.

    At the limit of its range a control is displaced inwards only; beyond its range its derivative is 0.  Histories are
    held fixed, so a control that acts after a delay has no derivative.  Dry friction holds a joint at rest, so its
    derivative is that of a very stiff damper; for control design use `frictionloss=False`.

    Args:
        model: the model; of a `MixedBatch`, its `models`.
        data: the world, or a batch; neither is changed.  The models of a `MixedBatch` need equal sizes, as variants of
            one model have.
        method: `analytic` or `finite_difference`.
        sensors: compute C and D, the derivatives of `sensordata`.
        parameters: names of real model fields (`body_mass`, `geom_friction`, `opt.gravity`), or of entries by name or
            number: `body_mass[torso]`, `geom_friction[floor, 0]`, `opt.gravity[2]`.  Fields that depend on them
            (`set_const`) change with them.
        eps: displacement of each coordinate under `finite_difference`; None: 1e-6.
        centered: central differences under `finite_difference`; None: True.  One-sided differences take half the time.
        nthread: threads, 0: as many as the work is worth.
        frictionloss: include the dry friction of joints and tendons.

    Returns:
        `Linearization`; for a batch with a leading axis of worlds.

    Raises:
        ModelError: the model is not the data's; the models of a `MixedBatch` differ in size; a parameter is not a real
            field of it, or is the timestep; an entry does not exist; an unknown method; eps is not positive, or given
            with `analytic`.
        UnknownNameError: an entry's name is unknown.
        TypeError: `data` is neither a `Data` nor a `Batch`.
        UnsupportedFeatureError: `sensors` with an unsupported sensor of the model; the flag `sleep` or
            `speculative` is on.

    Source: implicit function theorem; MuJoCo mjd_transitionFD (which refuses RK4 and delays).
    """
    if isinstance(data, MixedBatch):
        groups = _groups(model, data)
        how = {"method": method, "sensors": sensors, "parameters": parameters, "eps": eps, "centered": centered}
        how |= {"nthread": nthread, "frictionloss": frictionloss}
        return _joined([linearize(group.model, group, **how) for group in groups])
    if not isinstance(model, Model):
        raise ArgumentTypeError(f"model: got {type(model).__name__}, allowed is a Model")
    if method != "analytic":
        one_of("method", method, METHODS)
        return _differenced(model, data, sensors, parameters, eps, centered, nthread, frictionloss)
    if eps is not None or centered is not None:
        no_differences(eps, centered)
    if sensors is not False or frictionloss is not True:  # a call of a small model takes few microseconds
        sensors, frictionloss = flag("sensors", sensors), flag("frictionloss", frictionloss)
    nthread = threads(nthread)
    disabled, none = 0 if frictionloss else FRICTIONLOSS, isinstance(parameters, tuple) and not parameters
    if none and not sensors:
        found = direct_rates(model, data, CONVEX_STAGES.whole, False, nthread, disabled)
        if found is not None:
            A, B, near = found
            return Linearization(A, B, None, None, {}, near)
    sizes = check_differentiable(model, data)
    if not (solves_implicitly(model) or lcp_serves(model)):
        return _differenced(model, data, sensors, parameters, None, None, nthread, frictionloss)
    seeds, chosen = Seeds.of(sizes["nv"], sizes["na"], sizes["nu"]), _chosen(model, parameters)
    nx, n, P, by_steps = seeds.state.stop, seeds.input.stop, {}, np.zeros(0, int)
    lcp, rk4 = sizes["opt_contact_model"] == LCP, sizes["opt_integrator"] == RK4
    if chosen is not None and (sizes["opt_contact_model"] != CONVEX or rk4 or sizes["opt_noslip_iterations"] > 0):
        P, chosen = chosen.parts(_by_steps(chosen, model, data, nthread, disabled)), None
    C, D = _sensors(model, data, nx, nthread, disabled) if sensors else (None, None)
    if chosen is not None:
        how = CONVEX_STAGES, False, nthread, disabled, True, chosen
        with borrowed(ImplicitWorlds, model, data, *how) as worlds:
            out, _, nearest, left = worlds.rates()
            by_steps = np.union1d(left, chosen.undamped(worlds)).astype(int)
    else:
        with borrowed(*_kind(lcp, model, data), False, nthread, disabled) as worlds:
            out, _, nearest, left = rk4_rates(worlds) if rk4 and not lcp else worlds.rates()
    out = out.swapaxes(1, 2)
    if len(left):
        A, B = transition_fd(model, data, 1e-6, True, False, nthread, frictionloss)[:2]
        out[left, :, :n] = np.concatenate([A, B], -1).reshape(len(out), nx, -1)[left]
        nearest[left] = np.nan
    if chosen is not None and len(by_steps):
        out[by_steps, :, n:] = _by_steps(chosen, model, data, nthread, disabled).reshape(len(out), nx, -1)[by_steps]
    out, nearest = as_given(data, out), as_given(data, nearest)
    if chosen is not None:
        P = chosen.parts(out[..., n:])
    return Linearization(out[..., :nx], out[..., nx:n], C, D, P, nearest)


def _groups(models: Any, data: MixedBatch) -> tuple[Batch, ...]:
    """Returns the groups of a batch of several models, checked.

    Raises:
        ModelError: other models than the batch's; models of different sizes.
    """
    given = list(models) if isinstance(models, list | tuple) else [models]
    if len(given) != len(data.groups) or any(a is not b for a, b in zip(given, data.models, strict=False)):
        raise ModelError("model: got other models than those of the batch, allowed is batch.models")
    for name in SHAPES:
        sizes = sorted({getattr(model, name) for model in data.models})
        if len(sizes) > 1:
            raise ModelError(
                f"data: got models with {name} = {sizes}, allowed are models of equal sizes; "
                "linearize each of batch.groups"
            )
    return data.groups


def _joined(parts: list[Linearization]) -> Linearization:
    """Returns the derivatives of all groups, with a leading axis of all worlds."""

    def joined(values):
        return None if values[0] is None else np.concatenate(values)

    A, B, C, D, P, switching = zip(*parts, strict=True)
    by_name = {name: np.concatenate([part[name] for part in P]) for name in P[0]}
    return Linearization(np.concatenate(A), np.concatenate(B), joined(C), joined(D), by_name, np.concatenate(switching))


def _chosen(model: Model, parameters) -> Parameters | None:
    """Returns the parameters by which a call differentiates, None for none."""
    chosen = None if isinstance(parameters, tuple) and not parameters else Parameters(model, parameters)
    return chosen if chosen is not None and chosen.n else None


def _differenced(model, data, sensors, parameters, eps, centered, nthread, frictionloss) -> Linearization:
    """Computes the derivatives by differences of whole steps."""
    eps, centered = 1e-6 if eps is None else eps, True if centered is None else centered
    found, chosen = (
        transition_fd(model, data, eps, centered, sensors, nthread, frictionloss),
        _chosen(model, parameters),
    )
    if chosen is None:
        return found
    disabled = 0 if frictionloss else FRICTIONLOSS
    return found._replace(P=chosen.parts(_by_steps(chosen, model, data, threads(nthread), disabled)))


def acceleration_derivatives(
    model: Model, data: Data | Batch, *, nthread: int = 0, frictionloss: bool = True
) -> AccelerationDerivatives:
    """Computes derivatives of `forward`'s acceleration by position, velocity, activation, control and applied force.

    Contacts, limits and equality constraints are included: da = -H^-1 dg, see `linearize`.  Under the integrator
    discrete, the acceleration is that of the step.

    Args:
        model: the model.
        data: the world, or a batch of the model; neither is changed.
        nthread: threads, 0: as many as the work is worth.
        frictionloss: include the dry friction of joints and tendons.

    Returns:
        `AccelerationDerivatives`; for a batch with a leading axis of worlds.

    Raises:
        ModelError: the model is not the data's.
        TypeError: `data` is neither a `Data` nor a `Batch`.
        UnsupportedFeatureError: the no-slip solver without formulas, actuators that act through contacts under the
            contact model lcp, a world with more rows than the buffer holds, under coulomb or with the no-slip solver a
            world with forces without formulas; the flag `sleep` or `speculative` is on.

    Source: implicit function theorem.
    """
    frictionloss = flag("frictionloss", frictionloss)
    nthread = threads(nthread)
    found = direct_rates(model, data, CONVEX_STAGES.whole, True, nthread, 0 if frictionloss else FRICTIONLOSS)
    if found is not None:
        return AccelerationDerivatives(*found)
    sizes, lcp = check_differentiable(model, data), model.opt_contact_model == LCP
    if lcp and (model.nadhesion or in_use_of(data).get("flg_adhesion", model.flg_adhesion)):
        raise UnsupportedFeatureError(
            ["adhesion with the contact model lcp"],
            what="derivatives of the acceleration are not supported with this feature",
        )
    if model.opt_noslip_iterations > 0 and not serves(model):
        raise UnsupportedFeatureError(
            [
                f"option noslip_iterations: got {model.opt_noslip_iterations}, allowed is 0 here; formulas need "
                f"pyramidal cones and the integrator euler or implicitfast; {page('derivatives')} lists all cases"
            ],
            what="derivatives of the acceleration are not supported with this feature",
        )
    nworld, nv, na, nu = 1 if isinstance(data, Data) else data.nworld, sizes["nv"], sizes["na"], sizes["nu"]
    disabled = 0 if frictionloss else FRICTIONLOSS
    out, nearest = np.empty((nworld, na + nu, nv)), np.ones(nworld)
    if nv:
        with borrowed(*_kind(lcp, model, data), True, nthread, disabled) as worlds:
            _, out, nearest, left = worlds.rates()
        if len(left):
            raise UnsupportedFeatureError(
                [f"world {w}: its rows exceed the capacity or have no formulas" for w in left],
                what="derivatives of the acceleration are not supported with this feature",
            )
    return _by_coordinate(as_given(data, out.swapaxes(1, 2)), na, as_given(data, nearest))


def _by_coordinate(rates: np.ndarray, na: int, nearest: np.ndarray) -> AccelerationDerivatives:
    """Splits rates (..., nv, 3 nv + na + nu) into the derivatives by each kind of coordinate."""
    nv, n = rates.shape[-2:]
    seeds = Seeds.of(nv, na, n - 3 * nv - na)
    by_state = rates[..., seeds.position], rates[..., seeds.velocity], rates[..., seeds.activation]
    return AccelerationDerivatives(*by_state, rates[..., seeds.control], rates[..., seeds.force], nearest)


def _sensors(model: Model, data: Data | Batch, nx: int, nthread: int, disabled: int) -> tuple[np.ndarray, np.ndarray]:
    """Computes C and D; worlds whose rows exceed the buffer are differentiated by differences of steps."""
    from featherlane.engine.model.features import refuse_sensors  # imports mujoco

    refuse_sensors(model)
    if model.opt_contact_model == CONVEX and model.opt_noslip_iterations == 0:
        rates, left = sensor_rates(model, data, CONVEX_STAGES, threads(nthread), disabled)
        out = rates.swapaxes(1, 2)
    else:
        # the forces of the LCP and of the no-slip solver cannot be computed from an acceleration
        left = np.arange(1 if isinstance(data, Data) else data.nworld)
        out = np.empty((len(left), model.nsensordata, nx + model.nu))
    if len(left):
        found = transition_fd(model, data, 1e-6, True, True, nthread, disabled == 0)
        assert found.C is not None and found.D is not None
        out[left] = np.concatenate([found.C, found.D], -1).reshape(out.shape)[left]
    out = as_given(data, out)
    return out[..., :nx], out[..., nx:]


def _kind(lcp: bool, model: Model, data: Data | Batch) -> tuple[type[ImplicitWorlds], Any, Any, Any]:
    """Returns the first arguments of `borrowed`: the kind of worlds for a contact model, the worlds, the stages."""
    return (LcpWorlds, model, data, LCP_STAGES) if lcp else (ImplicitWorlds, model, data, CONVEX_STAGES)


def _by_steps(chosen: Parameters, model: Model, data: Data | Batch, nthread: int, disabled: int) -> np.ndarray:
    """Returns (..., nx, n) derivatives of the next state by parameters, from differences of whole steps."""
    with borrowed(OwnWorlds, model, data, 2 * chosen.n, nthread, disabled) as worlds:
        return as_given(data, chosen.rates_of_steps(worlds).swapaxes(1, 2))
