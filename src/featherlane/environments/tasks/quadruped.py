"""Quadruped-v0: a 12 kg robot tracks velocities on flat ground; QuadrupedRough-v0: rough, with domain randomization."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from featherlane.environments.tasks.locomotion import VelocityTask


@dataclass(kw_only=True)
class Quadruped(VelocityTask):
    """A quadruped of 12 kg with three servos per leg tracks velocity commands.

    Options are those of `VelocityTask`.
    """

    name = "Quadruped-v0"
    robot, keyframe = "quadruped", "home"
    limit = 1000
    feet = ("front_left_foot", "front_right_foot", "hind_left_foot", "hind_right_foot")
    foot_height = 0.03
    lowest = 0.14
    default_weights: ClassVar = {
        "velocity": 1.0,
        "turn": 0.5,
        "steps": 2.0,
        "bounce": -1.0,
        "roll": -0.05,
        "tilt": -1.0,
        "posture": -0.05,
        "effort": -1e-4,
        "jerk": -0.03,
        "fall": -5.0,
    }


@dataclass(kw_only=True)
class QuadrupedRough(Quadruped):
    """The quadruped tracks velocity commands on rough ground, with pushes and domain randomization.

    Options are those of `VelocityTask`, with other defaults.
    """

    mass: tuple[float, float] = (0.8, 1.2)
    friction: tuple[float, float] = (0.6, 1.4)
    gain: tuple[float, float] = (0.85, 1.15)
    delay: tuple[float, float] = (0.0, 0.02)
    push: float = 0.5
    terrain: tuple[str, ...] = ("flat", "rough", "waves", "steps")

    name = "QuadrupedRough-v0"
