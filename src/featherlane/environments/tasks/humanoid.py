"""HumanoidWalk-v0: an adult of 70 kg follows velocities, on flat ground; HumanoidRough-v0: on any, pushed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from featherlane.environments.tasks.locomotion import VelocityTask
from featherlane.model.reader import mujoco_module

STIFFNESS, DAMPING = 2.0, 0.1  # of a servo, for each N m that its motor gives at most [1/rad, s/rad]
BENT = {"hip_y": 0.25, "knee": 0.5, "ankle_y": -0.25, "elbow": 0.5}  # posture at rest [rad]
HEIGHT = 0.905  # of the pelvis in it [m]


@dataclass(kw_only=True)
class HumanoidWalk(VelocityTask):
    """An adult of 70 kg goes where it is told.

    Servos stand in place of the bundled humanoid's motors, as strong as these; knees are bent at rest.

    Options are those of `VelocityTask`.
    """

    frame_skip: int = 4
    forward: tuple[float, float] = (0.0, 1.0)
    sideways: tuple[float, float] = (-0.2, 0.2)
    turn: tuple[float, float] = (-0.5, 0.5)

    name = "HumanoidWalk-v0"
    robot, keyframe = "humanoid", "bent"
    limit = 1000
    feet = ("sole_left", "sole_right")
    foot_height = 0.02
    lowest = 0.6
    default_weights: ClassVar = {
        "velocity": 1.0,
        "turn": 0.5,
        "steps": 5.0,
        "bounce": -0.5,
        "roll": -0.05,
        "tilt": -1.0,
        "posture": -0.1,
        "effort": -4e-6,
        "jerk": -0.01,
        "fall": -5.0,
    }

    def shape_model(self, spec: Any) -> None:
        super().shape_model(spec)
        spec.option.integrator = mujoco_module().mjtIntegrator.mjINT_IMPLICITFAST  # servos' damping is stiff
        for motor in spec.actuators:
            strength = motor.gear[0]
            motor.gear = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
            motor.set_to_position(kp=STIFFNESS * strength, kv=DAMPING * strength)
            motor.forcelimited, motor.forcerange = True, [-strength, strength]
            motor.ctrlrange = np.radians(next(joint for joint in spec.joints if joint.name == motor.target).range)
        bent = [BENT.get(joint.name.rsplit("_", 1)[0], 0.0) for joint in spec.joints[1:]]
        spec.add_key(name="bent", qpos=[0.0, 0.0, HEIGHT, 1.0, 0.0, 0.0, 0.0, *bent])


@dataclass(kw_only=True)
class HumanoidRough(HumanoidWalk):
    """The adult on rough ground, pushed, with masses, friction, servos and delays of each world's own."""

    mass: tuple[float, float] = (0.85, 1.15)
    friction: tuple[float, float] = (0.6, 1.4)
    gain: tuple[float, float] = (0.85, 1.15)
    delay: tuple[float, float] = (0.0, 0.02)
    push: float = 0.4
    terrain: tuple[str, ...] = ("flat", "rough", "waves")
    terrain_height: float = 0.06

    name = "HumanoidRough-v0"
