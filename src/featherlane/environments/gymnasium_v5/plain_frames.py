"""Body positions with MuJoCo's order of operations and the C library's sines: bitwise equal to `mj_kinematics`.

The engine's frames differ from MuJoCo's by rounding: it fuses products and sums, uses its own sine (the cosine of one
angle in four is one ulp off the C library's), and normalises quaternions near length 1 by a series.  The engine's
results are the same on every machine.  These here equal MuJoCo's on the same machine, for the first observation of a
chain of hinges.  Source: MuJoCo, `mj_kinematics`; the order of sums of four in version 4 was found by trial.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from featherlane.model import Model
from featherlane.model.enums import HINGE, SLIDE
from featherlane.model.model import peek

UNIT = (1.0, 0.0, 0.0, 0.0)
Components = tuple[Any, ...]
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
    m = SimpleNamespace(**{name: peek(model, name) for name in READ})
    # numbers of a world take a tenth of the time of arrays
    columns = qpos[0].tolist() if len(qpos) == 1 else qpos.T
    at, quat = (0.0, 0.0, 0.0), UNIT
    for k, b in enumerate(bodies):
        offset = tuple(m.body_pos[b].tolist())
        at = _sum(at, _turned(quat, offset)) if k else offset
        quat = _product(quat, tuple(m.body_quat[b].tolist()))
        for j in range(m.body_jntadr[b], m.body_jntadr[b] + m.body_jntnum[b]):
            adr, axis = m.jnt_qposadr[j], m.jnt_axis[j].tolist()
            way = columns[adr] - float(m.qpos0[adr])
            if m.jnt_type[j] == SLIDE:
                at = _sum(at, tuple(a * way for a in axis))
            else:
                quat = _product(quat, _rotation(axis, way))
        quat = _normalised(quat)
    return np.stack([np.broadcast_to(x, len(qpos)) for x in at], axis=1)


# ---- vectors and quaternions of a world (numbers) or of several worlds (arrays) --------------------------------------
def _sum(a: Components, b: Components) -> Components:
    return tuple(x + y for x, y in zip(a, b, strict=True))


def _rotation(axis: list[float], angle: Any) -> Components:
    """Returns the quaternion of a rotation about an axis."""
    half = 0.5 * angle
    if isinstance(half, float):
        sine, cosine = math.sin(half), math.cos(half)
    else:
        sine, cosine = (np.array([f(x) for x in half.tolist()]) for f in (math.sin, math.cos))
    return (cosine, *(a * sine for a in axis))


def _product(a: Components, b: Components) -> Components:
    """Returns the quaternion product a b."""
    (aw, ax, ay, az), (bw, bx, by, bz) = a, b
    w, x = (aw * bw - ax * bx) - (ay * by + az * bz), (aw * bx + ax * bw) + (ay * bz - az * by)
    y, z = (aw * by - ax * bz) + (ay * bw + az * bx), (aw * bz + ax * by) + (az * bw - ay * bx)
    return w, x, y, z


def _normalised(quat: Components) -> Components:
    w, x, y, z = quat
    square = (w * w + x * x) + (y * y + z * z)
    length = math.sqrt(square) if isinstance(square, float) else np.sqrt(square)
    far = abs(length - 1.0) > NEAR_UNIT
    factor = (1.0 / length if far else 1.0) if isinstance(length, float) else np.where(far, 1.0 / length, 1.0)
    return tuple(q * factor for q in quat)


def _turned(quat: Components, v: Components) -> Components:
    """Returns the rotation matrix of `quat` times a vector."""
    w, x, y, z = quat
    ww, xx, yy, zz = w * w, x * x, y * y, z * z
    rows = (
        ((ww - yy) + (xx - zz), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)),
        (2.0 * (x * y + w * z), (ww + yy) - (xx + zz), 2.0 * (y * z - w * x)),
        (2.0 * (x * z - w * y), 2.0 * (y * z + w * x), (ww - yy) + (zz - xx)),
    )
    return tuple(a * v[0] + b * v[1] + c * v[2] for a, b, c in rows)
