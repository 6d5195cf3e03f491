"""The joints that the actuators of an arm drive, and kernels that controllers of joints share."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.sparse.packed_factor import triangle_index
from featherlane.engine.lanes import Kernel
from featherlane.engine.model.model import Model
from featherlane.engine.model.names import index_of
from featherlane.errors import ModelError


class Dof(NamedTuple):
    """One controlled dof.

    Attributes:
        dof, coordinate: its index, and that of its joint's coordinate.
        actuator: the actuator that drives it.
        torque: force or torque of a unit of control [N, N m].
        entries: for the controlled dofs up to this one, the place of their entry in M; -1: it is zero.
    """

    dof: int
    coordinate: int
    actuator: int
    torque: float
    entries: tuple[int, ...]


@functools.cache
def chain_kernels(chain: tuple[Dof, ...]) -> tuple[Kernel, Kernel, Kernel]:
    """Returns the kernels store_inertia(d, p), compensation(d, a) and drive(d, a, tau) of a chain."""
    n, entries = len(chain), tuple(c.entries for c in chain)
    dofs, actuators, torques = (tuple(getattr(c, name) for c in chain) for name in ("dof", "actuator", "torque"))

    @kernel
    def store_inertia(d, p):
        """Stores the lower triangle of M."""
        for a in unrolled(range(n)):
            for b in unrolled(range(a + 1)):
                p.inertia[triangle_index(a, b)] = 0.0 if entries[a][b] < 0 else d.M[entries[a][b]]

    @kernel
    def compensation(d, a):
        """Returns Coriolis, centrifugal and gravity forces, without those that gravity compensation supplies."""
        return d.qfrc_bias[dofs[a]] - d.qfrc_gravcomp[dofs[a]]

    @kernel
    def drive(d, a, tau):
        """Sets the control that exerts the force tau."""
        d.ctrl[actuators[a]] = tau / torques[a]

    return store_inertia, compensation, drive


@kernel
def times_inertia(p, x, a, n):
    """Returns entry a of M x, of n dofs."""
    y = 0.0
    for b in unrolled(range(n)):
        y = fma(p.inertia[triangle_index(max(a, b), min(a, b))], x[b], y)
    return y


def several_actuators(model: Model, actuators: Sequence[str | int]) -> list[int]:
    """Returns the ids of actuators that are given by name or id.

    Raises:
        ModelError: no sequence, none, or one of them twice.
        UnknownNameError: an unknown one.
    """
    if isinstance(actuators, str) or not isinstance(actuators, Sequence | np.ndarray) or not len(actuators):
        raise ModelError(f"actuators: got {actuators!r}, allowed are one or more names or ids of actuators")
    found: list[int] = []
    for key in actuators:
        i = index_of(model, "actuator", key)
        if i in found:
            raise ModelError(f"actuator {key!r}: got it twice, allowed is once each")
        found.append(i)
    return found


def chain_of(model: Model, actuators: Sequence[str | int]) -> tuple[Dof, ...]:
    """Returns the dofs that the actuators drive, in their order.

    Raises:
        ModelError: an actuator of another type than `motor`, on another joint than a hinge or slide, or twice.
        UnknownNameError: an unknown actuator.
    """
    found: dict[int, tuple[int, int, float]] = {}
    for key, i in zip(actuators, several_actuators(model, actuators), strict=True):
        kinds = model.actuator_trntype[i], model.actuator_gaintype[i], model.actuator_biastype[i]
        kinds += (model.actuator_dyntype[i],)
        joint, gain = int(model.actuator_trnid[i, 0]), float(model.actuator_gainprm[i, 0] * model.actuator_gear[i, 0])
        if kinds[0] not in (TRN_JOINT, TRN_JOINTINPARENT) or kinds[1:] != (GAIN_FIXED, BIAS_NONE, DYN_NONE) or not gain:
            raise ModelError(f"actuator {key!r}: got another type, allowed are motors of joints with a gear")
        if model.jnt_type[joint] not in (HINGE, SLIDE):
            raise ModelError(f"actuator {key!r}: it drives a ball or free joint, allowed are hinges and slides")
        dof = int(model.jnt_dofadr[joint])
        if dof in found:
            raise ModelError(f"actuator {key!r}: its joint has another one of these actuators, allowed is one each")
        found[dof] = int(model.jnt_qposadr[joint]), i, gain
    dofs = tuple(found)
    return tuple(Dof(dof, *found[dof], _entries(model, dofs[: k + 1])) for k, dof in enumerate(dofs))


def _entries(model: Model, dofs: tuple[int, ...]) -> tuple[int, ...]:
    """Returns where M has the entries of the last of the dofs with each of them; -1 where it has none."""
    return tuple(_entry(model, max(dofs[-1], j), min(dofs[-1], j)) for j in dofs)


def _entry(model: Model, i: int, j: int) -> int:
    """Returns where M has the entry (i, j), i >= j; -1 where it has none."""
    start, number = int(model.M_rowadr[i]), int(model.M_rownnz[i])
    columns: list[Any] = model.M_colind[start : start + number].tolist()
    return start + columns.index(j) if j in columns else -1


def force_range(model: Model, chain: Sequence[Dof]) -> tuple[np.ndarray, np.ndarray]:
    """Returns the least and the greatest force of each dof that its control allows; infinite without `ctrlrange`."""
    ids = [c.actuator for c in chain]
    limited = np.array([bool(model.actuator_ctrllimited[i]) for i in ids])[:, None]
    ends = np.where(limited, np.asarray(model.actuator_ctrlrange)[ids], [-np.inf, np.inf])
    forces = ends * np.array([c.torque for c in chain])[:, None]
    return forces.min(1), forces.max(1)
