"""Vectors of one world of a tile, for work that branches on what differs by world."""

from __future__ import annotations

from featherlane.lanes import kernel, read_lane, write_lane
from featherlane.spatial.vector import mat_t_mul_vec, sub3


@kernel
def read3(rows, i, lane):
    """Three numbers of one world from row i on."""
    return read_lane(rows, i, lane), read_lane(rows, i + 1, lane), read_lane(rows, i + 2, lane)


@kernel
def read9(rows, i, lane):
    """Nine numbers of one world from row i on."""
    a, b, c = read3(rows, i, lane), read3(rows, i + 3, lane), read3(rows, i + 6, lane)
    return a[0], a[1], a[2], b[0], b[1], b[2], c[0], c[1], c[2]


@kernel
def write3(rows, i, lane, v):
    """Three numbers of one world from row i on."""
    write_lane(rows, i, lane, v[0])
    write_lane(rows, i + 1, lane, v[1])
    write_lane(rows, i + 2, lane, v[2])


@kernel
def point_in_site(d, s, point, lane):
    """A point of the world in the frame of site s."""
    return mat_t_mul_vec(read9(d.site_xmat, 9 * s, lane), sub3(point, read3(d.site_xpos, 3 * s, lane)))
