"""Featherlane's tasks on the bundled robots, one file each.

    options.py          options, checked when a task is made
    robot.py            `RobotTask`: servo targets from actions, weighted reward terms, domain randomization
    randomization.py    domain randomization: model fields that are sampled for each world
    locomotion.py       `VelocityTask`: base class of the walking tasks
    arm.py              `ArmTask`: base class of the arm tasks

`featherlane.environments` exports the classes.  docs/tasks.md documents observations, rewards and terminations.
"""

from featherlane.environments.tasks.arm import ArmTask
from featherlane.environments.tasks.arm_push import ArmPush
from featherlane.environments.tasks.arm_reach import ArmReach
from featherlane.environments.tasks.hand_turn import HandTurn
from featherlane.environments.tasks.humanoid import HumanoidRough, HumanoidWalk
from featherlane.environments.tasks.locomotion import VelocityTask
from featherlane.environments.tasks.quadruped import Quadruped, QuadrupedRough
from featherlane.environments.tasks.robot import RobotTask

__all__ = [  # noqa: RUF022  in groups
    # tasks
    "ArmPush",
    "ArmReach",
    "HandTurn",
    "HumanoidRough",
    "HumanoidWalk",
    "Quadruped",
    "QuadrupedRough",
    # base classes
    "ArmTask",
    "RobotTask",
    "VelocityTask",
]
TASKS = (Quadruped, QuadrupedRough, HumanoidWalk, HumanoidRough, ArmReach, ArmPush, HandTurn)
