"""Caches, per world, the last result for pairs of convex shapes: a separating direction, or a proof of their contact.

    apart       a direction along which they were separated: one support point proves that they still are
    touching    the facet where they are nearest, and a polytope if they overlap (`facet_cache`)

If the cached data proves nothing, the search starts without it.  The cache thus saves time and does not change
results: it is stored outside of a world's state, is not copied with it, and may be lost.

    memory of a world:    the index of the next proof and counts, entries of pairs, proofs
    entry of a pair:      key, direction (3,) in the first shape's frame, how far that shape reaches along it, and from
                          its centre, kinds of shapes;  or -key, index of the proof

Entries and proofs hold real values, so integers such as keys are stored as `1.0 * key`.  `scalars(d1, address)` is the
array of values at an address.
The pair's number determines its entry, which it takes over from the pair stored there before.  Proofs are longer and
fewer; they are stored in a ring buffer.
`lane` is the index of a world in the tile.
For the current pair, recall.pair has the addresses of its entry and of the world's memory (`find_entry`), 0 without a
cache, and recall.key its key (`branching_points`).
m1 and d1 are the model and the data of one world; shapes.*[side] has the type, the size and the pose of each shape, and
in shapes.data the index of its mesh.  The core of a sphere is its centre, that of a capsule its segment; any other
shape is its own core.

Imported kernels:

    core_support(m1, d1, side, u)       (point, vertex): farthest point of a core along u, in its frame; its index
    is_convex, is_curved                whether a core is exactly convex; whether a core is no polytope
    core_limit(d1)                      distance of the cores up to which there is a contact

Source: Cundall, "Formulation of a three-dimensional distinct element model" (1988), stores a common plane of each
    pair; van den Bergen, Collision Detection in Interactive 3D Environments, sec. 4.3.6, a separating axis.
"""

from __future__ import annotations

import numpy as np

from featherlane.engine.prelude import *
from featherlane.engine.collision.convex.support import core_limit, core_support, is_convex, is_curved
from featherlane.engine.lanes.record import address

HEADER, ENTRY, PROOF = 8, 8, 48  # lengths in values; an entry uses seven of eight, a cache line
# offsets in the header: index of the next proof; counts of pairs solved by each method
NEXT, BY_DIRECTION, BY_PROOF, BY_SEARCH, BY_GROWTH = range(5)
KEY, DIRECTION, HEIGHT, SIZE, KINDS = 0, 1, 4, 5, 6  # offsets in an entry
PROOF_INDEX = 1  # offset of the index of a proof, which replaces the direction if the key is negative
BYTES = 8  # of a value
BITS20 = 1 << 20  # more than any number of meshes
MOST_ENTRIES, MOST_PROOFS = 512, 32  # per world
# relative to the size: beyond the limit by this, a search finds no contact
CLEAR = 1e-6
CLEAR_POLYTOPES = 1e-10  # a hundred times the error of their search; coplanar flanges are apart by their rounding, 1e-8


def recall_entries(pairs: int) -> int:
    """Returns the number of entries of a world for so many pairs: a power of two, or none."""
    return min(1 << (pairs - 1).bit_length(), MOST_ENTRIES) if pairs else 0


def proofs(pairs: int) -> int:
    """Returns the number of proofs of a world."""
    return min(recall_entries(pairs), MOST_PROOFS)


def memory_of_world(nrecall: int, nproof: int) -> int:
    """Returns the number of values in the cache of a world."""
    return HEADER + ENTRY * nrecall + PROOF * nproof if nrecall else 0


def remember_in_tile(arrays: dict[str, np.ndarray], numbers: int, width: int) -> None:
    """Stores the cache of the tile's worlds in the tile's own memory, with the tile's lifetime."""
    if numbers:
        arrays["recall_address"][:width] = address(arrays["recall.memory"]) + 8 * numbers * np.arange(width)


def forget_all(arrays: dict[str, np.ndarray]) -> None:
    """Clears the tile's cache, because vertex indices are valid for one model only."""
    arrays["recall.memory"][...] = 0.0


@kernel
def find_entry(d, lane, pair_number):
    """Stores the address of a pair's entry in the cache of one world; pair_number determines which entry.

    Reads: recall_address, the address of each world's cache.
    Writes: recall.pair[0], the address of the entry, 0 without a cache; recall.pair[1], the address of the memory.
    """
    memory = d.recall_address[lane]
    entry = 0
    if memory != 0 and d.nrecall > 0:
        # pair_number modulo nrecall, which is a power of two
        entry = memory + BYTES * (HEADER + ENTRY * (pair_number & (d.nrecall - 1)))
    d.recall.pair[0], d.recall.pair[1] = entry, memory


