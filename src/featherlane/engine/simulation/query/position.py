"""Integrates and differentiates positions on the configuration manifold.

All functions take and return NumPy arrays with any number of leading axes.  A position (nq,) has a unit quaternion for
each free and ball joint; a velocity (nv,) has a rotation vector in the joint's child frame.  Their sum (+) is therefore
the exponential map on quaternions.  Source: MuJoCo mj_integratePos, mj_differentiatePos, mj_normalizeQuat.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.model.assignment import reals
from featherlane.engine.model.joint import has_quaternion, is_free_joint, is_scalar
from featherlane.engine.model.model import Model, check_model
from featherlane.engine.spatial.rotation import conjugate, exp_so3, log_so3, nonzero, product, unit
from featherlane.errors import ModelError


def integrate_pos(model: Model, qpos: ArrayLike, qvel: ArrayLike, dt: float) -> np.ndarray:
    """Returns positions after moving with constant velocities for a time: qpos (+) dt qvel.

    Args:
        model: the model.
        qpos: positions (..., nq) [m, rad, quaternions].
        qvel: velocities (..., nv) [m/s, rad/s]; leading axes broadcast.
        dt: time [s].

    Returns:
        (..., nq), a new array; quaternions have unit length, and a zero quaternion starts at the identity.

    Raises:
        ModelError: invalid shapes, a time that is not a number.

    Source: MuJoCo mj_integratePos (which works in place).
    """
    check_model(model)
    dt = _time(dt)
    start, velocity = _fitting(qpos=(qpos, model.nq), qvel=(qvel, model.nv))
    out = np.array(start)
    plain, plain_dof = _plain(model)
    out[..., plain] += dt * velocity[..., plain_dof]
    quats, dofs = _quaternions(model)
    out[..., quats] = unit(product(nonzero(start[..., quats]), exp_so3(dt * velocity[..., dofs])))
    return out


def differentiate_pos(model: Model, dt: float, qpos1: ArrayLike, qpos2: ArrayLike) -> np.ndarray:
    """Returns the constant velocities that move one position to another in a given time: (qpos2 (-) qpos1) / dt.

    Args:
        model: the model.
        dt: time [s], not 0.
        qpos1: positions (..., nq) at the start [m, rad, quaternions].
        qpos2: positions (..., nq) at the end; leading axes broadcast.

    Returns:
        (..., nv) [m/s, rad/s]; rotations take the shorter way, at most pi.

    Raises:
        ModelError: invalid shapes, dt = 0.

    Source: MuJoCo mj_differentiatePos.
    """
    check_model(model)
    if _time(dt) == 0.0:
        raise ModelError(f"dt: got {dt!r}, allowed is a non-zero number")
    start, end = _fitting(qpos1=(qpos1, model.nq), qpos2=(qpos2, model.nq))
    out = np.empty((*start.shape[:-1], model.nv))
    plain, plain_dof = _plain(model)
    out[..., plain_dof] = (end[..., plain] - start[..., plain]) / dt
    quats, dofs = _quaternions(model)
    out[..., dofs] = log_so3(product(conjugate(start[..., quats]), end[..., quats])) / dt
    return out


def normalize_quat(model: Model, qpos: ArrayLike) -> np.ndarray:
    """Returns positions with all quaternions scaled to unit length.

    Args:
        model: the model.
        qpos: positions (..., nq) [m, rad, quaternions].

    Returns:
        (..., nq), a new array; a zero quaternion becomes the identity.

    Raises:
        ModelError: an invalid shape.

    Source: MuJoCo mj_normalizeQuat (which works in place).
    """
    check_model(model)
    out = np.array(_fitting(qpos=(qpos, model.nq))[0])
    quats, _ = _quaternions(model)
    out[..., quats] = unit(out[..., quats])
    return out


# ---- addresses of coordinates ----------------------------------------------------------------------------------------
def _time(dt) -> float:
    """Returns one real number, checked."""
    given = reals("dt", dt, "is a number")
    if given.ndim:
        raise ModelError(f"dt: got shape {given.shape}, allowed is a number")
    return float(given)


def _fitting(**given) -> list[np.ndarray]:
    """Returns float64 arrays with their leading axes broadcast, from name = (value, length of the last axis)."""
    arrays = []
    for name, (value, n) in given.items():
        a = reals(name, value, f"are numbers (..., {n})")
        if a.shape[-1:] != (n,):
            raise ModelError(f"{name}: got shape {a.shape}, allowed is (..., {n})")
        arrays.append(a)
    try:
        lead = np.broadcast_shapes(*(a.shape[:-1] for a in arrays))
    except ValueError:
        shapes = " and ".join(str(a.shape) for a in arrays)
        raise ModelError(f"{', '.join(given)}: got shapes {shapes}, whose leading axes do not broadcast") from None
    return [np.broadcast_to(a, (*lead, a.shape[-1])) for a in arrays]


def _plain(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Returns addresses in qpos of all coordinates except quaternions, and their DoFs."""
    free, single = is_free_joint(model.jnt_type), is_scalar(model.jnt_type)
    position, dof = (
        np.concatenate([_span(adr[free], 3).ravel(), adr[single]]) for adr in (model.jnt_qposadr, model.jnt_dofadr)
    )
    return position, dof


def _quaternions(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Returns addresses in qpos of the quaternions (n, 4), and their DoFs (n, 3)."""
    turning = has_quaternion(model.jnt_type)
    shift = np.where(is_free_joint(model.jnt_type), 3, 0)
    position, dof = ((adr + shift)[turning] for adr in (model.jnt_qposadr, model.jnt_dofadr))
    return _span(position, 4), _span(dof, 3)


def _span(first: np.ndarray, n: int) -> np.ndarray:
    """Returns (k, n): first, first + 1, ..."""
    return first[:, None] + np.arange(n)
