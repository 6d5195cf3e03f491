"""Costates by the derivatives of steps, which are formed.

The derivatives of a step need nothing of the steps after it: those of many steps of all worlds are computed side by
side in lanes, as if each were a world, and what is left are products.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from featherlane.sensitivity.adjoint.sweep import Gradients
from featherlane.sensitivity.adjoint.trajectory import States, Trajectory, worlds_like
from featherlane.sensitivity.derivative.exact import Linearization, linearize
from featherlane.sensitivity.derivative.parameters import Parameters
from featherlane.simulation.batch.batch import Batch

REALS = 1 << 22  # of the derivatives that are in memory at a time, about
FIELD_POINTS = 512  # worlds that have a number of the model moved each, at a time, about


def transposed_product(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """M^T v of each world: (n, i, j), (n, i) -> (n, j), summed from the first i to the last whatever n is."""
    return np.add.reduce(matrix * vector[:, :, None], 1)


def place_worlds(batch: Batch, source: Batch, which: np.ndarray, states: States) -> None:
    """Writes the worlds `which` of a source into a batch, in other states (..., n)."""
    for own, others in ((batch.arrays.rows, source.arrays.rows), (batch.arrays.expanded, source.arrays.expanded)):
        for name, rows in own.items():
            if name in others:
                rows[...] = others[name][which]
    for name, values in states.items():
        batch.arrays.rows[name][...] = values.reshape(batch.arrays.rows[name].shape)


class JacobianSteps:
    """Steps of all worlds side by side, as worlds of a batch; serves trajectories of one length and one set of worlds.

    Args:
        trajectory: the first of them.
        parameters: fields of the model, or entries of them, by which to differentiate, too.
        nthread, frictionloss: as `linearize` has them.

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
            most = min(most, FIELD_POINTS // max(2 * Parameters(model, parameters).n, 1))
        self.each = min(nstep, max(1, most // nworld))
        self._batches: dict[int, Batch] = {}

    @contextmanager
    def entered(self, trajectory: Trajectory) -> Iterator[None]:
        """Serve a trajectory, whose worlds have inputs and a model of their own."""
        self.trajectory = trajectory
        yield

    def pull_back(self, states: States, first: int, costate: np.ndarray, direct: np.ndarray) -> Gradients:
        """See `Steps`."""
        found, by_p = self.derivatives(states, first), {}
        nworld, n, nx = direct.shape
        by_u = np.empty((nworld, n, found.B.shape[-1]))
        for k in range(n - 1, -1, -1):
            for name, P in found.P.items():
                add = transposed_product(P[:, k].reshape(nworld, nx, -1), costate).reshape(nworld, *P.shape[3:])
                by_p[name] = by_p[name] + add if name in by_p else add
            by_u[:, k] = transposed_product(found.B[:, k], costate)
            costate = transposed_product(found.A[:, k], costate) + direct[:, k]
        return Gradients(costate, by_u, by_p, found.switching.min(1))

    def derivatives(self, states: States, first: int) -> Linearization:
        """Those of the steps from number `first` on, in the states (nworld, n, ...) before them, step by step."""
        length = next(iter(states.values())).shape[1]
        batch = self._batches.get(length)
        if batch is None:
            batch = self._batches[length] = worlds_like(self.trajectory.worlds, length, 1)
        which = np.repeat(np.arange(self.trajectory.worlds.nworld), length)
        rows = states | {"ctrl": self.trajectory.control[:, first : first + length]}
        place_worlds(batch, self.trajectory.worlds, which, rows)
        found = linearize(
            self.trajectory.model,
            batch,
            parameters=self.parameters,
            nthread=self.nthread,
            frictionloss=self.frictionloss,
        )
        lead = self.trajectory.worlds.nworld, length
        P = {name: a.reshape(*lead, *a.shape[1:]) for name, a in found.P.items()}
        A, B, switching = (a.reshape(*lead, *a.shape[1:]) for a in (found.A, found.B, found.switching))
        return Linearization(A, B, None, None, P, switching)
