"""Reads and writes rows of one world of a tile."""

from featherlane.prelude import *


@kernel
def read_vec3(rows, i, lane):
    """Returns row i, a Vec3, of one world."""
    return Vec3(read_lane(flat(rows), 3 * i + k, lane) for k in range(3))


@kernel
def read_mat3(rows, i, lane):
    """Returns row i, a Mat3, of one world."""
    return Mat3(read_lane(flat(rows), 9 * i + k, lane) for k in range(9))


@kernel
def read_box(rows, i, lane):
    """Returns row i, a Box, of one world."""
    return Box(read_lane(flat(rows), 6 * i + k, lane) for k in range(6))


@kernel
def read_bounds(rows, i, lane):
    """Returns row i, a Bounds, of one world."""
    return Bounds(read_lane(flat(rows), 6 * i + k, lane) for k in range(6))


@kernel
def write_vec3(rows, i, lane, v):
    """Writes three elements of one world, from i on, in a flat field."""
    for k in unrolled(range(3)):
        write_lane(rows, i + k, lane, v[k])
