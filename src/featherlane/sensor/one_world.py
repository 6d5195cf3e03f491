"""Reads vectors, motions and matrices of one world of a tile."""

from featherlane.prelude import *
from featherlane.lanes.worlds import read3, read9


@kernel
def vector_of(rows, i, lane):
    """Returns row i, a vector."""
    return Vec3(read3(flat(rows), 3 * i, lane))


@kernel
def matrix_of(rows, i, lane):
    """Returns row i, a matrix."""
    return Mat3(read9(flat(rows), 9 * i, lane))


@kernel
def motion_of(rows, i, lane):
    """Returns row i, a motion."""
    a = flat(rows)
    return Motion(join(read3(a, 6 * i, lane), read3(a, 6 * i + 3, lane)))
