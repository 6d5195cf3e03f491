"""Rotates many bodies in NumPy arrays: unit quaternions (..., 4) as (w, x, y, z), vectors (..., 3).

Conventions are those of the kernels in `spatial/quaternion.py`: Hamilton's product, v_world = q v_local q*.
All functions broadcast over leading axes.
"""

from __future__ import annotations

import numpy as np

IDENTITY = (1.0, 0.0, 0.0, 0.0)


def _parts(a: np.ndarray) -> list[np.ndarray]:
    """Returns the components along the last axis."""
    return [a[..., k] for k in range(a.shape[-1])]


def _stacked(*parts: np.ndarray) -> np.ndarray:
    """Returns components of equal shape as the last axis; `np.stack` takes twice as long for small arrays."""
    out = np.empty((*parts[0].shape, len(parts)), parts[0].dtype)
    for k, part in enumerate(parts):
        out[..., k] = part
    return out


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns a x b."""
    (a0, a1, a2), (b0, b1, b2) = _parts(a), _parts(b)
    return _stacked(a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0)


def conjugate(q: np.ndarray) -> np.ndarray:
    """Returns the inverse rotations."""
    return q * np.array((1, -1, -1, -1), q.dtype)


def product(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Returns p q: the rotation q, then p."""
    (a, b, c, d), (e, f, g, h) = _parts(p), _parts(q)
    return _stacked(
        a * e - (b * f + c * g + d * h),
        (a * f + e * b) + (c * h - d * g),
        (a * g + e * c) + (d * f - b * h),
        (a * h + e * d) + (b * g - c * f),
    )


def to_world(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Returns rotated vectors R v = v + 2 w u x v + 2 u x (u x v), q = (w, u)."""
    (w, x, y, z), (a, b, c) = _parts(q), _parts(v)
    s, t, u = 2 * (y * c - z * b), 2 * (z * a - x * c), 2 * (x * b - y * a)
    return _stacked((a + w * s) + (y * u - z * t), (b + w * t) + (z * s - x * u), (c + w * u) + (x * t - y * s))


def to_body(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Returns vectors v, given in world axes, in the body's axes: R^T v."""
    return to_world(conjugate(q), v)


def exp_so3(r: np.ndarray) -> np.ndarray:
    """Returns the rotations by |r| rad about r."""
    angle = np.linalg.norm(r, axis=-1, keepdims=True)
    return np.concatenate([np.cos(0.5 * angle), 0.5 * np.sinc(angle / (2.0 * np.pi)) * r], -1)


def about_z(angle: np.ndarray) -> np.ndarray:
    """Returns the rotations about z by angles (...)."""
    zero = np.zeros_like(angle)
    return np.stack([np.cos(angle / 2), zero, zero, np.sin(angle / 2)], -1)


def from_z(axis: np.ndarray) -> np.ndarray:
    """Returns rotations that turn z to axes (..., 3) of any length; the identity for a zero axis."""
    axis = np.asarray(axis, float)
    length = np.linalg.norm(axis, axis=-1, keepdims=True)
    x, y, z = np.moveaxis(np.where(length > 0, axis, (0.0, 0.0, 1.0)) / np.where(length > 0, length, 1.0), -1, 0)
    # bisector of z and the axis; for an axis opposite to z, any perpendicular axis is valid
    back = z < -1 + 1e-12
    q = np.stack((np.where(back, 0.0, 1 + z), np.where(back, 1.0, -y), np.where(back, 0.0, x), np.zeros_like(z)), -1)
    return q / np.linalg.norm(q, axis=-1, keepdims=True)


def heading(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns cosine and sine (...) of the angle about z."""
    w, x, y, z = _parts(q)
    angle = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    return np.cos(angle), np.sin(angle)


def down(q: np.ndarray) -> np.ndarray:
    """Returns the direction of gravity in the body's frame, minus the last row of R: (0, 0, -1) if upright."""
    w, x, y, z = _parts(q)
    return _stacked(2.0 * (w * y - x * z), -2.0 * (y * z + w * x), 2.0 * (x * x + y * y) - 1.0)
