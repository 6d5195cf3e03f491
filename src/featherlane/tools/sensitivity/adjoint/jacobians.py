"""Propagates costates by the derivatives (Jacobians) of steps.

The derivatives of a step do not depend on the steps after it.  So those of many steps of all worlds are computed in
parallel lanes, as if each step were a world, and products with the costates follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from featherlane.engine.simulation.batch.batch import Batch
from featherlane.tools.sensitivity.adjoint.sweep import Gradients, Steps
from featherlane.tools.sensitivity.adjoint.trajectory import States, Trajectory, worlds_like
from featherlane.tools.sensitivity.api.exact import Linearization, linearize
from featherlane.tools.sensitivity.worlds.displaced_worlds import POINTS
from featherlane.tools.sensitivity.worlds.parameters import Parameters

REALS = 1 << 22  # approximate number of values of derivatives in memory at a time


def transposed_product(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Returns M^T v of each world: (n, i, j), (n, i) -> (n, j), summed over i in the same order for all n."""
    return np.add.reduce(matrix * vector[:, :, None], 1)


class JacobianSteps(Steps):
    """Differentiates steps of all worlds as worlds of one batch, for trajectories of equal length and worlds.

    Args:
        trajectory: the first trajectory.
        parameters: fields of the model, or entries of them, to differentiate by.
        nthread, frictionloss: as for `linearize`.
    """

    def __init__(self, trajectory: Trajectory, parameters: tuple[str, ...], nthread: int, frictionloss: bool):
        self.trajectory, self.parameters, self.nthread, self.frictionloss = (
            trajectory, parameters, nthread, frictionloss,
        )  # fmt: skip
        model, (nworld, nstep, nu) = trajectory.model, trajectory.control.shape
        nx = 2 * model.nv + model.na
        most = REALS // max(nx * (nx + nu), 1)
        if parameters:
            most = min(most, POINTS // max(2 * Parameters(model, parameters).n, 1))
        self.each = min(nstep, max(1, most // nworld))
        self._batches: dict[int, Batch] = {}

    @contextmanager
    def entered(self, trajectory: Trajectory) -> Iterator[None]:
        self.trajectory = trajectory
        yield

    def pull_back(self, states: States, first: int, costate: np.ndarray, direct: np.ndarray) -> Gradients:
        found, by_p = self.derivatives(states, first), {}
        nworld, n, nx = direct.shape
        by_u = np.empty((nworld, n, found.B.shape[-1]))
        for k in range(n - 1, -1, -1):
            for name, P in found.P.items():
                add = transposed_product(P[:, k].reshape(nworld, nx, -1), costate).reshape(nworld, *P.shape[3:])
                by_p.setdefault(name, np.empty((nworld, n, *P.shape[3:])))[:, k] = add
            by_u[:, k] = transposed_product(found.B[:, k], costate)
            costate = transposed_product(found.A[:, k], costate) + direct[:, k]
        return Gradients(costate, by_u, by_p, found.switching.min(1))

    def derivatives(self, states: States, first: int) -> Linearization:
        """Computes derivatives of the steps from `first` on, in the states (nworld, n, ...) before them, by step."""
        nworld, length = self.trajectory.worlds.nworld, next(iter(states.values())).shape[1]
        rows = states | {"ctrl": self.trajectory.control[:, first : first + length]}
        found = self.at(np.repeat(np.arange(nworld), length), rows)
        P = {name: a.reshape(nworld, length, *a.shape[1:]) for name, a in found.P.items()}
        A, B, switching = (a.reshape(nworld, length, *a.shape[1:]) for a in (found.A, found.B, found.switching))
        return Linearization(A, B, None, None, P, switching)

    def at(self, which: np.ndarray, states: States) -> Linearization:
        """Computes derivatives of steps of the worlds `which`, in the states and with the controls (..., n)."""
        source, batch = self.trajectory.worlds, self._batches.get(len(which))
        if batch is None:
            batch = self._batches[len(which)] = worlds_like(source, 1, 1, chosen=which)
        # the worlds in other states
        for own, others in ((batch.arrays.rows, source.arrays.rows), (batch.arrays.expanded, source.arrays.expanded)):
            for name, rows in own.items():
                if name in others:
                    rows[...] = others[name][which]
        for name, values in states.items():
            batch.arrays.rows[name][...] = values.reshape(batch.arrays.rows[name].shape)
        how = {"parameters": self.parameters, "nthread": self.nthread, "frictionloss": self.frictionloss}
        return linearize(self.trajectory.model, batch, **how)
