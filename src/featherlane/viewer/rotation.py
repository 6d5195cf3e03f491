"""Quaternions (..., 4) and vectors (..., 3) of many bodies at once, in NumPy: poses of what bodies carry."""

from __future__ import annotations

import numpy as np


def product(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Hamilton's product p q, with broadcasting."""
    a, b, c, d = (p[..., k] for k in range(4))
    e, f, g, h = (q[..., k] for k in range(4))
    out = np.empty((*np.broadcast_shapes(a.shape, e.shape), 4), np.result_type(p, q))
    out[..., 0] = a * e - b * f - c * g - d * h
    out[..., 1] = a * f + b * e + c * h - d * g
    out[..., 2] = a * g - b * h + c * e + d * f
    out[..., 3] = a * h + b * g - c * f + d * e
    return out


def turned(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Vectors turned by unit quaternions, with broadcasting: v + 2 w u x v + 2 u x (u x v)."""
    w, x, y, z = (q[..., k] for k in range(4))
    a, b, c = (v[..., k] for k in range(3))
    s, t, u = 2 * (y * c - z * b), 2 * (z * a - x * c), 2 * (x * b - y * a)
    out = np.empty((*np.broadcast_shapes(w.shape, a.shape), 3), np.result_type(q, v))
    out[..., 0] = a + w * s + y * u - z * t
    out[..., 1] = b + w * t + z * s - x * u
    out[..., 2] = c + w * u + x * t - y * s
    return out


def onto(axis: np.ndarray) -> np.ndarray:
    """A unit quaternion that turns z onto each axis (..., 3), of any length; the identity for a zero axis."""
    axis = np.asarray(axis, float)
    length = np.linalg.norm(axis, axis=-1, keepdims=True)
    x, y, z = np.moveaxis(np.where(length > 0, axis, (0.0, 0.0, 1.0)) / np.where(length > 0, length, 1.0), -1, 0)
    # half way between z and the axis; opposite to z any axis across will do
    back = z < -1 + 1e-12
    q = np.stack((np.where(back, 0.0, 1 + z), np.where(back, 1.0, -y), np.where(back, 0.0, x), np.zeros_like(z)), -1)
    return q / np.linalg.norm(q, axis=-1, keepdims=True)
