"""Attempts steps on copies of worlds: one step of the whole size, and two of half the size.

Both start at the last accepted state.  Their difference estimates the local error, and extrapolation cancels its
leading term:

    e = x2 (-) x1,    x = x2 (+) e / (2^p - 1),    |e| = max(|dq|, tau |dv|, |da|)

x1 follows from one step of size h, x2 from two of size h / 2, p is the order of the integrator.  The difference (-) of
positions is a vector of the tangent space (nv,): rotation vectors for quaternions.  |.| are largest components [m, rad,
m/s, rad/s, 1].  tau is the weight of velocities [s], at least h.

Integrators of order 1 evaluate forces at the start of a step only.  Neither x1 nor x2 then depends on a contact that
begins close to the end.  Their copies of the whole size therefore take a second step, to the velocity v11, and the norm
includes tau |v11 - 2 v1 + v0| / 4, which in smooth motion is about tau |dv|.
Source: Hairer, Norsett, Wanner, Solving Ordinary Differential Equations I, sec. II.4, eq. 4.4, 4.5 (step doubling and
local extrapolation); Kurtz and Castro, CENIC: Convex error-controlled numerical integration for contact, 2025 (step
doubling of a step with convex contact; it does not extrapolate, and measures positions only).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from featherlane.engine.lanes import Kernel
from featherlane.engine.model.enums import DYN_DCMOTOR
from featherlane.engine.model.joint import is_scalar
from featherlane.engine.simulation.batch.arrays import EVOLVING
from featherlane.engine.simulation.query.position import differentiate_pos, integrate_pos
from featherlane.tools.integration.source import Source, two_copies

CHANGING = (*EVOLVING, "warning", "ctrl")  # fields in which accepted states differ, and which a step reads

SetControl = Callable[[np.ndarray], None]  # sets the controls of the copies in these rows


class Estimate(NamedTuple):
    """Estimates the errors of k steps.

    Attributes:
        norm: (k,) norm; NaN or infinite if a component is.
        position, velocity: (k, nv) x2 (-) x1.
        activation: (k, na) likewise.
    """

    norm: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    activation: np.ndarray


class Trial:
    """Holds two copies of each world: rows i and n + i are world i.

    Args:
        source: the worlds, at the last accepted state.
        order: order p of the integrator.
        velocity_time: weight of velocity errors [s], if larger than the step.
        control: a kernel that each step calls.

    Attributes:
        evaluations: time steps of an attempt.
    """

    def __init__(self, source: Source, order: int, velocity_time: float, control: Kernel | None):
        self.source, self.n, self.velocity_time = source, source.nworld, velocity_time
        self.share, self.looks_ahead = 1.0 / (2.0**order - 1.0), order == 1
        self.evaluations = 4 if self.looks_ahead else 3
        self.batch = two_copies(source)
        self.kernel = None if control is None else self.batch.runner.control_kernel(control)
        for name in self.kernel.sets() if self.kernel else ():
            self.batch.row_memory(name)
        self.step = self.batch.arrays.expand("opt_timestep")[:, 0]
        if "opt_timestep" not in source.expanded:
            self.step[:] = source.model.opt.timestep
        self.rows = self.batch.arrays.rows
        self.names = [name for name in CHANGING if self.rows[name].size]
        self.range = activation_range(source)
        self.flat = bool(is_scalar(source.model.jnt_type).all())

    def attempt(self, ids: np.ndarray, h: np.ndarray, set_control: SetControl | None) -> Estimate:
        """Steps the copies of worlds from their last accepted states by h [s]; rows n + i are x2 then."""
        halves, both = ids + self.n, np.concatenate([ids, ids + self.n])
        for name in self.names:
            self.rows[name][both] = np.concatenate([self.source.rows[name][ids]] * 2)
        self.step[both] = np.concatenate([h, 0.5 * h])
        self._run(both)
        q1, v1, a1 = (self.rows[name][ids] for name in ("qpos", "qvel", "act"))
        if set_control is not None:
            set_control(halves)
        self._run(both if self.looks_ahead else halves)
        q2, v2, a2 = (self.rows[name][halves] for name in ("qpos", "qvel", "act"))
        dq = q2 - q1 if self.flat else differentiate_pos(self.source.model, 1.0, q1, q2)
        weight = np.maximum(self.velocity_time, h)[:, None]
        parts = [dq, weight * (v2 - v1), a2 - a1]
        if self.looks_ahead:
            bend = (self.rows["qvel"][ids] - v1) - (v1 - self.source.rows["qvel"][ids])
            parts.append(0.25 * weight * bend)
        error = np.abs(np.concatenate(parts, axis=1)).max(axis=1, initial=0.0)
        return Estimate(error, dq, v2 - v1, a2 - a1)

    def _run(self, chosen: np.ndarray) -> None:
        self.batch.runner.run(1, chosen, control=self.kernel)

    def extrapolate(self, ids: np.ndarray, estimate: Estimate, good: np.ndarray) -> None:
        """Replaces the states x2 of the good steps of these worlds by extrapolated ones."""
        dq, dv, da = (self.share * part[good] for part in estimate[1:])
        two, rows, low_high = ids[good] + self.n, self.rows, self.range[:, ids[good]]
        q = rows["qpos"]
        q[two] = q[two] + dq if self.flat else integrate_pos(self.source.model, q[two], dq, 1.0)
        rows["qvel"][two] += dv
        rows["act"][two] = np.clip(rows["act"][two] + da, *low_high)


def activation_range(source: Source) -> np.ndarray:
    """Returns the limits of activations, (2, n, na); infinite without a limit."""
    model, n = source.model, source.nworld
    out = np.empty((2, n, model.na))
    out[0], out[1] = -np.inf, np.inf
    ranges = np.broadcast_to(source.expanded.get("actuator_actrange", model.actuator_actrange), (n, model.nactuator, 2))
    for i in np.flatnonzero(model.actuator_actlimited & (model.actuator_dyntype != DYN_DCMOTOR)):
        first = model.actuator_actadr[i]
        out[:, :, first : first + model.actuator_actnum[i]] = ranges[:, i].T[..., None]
    return out
