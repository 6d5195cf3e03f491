"""Derivatives of a step and of inverse dynamics by finite differences, computed as worlds of one batch.

A point of a world is a copy of the world with one coordinate displaced.  All points of all worlds are lanes of tiles.
Positions are displaced and differenced by dof in the tangent space, for quaternions too.
Derivatives are computed in float64.
Source: MuJoCo mjd_transitionFD, mjd_inverseFD; its documentation, Computation, "Derivatives".
"""

from __future__ import annotations

import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.model.arguments import bounded, whole_argument
from featherlane.engine.model.assignment import broadcast_reals, flag
from featherlane.engine.model.enums import Disable, Enable
from featherlane.engine.model.model import Model, check_model
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.batch.mixed import MixedBatch
from featherlane.engine.simulation.query.position import differentiate_pos
from featherlane.engine.simulation.steps import check_inverse
from featherlane.engine.simulation.world.data import Data, other_model, ready
from featherlane.errors import ArgumentTypeError, ModelError, UnsupportedFeatureError
from featherlane.tools.sensitivity.columns.points import inverse_points, step_points
from featherlane.tools.sensitivity.rates.coordinates import Seeds
from featherlane.tools.sensitivity.worlds.displaced_worlds import MovedWorlds, as_given, borrowed

STATE = ("qpos", "qvel", "act")
SLEEP, SPECULATIVE = int(Enable.SLEEP), int(Enable.SPECULATIVE)


METHODS = ("analytic", "finite_difference")


class Linearization(NamedTuple):
    """Holds derivatives of the next state x' and of the sensors s: dx' = A dx + B du, ds = C dx + D du.

    Attributes:
        A: (..., 2 nv + na, 2 nv + na), x = (position in the tangent space, velocity, activation).
        B: (..., 2 nv + na, nu).
        C: (..., nsensordata, 2 nv + na); None without `sensors`.
        D: (..., nsensordata, nu); None without `sensors`.
        P: name of each parameter -> (..., 2 nv + na, its shape): dx' = P dp.
        switching: (...) distance to the next change of the active constraints, at most 1: a contact force begins or
            ends, a contact begins to slip, dry friction reaches its bound, a limit begins.  Displacements of the state
            much smaller than this value times 1 mm or 1 mrad do not reach the change.  NaN for worlds whose steps were
            differenced.
    """

    A: np.ndarray
    B: np.ndarray
    C: np.ndarray | None
    D: np.ndarray | None
    P: dict[str, np.ndarray]
    switching: np.ndarray


class InverseDerivatives(NamedTuple):
    """Holds derivatives of qfrc_inverse f, one row for each displaced coordinate: DfDq[..., i, j] = df_j / dq_i.

    Attributes:
        DfDq: (..., nv, nv) by position, dof by dof.
        DfDv: (..., nv, nv) by qvel.
        DfDa: (..., nv, nv) by qacc.
    """

    DfDq: np.ndarray
    DfDv: np.ndarray
    DfDa: np.ndarray


