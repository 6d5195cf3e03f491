"""The hand in the page: a spring that drags a body, and pushes; both through `xfrc_applied`.

A spring of natural frequency w pulls the point that was grabbed to the pointer, critically damped:
f = m (w^2 (target - p) - 2 w v), with m the mass that the body shows at its centre in qpos0, 1 / body_invweight0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from featherlane.errors import ModelError
from featherlane.model.model import Model
from featherlane.simulation.query.point import object_velocity
from featherlane.simulation.stages import com_pos, com_vel
from featherlane.simulation.steps import kinematics
from featherlane.simulation.world.data import Data

FREQUENCY = 16.0  # of the spring [rad/s]
STIFFEST = 0.3  # of the spring: w h at most, so that the explicit force is stable
PUSH_SECONDS = 0.05


@dataclass
class Grab:
    """What the spring holds: a point of a body, in its own axes [m], and where that is to go, in the world's."""

    world: int
    body: int
    point: np.ndarray
    target: np.ndarray


@dataclass
class Push:
    """A force [N] on the centre of mass of a body for some more steps."""

    world: int
    body: int
    force: np.ndarray
    steps: int


class Hand:
    """What the mouse does to worlds of a model.

    Args:
        model: the model.
    """

    def __init__(self, model: Model):
        self.model, self.probe = model, Data(model)
        self.grabbed: Grab | None = None
        self.pushes: list[Push] = []
        self.frequency = FREQUENCY

    def __bool__(self) -> bool:
        return self.grabbed is not None or bool(self.pushes)

    def grab(self, world: int, body: int, point, qpos: np.ndarray, mocap=()) -> None:
        """Take hold of a body at a point of the world [m], with the world at qpos.

        Raises:
            ModelError: the body does not move, or the point is no point.
        """
        if self.model.body_weldid[body] == 0:
            name = self.model.names("body")[body]
            raise ModelError(f"body {name or body}: is fixed to the world and cannot be dragged")
        self._look(qpos, np.zeros(self.model.nv), mocap)
        point = _point(point)
        local = self.probe.xmat[body].reshape(3, 3).T @ (point - self.probe.xpos[body])
        self.grabbed = Grab(world, body, local, point)

    def move(self, target) -> None:
        """Move the pointer to a point of the world [m]; nothing where nothing is held."""
        target = _point(target)
        if self.grabbed is not None:
            self.grabbed.target = target

    def release(self) -> None:
        """Let go."""
        self.grabbed = None

    def push(self, world: int, body: int, impulse, seconds: float = PUSH_SECONDS) -> None:
        """Push a body with an impulse (3,) [N s], spread over some time."""
        h = self.model.opt.timestep
        steps = max(1, round(seconds / h))
        self.pushes.append(Push(world, body, _point(impulse) / (steps * h), steps))

    def wrenches(self, rows) -> dict[tuple[int, int], np.ndarray]:
        """Wrenches (6,) [N, N m] on the centres of mass in the next step, by world and body; pushes get shorter.

        Args:
            rows: function of a world to its qpos, qvel and poses of mocap bodies.
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
        """Both ends of the spring in the world's axes: where it holds, and where it pulls to."""
        if self.grabbed is None:
            return None
        self._look(*rows(self.grabbed.world))
        return self._held(self.grabbed), self.grabbed.target

    def _spring(self, g: Grab, qpos, qvel, mocap) -> np.ndarray:
        self._look(qpos, qvel, mocap)
        com_pos(self.model, self.probe)
        com_vel(self.model, self.probe)
        p, centre = self._held(g), self.probe.xipos[g.body]
        twist = object_velocity(self.model, self.probe, "body", g.body)
        v = twist[3:] + np.cross(twist[:3], p - centre)
        w = min(self.frequency, STIFFEST / self.model.opt.timestep)
        force = self._mass(g.body) * (w * w * (g.target - p) - 2.0 * w * v)
        return np.concatenate([force, np.cross(p - centre, force)])

    def _mass(self, body: int) -> float:
        """The mass that the body shows at its centre [kg]."""
        inverse = float(self.model.__dict__["body_invweight0"][body, 0])
        return 1.0 / inverse if inverse > 0.0 else float(self.model.__dict__["body_mass"][body])

    def _held(self, g: Grab) -> np.ndarray:
        return self.probe.xpos[g.body] + self.probe.xmat[g.body].reshape(3, 3) @ g.point

    def _look(self, qpos, qvel, mocap) -> None:
        self.probe.qpos[:], self.probe.qvel[:] = qpos, qvel
        if len(mocap):
            self.probe.mocap_pos[:], self.probe.mocap_quat[:] = mocap
        kinematics(self.model, self.probe)


def _point(value) -> np.ndarray:
    """Three finite numbers."""
    try:
        point = np.asarray(value, float)
    except (TypeError, ValueError):
        point = np.zeros(0)
    if point.shape != (3,) or not np.isfinite(point).all():
        raise ModelError(f"point: got {value!r}, allowed are 3 finite numbers")
    return point.copy()
