"""Processing the worlds of a tile one by one: number of active worlds, and vectors of one world."""

from featherlane.engine.lanes import has, kernel, read_lane, width, write_lane


@kernel
def count_active_worlds(d):
    """Returns the number of active worlds of the tile."""
    number, active = 0, d.active[0] > 0.0
    for lane in range(width(d)):
        number += has(active, lane)
    return number


@kernel
def read3(rows, i, lane):
    """Reads three numbers of one world from row i on."""
    return read_lane(rows, i, lane), read_lane(rows, i + 1, lane), read_lane(rows, i + 2, lane)


@kernel
def write3(rows, i, lane, v):
    """Writes three numbers of one world from row i on."""
    write_lane(rows, i, lane, v[0])
    write_lane(rows, i + 1, lane, v[1])
    write_lane(rows, i + 2, lane, v[2])
