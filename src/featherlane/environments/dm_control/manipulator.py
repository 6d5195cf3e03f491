"""Manipulator: a planar arm with a gripper brings a ball to a target."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from featherlane import Batch
from featherlane.environments.dm_control.suite_task import (
    XX,
    ZX,
    SuiteTask,
    joint_columns,
    lengths,
    parsed,
    sensor_columns,
    text,
)
from featherlane.environments.random_streams import RandomStreams

CLOSE = 0.01  # [m]
IN_HAND, IN_TARGET = 0.1, 0.1  # probabilities of the ball's initial positions
ARM = ("arm_root", "arm_shoulder", "arm_elbow", "arm_wrist", "finger", "fingertip", "thumb", "thumbtip")
BALL = ("ball_x", "ball_z", "ball_y")
TOUCH = ("palm_touch", "finger_touch", "thumb_touch", "fingertip_touch", "thumbtip_touch")
UNUSED = ("cup", "peg", "target_peg", "slot")  # bodies of other tasks in the model file
PLANE, TURN = [0, 2], [0, 2]  # x and z of a position; w and y of a quaternion


@dataclass(kw_only=True)
class ManipulatorBringBall(SuiteTask):
    """Rewards a ball in the target."""

    frame_skip: int = 10

    name = "dm_control.manipulator-bring_ball"
    file = "manipulator.xml"
    fields = ("xpos", "xquat", "site_xpos", "site_xmat", "sensordata")

    def source(self, path: Path) -> str:
        root = parsed(path)
        world = root.find("worldbody")
        for body in list(world if world is not None else ()):
            if body.tag == "body" and body.get("name") in UNUSED:
                world.remove(body)  # pyright: ignore[reportOptionalMemberAccess]
        return text(root)

    def prepare(self, worlds: Batch) -> None:
        super().prepare(worlds)
        model = worlds.model
        self.arm, self.arm_velocity = joint_columns(worlds, *ARM)
        self.ball, self.ball_velocity = joint_columns(worlds, *BALL)
        joints = [model.joint(name).id for name in ARM]
        limited, ranges = np.array(model.jnt_limited[joints], bool), np.array(model.jnt_range[joints])
        self.low, self.high = (np.where(limited, ranges[:, k], s * np.pi) for k, s in enumerate((-1, 1)))
        self.bodies = [model.body(name).id for name in ("hand", "ball", "target_ball")]
        self.target = self.bodies[2]
        self.sites = [model.site(name).id for name in ("ball", "target_ball", "grasp")]
        self.touch = sensor_columns(worlds, *TOUCH)
        self.position, self.quaternion = worlds.expand("body_pos"), worlds.expand("body_quat")

    def pose(self, worlds: Batch, k: int) -> np.ndarray:
        """Returns the planar pose of the hand, the ball or the target, (n, 4)."""
        body = self.bodies[k]
        return np.concatenate((worlds.xpos[:, body][:, PLANE], worlds.xquat[:, body][:, TURN]), axis=1)

    def observation(self, worlds: Batch) -> dict[str, np.ndarray]:
        angles = worlds.qpos[:, self.arm]
        return {
            "arm_pos": np.stack((np.sin(angles), np.cos(angles)), axis=2),
            "arm_vel": worlds.qvel[:, self.arm_velocity],
            "touch": np.log1p(self.sensordata[:, self.touch]),
            "hand_pos": self.pose(worlds, 0),
            "object_pos": self.pose(worlds, 1),
            "object_vel": worlds.qvel[:, self.ball_velocity],
            "target_pos": self.pose(worlds, 2),
        }

    def reward(self, worlds: Batch, actions: np.ndarray, before: Any) -> np.ndarray:
        ball, target = (worlds.site_xpos[:, site] for site in self.sites[:2])
        return self.tolerance(lengths(target - ball), (0.0, CLOSE), 2.0 * CLOSE)

    def start(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        self.sample_without_contact(worlds, ids, lambda some: self.sample(worlds, some, random))

    def sample(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        """Samples the arm's posture, the target's pose, and the ball's: in the hand, in the target, or anywhere."""
        worlds.qpos[ids[:, None], self.arm] = random.uniform(ids, self.low, self.high, len(ARM))
        worlds.qpos[ids, self.arm[ARM.index("finger")]] = worlds.qpos[ids, self.arm[ARM.index("thumb")]]
        target = random.uniform(ids, [-0.4, 0.1, -np.pi], [0.4, 0.4, np.pi], 3)
        self.position[ids[:, None], self.target, PLANE] = target[:, :2]
        half = target[:, 2:] / 2.0
        self.quaternion[ids[:, None], self.target, TURN] = np.concatenate((np.cos(half), np.sin(half)), axis=1)

        kind, pose = random.uniform(ids, 0.0, 1.0, 1)[:, 0], target.copy()
        in_hand = kind < IN_HAND
        anywhere = kind >= IN_HAND + IN_TARGET
        if in_hand.any():
            pose[in_hand] = self.grasp(worlds, ids[in_hand])
        if anywhere.any():
            some = ids[anywhere]
            sampled = random.uniform(some, [-0.5, 0.0, 0.0, -5.0], [0.5, 0.7, 2.0 * np.pi, 5.0], 4)
            pose[anywhere] = sampled[:, :3]
            worlds.qvel[some, self.ball_velocity[0]] = sampled[:, 3]
        worlds.qpos[ids[:, None], self.ball] = pose

    def grasp(self, worlds: Batch, ids: np.ndarray) -> np.ndarray:
        """Returns x, z and the angle of a ball in the hand, (n, 3) [m, rad]."""
        worlds.forward(ids)
        at, axes = worlds.site_xpos[ids, self.sites[2]], worlds.site_xmat[ids, self.sites[2]]
        return np.stack((at[:, 0], at[:, 2], np.pi - np.arctan2(axes[:, ZX], axes[:, XX])), axis=1)
