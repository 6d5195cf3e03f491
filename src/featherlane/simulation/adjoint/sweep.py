"""Backwards along a trajectory: how a loss moves with each state and control, step by step.

    l_k = A_k^T l_k+1 + dL/dx_k,     dL/du_k <- B_k^T l_k+1 + dL/du_k,     dL/dp <- dL/dp + P_k^T l_k+1

The derivatives of a step need nothing of the steps after it: those of many steps of all worlds are computed side by
side in lanes, as if each were a world, and the sweep is left with products.
Source: Griewank and Walther, Evaluating Derivatives (2008), ch. 3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from featherlane.simulation.adjoint.trajectory import States, Trajectory, worlds_like
from featherlane.simulation.batch.batch import Batch
from featherlane.simulation.batch.worlds import COUNTS
from featherlane.simulation.derivative.exact import transition

REALS = 1 << 22  # of the derivatives that are in memory at a time, about
FIELD_POINTS = 512  # worlds that have a number of the model moved each, at a time, about

#: number and states of a step -> dL/dx (nworld, 2 nv + na) and dL/du (nworld, nu), each None where it vanishes
Loss = Callable[[int, States], tuple[np.ndarray | None, np.ndarray | None]]


class Swept(NamedTuple):
    """What a sweep gives.

    Attributes:
        state: (nworld, 2 nv + na) by the state at the start.
        control: (nworld, nstep, nu).
        parameters: field -> (nworld, ...).
        switching: (nworld,) the least of all steps.
    """

    state: np.ndarray
    control: np.ndarray
    parameters: dict[str, np.ndarray]
    switching: np.ndarray


def transposed_product(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """M^T v of each world: (n, i, j), (n, i) -> (n, j), summed from the first i to the last whatever n is."""
    return np.add.reduce(matrix * vector[:, :, None], 1)


def sweep(
    trajectory: Trajectory,
    final: np.ndarray,
    loss: Loss,
    points: Points,
) -> Swept:
    """Gradients by what a rollout starts from.

    Args:
        trajectory: the rollout.
        final: (nworld, 2 nv + na) dL/dx by the last state.
        loss: called for each step, from the last to the first, with the states before it: how the loss moves with them
            and with the step's controls directly.
        points: where the derivatives of its steps are computed.
    """
    nworld, nx = final.shape
    points.enter(trajectory)
    costate, by_u, nearest = final.copy(), np.zeros(trajectory.control.shape), np.full(nworld, np.inf)
    by_p: dict[str, np.ndarray] = {}
    for start, states in trajectory.segments():
        length = next(iter(states.values())).shape[1]
        for last in range(length, 0, -points.each):
            first = max(0, last - points.each)
            found = points.derivatives({name: a[:, first:last] for name, a in states.items()}, start + first)
            nearest = np.minimum(nearest, found.switching.min(1))  # NaN where it is not known
            for k in range(last - first - 1, -1, -1):
                step, before = start + first + k, {name: a[:, first + k] for name, a in states.items()}
                for name, P in found.P.items():
                    flat = P[:, k].reshape(nworld, nx, -1)
                    add = transposed_product(flat, costate).reshape(nworld, *P.shape[3:])
                    by_p[name] = by_p[name] + add if name in by_p else add
                by_u[:, step] = transposed_product(found.B[:, k], costate)
                costate = transposed_product(found.A[:, k], costate)
                at_x, at_u = loss(step, before)
                if at_x is not None:
                    costate = costate + at_x
                if at_u is not None:
                    by_u[:, step] += at_u
    bad = trajectory.bad
    for array in (costate, by_u, *by_p.values(), nearest):
        array[bad] = np.nan  # a world that was reset went on from the model's defaults, which nothing moves
    return Swept(costate, by_u, by_p, nearest)


class _Derivatives(NamedTuple):
    """Of some steps of all worlds, each with leading axes (nworld, steps)."""

    A: np.ndarray
    B: np.ndarray
    P: dict[str, np.ndarray]
    switching: np.ndarray


class Points:
    """Steps of all worlds side by side, as worlds of a batch; serves trajectories of one length and one set of worlds.

    Args:
        trajectory: the first of them.
        parameters: fields of the model by which to differentiate, too.
        nthread, frictionloss: as `transition` has them.

    Attributes:
        each: steps of each world at a time.
    """

    def __init__(self, trajectory: Trajectory, parameters: tuple[str, ...], nthread: int, frictionloss: bool):
        self.trajectory, self.parameters, self.nthread, self.frictionloss = (
            trajectory, parameters, nthread, frictionloss,
        )  # fmt: skip
        model, (nworld, nstep, nu) = trajectory.model, trajectory.control.shape
        nx = 2 * model.nv + model.na
        most = REALS // max(nx * (nx + nu), 1)
        if parameters:
            numbers = sum(np.size(model.__dict__[name]) for name in parameters)
            most = min(most, FIELD_POINTS // max(2 * numbers, 1))
        self.each = min(nstep, max(1, most // nworld))
        self._batches: dict[int, Batch] = {}

    def enter(self, trajectory: Trajectory) -> None:
        """Serve a trajectory, whose worlds have inputs and a model of their own."""
        self.trajectory, worlds = trajectory, trajectory.worlds
        for length, batch in self._batches.items():
            for name, rows in batch._arrays.items():
                if name in worlds._arrays and name not in COUNTS:
                    rows[...] = np.repeat(worlds._arrays[name], length, 0)
            for name, rows in worlds._expanded.items():
                batch._expanded[name][...] = np.repeat(rows, length, 0)

    def derivatives(self, states: States, first: int) -> _Derivatives:
        """Those of the steps from number `first` on, in the states (nworld, n, ...) before them."""
        length = next(iter(states.values())).shape[1]
        batch = self._batches.get(length)
        if batch is None:
            batch = self._batches[length] = worlds_like(self.trajectory.worlds, length, 1)
        rows = states | {"ctrl": self.trajectory.control[:, first : first + length]}
        for name, values in rows.items():
            batch._arrays[name][...] = values.reshape(batch._arrays[name].shape)
        found = transition(self.trajectory.model, batch, False, self.parameters, self.nthread, self.frictionloss)
        lead = self.trajectory.worlds.nworld, length
        P = {name: a.reshape(*lead, *a.shape[1:]) for name, a in found.P.items()}
        A, B, switching = (a.reshape(*lead, *a.shape[1:]) for a in (found.A, found.B, found.switching))
        return _Derivatives(A, B, P, switching)
