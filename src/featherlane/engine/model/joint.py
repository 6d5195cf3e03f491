"""Defines the joint types: the number and kind of their coordinates and dofs.

Stages call the kernels here instead of testing the type; uncompiled they also accept arrays of types.
`dynamics/body/joint.py` defines the motion and axes of a joint: only these two files distinguish joint types.
"""

from featherlane.engine.lanes import kernel
from featherlane.engine.model.enums import BALL, FREE, HINGE, SLIDE

# indexed by mjtJoint
NAMES = ("free", "ball", "slide", "hinge")
COORDINATES = (7, 4, 1, 1)
DOFS = (6, 3, 1, 1)


@kernel
def joint_coordinates(kind):
    """Returns the number of coordinates of a joint."""
    return 7 if kind == FREE else 4 if kind == BALL else 1


@kernel
def joint_dofs(kind):
    """Returns the number of dofs of a joint."""
    return 6 if kind == FREE else 3 if kind == BALL else 1


@kernel
def is_scalar(kind):
    """Returns whether the joint has an axis and one coordinate, whose rate is its only dof."""
    return kind >= SLIDE


@kernel
def is_free_joint(kind):
    """Returns whether the first three dofs are translations along the world's axes, and the others those of a ball."""
    return kind == FREE


@kernel
def is_ball(kind):
    """Returns whether all dofs are those of a ball."""
    return kind == BALL


@kernel
def has_quaternion(kind):
    """Returns whether the last three dofs are rotations about body axes, with a quaternion as orientation."""
    return kind <= BALL


@kernel
def is_angle(kind):
    """Returns whether its one coordinate is an angle."""
    return kind == HINGE


@kernel
def is_translation(kind, k):
    """Returns whether dof k of a joint, counted from its first, is a translation."""
    return kind == SLIDE or (kind == FREE and k < 3)
