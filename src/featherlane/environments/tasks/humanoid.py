"""HumanoidWalk-v0: a 70 kg humanoid tracks velocities on flat ground; HumanoidRough-v0: rough ground, with pushes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from featherlane import Batch
from featherlane.environments.random_streams import RandomStreams
from featherlane.environments.tasks.locomotion import VelocityTask
from featherlane.extension import bounded

STIFFNESS, DAMPING = 2.0, 0.1  # gains of a servo per N m of its motor's greatest torque [1/rad, s/rad]
BENT = {"hip_y": 0.25, "knee": 0.5, "ankle_y": -0.25, "elbow": 0.5}  # rest posture [rad]
HEIGHT = 0.905  # height of the pelvis in the rest posture [m]
STRIDING = {"hip_y": 0.05, "knee": 0.05, "ankle_y": 0.05}  # joints that a stride moves: weight in the posture cost
RISE = 0.003  # sum of squares of both feet's height errors at which the reward term `gait` is 1/e [m^2]
SWING = {"hip_y": 1.0, "knee": 2.0, "ankle_y": -1.0}  # motion of servos in units of `stride`: the sole stays level
SLOW = 0.3  # horizontal velocity below which a standing trunk needs no step [m/s]
SIDES = "left", "right"


@dataclass(kw_only=True)
class HumanoidWalk(VelocityTask):
    """A humanoid of 70 kg tracks velocity commands.

    Servos of the same strength replace the bundled humanoid's motors; the knees are bent at rest.  An observed gait
    clock sets the target height of the left and the right foot in turn, and bends hip, knee and ankle of that leg;
    actions are added to it.  If the command is to stand and the trunk is slow, the clock
    stops at the end of a swing.
    Source: Iscen et al., Policies modulating trajectory generators, 2018 (a clock that acts, and added actions);
    Zakka et al., MuJoCo Playground, 2025 (target heights of feet by phase).

    Attributes:
        cadence: strides of both feet per second [Hz].
        stride: hip flexion by the clock in mid-swing; the knee flexes twice as much [rad].
        foot_rise: target height of a foot in mid-swing [m].

    The other attributes are those of `VelocityTask`.
    """

    frame_skip: int = 4
    cadence: float = 1.25
    stride: float = 0.3
    foot_rise: float = 0.08
    forward: tuple[float, float] = (0.0, 1.0)
    sideways: tuple[float, float] = (-0.2, 0.2)
    turn: tuple[float, float] = (-0.5, 0.5)

    name = "HumanoidWalk-v0"
    robot, keyframe = "humanoid", "bent"
    limit = 1000
    feet = ("sole_left", "sole_right")
    foot_height = 0.02
    lowest = 0.6
    fields = (*VelocityTask.fields, "sensordata")
    default_weights: ClassVar = {
        "velocity": 1.0,
        "turn": 0.5,
        "gait": 1.0,
        "slip": -0.1,
        "bounce": -0.5,
        "roll": -0.05,
        "tilt": -1.0,
        "posture": -0.3,
        "effort": -4e-6,
        "jerk": -0.01,
        "fall": -5.0,
    }

    def __post_init__(self) -> None:
        self.cadence = bounded("cadence", self.cadence, 0.0, 10.0)
        self.stride = bounded("stride", self.stride, 0.0, 1.0)
        self.foot_rise = bounded("foot_rise", self.foot_rise, 0.0, 0.5)
        super().__post_init__()

    def shape_model(self, spec: Any) -> None:
        import mujoco

        super().shape_model(spec)
        spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST  # the servos' damping is stiff
        for motor in spec.actuators:
            strength = motor.gear[0]
            motor.gear = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
            motor.set_to_position(kp=STIFFNESS * strength, kv=DAMPING * strength)
            motor.forcelimited, motor.forcerange = True, [-strength, strength]
            motor.ctrlrange = np.radians(next(joint for joint in spec.joints if joint.name == motor.target).range)
        for sole in self.feet:
            spec.add_sensor(
                type=mujoco.mjtSensor.mjSENS_FRAMELINVEL,
                objtype=mujoco.mjtObj.mjOBJ_SITE,
                objname=sole,
            )
        bent = [BENT.get(joint.name.rsplit("_", 1)[0], 0.0) for joint in spec.joints[1:]]
        spec.add_key(name="bent", qpos=[0.0, 0.0, HEIGHT, 1.0, 0.0, 0.0, 0.0, *bent])

    def prepare(self, worlds: Batch) -> None:
        super().prepare(worlds)
        model = worlds.model
        names = [model.joint(i).name.rsplit("_", 1)[0] for i in range(1, model.njnt)]
        self.posture_share = np.array([STRIDING.get(name, 1.0) for name in names])
        self.phase = np.zeros(worlds.nworld)  # phase of the left leg, which swings in the first half [rad]
        self.strides_on = np.zeros(worlds.nworld, bool)  # whether the clock is running
        swung = np.zeros((len(SIDES), model.nu))
        for leg, side in enumerate(SIDES):
            for joint, share in SWING.items():
                swung[leg, model.actuator(f"{joint}_{side}").id] = share
        self.swung = swung

    # ---- gait clock -------------------------------------------------------------------------------------------------
    def observation(self, worlds: Batch) -> dict[str, np.ndarray]:
        clock = np.stack([np.cos(self.phase), np.sin(self.phase)], axis=1) * self.strides_on[:, None]
        parts = super().observation(worlds)
        ground = {"ground": parts.pop("ground")} if "ground" in parts else {}
        return parts | {"clock": clock} | ground

    def swing(self) -> np.ndarray:
        """Returns each leg's swing, from 0 in stance to 1 in mid-swing, (n, 2)."""
        turn = np.sin(self.phase)[:, None] * (1.0, -1.0)
        return np.square(np.maximum(turn, 0.0)) * self.strides_on[:, None]

    def targets(self, worlds: Batch, ids: np.ndarray) -> np.ndarray:
        left, right = self.stride * self.swing()[ids].T
        return super().targets(worlds, ids) + left[:, None] * self.swung[0] + right[:, None] * self.swung[1]

    def gait(self, worlds: Batch) -> dict[str, np.ndarray]:
        soles = worlds.site_xpos[:, self.soles]
        height = soles[:, :, 2] - self.height_at(soles[:, :, 0], soles[:, :, 1])
        self.stands = height < self.foot_height
        slip = worlds.sensordata[:, : 3 * len(SIDES)].reshape(-1, len(SIDES), 3)[:, :, :2]
        return {
            "gait": np.exp(-np.square(height - self.foot_rise * self.swing()).sum(axis=1) / RISE),
            "slip": (np.square(slip).sum(axis=2) * self.stands).sum(axis=1),
        }

    def proceed(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        super().proceed(worlds, ids, random)
        stepping = self.command[ids].any(axis=1) | (np.square(worlds.qvel[ids, :2]).sum(axis=1) > SLOW**2)
        before, on = self.phase[ids], self.strides_on[ids] | stepping
        after = before + on * (2.0 * np.pi * self.cadence * self.dt)
        swings = np.floor(after / np.pi)
        ends = (swings > np.floor(before / np.pi)) & ~stepping
        self.phase[ids] = np.where(ends, swings * np.pi, after) % (2.0 * np.pi)
        self.strides_on[ids] = on & ~ends

    def place(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        super().place(worlds, ids, random)
        self.strides_on[ids] = self.command[ids].any(axis=1)
        self.phase[ids] = np.pi * random.integers(ids, 0, len(SIDES), 1)[:, 0]


@dataclass(kw_only=True)
class HumanoidRough(HumanoidWalk):
    """The humanoid tracks velocity commands on rough ground, with pushes and domain randomization.

    Options are those of `HumanoidWalk`, with other defaults.
    """

    mass: tuple[float, float] = (0.85, 1.15)
    friction: tuple[float, float] = (0.6, 1.4)
    gain: tuple[float, float] = (0.85, 1.15)
    delay: tuple[float, float] = (0.0, 0.02)
    push: float = 0.4
    terrain: tuple[str, ...] = ("flat", "rough", "waves")
    terrain_height: float = 0.06

    name = "HumanoidRough-v0"
