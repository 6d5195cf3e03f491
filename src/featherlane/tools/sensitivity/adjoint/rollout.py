"""`rollout_gradient`: gradients of a rollout loss by initial state, controls and model parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.model.arguments import instance, whole_argument
from featherlane.engine.model.assignment import as_real_array, check_finite, flag, reals
from featherlane.engine.model.model import Model
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.world.recordings import controls_of_rollout
from featherlane.errors import ArgumentTypeError, ModelError
from featherlane.tools.sensitivity.adjoint.cotangent import Coordinates
from featherlane.tools.sensitivity.adjoint.product_worlds import steps_of
from featherlane.tools.sensitivity.adjoint.sweep import backward_sweep
from featherlane.tools.sensitivity.adjoint.trajectory import States, Trajectory, root_interval, worlds_like
from featherlane.tools.sensitivity.api.transition import check_differentiable, threads
from featherlane.tools.sensitivity.worlds.parameters import Parameters


class RolloutState(NamedTuple):
    """Holds the states of all worlds at one time of a rollout, in the batch's dtype.

    Attributes:
        qpos: (nworld, nq).
        qvel: (nworld, nv).
        act: (nworld, na).
        ctrl: (nworld, nu) controls of the step that starts in this state; None after the last step.
        time: (nworld,) [s].
    """

    qpos: np.ndarray
    qvel: np.ndarray
    act: np.ndarray
    ctrl: np.ndarray | None
    time: np.ndarray


class RolloutGradient(NamedTuple):
    """Holds the gradients of a rollout loss L for each world, in float64.

    Attributes:
        state: (nworld, 2 nv + na) dL/dx with respect to the initial state x = (position by dof, velocity, activation).
        control: (nworld, nstep, nu) dL/du.
        parameters: name of a model field or entry -> (nworld, shape of the field or entry); empty if none is requested.
        switching: (nworld,) the minimum of `Linearization.switching` over all steps; NaN if a step was differentiated
            by finite differences.
        end: the states after the last step.
    """

    state: np.ndarray
    control: np.ndarray
    parameters: dict[str, np.ndarray]
    switching: np.ndarray
    end: RolloutState


def rollout_gradient(
    model: Model,
    batch: Batch,
    control: ArrayLike,
    *,
    loss_gradient: Callable[[int, RolloutState], Any] | ArrayLike,
    parameters: Sequence[str] = (),
    interval: int = 1,
    nthread: int = 0,
    frictionloss: bool = True,
) -> RolloutGradient:
    """Computes the gradients of a rollout loss by the adjoint method, backwards from the last step to the first.

    The worlds start in their present states and step under the controls, as in `Batch.rollout`.  The derivatives of
    each step are those of `linearize` at the visited states, with the same limits; see docs/derivatives.md.

    Args:
        model: the model.
        batch: the worlds; they are not changed.
        control: (nworld, nstep, nu), or (nstep, nu) for all worlds [N, N m, or the unit of the actuator's input].
        loss_gradient: derivative of the loss with respect to states.  An array: (nworld, nx) for the last state, or
            (nworld, nstep + 1, nx) for all states from the first to the last; (nx,), (1, nx) and (1, nstep + 1, nx)
            apply to all worlds.  Or a function `loss_gradient(k, state)`, called for k = nstep, ..., 0 with the
            `RolloutState` after k steps.  It returns an array that broadcasts to (nworld, nx), or None if the loss does
            not depend on this state.  It may also return a pair of these for state and control, the latter
            (nworld, nu).  nx is 2 nv + na for a gradient by dof, or nq + nv + na for one by (qpos, qvel, act),
            quaternions as four numbers.
        parameters: names of real model fields, or of entries of them, to differentiate by, as in `linearize`.
        interval: number of steps between stored states.  1: all states are stored.  Otherwise the others are computed
            again by a second rollout.  0: the interval of least memory, about sqrt(nstep).
        nthread: threads, 0: those of the batch.
        frictionloss: include the dry friction of joints and tendons in derivatives; steps always include it.

    Returns:
        `RolloutGradient`.  NaN for a world that was reset because its state became non-finite or out of range.

    Raises:
        TypeError: `batch` is not a Batch.
        ModelError: invalid shapes, names or counts; a loss gradient that is not finite; the model is not the batch's.
        UnsupportedFeatureError: as `linearize` does.

    Source: Griewank and Walther, Evaluating Derivatives (2008).
    """
    instance("batch", batch, Batch, "a Batch", ArgumentTypeError)
    check_differentiable(model, batch)
    frictionloss, interval = flag("frictionloss", frictionloss), whole_argument("interval", interval, 0)
    nstep = _steps(control)
    given = controls_of_rollout(control, (batch.nworld, nstep, model.nu)).astype(batch.dtype)
    names, nthread = Parameters(model, parameters).names, threads(nthread)
    loss = _Loss(model, batch.nworld, nstep, loss_gradient)
    worlds = worlds_like(batch, 1, nthread or batch.nthread)
    trajectory = Trajectory(model, worlds, given, min(interval or root_interval(nstep), nstep))
    final = loss.at_end(trajectory.last)

    def at_step(k: int, states: States) -> tuple[np.ndarray | None, np.ndarray | None]:
        return loss(k, states, given[:, k])

    found = backward_sweep(trajectory, final, at_step, steps_of(trajectory, names, nthread, frictionloss))
    return RolloutGradient(*found, _state(trajectory.last, None))


def _steps(control) -> int:
    """Returns the number of steps of a control array."""
    given = as_real_array("control", control, "are numbers (nworld, nstep, nu) or (nstep, nu)")
    if given.ndim not in (2, 3):
        raise ModelError(f"control: got shape {given.shape}, allowed is (nworld, nstep, nu) or (nstep, nu)")
    return whole_argument("control: number of steps", given.shape[-2], 1)


def _state(states: States, ctrl: np.ndarray | None) -> RolloutState:
    """Returns the states of one time as a `RolloutState`."""
    n, dtype = len(states["time"]), min((a.dtype for a in states.values()), key=lambda dtype: dtype.itemsize)
    qpos, qvel, act = (states.get(name, np.zeros((n, 0), dtype)) for name in ("qpos", "qvel", "act"))
    return RolloutState(qpos, qvel, act, ctrl, states["time"][:, 0])


class _Loss:
    """Evaluates the loss gradient with respect to states, given as an array or a function, and checks it.

    Attributes:
        nx: length of a gradient by dof.
    """

    def __init__(self, model: Model, nworld: int, nstep: int, given):
        self.coordinates, self.nworld, self.nstep, self.nu = Coordinates(model), nworld, nstep, model.nu
        self.nx, self.nc = 2 * model.nv + model.na, model.nq + model.nv + model.na
        self.function = given if callable(given) else None
        self.numbers = None if callable(given) else self._numbers(given)

    def at_end(self, states: States) -> np.ndarray:
        """Returns dL/dx (nworld, nx) with respect to the last states."""
        zeros = np.zeros((self.nworld, self.nx))
        if self.numbers is not None and self.numbers.ndim == 2:
            by_x = self._by_dof(states, self.numbers)
        else:
            by_x, by_u = self(self.nstep, states, None)
            if by_u is not None:
                raise ModelError(
                    f"loss_gradient: got a gradient by control after the last step ({self.nstep}), allowed "
                    f"is None there"
                )
        return zeros if by_x is None else zeros + by_x

    def __call__(self, k: int, states: States, ctrl) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Returns dL/dx and dL/du for the state after k steps."""
        if self.numbers is not None:
            return (None if self.numbers.ndim == 2 else self._by_dof(states, self.numbers[:, k])), None
        found = self.function(k, _state(states, ctrl))  # type: ignore[misc]
        by_x, by_u = found if isinstance(found, tuple) and len(found) == 2 else (found, None)
        if by_x is not None:
            by_x = self._by_dof(states, self._shaped(k, "state", by_x, (self.nx, self.nc)))
        if by_u is not None:
            by_u = self._shaped(k, "control", by_u, (self.nu,))
        return by_x, by_u

    def _by_dof(self, states: States, gradient: np.ndarray) -> np.ndarray:
        return self.coordinates.state_to_tangent(states["qpos"].astype(np.float64), gradient)

    def _numbers(self, given) -> np.ndarray:
        """Returns a gradient given as an array, by the last state or by each state."""
        lengths = dict.fromkeys((self.nx, self.nc))
        shapes = [(*lead, n) for lead in ((self.nworld,), (self.nworld, self.nstep + 1)) for n in lengths]
        allowed = f"is a function, or an array {' or '.join(map(str, shapes))}, in which an axis may have length 1"
        array = reals("loss_gradient", given, allowed)
        n, steps = (array.shape or (0,))[-1], self.nstep + 1
        if n in lengths and array.ndim < 3:
            # (nx,) or (nworld, nx): with respect to the last state
            wide = (self.nworld, n)
        else:
            wide = (self.nworld, steps, n)
        alike = all(a in (1, b) for a, b in zip(array.shape[::-1], wide[::-1], strict=False))
        if n in lengths and array.ndim < 4 and alike:
            check_finite("loss_gradient", array)
            return np.broadcast_to(array, wide)
        raise ModelError(f"loss_gradient: got shape {array.shape}, allowed {allowed}")

    def _shaped(self, k: int, by: str, given, lengths: tuple[int, ...]) -> np.ndarray:
        """Returns the function's result, broadcast to (nworld, n)."""
        what = f"loss_gradient by {by} after {k} steps"
        shapes = " or ".join(str((self.nworld, n)) for n in dict.fromkeys(lengths))
        array = reals(what, given, f"is what broadcasts to {shapes}")
        check_finite(what, array)
        try:
            n = array.shape[-1] if array.ndim else 0
            if n in lengths:
                return np.broadcast_to(array, (self.nworld, n))
        except ValueError:
            pass
        raise ModelError(f"{what}: got shape {array.shape}, allowed is what broadcasts to {shapes}")
