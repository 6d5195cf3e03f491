"""Converts gradients between a state's coordinates and its tangent space: 4 or 3 numbers for each quaternion.

A quaternion q turned by r in its own axes moves by dq = q (0, r) / 2, so a gradient g by its four numbers becomes one
by the rotation, t_i = (q e_i) . g / 2.  In the inverse, a quaternion of any length represents its direction
u = q / |q|, as in the engine: dr = 2 (u^-1 dq) / |q|, so g = 2 / |q| sum_i t_i (u e_i).  This g is tangent to the
sphere, because the length of a quaternion has no effect.
Source: Sola, Quaternion kinematics for the error-state Kalman filter (2017), sec. 4.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from featherlane.engine.model.joint import has_quaternion, is_free_joint, is_scalar
from featherlane.engine.model.model import Model
from featherlane.engine.spatial.vector import MINVAL

STATE = ("qpos", "qvel", "act")


class Coordinates:
    """Holds the indices of the quaternions and plain coordinates in a model's positions.

    Args:
        model: the model.
        arrays: a module with NumPy's functions for the arrays in use.
    """

    def __init__(self, model: Model, arrays: Any = np):
        kind, position, dof = model.jnt_type, model.jnt_qposadr, model.jnt_dofadr
        free, single, turning = is_free_joint(kind), is_scalar(kind), has_quaternion(kind)
        self.nq, self.nv, self.na, self._np = model.nq, model.nv, model.na, arrays
        self._plain = np.concatenate([_span(position[free], 3).ravel(), position[single]])
        self._plain_dof = np.concatenate([_span(dof[free], 3).ravel(), dof[single]])
        shift = np.where(free, 3, 0)
        self._quats = _span((position + shift)[turning], 4)
        self._turns = _span((dof + shift)[turning], 3)
        # from plain coordinates followed by quaternions back to the model's order
        self._position_order = np.argsort(np.concatenate([self._plain, self._quats.ravel()]))
        self._dof_order = np.argsort(np.concatenate([self._plain_dof, self._turns.ravel()]))

    def to_tangent(self, qpos, gradient):
        """Converts (..., nq) by coordinates of positions with unit quaternions to (..., nv) by dof."""
        g = gradient[..., self._quats]
        turns = 0.5 * self._np.stack([_dot(axis, g) for axis in self._axes(qpos[..., self._quats])], -1)
        return self._ordered(gradient[..., self._plain], turns, self._dof_order)

    def from_tangent(self, qpos, gradient):
        """Converts (..., nv) by dof to (..., nq) by coordinates; quaternions may have any length but 0."""
        q, turn = qpos[..., self._quats], gradient[..., self._turns]
        length = self._np.sqrt(_dot(q, q))[..., None]
        known = length > MINVAL  # a zero quaternion represents the identity and has a zero gradient
        size = self._np.where(known, length, 1.0)
        x, y, z = self._axes(q / size)
        total = turn[..., :1] * x + turn[..., 1:2] * y + turn[..., 2:] * z
        quats = self._np.where(known, 2.0 * total / size, 0.0)
        return self._ordered(gradient[..., self._plain_dof], quats, self._position_order)

    def state_to_tangent(self, qpos, gradient):
        """Converts (..., nq + nv + na) by (qpos, qvel, act) to (..., 2 nv + na); a gradient by dof is unchanged."""
        if self.nq == self.nv or gradient.shape[-1] == 2 * self.nv + self.na:
            return gradient
        by_dof = self.to_tangent(qpos, gradient[..., : self.nq])
        return self._np.concatenate([by_dof, gradient[..., self.nq :]], -1)

    def _ordered(self, plain, others, order: np.ndarray):
        """Joins values of plain coordinates (..., n) and quaternions (..., k, 3 or 4) in the model's order."""
        others = others.reshape(*plain.shape[:-1], -1) if others.size else plain[..., :0]
        return self._np.concatenate([plain, others], -1)[..., order]

    def _axes(self, q):
        """Returns q e_i for the three imaginary units, each (..., 4)."""
        w, x, y, z = (q[..., i] for i in range(4))
        rows = (-x, w, z, -y), (-y, -z, w, x), (-z, y, -x, w)
        return [self._np.stack(row, -1) for row in rows]


def _span(first: np.ndarray, n: int) -> np.ndarray:
    """Returns (k, n): first, first + 1, ..."""
    return first[:, None] + np.arange(n)


def _dot(a, b):
    """Returns dot products of quaternions (..., 4), summed in the same order for all shapes."""
    return (a[..., 0] * b[..., 0] + a[..., 1] * b[..., 1]) + (a[..., 2] * b[..., 2] + a[..., 3] * b[..., 3])
