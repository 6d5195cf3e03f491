"""Caches, per world, the last result for pairs of convex shapes: a separating direction, or a proof of their contact.

    apart       a direction along which they were separated: one support point proves that they still are
    touching    the facet where they are nearest, and a polytope if they overlap (`facet_cache`)

If the cached data proves nothing, the search starts without it.  The cache thus saves time and does not change
results: it is stored outside of a world's state, is not copied with it, and may be lost.

    memory of a world:    the index of the next proof and counts, entries of pairs, proofs
    entry of a pair:      key, direction (3,) in the first shape's frame, how far that shape reaches along it, and from
                          its centre, kinds of shapes, the second's nearest vertex;  or -key, index of the proof

The pair's number determines its entry, which it takes over from the pair stored there before.  Proofs are longer and
fewer; they are stored in a ring buffer.
Source: Cundall, "Formulation of a three-dimensional distinct element model" (1988), stores a common plane of each
    pair; van den Bergen, Collision Detection in Interactive 3D Environments, sec. 4.3.6, a separating axis.
"""

from __future__ import annotations

import numpy as np

from featherlane.prelude import *
from featherlane.collision.convex.support import NO_VERTEX, climb, core_limit, core_support, is_convex, is_curved
from featherlane.lanes.record import address

HEADER, ENTRY, PROOF = 8, 8, 48  # lengths in values
# offsets in the header: index of the next proof; counts of pairs solved by each method
NEXT, BY_DIRECTION, BY_PROOF, BY_SEARCH, BY_GROWTH = range(5)
HEIGHT, SIZE, KINDS, VERTEX = range(4, 8)  # offsets in an entry
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
def find_entry(d, lane, number):
    """Finds a pair's entry: recall.pair <- address of the entry, and address of the memory; 0: no entry."""
    memory = d.recall_address[lane]
    entry = 0
    if memory != 0 and d.nrecall > 0:
        entry = memory + 8 * (HEADER + ENTRY * (number & (d.nrecall - 1)))
    d.recall.pair[0], d.recall.pair[1] = entry, memory


@kernel
def count_method(d1, what):
    """Counts the method that solved the current pair."""
    if d1.recall.pair[0] != 0:
        memory = scalars(d1, d1.recall.pair[1])
        memory[what] = memory[what] + 1.0


@kernel
def shapes_code(d1):
    """Returns a code of the types and meshes of two shapes."""
    code = (d1.shapes.type[0] * 16 + d1.shapes.type[1]) * 1048576 + (d1.shapes.data[0] + 1)
    return code * 1048576 + (d1.shapes.data[1] + 1)


# ---- apart -----------------------------------------------------------------------------------------------------------
@kernel
def first_reach(m1, d1, u):
    """Returns (height, distance from its centre) of the first core's farthest point along u, in its frame."""
    a, _ = core_support(m1, d1, 0, u)
    return dot(a, u), sqrt(dot(a, a))


@kernel
def second_support(m1, d1, v, vertex):
    """Returns `core_support` of the second core, for a convex hull by climbing from a given vertex."""
    if vertex >= 0 and d1.shapes.type[1] == MESH and is_convex(m1, d1, 1):
        mesh = d1.shapes.data[1]
        start, n = m1.hull_vertadr[mesh], m1.hull_vertnum[mesh]
        vertex = climb(m1, start, n, v, vertex)
        b = m1.hull_vert[start + vertex]
    else:
        b, vertex = core_support(m1, d1, 1, v)
    return b, vertex


@kernel
def is_apart_as_before(m1, d1):
    """Returns whether the cached direction proves that the shapes are farther apart than the limit.

    It is constant in the first shape's frame, and so is a hull's extent along it.
    """
    apart = False
    if d1.recall.pair[0] != 0:
        entry = scalars(d1, d1.recall.pair[0])
        if entry[0] == 1.0 * d1.recall.key[0] and entry[KINDS] == 1.0 * shapes_code(d1):
            u = Vec3(entry[1:4])
            height, size = entry[HEIGHT], entry[SIZE]
            if d1.shapes.type[0] != MESH:
                height, size = first_reach(m1, d1, u)
            n = d1.shapes.mat[0] @ u
            v = d1.shapes.mat[1].T @ -n
            b, vertex = second_support(m1, d1, v, whole(entry[VERTEX]))
            entry[VERTEX] = 1.0 * vertex
            p = d1.shapes.pos[1] - d1.shapes.pos[0]
            gap, reach = dot(n, p) - (height + dot(b, v)), core_limit(d1)
            size = 2.0 * (size + sqrt(dot(p, p))) + sqrt(dot(b, b))
            clear = CLEAR if is_curved(d1) or not (is_convex(m1, d1, 0) and is_convex(m1, d1, 1)) else CLEAR_POLYTOPES
            apart = gap > reach + clear * size and d1.shapes.limit[0] >= 0.0
    return apart


@kernel
def remember_apart(m1, d1, u):
    """Caches a direction along which the shapes were apart, in the frame of the first."""
    if d1.recall.pair[0] != 0:
        entry, one = scalars(d1, d1.recall.pair[0]), 1.0
        u, _ = normalize3(u)
        entry[0] = one * d1.recall.key[0]
        entry[1:4] = u
        entry[HEIGHT], entry[SIZE] = first_reach(m1, d1, u)
        entry[KINDS], entry[VERTEX] = one * shapes_code(d1), one * NO_VERTEX


# ---- touching --------------------------------------------------------------------------------------------------------
@kernel
def proof_at(d1, place):
    """Returns the address of a proof."""
    return d1.recall.pair[1] + 8 * (HEADER + ENTRY * d1.nrecall + PROOF * place)


@kernel
def known_proof(d1):
    """Returns the address of the pair's proof, 0: there is none."""
    address = 0
    if d1.recall.pair[0] != 0:
        entry, key = scalars(d1, d1.recall.pair[0]), 1.0 * d1.recall.key[0]
        if entry[0] == -key:
            place = proof_at(d1, whole(entry[1]))
            proof = scalars(d1, place)
            if proof[0] == key:
                address = place
    return address


@kernel
def new_proof(d1):
    """Returns the address for writing the pair's proof: the previous one, or the next in the ring buffer."""
    address = known_proof(d1)
    if address == 0:
        memory, entry = scalars(d1, d1.recall.pair[1]), scalars(d1, d1.recall.pair[0])
        place = whole(memory[NEXT])
        memory[NEXT] = 1.0 * ((place + 1) % d1.nproof)
        entry[0], entry[1] = -(1.0 * d1.recall.key[0]), 1.0 * place
        address = proof_at(d1, place)
    return address
