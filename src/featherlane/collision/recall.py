"""What a world remembers of a pair of convex shapes: a direction along which it was apart.

The next time that direction is asked first, and one support point proves that the pair is apart still; or it does not,
and the search begins as if nothing were known.  So what is remembered saves time and changes no result: it lasts beside
a world's state, is not copied with it, and may be lost.

    entry of a world's memory, for the pair at hand:  key, direction (3,) in the frame of the first shape

A pair has its entry where its number leads, and takes it from the pair that had it before.
Source: Cundall, "Formulation of a three-dimensional distinct element model" (1988), remembers a common plane of each
    pair; van den Bergen, Collision Detection in Interactive 3D Environments, sec. 4.3.6, a separating axis.
"""

from __future__ import annotations

from featherlane.collision.support import core_radius, support_along
from featherlane.lanes import kernel, real, scalars, sqrt
from featherlane.spatial.vector import dot3, load3

ENTRY = 4  # numbers
MOST_ENTRIES = 256  # of a world
CLEAR = 1e-6  # of the size: what is farther apart than the limit by this, no search would find within it


def entries(pairs: int) -> int:
    """How many entries a world has for so many pairs: a power of two, or none."""
    return min(1 << (pairs - 1).bit_length(), MOST_ENTRIES) if pairs else 0


@kernel
def entry_of(d, lane, number):
    """The address of the entry for a pair in the memory of one world; 0 where it has no memory."""
    address = d.recall_address[lane]
    if address != 0 and d.nrecall > 0:
        address += 8 * ENTRY * (number & (d.nrecall - 1))
    else:
        address = 0
    return address


@kernel
def is_apart_as_before(m1, d1):
    """Does the remembered direction prove that the shapes are farther apart than the limit?"""
    apart = False
    if d1.pair_recall[0] != 0:
        entry = scalars(d1, d1.pair_recall[0])
        if entry[0] == real(d1, 1.0) * d1.pair_key[0]:
            u = entry[1], entry[2], entry[3]
            w = support_along(m1, d1, u)
            p, a = load3(d1.convex_pos, 0), load3(d1.support_first, 0)
            size = sqrt(dot3(w, w)) + sqrt(dot3(p, p)) + sqrt(dot3(a, a))
            reach = d1.shape_limit[0] + (core_radius(d1, 0) + core_radius(d1, 1)) + CLEAR * size
            height = -dot3(u, w)
            apart = height > 0.0 and height * height > dot3(u, u) * (reach * reach) and reach >= 0.0
    return apart


@kernel
def remember_apart(d1, u):
    """Keep a direction along which the shapes were apart."""
    if d1.pair_recall[0] != 0:
        entry = scalars(d1, d1.pair_recall[0])
        entry[0] = real(d1, 1.0) * d1.pair_key[0]
        entry[1], entry[2], entry[3] = u
