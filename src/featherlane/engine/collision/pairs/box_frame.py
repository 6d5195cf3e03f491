"""Transforms vectors and orientations to and from the frame of a box, whose axes are the columns of a matrix R.

Note: here and in the callers, sums of products are rounded term by term, from the first to the last, while the rest of
    the package uses fused multiply-add.  For aligned boxes, rounding selects between two faces and thereby the order
    of the points; this way the result equals MuJoCo's.
"""

from featherlane.engine.prelude import *


@kernel
def plain_mat_t_mul_vec(R, v):
    """Returns R^T v, the vector v in the frame R, without fma."""
    return Vec3(plain_dot3(column, v) for column in R.columns)


@kernel
def plain_mat_mul_vec(R, v):
    """Returns R v, the vector v of the frame R in the outer frame, without fma."""
    return Vec3(plain_dot3(row, v) for row in R.rows)


@kernel
def unit_vector(k):
    """Returns the unit vector along axis k."""
    return Vec3(1.0 if k == 0 else 0.0, 1.0 if k == 1 else 0.0, 1.0 if k == 2 else 0.0)
