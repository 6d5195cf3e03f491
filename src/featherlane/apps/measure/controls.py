"""Random controls that are identical for all compared simulators."""

from __future__ import annotations

import numpy as np

HOLD = 0.1  # s, how long a random control is held
UNLIMITED = 1.0  # bound of random controls of an actuator without a range


def control_range(model) -> np.ndarray:
    """Returns lower and upper bounds of random controls, (nu, 2); `model` is a Model or an MjModel."""
    bounds = np.tile([-UNLIMITED, UNLIMITED], (model.nu, 1))
    limited = np.asarray(model.actuator_ctrllimited, bool)
    bounds[limited] = np.asarray(model.actuator_ctrlrange)[limited]
    return bounds


class Random:
    """Samples controls uniformly within the actuators' ranges (-1 to 1 without a range), every 0.1 s.

    A world's controls depend only on the seed and the world's number, not on the number of worlds.
    """

    nstep = None

    def __init__(self, model, seed: int, timestep: float):
        self.bounds, self.seed = control_range(model), seed
        self.hold = max(1, round(HOLD / timestep))

    def draw(self, k: int, nworld: int) -> np.ndarray:
        """Samples the k-th controls of all worlds, (nworld, nu)."""
        unit = np.random.default_rng([self.seed, k]).random((nworld, len(self.bounds)))
        return self.bounds[:, 0] + unit * (self.bounds[:, 1] - self.bounds[:, 0])

    def steer(self, data, k: int) -> None:
        """Sets the controls of one world before step k, if new ones are due."""
        if k % self.hold == 0:
            data.ctrl = self.draw(k // self.hold, 1)[0]

    def advance(self, batch, start: int, nstep: int) -> None:
        """Takes steps start .. start + nstep - 1."""
        stop = start + nstep
        while start < stop:
            k = start // self.hold
            following = min(stop, (k + 1) * self.hold)
            batch.ctrl = self.draw(k, batch.nworld)
            batch.step(following - start)
            start = following
