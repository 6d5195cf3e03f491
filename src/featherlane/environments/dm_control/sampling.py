"""Random joint positions: limited joints uniform in their range, other hinges in a full turn, free joints turned.

Source: dm_control, suite/utils/randomizers.py.  The quaternion of a free joint is a normalized vector of uniform
numbers from 0 to 1, as there, and therefore is not uniform over rotations.
"""

from __future__ import annotations

import numpy as np

from featherlane import Batch
from featherlane.enums import FREE, HINGE
from featherlane.environments.random_streams import RandomStreams


class JointSampler:
    """Samples positions of all joints of a model, without ball joints.

    Args:
        worlds: worlds of the model.
    """

    def __init__(self, worlds: Batch):
        model, columns, bounds = worlds.model, [], []
        self.quaternions: list[slice] = []  # of the sampled columns
        for j in range(model.njnt):
            first = int(model.jnt_qposadr[j])
            if model.jnt_type[j] == FREE:
                self.quaternions.append(slice(len(columns), len(columns) + 4))
                columns += range(first + 3, first + 7)
                bounds += [(0.0, 1.0)] * 4
            elif model.jnt_limited[j] or model.jnt_type[j] == HINGE:
                columns.append(first)
                bounds.append(tuple(model.jnt_range[j]) if model.jnt_limited[j] else (-np.pi, np.pi))
        self.columns = np.array(columns)
        self.low, self.high = np.array(bounds).T

    def set(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        """Sets the positions of the worlds `ids`."""
        sampled = random.uniform(ids, self.low, self.high, len(self.columns))
        for q in self.quaternions:
            sampled[:, q] /= np.linalg.norm(sampled[:, q], axis=1, keepdims=True)
        worlds.qpos[ids[:, None], self.columns] = sampled
