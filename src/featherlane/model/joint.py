"""The types of joints: how many coordinates and dofs each has, and what these are.

Passes ask the kernels here, not the type; uncompiled they take arrays of types, too.  How a joint moves its body, and
about which axes, stands in `dynamics/body/joint.py`: the two files are all that knows one joint from another.
"""

from featherlane.lanes import kernel
from featherlane.model.enums import BALL, FREE, HINGE, SLIDE

# by mjtJoint
NAMES = ("free", "ball", "slide", "hinge")
COORDINATES = (7, 4, 1, 1)
DOFS = (6, 3, 1, 1)


@kernel
def joint_coordinates(kind):
    """Coordinates of a joint."""
    return 7 if kind == FREE else 4 if kind == BALL else 1


@kernel
def joint_dofs(kind):
    """Dofs of a joint."""
    return 6 if kind == FREE else 3 if kind == BALL else 1


@kernel
def is_scalar(kind):
    """Has the joint one coordinate, whose rate is its one dof, and an axis?"""
    return kind >= SLIDE


@kernel
def is_free(kind):
    """Are the first three dofs translations along the world's axes, and the others those of a ball?"""
    return kind == FREE


@kernel
def is_ball(kind):
    """Are all dofs those of a ball?"""
    return kind == BALL


@kernel
def has_quaternion(kind):
    """Are the last three dofs those of a ball: turns about axes of the body, its orientation a quaternion?"""
    return kind <= BALL


@kernel
def is_angle(kind):
    """Is its one coordinate an angle?"""
    return kind == HINGE


@kernel
def is_translation(kind, k):
    """Is dof k of a joint, counted from its first, a translation?"""
    return kind == SLIDE or (kind == FREE and k < 3)
