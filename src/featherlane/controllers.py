"""Controllers of robots that run within each step of a rollout, with targets and gains for each world.

arm = featherlane.controllers.OperationalSpace(batch, "grip", ["joint1", "joint2", "joint3"])
hand = featherlane.controllers.Gripper(batch, ["finger1", "finger2"], directions=[-1, 1])
robot = featherlane.controllers.Composite({"arm": arm, "hand": hand})
robot.set_goal(actions)  # (nworld, 7) of a policy
batch.rollout(25, control=robot)
"""

from featherlane.tools.controllers.actions import Actions
from featherlane.tools.controllers.composite import Composite
from featherlane.tools.controllers.gripper import Gripper
from featherlane.tools.controllers.joints import JointPosition, JointTorque, JointVelocity
from featherlane.tools.controllers.operational_space import OperationalSpace

__all__ = [  # noqa: RUF022  in groups
    # arms and joints
    "OperationalSpace",
    "JointPosition",
    "JointVelocity",
    "JointTorque",
    # grippers and composites
    "Gripper",
    "Composite",
    # actions
    "Actions",
]
