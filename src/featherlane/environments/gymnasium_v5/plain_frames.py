"""Body positions with MuJoCo's order of operations and the C library's sines: bitwise equal to `mj_kinematics`.

The engine's frames differ from MuJoCo's by rounding: it fuses products and sums, uses its own sine (the cosine of one
angle in four is one ulp off the C library's), and normalises quaternions near length 1 by a series.  The engine's
results are the same on every machine.  These here equal MuJoCo's on the same machine, for the first observation of a
chain of hinges.  Source: MuJoCo, `mj_kinematics`; the order of sums of four in version 4 was found by trial.
"""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np

from featherlane.model import Model
from featherlane.model.enums import HINGE, SLIDE

UNIT = np.array([1.0, 0.0, 0.0, 0.0])
READ = "body_pos body_quat body_jntadr body_jntnum jnt_qposadr jnt_type jnt_axis qpos0".split()
NEAR_UNIT = 1e-15  # a quaternion this close to length 1 is not normalised


def chain(model: Model, body: int) -> list[int] | None:
    """Returns the bodies from the world's child to this one; None unless they move by slides followed by hinges only.

    Hinges must rotate about their body's origin.
    """
    bodies, turned = [], False
    while body:
        bodies.insert(0, int(body))
        body = model.body_parentid[body]
    for b in bodies:
        turned = turned or (model.body_quat[b] != UNIT).any()
        for j in range(model.body_jntadr[b], model.body_jntadr[b] + model.body_jntnum[b]):
            if model.jnt_type[j] == HINGE and not model.jnt_pos[j].any():
                turned = True
            elif model.jnt_type[j] != SLIDE or turned:
                return None
    return None if any(model.body_mocapid[b] >= 0 for b in bodies) else bodies


def position(model: Model, bodies: list[int], qpos: np.ndarray) -> np.ndarray:
    """Returns the position of a chain's last body for states (n, nq), (n, 3) [m]."""
    m = SimpleNamespace(**{name: model.__dict__[name] for name in READ})  # attributes would count as possible edits
    at, quat = np.zeros((len(qpos), 3)), np.tile(UNIT, (len(qpos), 1))
    for k, b in enumerate(bodies):
        offset = m.body_pos[b].astype(float)
        at = at + _turned(quat, offset) if k else np.tile(offset, (len(qpos), 1))
        quat = _product(quat, np.broadcast_to(m.body_quat[b].astype(float), quat.shape))
        for j in range(m.body_jntadr[b], m.body_jntadr[b] + m.body_jntnum[b]):
            way = qpos[:, m.jnt_qposadr[j]] - m.qpos0[m.jnt_qposadr[j]]
            if m.jnt_type[j] == SLIDE:
                at = at + m.jnt_axis[j] * way[:, None]
            else:
                quat = _product(quat, _rotation(m.jnt_axis[j], way))
        quat = _normalised(quat)
    return at


def _rotation(axis: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """Returns the quaternions of rotations about an axis."""
    half = (0.5 * angle).tolist()
    sine, cosine = np.array([math.sin(x) for x in half]), np.array([math.cos(x) for x in half])
    return np.stack([cosine, *(axis[:, None] * sine)], axis=1)


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns the quaternion product a b."""
    aw, ax, ay, az = a.T
    bw, bx, by, bz = b.T
    w, x = (aw * bw - ax * bx) - (ay * by + az * bz), (aw * bx + ax * bw) + (ay * bz - az * by)
    y, z = (aw * by - ax * bz) + (ay * bw + az * bx), (aw * bz + ax * by) + (az * bw - ay * bx)
    return np.stack([w, x, y, z], axis=1)


def _normalised(quat: np.ndarray) -> np.ndarray:
    w, x, y, z = quat.T
    length = np.sqrt((w * w + x * x) + (y * y + z * z))
    factor = np.where(np.abs(length - 1.0) > NEAR_UNIT, 1.0 / length, 1.0)
    return quat * factor[:, None]


def _turned(quat: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Returns the rotation matrix of `quat` times a vector."""
    w, x, y, z = quat.T
    ww, xx, yy, zz = w * w, x * x, y * y, z * z
    rows = (
        ((ww - yy) + (xx - zz), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)),
        (2.0 * (x * y + w * z), (ww + yy) - (xx + zz), 2.0 * (y * z - w * x)),
        (2.0 * (x * z - w * y), 2.0 * (y * z + w * x), (ww - yy) + (zz - xx)),
    )
    return np.stack([a * v[0] + b * v[1] + c * v[2] for a, b, c in rows], axis=1)
