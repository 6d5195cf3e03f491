"""Writes three elements of a flat field in one world of a tile."""

from featherlane.engine.prelude import *


@kernel
def write_vec3(rows, i, lane, v):
    """Writes the vector v to elements i, i + 1 and i + 2 of a flat field, in one world."""
    for k in unrolled(range(3)):
        write_lane(rows, i + k, lane, v[k])
