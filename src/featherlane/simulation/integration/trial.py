"""Attempts steps on copies of worlds: one step of the whole size, and two of half the size.

Both start at the last accepted state.  Their difference estimates the local error, and extrapolation cancels its leading
term:

    e = x2 (-) x1,    x = x2 (+) e / (2^p - 1),    |e| = max(|dq|, tau |dv|, |da|)

x1 follows from one step of size h, x2 from two of size h / 2, p is the order of the integrator.  The difference (-) of
positions is a vector of the tangent space (nv,): rotation vectors for quaternions.  |.| are largest components, in m and
rad; tau [s] weighs velocities.
Source: Hairer, Norsett, Wanner, Solving Ordinary Differential Equations I, sec. II.4, eq. 4.4, 4.5 (step doubling and
local extrapolation); Kurtz and Castro, CENIC: Convex error-controlled numerical integration for contact, 2025 (step
doubling of a step with convex contact; it does not extrapolate, and measures positions only, tau = 0).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from featherlane.lanes import Kernel
from featherlane.model.enums import DYN_DCMOTOR, Disable
from featherlane.model.joint import is_scalar
from featherlane.simulation.batch.arrays import EVOLVING
from featherlane.simulation.batch.batch import Batch
from featherlane.simulation.integration.source import CONSTANT, Source
from featherlane.simulation.query.position import differentiate_pos, integrate_pos

SetControl = Callable[[np.ndarray], None]  # sets the controls of the copies in these rows


class Trial:
    """Holds two copies of each world: rows i and n + i are world i.

    Args:
        source: the worlds, at the last accepted state.
        order: order p of the integrator.
        velocity_time: tau, the weight of velocity errors [s].
        control: a kernel that each step calls.
    """

    def __init__(self, source: Source, order: int, velocity_time: float, control: Kernel | None):
        self.source, self.n, self.velocity_time = source, source.nworld, velocity_time
        self.share = 1.0 / (2.0**order - 1.0)
        self.batch = Batch(source.model, 2 * self.n, source.nthread, source.dtype, source.ngiven)
        self.batch.mute()
        arrays, runner = self.batch.arrays, self.batch.runner
        runner.disabled = int(Disable.AUTORESET)
        self.kernel = None if control is None else runner.control_kernel(control)
        for name in self.kernel.sets() if self.kernel else ():
            arrays.lasting(name)
        for name in CONSTANT:
            if name in source.rows:
                arrays.lasting(name)[...] = np.concatenate([source.rows[name]] * 2)
        for name, rows in source.expanded.items():
            arrays.expand(name)[...] = np.concatenate([rows, rows])
        self.step = arrays.expand("opt_timestep")[:, 0]
        self.rows = arrays.rows
        self.names = [
            name for name in (*EVOLVING, "warning", "ctrl") if self.rows[name].size
        ]  # fields that differ by state
        self.range = activation_range(source)
        self.flat = bool(is_scalar(source.model.jnt_type).all())

    def attempt(self, ids: np.ndarray, h: np.ndarray, set_control: SetControl | None) -> None:
        """Steps the copies of worlds from their last accepted states by h [s]."""
        halves, both = ids + self.n, np.concatenate([ids, ids + self.n])
        for name in self.names:
            self.rows[name][both] = np.concatenate([self.source.rows[name][ids]] * 2)
        self.step[both] = np.concatenate([h, 0.5 * h])
        self._run(both)
        if set_control is not None:
            set_control(halves)
        self._run(halves)

    def _run(self, chosen: np.ndarray) -> None:
        self.batch.runner.run(1, chosen, control=self.kernel)

    def difference(self, ids: np.ndarray) -> list[np.ndarray]:
        """Returns x2 (-) x1 of these worlds: positions (k, nv), velocities (k, nv), activations (k, na)."""
        one, two = ids, ids + self.n
        q, model = self.rows["qpos"], self.source.model
        dq = q[two] - q[one] if self.flat else differentiate_pos(model, 1.0, q[one], q[two])
        return [dq, *(self.rows[name][two] - self.rows[name][one] for name in ("qvel", "act"))]

    def error(self, difference: list[np.ndarray]) -> np.ndarray:
        """Returns the norm of differences, (k,); NaN or infinite if a component is."""
        dq, dv, da = difference
        return np.abs(np.concatenate([dq, self.velocity_time * dv, da], axis=1)).max(axis=1, initial=0.0)

    def extrapolate(self, ids: np.ndarray, difference: list[np.ndarray]) -> None:
        """Replaces the states x2 of worlds by extrapolated ones."""
        dq, dv, da = (self.share * d for d in difference)
        two, rows, low_high = ids + self.n, self.rows, self.range[:, ids]
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