def transition_fd(
    model: Model,
    data: Data | Batch,
    eps: float = 1e-6,
    centered: bool = True,
    sensors: bool = False,
    nthread: int = 0,
    frictionloss: bool = True,
) -> Linearization:
    """Computes derivatives of `step` by state and controls, in the present state, by finite differences.

    At the limit of its range a control is displaced inwards only; beyond its range its derivative is 0.  Histories are
    held fixed: a control that acts after a delay has no derivative (MuJoCo refuses delays).  At all points the solver
    starts as in the world itself.  Set `model.opt.tolerance` to 0 for accuracy.

    Dry friction (`frictionloss`) has no derivative while a joint rests: up to its bound it balances any force, and the
    differences are those of a very stiff damper.  Gains computed from them (LQR, Kalman) fail at the first motion.  For
    control use `frictionloss=False`, and treat friction as a disturbance.

    Args:
        model: the model.
        data: the world, or a batch of the model; neither is changed.
        eps: displacement of each coordinate.
        centered: central differences; otherwise one-sided, which are less accurate and take half the time.
        sensors: compute the derivatives of `sensordata`, too.
        nthread: threads, 0: as many as the work is worth.
        frictionloss: include the dry friction of joints and tendons; False: as with the flag `frictionloss` in
            `model.opt.disableflags`, which is not changed.

    Returns:
        `Linearization` without parameters; for a batch with a leading axis of worlds.

    Raises:
        ModelError: eps is not positive; the model is not the data's.
        TypeError: `data` is neither a `Data` nor a `Batch`.
        UnsupportedFeatureError: `sensors` with an unsupported sensor of the model; the flag `sleep` or
            `speculative` is on.

    Source: MuJoCo mjd_transitionFD (which refuses RK4, returns zero for the derivative of a kinetic energy sensor by
        velocity, and omits dry friction only if the flag is set).
    """
    sizes, eps = check_differentiable(model, data, eps), float(eps)
    centered, sensors, frictionloss = (
        flag("centered", centered), flag("sensors", sensors), flag("frictionloss", frictionloss),
    )  # fmt: skip
    if sensors:
        from featherlane.engine.model.features import refuse_sensors  # imports mujoco

        refuse_sensors(model)
    seeds, outputs = Seeds.of(sizes["nv"], sizes["na"], sizes["nu"]), (*STATE, "sensordata") if sensors else STATE
    nx, n, disabled = seeds.state.stop, seeds.input.stop, 0 if frictionloss else int(Disable.FRICTIONLOSS)
    with borrowed(MovedWorlds, model, data, step_points, outputs, n, centered, threads(nthread), disabled) as worlds:
        worlds.set_displacement(eps)
        out = as_given(data, differentiate(worlds, _state_difference).swapaxes(1, 2))
    C, D = (out[..., nx:, :nx], out[..., nx:, nx:]) if sensors else (None, None)
    unknown = np.full((data.nworld,) if isinstance(data, Batch) else (), np.nan)
    return Linearization(out[..., :nx, :nx], out[..., :nx, nx:], C, D, {}, unknown)


def inverse_fd(
    model: Model,
    data: Data | Batch,
    eps: float = 1e-6,
    centered: bool = True,
    actuation: bool = False,
    qacc: ArrayLike | None = None,
    nthread: int = 0,
) -> InverseDerivatives:
    """Computes derivatives of inverse dynamics by position, velocity and acceleration in the present state.

    Args:
        model: the model.
        data: the world, or a batch of the model; neither is changed.
        eps: displacement of each coordinate.
        centered: central differences; otherwise one-sided.
        actuation: differentiate qfrc_inverse - qfrc_actuator, the forces beyond those of the actuators.
        qacc: accelerations (nv,), for a batch (nworld, nv) [m/s^2, rad/s^2]; None for `data.qacc`, in a batch for those
            of forward dynamics.
        nthread: threads, 0: as many as the work is worth.

    Returns:
        `InverseDerivatives`; for a batch with a leading axis of worlds.

    Raises:
        ModelError: eps is not positive; an invalid shape; the model is not the data's; as `inverse` does.
        TypeError: `data` is neither a `Data` nor a `Batch`.
        UnsupportedFeatureError: the flag `sleep` or `speculative` is on.

    Source: MuJoCo mjd_inverseFD (which is not centered).
    """
    check_differentiable(model, data, eps)
    check_inverse(model)
    eps, centered, actuation = float(eps), flag("centered", centered), flag("actuation", actuation)
    nv, outputs = model.nv, ("qfrc_inverse", "qfrc_actuator") if actuation else ("qfrc_inverse",)
    with borrowed(MovedWorlds, model, data, inverse_points, outputs, 3 * nv, centered, threads(nthread)) as worlds:
        acceleration = given_accelerations(model, data, worlds.batch.nworld, qacc)
        worlds.set_displacement(eps)
        out = as_given(data, differentiate(worlds, _force_difference, 1 + actuation, acceleration))
    return InverseDerivatives(*(out[..., k * nv : (k + 1) * nv, :] for k in range(3)))


