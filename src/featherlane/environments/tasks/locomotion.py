"""Velocity tracking: a legged robot follows velocity commands, optionally on rough ground and with random pushes.

Commands are a velocity in the trunk's heading frame and an angular velocity about z.  Commands and pushes are sampled
at random intervals, from each world's generator.
Source: Rudin, Hoeller, Reist, Hutter, Learning to walk in minutes using massively parallel deep reinforcement learning,
2021 (tracking reward exp(-e^2 / sigma), air time of feet).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from featherlane import Batch
from featherlane.enums import FREE
from featherlane.environments.random_streams import RandomStreams
from featherlane.environments.tasks.robot import RobotTask
from featherlane.errors import ModelError
from featherlane.extension import bounded, instance, interval, one_of, rotation
from featherlane.terrain import KINDS, Terrain

SIGMA = 0.25  # an error of 0.5 m/s (rad/s) gets a reward of 1/e
AHEAD, ASIDE = np.meshgrid(np.linspace(-0.4, 0.8, 5), np.linspace(-0.3, 0.3, 3))  # ground samples around the trunk [m]
STRIDE = 0.1  # air time of a foot from which it is rewarded [s]
ROOT = 7  # values of the free joint in qpos; 6 in qvel


@dataclass(kw_only=True)
class VelocityTask(RobotTask):
    """Base class of tasks of legged robots that track commands (forward, sideways, turn).

    A subclass sets the class attributes.  Its `default_weights` have a weight for each of the terms of `terms`.

    Attributes:
        action_scale: angle beyond the rest posture for an action of 1 [rad].
        forward, sideways: least and greatest commanded velocity [m/s].
        turn: least and greatest commanded angular velocity about z [rad/s].
        standing: share of commands to stand still [1].
        command_time: least and greatest time until the next command [s].
        push: greatest change of the horizontal velocity by a push, in each direction [m/s]; 0: no pushes.
        push_time: least and greatest time until the next push [s].
        terrain: kinds of ground of `featherlane.terrain`, sampled for each episode; () for a plane.
        terrain_height: from the lowest to the highest point of the highest level of a kind [m], or such heights by
            kind.
        curriculum: whether a world begins at the lowest level of the terrain, rises by a level after an episode of at
            least half the time limit without a fall, and descends after a fall; False: levels are sampled.
        terrain_seed: seed of the heights.
        start_noise: greatest initial deviation of joints from the rest posture [rad]; ten times that of velocities.
        keyframe: class attribute: keyframe of the robot with the rest posture.
        feet: class attribute: names of sites at the soles of the feet.
        foot_height: class attribute: height of such a site above the ground while its foot is in stance [m].
        lowest: class attribute: least height of the trunk above the ground [m].

    The other attributes are those of `RobotTask`.
    """

    action_scale: float = 0.5
    forward: tuple[float, float] = (-0.5, 1.0)
    sideways: tuple[float, float] = (-0.3, 0.3)
    turn: tuple[float, float] = (-1.0, 1.0)
    standing: float = 0.1
    command_time: tuple[float, float] = (4.0, 6.0)
    push: float = 0.0
    push_time: tuple[float, float] = (4.0, 8.0)
    terrain: tuple[str, ...] = ()
    terrain_height: float | Mapping[str, float] = 0.1
    curriculum: bool = False
    terrain_seed: int = 0
    start_noise: float = 0.05
    camera_name: str | None = "track"

    # attributes of the task, not keyword arguments
    keyframe: ClassVar[str]
    feet: ClassVar[tuple[str, ...]]
    foot_height: ClassVar[float]
    lowest: ClassVar[float]
    fields = ("site_xpos", "actuator_force")
    forward_at_start = False

    def __post_init__(self) -> None:
        for name in ("forward", "sideways", "turn"):
            setattr(self, name, interval(name, getattr(self, name), -20.0, 20.0))
        for name in ("command_time", "push_time"):
            setattr(self, name, interval(name, getattr(self, name), 0.02))
        self.standing = bounded("standing", self.standing, 0.0, 1.0)
        self.push = bounded("push", self.push, 0.0, 20.0)
        self.action_scale = bounded("action_scale", self.action_scale, 0.0, 10.0)
        self.start_noise = bounded("start_noise", self.start_noise, 0.0, 1.0)
        if isinstance(self.terrain_height, Mapping):
            self.terrain_height = {
                kind: bounded(f"terrain_height[{kind!r}]", height, 0.0, 2.0)
                for kind, height in self.terrain_height.items()
            }
        else:
            self.terrain_height = bounded("terrain_height", self.terrain_height, 0.0, 2.0)
        instance("curriculum", self.curriculum, bool, "True or False")
        instance("terrain", self.terrain, str | list | tuple, f"a tuple of {', '.join(KINDS)}, or () for a plane")
        given = (self.terrain,) if isinstance(self.terrain, str) else self.terrain
        self.terrain = tuple(one_of("terrain", kind, KINDS) for kind in given)
        self.ground = Terrain(self.terrain, self.terrain_height, self.terrain_seed) if self.terrain else None
        super().__post_init__()

    def shape_model(self, spec: Any) -> None:
        if self.ground is not None:
            self.ground.add_to(spec)

    def prepare(self, worlds: Batch) -> None:
        super().prepare(worlds)
        model, n = worlds.model, worlds.nworld
        if not model.njnt or model.jnt_type[0] != FREE:
            raise ModelError(f"robot: got {self.robot!r}, allowed is a robot whose first joint is free")
        self.rest = model.key_qpos[model.keyframe(self.keyframe).id].copy()
        self.driven = model.jnt_qposadr[model.actuator_trnid[:, 0]]  # qpos addresses of the servos' joints
        self.posture_share = np.ones(model.nq - ROOT)  # weight of each joint in the posture cost
        self.soles = np.array([model.site(name).id for name in self.feet])
        self.command = np.zeros((n, 3))
        self.tile, self.level = np.zeros((2, n), np.int64)
        self.next_command, self.next_push = np.zeros((2, n), np.int64)  # steps
        # ranges of the values that a reset, a command and a push sample
        noise, spin = (-self.start_noise, self.start_noise), (-10 * self.start_noise, 10 * self.start_noise)
        self.posture_range = np.transpose([noise] * (model.nq - ROOT) + [spin] * model.nv + [(-np.pi, np.pi)])
        self.command_range = np.transpose([self.forward, self.sideways, self.turn, (0.0, 1.0), self.command_time])
        self.push_range = np.transpose([(-self.push, self.push)] * 2 + [self.push_time])
        self.stands, self.air_time = np.ones((n, len(self.feet)), bool), np.zeros((n, len(self.feet)))

    def targets(self, worlds: Batch, ids: np.ndarray) -> np.ndarray:
        return self.rest[self.driven] + self.action_scale * self.action[ids]

    # ---- observation ----------------------------------------------------------------------------------------------
    def observation(self, worlds: Batch) -> dict[str, np.ndarray]:
        quaternion = worlds.qpos[:, 3:ROOT]
        parts = {
            "velocity": rotation.to_body(quaternion, worlds.qvel[:, :3]),
            "spin": worlds.qvel[:, 3:6],
            "down": rotation.down(quaternion),
            "command": self.command,
            "joints": worlds.qpos[:, ROOT:] - self.rest[ROOT:],
            "joint_velocity": worlds.qvel[:, 6:],
            "action": self.action,
        }
        return parts if self.ground is None else parts | {"ground": self.scan(worlds)}

    def height_at(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Returns the height of the ground [m]."""
        return np.zeros_like(x) if self.ground is None else self.ground.height_at(x, y)

    def scan(self, worlds: Batch) -> np.ndarray:
        """Returns the trunk's height above ground points around it, minus its height at rest, (n, 15) [m]."""
        c, s = (value[:, None] for value in rotation.heading(worlds.qpos[:, 3:ROOT]))
        x = worlds.qpos[:, :1] + c * AHEAD.ravel() - s * ASIDE.ravel()
        y = worlds.qpos[:, 1:2] + s * AHEAD.ravel() + c * ASIDE.ravel()
        return worlds.qpos[:, 2:3] - self.height_at(x, y) - self.rest[2]

    # ---- reward and termination -------------------------------------------------------------------------------
    def terms(self, worlds: Batch) -> dict[str, np.ndarray]:
        quaternion, velocity, spin = worlds.qpos[:, 3:ROOT], worlds.qvel[:, :3], worlds.qvel[:, 3:6]
        c, s = rotation.heading(quaternion)
        ahead = c * velocity[:, 0] + s * velocity[:, 1] - self.command[:, 0]
        aside = c * velocity[:, 1] - s * velocity[:, 0] - self.command[:, 1]
        gravity = rotation.down(quaternion)
        turning = -(gravity * spin).sum(axis=1) - self.command[:, 2]
        return {
            "velocity": np.exp(-(ahead * ahead + aside * aside) / SIGMA),
            "turn": np.exp(-turning * turning / SIGMA),
            **self.gait(worlds),
            "bounce": velocity[:, 2] ** 2,
            "roll": np.square(spin[:, :2]).sum(axis=1),
            "tilt": np.square(gravity[:, :2]).sum(axis=1),
            "posture": (np.square(worlds.qpos[:, ROOT:] - self.rest[ROOT:]) * self.posture_share).sum(axis=1),
            "effort": np.square(worlds.actuator_force).sum(axis=1),
            "jerk": self.jerk(),
            "fall": self.failed.astype(float),
        }

    def gait(self, worlds: Batch) -> dict[str, np.ndarray]:
        """Returns the reward terms for the motion of the feet, (n,) each."""
        return {"steps": self.strides(worlds)}

    def strides(self, worlds: Batch) -> np.ndarray:
        """Returns the air time beyond STRIDE of feet that touch down now, if commanded to move, (n,) [s]."""
        soles = worlds.site_xpos[:, self.soles]
        self.stands = soles[:, :, 2] - self.height_at(soles[:, :, 0], soles[:, :, 1]) < self.foot_height
        landed = self.stands & (self.air_time > 0.0)
        return np.where(landed, self.air_time - STRIDE, 0.0).sum(axis=1) * self.command.any(axis=1)

    def terminated(self, worlds: Batch) -> np.ndarray:
        """Terminates if the trunk tilts by more than 60 degrees or is lower than `lowest`."""
        clearance = worlds.qpos[:, 2] - self.height_at(worlds.qpos[:, 0], worlds.qpos[:, 1])
        self.failed = (rotation.down(worlds.qpos[:, 3:ROOT])[:, 2] > -0.5) | (clearance < self.lowest)
        return self.failed

    # ---- commands, pushes, reset ------------------------------------------------------------------------------------
    def proceed(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        super().proceed(worlds, ids, random)
        self.air_time[ids] = np.where(self.stands[ids], 0.0, self.air_time[ids] + self.dt)
        # in worlds that were just reset, nothing is due
        self.draw_commands(np.flatnonzero(self.steps >= self.next_command), random)
        if self.push > 0.0:
            due = np.flatnonzero(self.steps >= self.next_push)
            if len(due):
                drawn = within(random, due, self.push_range)
                worlds.qvel[due, :2] += drawn[:, :2]
                self.next_push[due] = self.after(due, drawn[:, 2])
        if self.ground is not None:
            place = worlds.qpos[ids, :2]
            self.ground.put_back(place, self.tile[ids])
            worlds.qpos[ids, :2] = place

    def after(self, ids: np.ndarray, seconds: np.ndarray) -> np.ndarray:
        """Returns the step number of the worlds `ids` some seconds from now."""
        return self.steps[ids] + np.maximum(np.round(seconds / self.dt), 1).astype(np.int64)

    def draw_commands(self, ids: np.ndarray, random: RandomStreams) -> None:
        """Samples new commands in the worlds `ids`."""
        if len(ids):
            drawn = within(random, ids, self.command_range)
            self.command[ids] = np.where(drawn[:, 3:4] < self.standing, 0.0, drawn[:, :3])
            self.next_command[ids] = self.after(ids, drawn[:, 4])

    def place(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        model = worlds.model
        drawn = within(random, ids, self.posture_range)
        joints = model.nq - ROOT
        qpos = np.tile(self.rest.astype(worlds.dtype), (len(ids), 1))
        qpos[:, ROOT:] += drawn[:, :joints]
        qpos[:, 3:ROOT] = rotation.about_z(drawn[:, -1])
        if self.ground is not None:
            self.tile[ids] = self.draw_tiles(self.ground, ids, random)
            at = self.ground.centres[self.tile[ids]] + random.uniform(ids, -3.0, 3.0, 2)
            qpos[:, :2] = at
            qpos[:, 2] += self.highest_about(at)
        worlds.qpos[ids], worlds.qvel[ids] = qpos, drawn[:, joints:-1]
        worlds.ctrl[ids] = self.rest[self.driven]
        self.air_time[ids] = 0.0
        self.draw_commands(ids, random)
        self.next_push[ids] = self.after(ids, random.uniform(ids, *self.push_time, 1)[:, 0])

    def draw_tiles(self, ground: Terrain, ids: np.ndarray, random: RandomStreams) -> np.ndarray:
        """Samples tiles of the ground for the worlds `ids`, of their levels with a curriculum."""
        if not self.curriculum:
            return random.integers(ids, 0, len(ground.centres), 1)[:, 0]
        return ground.tile(random.integers(ids, 0, len(self.terrain), 1)[:, 0], self.level[ids])

    def start(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        if self.ground is not None and self.curriculum:
            fell = self.failed[ids] & (self.steps[ids] > 0)
            rises = ~self.failed[ids] & (2 * self.steps[ids] >= self.limit)
            self.level[ids] = np.clip(self.level[ids] + rises - fell, 0, self.ground.levels - 1)
        super().start(worlds, ids, random)

    def highest_about(self, at: np.ndarray) -> np.ndarray:
        """Returns the highest ground around positions (n, 2), so that no foot starts in it, (n,) [m]."""
        around = at[:, None] + np.stack(np.meshgrid(*[np.linspace(-0.4, 0.4, 9)] * 2), axis=-1).reshape(-1, 2)
        return self.height_at(around[:, :, 0], around[:, :, 1]).max(axis=1)


def within(random: RandomStreams, ids: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Samples a value from each generator in `ids` between each pair of `ends` (2, k), (len(ids), k)."""
    return random.uniform(ids, ends[0], ends[1], ends.shape[1])
