"""Samples states of a model away from its reference configuration, where wrong terms have an effect."""

from __future__ import annotations

import numpy as np

FREE, BALL = 0, 1


def kicked(model, rng: np.random.Generator, position: float = 0.3, velocity: float = 1.0):
    """Returns a random state near `qpos0`, with unit quaternions off the identity.

    Args:
        model: any object with MuJoCo's `qpos0`, `nv`, `jnt_type` and `jnt_qposadr`.
        rng: random generator.
        position: standard deviation of each coordinate [m, rad], and of each component added to a quaternion.
        velocity: standard deviation of each velocity [m/s, rad/s].

    Returns:
        `(qpos, qvel)`, float64.
    """
    qpos = np.array(model.qpos0, dtype=np.float64).reshape(-1)
    qpos += position * rng.standard_normal(qpos.size)
    for kind, adr in zip(model.jnt_type, model.jnt_qposadr, strict=True):
        if kind in (FREE, BALL):
            quat = qpos[adr + 3 : adr + 7] if kind == FREE else qpos[adr : adr + 4]
            quat /= np.linalg.norm(quat)
    return qpos, velocity * rng.standard_normal(model.nv)
