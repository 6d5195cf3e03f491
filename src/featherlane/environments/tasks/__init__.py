"""Tasks of our own on the bundled robots, one file each.

    options.py          options, checked when a task is made
    robot.py            `RobotTask`: servos that follow actions, weights of a reward's terms, domain randomisation
    randomization.py    fields of the model that each world draws anew
    rotation.py         vectors in the frame of a body
    terrain.py          rough ground, each world's own
    locomotion.py       `VelocityTask`: what walkers have in common
    arm.py              `ArmTask`: what tasks of the arm have in common

docs/tasks.md says what each observes, pays and ends.
"""

from featherlane.environments.tasks.arm_push import ArmPush
from featherlane.environments.tasks.arm_reach import ArmReach
from featherlane.environments.tasks.hand_turn import HandTurn
from featherlane.environments.tasks.humanoid import HumanoidRough, HumanoidWalk
from featherlane.environments.tasks.quadruped import Quadruped, QuadrupedRough

TASKS = (Quadruped, QuadrupedRough, HumanoidWalk, HumanoidRough, ArmReach, ArmPush, HandTurn)