# ---- points ----------------------------------------------------------------------------------------------------------
def no_differences(eps: float | None, centered: bool | None) -> None:
    """Raises an error if settings of finite differences are given together with `analytic`."""
    for name, value in (("eps", eps), ("centered", centered)):
        if value is not None:
            raise ModelError(f"{name}: got a value with another method, allowed only with method='finite_difference'")


def check_differentiable(model: Model, data: Data | Batch, eps: float = 1e-6) -> dict[str, int]:
    """Checks the conditions that all derivatives have in common, and returns the model's sizes."""
    if isinstance(data, MixedBatch):
        allowed = "allowed is a Data or a Batch, as each of its groups is: f(group.model, group)"
        raise ArgumentTypeError(f"data: got a MixedBatch, {allowed}")
    check_model(model)
    bounded("eps", eps, 0.0, above=True)
    if not isinstance(data, Batch):
        ready(model, data)
    elif data.model is not model:
        raise other_model("batch", model, data.model)
    sizes = model.size_values()  # reading attributes of the model is slow
    if sizes["opt_enableflags"] & SLEEP:
        raise UnsupportedFeatureError(["option flag: sleep"], what="derivatives are not supported if trees may sleep")
    if sizes["opt_enableflags"] & SPECULATIVE:
        what = "derivatives are not supported if contacts may occur within a step"
        raise UnsupportedFeatureError(["option flag: speculative"], what=what)
    if sizes["nminimized"]:
        tolerances = data.expanded_fields.get("opt_sdf_tolerance") if isinstance(data, Batch) else None
        if np.any((model.opt_sdf_tolerance if tolerances is None else tolerances) > 0.0):
            what = "derivatives are not supported if contacts of signed distance fields converge to a tolerance"
            raise UnsupportedFeatureError(["option sdf_tolerance"], what=what)
    return sizes


def threads(nthread) -> int:
    """Checks a number of threads and returns it."""
    return whole_argument("nthread", nthread, 0)


def differentiate(worlds: MovedWorlds, subtract, nstep: int = 1, qacc=None, da=None) -> np.ndarray:
    """Computes derivatives by each coordinate, one row for each: (nworld, n, m).

    Args:
        worlds: the worlds and their points.
        subtract: function (worlds, low, high) that maps the results at two points to their difference (..., m).
        nstep: the number of steps passed to the stage of the points.
        qacc, da: accelerations of the worlds and their rates, if the stage reads them.
    """
    out = []
    for first in range(0, worlds.batch.nworld, worlds.each):
        high, low, span = worlds.run(first, nstep, qacc, da)
        out.append(subtract(worlds, low, high) / span)
    return out[0] if len(out) == 1 else np.concatenate(out)


def _force_difference(worlds: MovedWorlds, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Returns high - low of qfrc_inverse, minus that of the actuator forces if they are present."""
    nv = worlds.model.nv
    if low.shape[-1] == nv:
        return high - low
    return (high[..., :nv] - high[..., nv:]) - (low[..., :nv] - low[..., nv:])


# ---- differences -----------------------------------------------------------------------------------------------------
def _state_difference(worlds: MovedWorlds, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Returns high (-) low: positions by dof, velocities, activations, and all further values."""
    if worlds.flat:
        return high - low
    model = worlds.model
    nq = model.nq
    position = differentiate_pos(model, 1.0, low[..., :nq], high[..., :nq])
    return np.concatenate([position, high[..., nq:] - low[..., nq:]], -1)


def given_accelerations(model: Model, data: Data | Batch, nworld: int, qacc) -> np.ndarray:
    """Returns (nworld, nv): the given accelerations, those of `data`, or those of forward dynamics."""
    if qacc is None and isinstance(data, Data):
        qacc = data.qacc
    if qacc is None:
        batch = copy.deepcopy(data)
        qacc = batch.bind("qacc")
        batch.forward()
    return np.array(broadcast_reals("qacc", qacc, (nworld, model.nv)), np.float64)
