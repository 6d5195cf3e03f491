"""The mouse drags bodies by a spring and pushes them; both act through `xfrc_applied`.

A critically damped spring of natural frequency w pulls the grabbed point to the pointer:
f = m (w^2 (target - p) - 2 w v), where m is the effective mass at the body's centre in qpos0, 1 / body_invweight0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from featherlane import Batch, Data, Model, query, stages
from featherlane.errors import ModelError
from featherlane.extension import as_real_array

FREQUENCY = 16.0  # natural frequency of the spring [rad/s]
STIFFEST = 0.3  # upper limit of w h, which keeps the explicit spring force stable
PUSH_SECONDS = 0.05


@dataclass
class Grab:
    """A spring that holds a point of a body (body axes) [m] and pulls it to a target (world axes) [m]."""

    world: int
    body: int
    point: np.ndarray
    target: np.ndarray


@dataclass
class Push:
    """A force [N] on the centre of mass of a body for a remaining number of steps."""

    world: int
    body: int
    force: np.ndarray
    steps: int


class MouseForces:
    """Forces on worlds of a model; `locate` returns the batch and the row of a world's number."""

    def __init__(self, model: Model, locate: Callable[[int], tuple[Batch, int]]):
        self.model, self.locate, self.probe = model, locate, Data(model)
        self.grabbed: Grab | None = None
        self.pushes: list[Push] = []
        self.frequency = FREQUENCY

    def __bool__(self) -> bool:
        return self.grabbed is not None or bool(self.pushes)

    def grab(self, world: int, body: int, point) -> None:
        """Attaches the spring to a body, which must move, at a point in world axes [m]."""
        if self.model.body_weldid[body] == 0:
            name = self.model.names("body")[body]
            raise ModelError(f"body {name or body}: it is fixed to the world and cannot be dragged")
        point = _point(point)
        at, R = self._frame(world, body)
        self.grabbed = Grab(world, body, R.T @ (point - at), point)

    def move(self, target) -> None:
        """Moves the target of the spring to a point in world axes [m]; no effect if no body is held."""
        target = _point(target)
        if self.grabbed is not None:
            self.grabbed.target = target

    def release(self) -> None:
        """Removes the spring."""
        self.grabbed = None

    def clear(self) -> None:
        """Removes all forces."""
        self.grabbed, self.pushes = None, []

    def push(self, world: int, body: int, impulse) -> None:
        """Pushes a body with an impulse (3,) [N s], spread over PUSH_SECONDS."""
        self.locate(world)
        h = self.model.opt.timestep
        steps = max(1, round(PUSH_SECONDS / h))
        self.pushes.append(Push(world, body, _point(impulse) / (steps * h), steps))

    def wrenches(self) -> dict[tuple[int, int], np.ndarray]:
        """Returns wrenches (6,) [N, N m] on centres of mass in the next step, by world and body; advances pushes."""
        out: dict[tuple[int, int], np.ndarray] = {}
        if (g := self.grabbed) is not None:
            out[g.world, g.body] = self._spring(g)
        for push in self.pushes:
            wrench = out.setdefault((push.world, push.body), np.zeros(6))
            wrench[:3] += push.force
            push.steps -= 1
        self.pushes = [push for push in self.pushes if push.steps > 0]
        return out

    def spring(self) -> tuple[int, np.ndarray, np.ndarray] | None:
        """Returns the spring if there is one: its world, the held point and its target in world axes [m]."""
        if (g := self.grabbed) is None:
            return None
        at, R = self._frame(g.world, g.body)
        return g.world, at + R @ g.point, g.target

    def _frame(self, world: int, body: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns origin and axes of a body; a copy of the world computes them, faster than a query of a batch."""
        (batch, row), probe = self.locate(world), self.probe
        for name in ("qpos", "qvel", "mocap_pos", "mocap_quat"):
            getattr(probe, name)[:] = getattr(batch, name)[row]
        stages.kinematics(self.model, probe)
        return probe.xpos[body], probe.xmat[body].reshape(3, 3)

    def _spring(self, g: Grab) -> np.ndarray:
        at, R = self._frame(g.world, g.body)
        stages.com_pos(self.model, self.probe)
        stages.com_vel(self.model, self.probe)
        p, centre = at + R @ g.point, self.probe.xipos[g.body]
        twist = query.object_velocity(self.model, self.probe, ("body", g.body))
        v = twist[3:] + np.cross(twist[:3], p - centre)
        w = min(self.frequency, STIFFEST / self.model.opt.timestep)
        inverse = float(self.model.body_invweight0[g.body, 0])
        mass = 1.0 / inverse if inverse > 0.0 else float(self.model.body_mass[g.body])
        force = mass * (w * w * (g.target - p) - 2.0 * w * v)
        return np.concatenate([force, np.cross(p - centre, force)])


def _point(value) -> np.ndarray:
    """Checks and returns three finite numbers."""
    point = as_real_array("point", value, "are 3 finite numbers").astype(float)
    if point.shape != (3,) or not np.isfinite(point).all():
        raise ModelError(f"point: got {value!r}, allowed are 3 finite numbers")
    return point
