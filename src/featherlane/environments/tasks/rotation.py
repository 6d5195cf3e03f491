"""Quaternions (w, x, y, z) of n worlds: vectors in the frame of a body, headings."""

from __future__ import annotations

import numpy as np

NEXT, LAST = np.array([1, 2, 0]), np.array([2, 0, 1])  # axes after x, y, z


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a x b of each row, (n, 3); NumPy's takes four times as long."""
    return a.take(NEXT, 1) * b.take(LAST, 1) - a.take(LAST, 1) * b.take(NEXT, 1)


def to_body(quaternion: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """A vector of the world's frame in the body's, (n, 3): R^T v = v + 2 w (v x u) + 2 (v x u) x u for q = (w, u)."""
    w, u = quaternion[:, :1], quaternion[:, 1:]
    t = 2.0 * cross(vector, u)
    return vector + w * t + cross(t, u)


def down(quaternion: np.ndarray) -> np.ndarray:
    """Where gravity points in the frame of a body, (n, 3): (0, 0, -1) upright; minus the last row of R."""
    w, x, y, z = quaternion.T
    return np.stack([2.0 * (w * y - x * z), -2.0 * (y * z + w * x), 2.0 * (x * x + y * y) - 1.0], axis=1)


def heading(quaternion: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cosine and sine of the angle about z, (n,) each."""
    w, x, y, z = quaternion.T
    angle = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    return np.cos(angle), np.sin(angle)


def turned(angle: np.ndarray) -> np.ndarray:
    """Quaternions of turns about z by angles (n,), (n, 4)."""
    zero = np.zeros_like(angle)
    return np.stack([np.cos(angle / 2), zero, zero, np.sin(angle / 2)], axis=1)


def to_world(quaternion: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """A vector of the frame of a body in the world's, (n, 3)."""
    return to_body(quaternion * np.array([1.0, -1.0, -1.0, -1.0]), vector)
