"""Featherlane's tasks on the bundled robots, one file each.

    options.py          options, checked when a task is made
    robot.py            `RobotTask`: servo targets from actions, weighted reward terms, domain randomization
    randomization.py    domain randomization: model fields that are sampled for each world
    terrain.py          rough ground, a different tile for each world
    locomotion.py       `VelocityTask`: base class of the walking tasks
    arm.py              `ArmTask`: base class of the arm tasks

docs/tasks.md documents observations, rewards and terminations of each task.
"""

from featherlane.environments.tasks.arm_push import ArmPush
from featherlane.environments.tasks.arm_reach import ArmReach
from featherlane.environments.tasks.hand_turn import HandTurn
from featherlane.environments.tasks.humanoid import HumanoidRough, HumanoidWalk
from featherlane.environments.tasks.quadruped import Quadruped, QuadrupedRough

TASKS = (Quadruped, QuadrupedRough, HumanoidWalk, HumanoidRough, ArmReach, ArmPush, HandTurn)
