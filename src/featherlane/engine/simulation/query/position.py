"""Integrates and differentiates positions on the configuration manifold.

All functions take and return NumPy arrays with any number of leading axes.  A position (nq,) has a unit quaternion for
each free and ball joint; a velocity (nv,) has a rotation vector in the joint's child frame.  Their sum (+) is therefore
the exponential map on quaternions.  The stages run for one position at a time, with the kernels of a step.
Source: MuJoCo mj_integratePos, mj_differentiatePos, mj_normalizeQuat.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.body.joint import joint_difference
from featherlane.engine.dynamics.integrator.integrate import integrate_pos as _integrate_pos
from featherlane.engine.lanes import Layout
from featherlane.engine.lanes.layout import Declare, size
from featherlane.engine.lanes.record import address, allocated
from featherlane.engine.model.assignment import reals
from featherlane.engine.model.joint import has_quaternion, is_free_joint
from featherlane.engine.model.model import Model, check_model
from featherlane.engine.simulation.tile.library import library
from featherlane.errors import ModelError

_table = Declare()
JOINTS = Layout(
    "Joints",
    (
        size("njnt", "joints"),
        size("nq", "coordinates of a position"),
        size("nv", "dofs"),
        _table.int("jnt_type", "njnt", "1", "as in the model"),
        _table.int("jnt_qposadr", "njnt", "1", "as in the model"),
        _table.int("jnt_dofadr", "njnt", "1", "as in the model"),
    ),
)
FLOAT64 = np.dtype(np.float64)
REAL = 8  # bytes


# ---- stages; p: record JOINTS of the model; their integers: number of positions, and addresses of rows ---------------
@stage(p=JOINTS)
def integrate_positions(p, n, qpos, qvel, h, out):
    """Moves n positions with constant velocities for a time: out <- qpos (+) h qvel.

    qpos, out: addresses of (n, nq); qvel: of (n, nv); h: of (1,).
    Reads:  jnt_type, jnt_qposadr, jnt_dofadr; the memory at these addresses.
    Writes: the memory at the address `out`.
    """
    for k in range(n):
        start, velocity = doubles(p, qpos + REAL * p.nq * k), doubles(p, qvel + REAL * p.nv * k)
        _integrate_pos(p, doubles(p, out + REAL * p.nq * k), velocity, start, doubles(p, h)[0], FINITE)


@stage(p=JOINTS)
def differentiate_positions(p, n, qpos1, qpos2, h, out):
    """Computes the velocities between n pairs of positions: out <- (qpos2 (-) qpos1) / h.

    qpos1, qpos2: addresses of (n, nq); out: of (n, nv); h: of (1,).
    Reads:  jnt_type, jnt_qposadr, jnt_dofadr; the memory at these addresses.
    Writes: the memory at the address `out`.
    """
    for k in range(n):
        start, end = doubles(p, qpos1 + REAL * p.nq * k), doubles(p, qpos2 + REAL * p.nq * k)
        for j in range(p.njnt):
            joint_difference(p, j, doubles(p, out + REAL * p.nv * k), start, end, doubles(p, h)[0])


@stage(p=JOINTS)
def normalize_positions(p, n, out):
    """Scales the quaternions of n positions to unit length.

    out: address of (n, nq).
    Reads:  jnt_type, jnt_qposadr; the memory at this address.
    Writes: the memory at the address `out`.
    """
    for k in range(n):
        qpos = doubles(p, out + REAL * p.nq * k)
        for j in range(p.njnt):
            kind, adr = p.jnt_type[j], p.jnt_qposadr[j]
            if is_free_joint(kind):
                adr += 3
            if has_quaternion(kind):
                qpos[adr : adr + 4] = Quat(qpos[adr : adr + 4]).unit


class Bound(NamedTuple):
    """A stage for models with the same types of joints.

    Attributes:
        run: the stage; its arguments are the number of positions and addresses.
        nq, nv: lengths of a position and of a velocity.
    """

    run: Callable[..., None]
    nq: int
    nv: int


def _bound(run: Any, model: Model) -> Bound:
    """Returns a stage for a model.

    Raises:
        TypeError: it is not a Model.
    """
    check_model(model)
    return _of_joints(run, model.__dict__["jnt_type"].tobytes())


@functools.lru_cache(maxsize=64)
def _of_joints(run: Any, types: bytes) -> Bound:
    """Returns a stage for models with these types of joints (int32), from which all addresses follow."""
    kinds = np.frombuffer(types, np.int32)
    nq, nv = (np.array(numbers)[kinds] for numbers in ((7, 4, 1, 1), (6, 3, 1, 1)))  # of free, ball, slide, hinge
    sizes = {"njnt": len(kinds), "nq": int(nq.sum()), "nv": int(nv.sum())}
    record = allocated(JOINTS, sizes, 1, np.float64)
    for name, values in (("jnt_type", kinds), ("jnt_qposadr", nq.cumsum() - nq), ("jnt_dofadr", nv.cumsum() - nv)):
        record.arrays[name][: len(kinds)] = values
    return Bound(library().bind(run, record), sizes["nq"], sizes["nv"])


# ---- public functions ------------------------------------------------------------------------------------------------
def integrate_pos(model: Model, qpos: ArrayLike, qvel: ArrayLike, dt: float) -> np.ndarray:
    """Returns positions after moving with constant velocities for a time: qpos (+) dt qvel.

    A step in float64 with `opt.rotation = "finite"` computes the same bits from its new velocity.

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
    run, nq, nv = _bound(integrate_positions, model)
    time = _time(dt)
    start, velocity = _fitting(qpos=(qpos, nq), qvel=(qvel, nv))
    out = np.empty(start.shape)
    run(_count(out), address(start), address(velocity), ctypes.addressof(time), address(out))
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
    run, nq, nv = _bound(differentiate_positions, model)
    time = _time(dt)
    if time.value == 0.0:
        raise ModelError(f"dt: got {dt!r}, allowed is a non-zero number")
    start, end = _fitting(qpos1=(qpos1, nq), qpos2=(qpos2, nq))
    out = np.empty((*start.shape[:-1], nv))
    run(_count(out), address(start), address(end), ctypes.addressof(time), address(out))
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
    run, nq, _ = _bound(normalize_positions, model)
    out = np.array(_fitting(qpos=(qpos, nq))[0])
    run(_count(out), address(out))
    return out


