"""Gradients by the coordinates of a state, and by its tangent space: a quaternion counts as three rotations.

A quaternion q turned by r in its own axes moves by dq = q (0, r) / 2, so a gradient g by its four numbers is one by the
rotation, t_i = (q e_i) . g / 2.  The other way numbers that are no unit quaternion stand for that of their direction,
u = q / |q|, as they do in the engine: dr = 2 (u^-1 dq) / |q|, so g = 2 / |q| sum_i t_i (u e_i), which is tangent to the
sphere: the length of a quaternion moves nothing.
Source: Sola, Quaternion kinematics for the error-state Kalman filter (2017), sec. 4.
"""

from __future__ import annotations

import numpy as np

from featherlane.model.joint import has_quaternion, is_free, is_scalar
from featherlane.model.model import Model
from featherlane.spatial.vector import MINVAL


class Coordinates:
    """Where quaternions and plain coordinates of a model's positions stand.

    Attributes:
        flat: is each position a number of its own dof?
    """

    def __init__(self, model: Model):
        kind, position, dof = model.jnt_type, model.jnt_qposadr, model.jnt_dofadr
        free, single, turning = is_free(kind), is_scalar(kind), has_quaternion(kind)
        self.nq, self.nv, self.na = model.nq, model.nv, model.na
        self.flat = not turning.any()
        self._plain = np.concatenate([_span(position[free], 3).ravel(), position[single]])
        self._plain_dof = np.concatenate([_span(dof[free], 3).ravel(), dof[single]])
        shift = np.where(free, 3, 0)
        self._quats = _span((position + shift)[turning], 4)
        self._turns = _span((dof + shift)[turning], 3)

    def to_tangent(self, qpos: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """(..., nq) by coordinates of positions with unit quaternions -> (..., nv) by dof."""
        out = np.zeros((*gradient.shape[:-1], self.nv))
        out[..., self._plain_dof] = gradient[..., self._plain]
        axes, g = _axes(qpos[..., self._quats]), gradient[..., self._quats]
        out[..., self._turns] = 0.5 * np.stack([_dot(axis, g) for axis in axes], -1)
        return out

    def from_tangent(self, qpos: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """(..., nv) by dof -> (..., nq) by coordinates, of positions whose quaternions may have any length but 0."""
        out = np.zeros((*gradient.shape[:-1], self.nq))
        out[..., self._plain] = gradient[..., self._plain_dof]
        q, turn = qpos[..., self._quats], gradient[..., self._turns]
        length = np.sqrt(_dot(q, q))[..., None]
        known = length > MINVAL  # what has no direction stands for the identity, and nothing moves that
        size = np.where(known, length, 1.0)
        x, y, z = _axes(q / size)
        total = turn[..., :1] * x + turn[..., 1:2] * y + turn[..., 2:] * z
        out[..., self._quats] = np.where(known, 2.0 * total / size, 0.0)
        return out

    def state_to_tangent(self, qpos: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """(..., nq + nv + na) by (qpos, qvel, act) -> (..., 2 nv + na); what is by dof already stays as it is."""
        if self.nq == self.nv or gradient.shape[-1] == 2 * self.nv + self.na:
            return gradient
        return np.concatenate([self.to_tangent(qpos, gradient[..., : self.nq]), gradient[..., self.nq :]], -1)


def _span(first: np.ndarray, n: int) -> np.ndarray:
    """(k, n): first, first + 1, ..."""
    return first[:, None] + np.arange(n)


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of quaternions (..., 4), in an order that no shape changes."""
    return (a[..., 0] * b[..., 0] + a[..., 1] * b[..., 1]) + (a[..., 2] * b[..., 2] + a[..., 3] * b[..., 3])


def _axes(q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q e_i for the three imaginary units, each (..., 4)."""
    w, x, y, z = np.moveaxis(q, -1, 0)
    rows = (-x, w, z, -y), (-y, -z, w, x), (-z, y, -x, w)
    return tuple(np.stack(row, -1) for row in rows)  # type: ignore[return-value]