@kernel
def count_method(d1, method):
    """Counts the method (BY_DIRECTION, BY_PROOF, ...) that solved the current pair, in the header of the memory."""
    if d1.recall.pair[0] != 0:
        memory = scalars(d1, d1.recall.pair[1])
        memory[method] = memory[method] + 1.0


@kernel
def shapes_code(d1):
    """Returns a code of the types and meshes of both shapes; types are below 16, meshes (-1 for none) below 2^20."""
    code = (d1.shapes.type[0] * 16 + d1.shapes.type[1]) * BITS20 + (d1.shapes.data[0] + 1)
    return code * BITS20 + (d1.shapes.data[1] + 1)


# ---- apart -----------------------------------------------------------------------------------------------------------
@kernel
def first_reach(m1, d1, u):
    """Returns (u . point, |point|) of the first core's farthest point along u, in the frame of the first shape."""
    point, _ = core_support(m1, d1, 0, u)
    return dot(point, u), sqrt(dot(point, point))


@kernel
def is_apart_as_before(m1, d1):
    """Returns whether the cached direction proves that the shapes are farther apart than the limit.

    Along the unit vector n of this direction, the cores are apart by at most their distance:

        gap = n . (p2 - p1) - height of the first core along n - height of the second along -n.

    p1 and p2 are the centres of the shapes, from which the heights are measured.  n is constant in the first shape's
    frame, and so is the height of a hull along it.
    """
    apart = False
    if d1.recall.pair[0] != 0:
        entry = scalars(d1, d1.recall.pair[0])
        if entry[KEY] == 1.0 * d1.recall.key[0] and entry[KINDS] == 1.0 * shapes_code(d1):
            direction = Vec3(entry[DIRECTION : DIRECTION + 3])
            # of the first core's farthest point: the height along the direction, and the distance from its centre
            height, first_size = entry[HEIGHT], entry[SIZE]
            # shapes other than meshes may have different sizes in each step or world
            if d1.shapes.type[0] != MESH:
                height, first_size = first_reach(m1, d1, direction)
            world_direction = d1.shapes.mat[0] @ direction
            direction_in_second = d1.shapes.mat[1].T @ -world_direction
            point, _ = core_support(m1, d1, 1, direction_in_second)
            centres = d1.shapes.pos[1] - d1.shapes.pos[0]
            gap = dot(world_direction, centres) - (height + dot(point, direction_in_second))
            limit = core_limit(d1)
            # bound of the extent of the shapes, for the tolerance
            size = 2.0 * (first_size + sqrt(dot(centres, centres))) + sqrt(dot(point, point))
            inexact = is_curved(d1) or not (is_convex(m1, d1, side=0) and is_convex(m1, d1, side=1))
            clear = CLEAR if inexact else CLEAR_POLYTOPES
            # a negative limit is a depth: the search decides
            apart = gap > limit + clear * size and d1.shapes.limit[0] >= 0.0
    return apart


@kernel
def remember_apart(m1, d1, direction):
    """Caches a direction along which the shapes are apart, of any length, in the frame of the first shape."""
    if d1.recall.pair[0] != 0:
        entry = scalars(d1, d1.recall.pair[0])
        direction, _ = normalize3(direction)
        entry[KEY] = 1.0 * d1.recall.key[0]
        entry[DIRECTION : DIRECTION + 3] = direction
        entry[HEIGHT], entry[SIZE] = first_reach(m1, d1, direction)
        entry[KINDS] = 1.0 * shapes_code(d1)


# ---- touching --------------------------------------------------------------------------------------------------------
@kernel
def proof_at(d1, index):
    """Returns the address of a proof, given its index."""
    return d1.recall.pair[1] + BYTES * (HEADER + ENTRY * d1.nrecall + PROOF * index)


@kernel
def known_proof(d1):
    """Returns the address of the pair's proof, 0 if there is none."""
    address = 0
    if d1.recall.pair[0] != 0:
        entry = scalars(d1, d1.recall.pair[0])
        key = 1.0 * d1.recall.key[0]
        # a negative key: the entry holds the index of a proof.  Another pair's proof may have replaced the pair's proof
        if entry[KEY] == -key:
            proof_address = proof_at(d1, whole(entry[PROOF_INDEX]))
            proof = scalars(d1, proof_address)
            if proof[KEY] == key:
                address = proof_address
    return address


@kernel
def new_proof(d1):
    """Returns the address for writing the pair's proof: the previous one, or the next in the ring buffer."""
    address = known_proof(d1)
    if address == 0:
        memory, entry = scalars(d1, d1.recall.pair[1]), scalars(d1, d1.recall.pair[0])
        # the next index of the ring buffer; the entry then refers to it
        index = whole(memory[NEXT])
        memory[NEXT] = 1.0 * ((index + 1) % d1.nproof)
        entry[KEY] = -(1.0 * d1.recall.key[0])
        entry[PROOF_INDEX] = 1.0 * index
        address = proof_at(d1, index)
    return address
