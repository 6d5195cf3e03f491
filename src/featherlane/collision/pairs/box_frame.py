"""Transforms vectors and orientations to and from the frame of a box, whose axes are the columns of a matrix R.

Note: here and in the callers, sums of products are rounded term by term, from the first to the last, while the rest of
    the package uses fused multiply-add.  For aligned boxes, rounding selects between two faces and thereby the order
    of the points; this way the result equals MuJoCo's.
"""

from featherlane.prelude import *


@kernel
def frame_row(R, k):
    """Returns row k."""
    return R.rows[k]


@kernel
def frame_column(R, k):
    """Returns column k."""
    return R.columns[k]


@kernel
def seen_from(R, v):
    """Returns R^T v."""
    return Vec3(plain_dot3(column, v) for column in R.columns)


@kernel
def turned_by(R, v):
    """Returns R v."""
    return Vec3(plain_dot3(row, v) for row in R.rows)


@kernel
def relative(R, S):
    """Returns R^T S: its columns are the axes of S in the frame of R."""
    x, y, z = S.columns
    return Mat3(join(seen_from(R, x), seen_from(R, y), seen_from(R, z))).T


@kernel
def axis(k):
    """Returns the unit vector along axis k."""
    return Vec3(1.0 if k == 0 else 0.0, 1.0 if k == 1 else 0.0, 1.0 if k == 2 else 0.0)
