"""Derivatives of a step and of inverse dynamics, by finite differences that are worlds of one batch.

A point of a world is the world again with one coordinate moved: all points of all worlds stand side by side in lanes.
Positions are moved, and their differences taken, in the tangent space: by dof, also where a quaternion stands.
Derivatives are computed in float64.
Source: MuJoCo mjd_transitionFD, mjd_inverseFD; its documentation, Computation, "Derivatives".
"""

from __future__ import annotations

import copy
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ModelError, UnsupportedFeatureError
from ..model.model import Model
from ..model.option import Enable
from .batch import Batch
from .data import Data, ready
from .position import differentiate_pos, integrate_pos

POINTS = 4096  # worlds of a batch of points, about: what they keep stays in cache
# the batch of points of the last call, which takes 10 ms to make, for as long as the data live
_last: WeakKeyDictionary[Data | Batch, tuple[tuple, Batch]] = WeakKeyDictionary()


class Transition(NamedTuple):
    """Derivatives of the next state x' by the present one and by the controls: dx' = A dx + B du.

    Attributes:
        A: (..., 2 nv + na, 2 nv + na), x = (position by dof, velocity, activation).
        B: (..., 2 nv + na, nu).
    """

    A: np.ndarray
    B: np.ndarray


class SensorTransition(NamedTuple):
    """Derivatives of the next state and of the sensors s: dx' = A dx + B du, ds = C dx + D du.

    Attributes:
        A: (..., 2 nv + na, 2 nv + na), x = (position by dof, velocity, activation).
        B: (..., 2 nv + na, nu).
        C: (..., nsensordata, 2 nv + na): sensors as the step computes them, in the state before it.
        D: (..., nsensordata, nu).
    """

    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    D: np.ndarray


class InverseDerivatives(NamedTuple):
    """Derivatives of qfrc_inverse f, a row for each coordinate that moves: DfDq[..., i, j] = df_j / dq_i.

    Attributes:
        DfDq: (..., nv, nv) by position, dof by dof.
        DfDv: (..., nv, nv) by qvel.
        DfDa: (..., nv, nv) by qacc.
    """

    DfDq: np.ndarray
    DfDv: np.ndarray
    DfDa: np.ndarray


def transition_fd(
    model: Model, data: Data | Batch, eps: float = 1e-6, centered: bool = True, sensors: bool = False, nthread: int = 0
) -> Transition | SensorTransition:
    """Derivatives of `step` by state and controls, at the present state.

    A control at the border of its range is moved inwards only; one beyond it has no derivative, zeros.  Histories are
    held: a control that acts only after a delay has no derivative here, either (MuJoCo refuses delays).  All points
    start the solver where the world itself would start it.  Set `model.opt.tolerance` to 0 where accuracy matters.

    Args:
        model: the model.
        data: the world, or a batch of the model; neither is changed.
        eps: by how much a coordinate moves.
        centered: differences of two moved points; else of one and the point itself, less exact in half the time.
        sensors: derivatives of `sensordata`, too.
        nthread: threads, 0 for one for each core.

    Returns:
        `Transition`: A and B; for a batch with a leading axis of worlds.  With sensors `SensorTransition`: A, B, C, D.

    Raises:
        ModelError: eps is not positive; the model is not the data's.
        TypeError: `data` is neither a Data nor a Batch.
        UnsupportedFeatureError: `sensors`, where a sensor of the model is not computed; the flag `sleep` is on.

    Source: MuJoCo mjd_transitionFD (which refuses RK4, and gives a sensor of kinetic energy no derivative by velocity).
    """
    points = _Points(model, data, eps, centered, nthread, ("qvel", "act", "ctrl"))
    points.sensors = bool(sensors)
    nx, nu = 2 * model.nv + model.na, model.nu
    up, down = points.steps(nx + nu)
    up[:, nx:], down[:, nx:] = _control_steps(model, points.kept["ctrl"], eps, centered)
    out = np.swapaxes(points.differentiate(up, down, points.next_state, _state_difference), 1, 2)
    A, B = points.shaped(out[:, :nx, :nx]), points.shaped(out[:, :nx, nx:])
    if not sensors:
        return Transition(A, B)
    return SensorTransition(A, B, points.shaped(out[:, nx:, :nx]), points.shaped(out[:, nx:, nx:]))


