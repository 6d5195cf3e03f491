"""Stiffnesses: symmetric matrices of three or six rows, which map a displacement to a force.

A spatial stiffness is a symmetric 6 x 6 matrix in three blocks: rotation to moment `aa`, translation to moment `al`,
and translation to force `ll`; rotation to force is the transpose of `al`.
"""

from featherlane.engine.lanes import dot, join, kernel
from featherlane.engine.lanes.rows import attribute, operator
from featherlane.engine.spatial.types import Force, Mat3, Motion, Stiffness, Sym3, Vec3

UPPER = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))  # rows and columns of the parts of a Sym3


@operator("@", Sym3, Vec3)
@kernel
def symmetric_times(F, v):
    """Returns F v."""
    x, y, z = F.rows
    return Vec3(dot(x, v), dot(y, v), dot(z, v))


@attribute(Stiffness, "aa")
@kernel
def rotation_block(K):
    """Returns the block from rotation to moment."""
    return Sym3(K[0:6])


@attribute(Stiffness, "al")
@kernel
def mixed_block(K):
    """Returns the block from translation to moment."""
    return Mat3(K[6:15])


@attribute(Stiffness, "ll")
@kernel
def translation_block(K):
    """Returns the block from translation to force."""
    return Sym3(K[15:21])


@operator("@", Stiffness, Motion)
@kernel
def stiffness_times(K, s):
    """Returns K s, the force of the displacement s: (aa a + al l, al^T a + ll l) with s = (a, l)."""
    a, l = s.angular, s.linear
    return Force(join(K.aa @ a + K.al @ l, K.al.T @ a + K.ll @ l))
