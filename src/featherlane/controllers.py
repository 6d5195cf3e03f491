"""Controllers of robots that run within each step of a rollout, with targets and gains for each world.

arm = featherlane.controllers.OperationalSpace(batch, "grip", ["joint1", "joint2", "joint3"])
arm.target_pos = 0.4, 0.0, 0.3
batch.rollout(25, control=arm)
"""

from featherlane.tools.controllers.actions import Actions
from featherlane.tools.controllers.composite import Composite
from featherlane.tools.controllers.gripper import Gripper
from featherlane.tools.controllers.joints import JointPosition, JointTorque, JointVelocity
from featherlane.tools.controllers.operational_space import OperationalSpace

__all__ = ["Actions", "Composite", "Gripper", "JointPosition", "JointTorque", "JointVelocity", "OperationalSpace"]