def inverse_fd(
    model: Model,
    data: Data | Batch,
    eps: float = 1e-6,
    centered: bool = True,
    actuation: bool = False,
    qacc: ArrayLike | None = None,
    nthread: int = 0,
) -> InverseDerivatives:
    """Derivatives of inverse dynamics by position, velocity and acceleration, at the present state.

    Args:
        model: the model.
        data: the world, or a batch of the model; neither is changed.
        eps: by how much a coordinate moves.
        centered: differences of two moved points; else of one and the point itself.
        actuation: derivatives of what actuators do not give, qfrc_inverse - qfrc_actuator.
        qacc: accelerations (nv,), for a batch (nworld, nv) [m/s^2, rad/s^2]; None for `data.qacc`, in a batch for those
            of forward dynamics.
        nthread: threads, 0 for one for each core.

    Returns:
        `InverseDerivatives`; for a batch with a leading axis of worlds.

    Raises:
        ModelError: eps is not positive; a shape that does not fit; the model is not the data's; as `inverse` does.
        TypeError: `data` is neither a Data nor a Batch.
        UnsupportedFeatureError: the flag `sleep` is on.

    Source: MuJoCo mjd_inverseFD (which is not centered).
    """
    points = _Points(model, data, eps, centered, nthread, ("qvel",))
    acceleration, nv = _accelerations(model, data, points.nworld, qacc), model.nv

    def force(worlds, steps, at):
        return points.force(worlds, steps, at, acceleration[worlds], actuation)

    out = points.differentiate(*points.steps(3 * nv), force, lambda _, low, high: high - low)
    return InverseDerivatives(*(points.shaped(out[:, k * nv : (k + 1) * nv]) for k in range(3)))