def _count(rows: np.ndarray) -> int:
    """Returns the number of rows, which are along the last axis."""
    return math.prod(rows.shape[:-1])


def _time(dt) -> ctypes.c_double:
    """Returns one real number, checked, in memory that a stage can read."""
    if type(dt) is float:
        return ctypes.c_double(dt)
    given = reals("dt", dt, "is a number")
    if given.ndim:
        raise ModelError(f"dt: got shape {given.shape}, allowed is a number")
    return ctypes.c_double(float(given))


def _fitting(**given) -> list[np.ndarray]:
    """Returns contiguous float64 arrays with their leading axes broadcast, from name = (value, length of last axis)."""
    arrays = []
    for name, (value, n) in given.items():
        if type(value) is np.ndarray and value.dtype is FLOAT64 and value.shape == (n,) and value.flags.c_contiguous:
            arrays.append(value)
            continue
        a = reals(name, value, f"are numbers (..., {n})")
        if a.shape[-1:] != (n,):
            raise ModelError(f"{name}: got shape {a.shape}, allowed is (..., {n})")
        arrays.append(a)
    if all(a.ndim == 1 for a in arrays):
        return arrays
    try:
        lead = np.broadcast_shapes(*(a.shape[:-1] for a in arrays))
    except ValueError:
        shapes = " and ".join(str(a.shape) for a in arrays)
        raise ModelError(f"{', '.join(given)}: got shapes {shapes}, whose leading axes do not broadcast") from None
    return [np.ascontiguousarray(np.broadcast_to(a, (*lead, a.shape[-1]))) for a in arrays]
