"""Writes three elements of a flat field in one world of a tile."""

from featherlane.engine.prelude import *


@kernel
def write_vec3(rows, i, lane, v):
    """Writes three elements of one world, from i on, in a flat field."""
    for k in unrolled(range(3)):
        write_lane(rows, i + k, lane, v[k])