# ---- points ----------------------------------------------------------------------------------------------------------
class _Points:
    """Worlds with one coordinate moved, as worlds of a batch.

    Coordinates are numbered in the order (position by dof, the named fields, what is no field of a world).
    """

    def __init__(
        self, model: Model, data: Data | Batch, eps: float, centered: bool, nthread: int, fields: tuple[str, ...]
    ):
        if not (isinstance(eps, int | float | np.floating) and eps > 0):
            raise ModelError(f"eps: got {eps!r}, allowed is a number > 0")
        self.model, self.eps, self.centered, self.nthread = model, float(eps), centered, nthread
        self.kept = _kept(model, data)
        if model.opt.enableflags & Enable.SLEEP:
            raise UnsupportedFeatureError(["option flag: sleep"], what="there are no derivatives where trees may sleep")
        self.single, self.nworld, self.ngiven = isinstance(data, Data), len(self.kept["qpos"]), data.ngiven
        self.data, self.fields, self.sensors = data, fields, False

    def steps(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """How far each of n coordinates moves up and down, (nworld, n) each."""
        return np.full((self.nworld, n), self.eps), np.full((self.nworld, n), self.eps if self.centered else 0.0)

    def differentiate(self, up, down, evaluate, subtract) -> np.ndarray:
        """Derivatives by each coordinate, a row for each: (nworld, n, m).

        Args:
            up, down: (nworld, n) steps, 0 where a coordinate does not move.
            evaluate: function of worlds (a slice), steps and the coordinates that they move, to values at the points.
            subtract: function of the model and of two such values, low and high, to (..., m).
        """
        n, out = up.shape[1], []
        for first in range(0, self.nworld, each := max(1, POINTS // max(2 * n, 1))):
            worlds = slice(first, first + each)
            u, d = up[worlds], down[worlds]
            if self.centered:
                values, span = evaluate(worlds, np.concatenate([u, -d], 1), np.tile(np.arange(n), 2)), u + d
                low, high = values[:, n:], values[:, :n]
            else:
                values, span = evaluate(worlds, np.insert(u - d, 0, 0.0, axis=1), np.arange(-1, n)), u - d
                low, high = values[:, :1], values[:, 1:]
            out.append(subtract(self.model, low, high) / np.where(span == 0.0, 1.0, span)[..., None])
        return np.concatenate(out)

    def next_state(self, worlds: slice, steps: np.ndarray, at: np.ndarray) -> np.ndarray:
        """(qpos, qvel, act) after a step from each point, then what sensors showed in it, (k, npoint, ...)."""
        batch = self._moved(worlds, steps, at)
        shown = [batch.bind("sensordata")] if self.sensors else []
        batch.step()
        state = np.concatenate([batch.qpos, batch.qvel, batch.act, *shown], 1)
        return state.reshape(*steps.shape, -1)

    def force(self, worlds: slice, steps: np.ndarray, at: np.ndarray, qacc: np.ndarray, actuation: bool) -> np.ndarray:
        """qfrc_inverse of each point, without what actuators give; (k, npoint, nv)."""
        nv, batch = self.model.nv, self._moved(worlds, steps, at)
        points = np.repeat(qacc[:, None], len(at), 1)
        moving = np.flatnonzero(at >= 2 * nv)
        points[:, moving, at[moving] - 2 * nv] += steps[:, moving]
        force = batch.inverse(points.reshape(-1, nv))
        if actuation:
            given = batch.bind("qfrc_actuator")
            batch.forward()
            force = force - given
        return force.reshape(points.shape)

    def shaped(self, x: np.ndarray) -> np.ndarray:
        """Without the axis of worlds where there is one world."""
        return x[0] if self.single else x

    def _moved(self, worlds: slice, steps: np.ndarray, at: np.ndarray) -> Batch:
        """A batch of the points, npoint for each world."""
        rows = {name: np.repeat(a[worlds, None], len(at), 1) for name, a in self.kept.items()}
        nv = first = self.model.nv
        for name in self.fields:
            last = first + rows[name].shape[-1]
            moving = np.flatnonzero((at >= first) & (at < last))
            rows[name][:, moving, at[moving] - first] += steps[:, moving]
            first = last
        moving = np.flatnonzero((at >= 0) & (at < nv))
        tangent = np.zeros((len(steps), len(moving), nv))
        tangent[:, np.arange(len(moving)), at[moving]] = steps[:, moving]
        rows["qpos"][:, moving] = integrate_pos(self.model, rows["qpos"][:, moving], tangent, 1.0)
        batch = self._batch(steps.size)
        batch.restore({name: a.reshape(steps.size, *a.shape[2:]) for name, a in rows.items()})
        return batch

    def _batch(self, nworld: int) -> Batch:
        """The batch that the last call for these data left, or a new one."""
        key = self.model, nworld, self.nthread, self.ngiven, self.sensors
        found = _last.get(self.data)
        if found is None or found[0] != key:
            found = _last[self.data] = key, Batch(self.model, nworld, self.nthread, given_contacts=self.ngiven)
        return found[1]


def _kept(model: Model, data: Data | Batch) -> dict[str, np.ndarray]:
    """All that lasts of a world or of a batch, in float64, by name (nworld, ...)."""
    if isinstance(data, Batch):
        if data.model is not model:
            raise ModelError("model: it is not the batch's")
        return {name: a.astype(np.float64) for name, a in data.checkpoint().items()}
    ready(model, data)
    kept = Batch(model, 1, 1, given_contacts=data.ngiven).checkpoint()
    kept |= {name: np.empty((1, *np.shape(getattr(data, name)))) for name in ("qfrc_applied", "xfrc_applied")}
    for name, rows in kept.items():
        rows[...] = np.reshape(getattr(data, name), rows.shape)
    return kept


# ---- steps and differences -------------------------------------------------------------------------------------------
def _control_steps(model: Model, ctrl: np.ndarray, eps: float, centered: bool) -> tuple[np.ndarray, np.ndarray]:
    """How far each control moves up and down, (nworld, nu) each: 0 where that would leave its range."""
    low, high = np.where(model.actuator_ctrllimited[:, None], model.actuator_ctrlrange, [-np.inf, np.inf]).T
    up = (ctrl >= low) & (ctrl + eps <= high)
    down = (ctrl - eps >= low) & (ctrl <= high) & (centered | ~up)
    return eps * up, eps * down


def _state_difference(model: Model, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """high (-) low: positions by dof, velocities, activations, and whatever follows."""
    nq = model.nq
    position = differentiate_pos(model, 1.0, low[..., :nq], high[..., :nq])
    return np.concatenate([position, high[..., nq:] - low[..., nq:]], -1)


def _accelerations(model: Model, data: Data | Batch, nworld: int, qacc) -> np.ndarray:
    """(nworld, nv): what is given, or what data hold, or forward dynamics."""
    if qacc is None and isinstance(data, Data):
        qacc = data.qacc
    if qacc is None:
        batch = copy.deepcopy(data)
        qacc = batch.bind("qacc")
        batch.forward()
    try:
        return np.array(np.broadcast_to(np.asarray(qacc, np.float64), (nworld, model.nv)))
    except (TypeError, ValueError):
        raise ModelError(
            f"qacc: got {type(qacc).__name__}, allowed is what broadcasts to ({nworld}, {model.nv})"
        ) from None
