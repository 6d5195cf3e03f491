"""Transforms vectors and orientations to and from the frame of a box, whose axes are the columns of a matrix R.

Note: here and in the callers, sums of products are rounded term by term, from the first to the last, while the rest of
    the package uses fused multiply-add.  For aligned boxes, rounding selects between two faces and thereby the order
    of the points; this way the result equals MuJoCo's.
"""

from featherlane.prelude import *


@kernel
def frame_row(R, k):
    """Returns row k."""
    return R[3 * k], R[3 * k + 1], R[3 * k + 2]


@kernel
def frame_column(R, k):
    """Returns column k."""
    return R[k], R[3 + k], R[6 + k]


@kernel
def transpose(R):
    """Returns R^T."""
    return R[0], R[3], R[6], R[1], R[4], R[7], R[2], R[5], R[8]


@kernel
def seen_from(R, v):
    """Returns R^T v."""
    return plain_dot3(frame_column(R, 0), v), plain_dot3(frame_column(R, 1), v), plain_dot3(frame_column(R, 2), v)


@kernel
def turned_by(R, v):
    """Returns R v."""
    return plain_dot3(frame_row(R, 0), v), plain_dot3(frame_row(R, 1), v), plain_dot3(frame_row(R, 2), v)


@kernel
def relative(R, S):
    """Returns R^T S: its columns are the axes of S in the frame of R."""
    x, y, z = seen_from(R, frame_column(S, 0)), seen_from(R, frame_column(S, 1)), seen_from(R, frame_column(S, 2))
    return x[0], y[0], z[0], x[1], y[1], z[1], x[2], y[2], z[2]


@kernel
def axis(k):
    """Returns the unit vector along axis k."""
    return 1.0 if k == 0 else 0.0, 1.0 if k == 1 else 0.0, 1.0 if k == 2 else 0.0
