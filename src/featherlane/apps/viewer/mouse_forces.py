"""The mouse drags bodies by a spring and pushes them; both act through `xfrc_applied`.

A critically damped spring of natural frequency w pulls the grabbed point to the pointer:
f = m (w^2 (target - p) - 2 w v), where m is the effective mass at the body's centre in qpos0, 1 / body_invweight0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from featherlane import Data, Model, query, stages
from featherlane.errors import ModelError

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
    """Forces that the mouse applies to worlds of a model."""

    def __init__(self, model: Model):
        self.model, self.probe = model, Data(model)
        self.grabbed: Grab | None = None
        self.pushes: list[Push] = []
        self.frequency = FREQUENCY

    def __bool__(self) -> bool:
        return self.grabbed is not None or bool(self.pushes)

    def grab(self, world: int, body: int, point, qpos: np.ndarray, mocap=()) -> None:
        """Attaches the spring to a body at a point in world axes [m], with the world at qpos.

        Raises:
            ModelError: the body does not move, or the point is not three finite numbers.
        """
        if self.model.body_weldid[body] == 0:
            name = self.model.names("body")[body]
            raise ModelError(f"body {name or body}: it is fixed to the world and cannot be dragged")
        self._look(qpos, np.zeros(self.model.nv), mocap)
        point = _point(point)
        local = self.probe.xmat[body].reshape(3, 3).T @ (point - self.probe.xpos[body])
        self.grabbed = Grab(world, body, local, point)

    def move(self, target) -> None:
        """Moves the target of the spring to a point in world axes [m]; no effect if no body is held."""
        target = _point(target)
        if self.grabbed is not None:
            self.grabbed.target = target

    def release(self) -> None:
        """Removes the spring."""
        self.grabbed = None

    def push(self, world: int, body: int, impulse) -> None:
        """Pushes a body with an impulse (3,) [N s], spread over PUSH_SECONDS."""
        h = self.model.opt.timestep
        steps = max(1, round(PUSH_SECONDS / h))
        self.pushes.append(Push(world, body, _point(impulse) / (steps * h), steps))

    def wrenches(self, rows) -> dict[tuple[int, int], np.ndarray]:
        """Returns wrenches (6,) [N, N m] on centres of mass in the next step, by world and body, and advances pushes.

        Args:
            rows: function from a world to its qpos, qvel and poses of mocap bodies.
        """
        out: dict[tuple[int, int], np.ndarray] = {}
        if self.grabbed is not None:
            g = self.grabbed
            out[g.world, g.body] = self._spring(g, *rows(g.world))
        for push in self.pushes:
            wrench = out.setdefault((push.world, push.body), np.zeros(6))
            wrench[:3] += push.force
            push.steps -= 1
        self.pushes = [push for push in self.pushes if push.steps > 0]
        return out

    def anchor(self, rows) -> tuple[np.ndarray, np.ndarray] | None:
        """Returns both ends of the spring in world axes: the held point and its target."""
        if self.grabbed is None:
            return None
        self._look(*rows(self.grabbed.world))
        return self._held(self.grabbed), self.grabbed.target

    def _spring(self, g: Grab, qpos, qvel, mocap) -> np.ndarray:
        self._look(qpos, qvel, mocap)
        stages.com_pos(self.model, self.probe)
        stages.com_vel(self.model, self.probe)
        p, centre = self._held(g), self.probe.xipos[g.body]
        twist = query.object_velocity(self.model, self.probe, ("body", g.body))
        v = twist[3:] + np.cross(twist[:3], p - centre)
        w = min(self.frequency, STIFFEST / self.model.opt.timestep)
        force = self._mass(g.body) * (w * w * (g.target - p) - 2.0 * w * v)
        return np.concatenate([force, np.cross(p - centre, force)])

    def _mass(self, body: int) -> float:
        """Computes the effective mass at the body's centre [kg]."""
        inverse = float(self.model.body_invweight0[body, 0])
        return 1.0 / inverse if inverse > 0.0 else float(self.model.body_mass[body])

    def _held(self, g: Grab) -> np.ndarray:
        return self.probe.xpos[g.body] + self.probe.xmat[g.body].reshape(3, 3) @ g.point

    def _look(self, qpos, qvel, mocap) -> None:
        self.probe.qpos[:], self.probe.qvel[:] = qpos, qvel
        if len(mocap):
            self.probe.mocap_pos[:], self.probe.mocap_quat[:] = mocap
        stages.kinematics(self.model, self.probe)


def _point(value) -> np.ndarray:
    """Checks and returns three finite numbers."""
    try:
        point = np.asarray(value, float)
    except (TypeError, ValueError):
        point = np.zeros(0)
    if point.shape != (3,) or not np.isfinite(point).all():
        raise ModelError(f"point: got {value!r}, allowed are 3 finite numbers")
    return point.copy()
