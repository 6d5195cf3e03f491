"""Selects which worlds share a tile: worlds with similar contacts.

A tile computes every contact that any of its worlds has; in a world without that contact the lane is idle.  The pattern
of a world is the set of its touching pairs, and of bits for the iterations of its last solve, which are treated as
pairs (`sign_contacts`).  Worlds are grouped so that the union of their patterns is small, in each
block of `BLOCK` worlds:

    count    how many worlds have each pair; rare pairs are most useful for grouping
    sort     patterns by their pairs, the rarest first, so that similar patterns are adjacent
    fill     a tile takes the first remaining world and then, one after the other, from the next POOL worlds the one
             that adds least to the union

The record `a` holds all fields; `first` and `n` are the first world of a block and its number of worlds; `words` is the
number of words of a pattern, word w of the pattern of world k of the block is a.pattern[k words + w].
No result depends on the order; an order that is some steps old only changes the time that steps take.
Threads order blocks in parallel.  Tiles of a block load and store rows of neighbouring worlds, and a block is a whole
number of cache lines of every field, so threads that step different blocks write to no common line.
Measured at the row mjx/shadow_hand/scene_right of benchmarks/robots.py, 256 worlds: unsorted worlds take 1.13 times as
long as filled tiles, worlds that are only sorted 1.07 times.
"""

from featherlane.engine.prelude import *
from featherlane.engine.lanes import Layout
from featherlane.engine.lanes.layout import Declare, size
from featherlane.engine.lanes.sort import sort
from featherlane.engine.simulation.tile.capacity import SIGNATURE_BITS

POOL = 64  # worlds among which the next one of a tile is searched
WORLD_BITS = 9  # of the number of a world in its block
BLOCK = 1 << WORLD_BITS  # worlds that are ordered together: 64 tiles of eight
WORD = 62 - WORLD_BITS  # pairs in a word of a pattern

_field = Declare()
ARRANGEMENT = Layout(
    "Arrangement",
    (
        size("nworld", "worlds"),
        size("nsignature", "words of each signature"),
        size("nbit", "candidate pairs of a signature"),
        size("nword", "words of each pattern, at most"),
        size("tile_width", "worlds of a tile"),
        # of all threads
        _field.long("signature", "nworld nsignature", "1", "pairs in contact, written by `sign_contacts`"),
        _field.long("tile_world", "nworld", "1", "worlds in the order of tiles"),
        # of one block
        _field.long("bit_count", "nbit", "1", "number of worlds in which the pair is in contact"),
        _field.long("bit_key", "nbit", "1", "sort key of each pair in contact: its number of worlds, then the pair"),
        _field.long("bit_buffer", "nbit", "1", "buffer of the sort"),
        _field.long("bit_rank", "nbit", "1", "rank of a pair in this order"),
        _field.long("pattern", f"{BLOCK} nword", "1", "pairs in contact as bits, the rarest pair in the highest bit"),
        _field.long("sorted_world", f"{BLOCK}", "1", "worlds of the block in the order of their patterns"),
        _field.long("world_key", f"{BLOCK}", "1", "sort key of each world: a word of its pattern, then its position"),
        _field.long("world_buffer", f"{BLOCK}", "1", "buffer of the sort"),
        _field.long("pool", f"{POOL}", "1", "next worlds without a tile"),
        _field.long("union", "nword", "1", "pairs in contact in the tile so far"),
    ),
)


@kernel
def lowest_pair(word, left):
    """Returns the pair number, as in `sign_contacts`, of the lowest set bit of `left`, the rest of a signature's word.

    A word holds SIGNATURE_BITS pairs, the first in the highest bit.
    """
    # left & -left is the lowest set bit; minus 1, it has as many ones as the index of that bit
    return (word + 1) * SIGNATURE_BITS - 1 - count_ones((left & -left) - 1)


@kernel
def rank_pairs(a, first, n):
    """Ranks the pairs that touch in some of n worlds, the rarest first; returns their number.

    A pair is the number of its bit in a signature (`lowest_pair`).  A sort key is (number of worlds) nbit + pair.
    Writes: bit_rank of each pair; bit_count, bit_key.
    """
    for bit in range(a.nbit):
        a.bit_count[bit] = 0
    for k in range(first * a.nsignature, (first + n) * a.nsignature):
        left = a.signature[k]
        while left != 0:
            bit = lowest_pair(k % a.nsignature, left)
            a.bit_count[bit] = a.bit_count[bit] + 1
            left = left & (left - 1)  # without its lowest bit
    pairs = 0
    for bit in range(a.nbit):
        if a.bit_count[bit] > 0:
            a.bit_key[pairs] = a.bit_count[bit] * a.nbit + bit
            pairs += 1
    sort(a.bit_key, a.bit_buffer, pairs)
    for rank in range(pairs):
        a.bit_rank[a.bit_key[rank] % a.nbit] = rank
    return pairs


@kernel
def pack_patterns(a, first, n, words):
    """Writes `pattern`, the pairs of n worlds as bits by their ranks, so that words sort by the rarest pair.

    The pair of rank r is bit WORD - 1 - r % WORD of word r // WORD: the rarest pair is the highest bit of word 0.
    """
    for k in range(n * words):
        a.pattern[k] = 0
    for k in range(n * a.nsignature):
        left = a.signature[first * a.nsignature + k]
        while left != 0:
            rank = a.bit_rank[lowest_pair(k % a.nsignature, left)]
            entry = k // a.nsignature * words + rank // WORD  # the word of world k // nsignature
            a.pattern[entry] = a.pattern[entry] | (1 << (WORD - 1 - rank % WORD))
            left = left & (left - 1)


@kernel
def sort_worlds(a, n, words):
    """Writes sorted_world: n worlds by their patterns; equal worlds stay in their order.

    It is a radix sort: stable sorts by each word, from the last word to the first.  The lower bits of a key are the
    position in the order before: they make the sort stable, and identify the world.
    """
    for k in range(n):
        a.sorted_world[k] = k
    for round in range(words):
        for k in range(n):
            a.world_key[k] = (a.pattern[a.sorted_world[k] * words + words - 1 - round] << WORLD_BITS) | k
        sort(a.world_key, a.world_buffer, n)
        for k in range(n):
            a.world_buffer[k] = a.sorted_world[a.world_key[k] & (BLOCK - 1)]
        for k in range(n):
            a.sorted_world[k] = a.world_buffer[k]


@kernel
def misfit(a, world, words):
    """Returns the cost of adding a world to the tile of `union`.

    The cost is the number of pairs that it adds to the union; among equal ones the number of pairs of the union that it
    lacks decides.
    """
    added, lacked = 0, 0
    for word in range(words):
        pattern, union = a.pattern[world * words + word], a.union[word]
        joined = pattern | union
        added += count_ones(joined ^ union)
        lacked += count_ones(joined ^ pattern)
    return added * a.nbit + lacked


@kernel
def fill_tiles(a, first, n, words):
    """Writes tile_world: assigns n worlds to tiles, tile by tile, in the order of their patterns.

    The next world of a tile is the one in `pool` with the least misfit.
    """
    waiting = 0  # number of worlds in the pool
    following = 0  # index in sorted_world of the world that enters the pool next
    for position in range(n):
        while waiting < POOL and following < n:
            a.pool[waiting] = a.sorted_world[following]
            waiting, following = waiting + 1, following + 1
        best = 0  # index in the pool of the next world; a new tile starts with the first one
        if position % a.tile_width == 0:
            for word in range(words):
                a.union[word] = 0
        else:
            least = misfit(a, a.pool[0], words)
            for k in range(1, waiting):
                if least == 0:
                    break
                cost = misfit(a, a.pool[k], words)
                if cost < least:
                    least, best = cost, k
        world = a.pool[best]
        for word in range(words):
            a.union[word] = a.union[word] | a.pattern[world * words + word]
        a.tile_world[first + position] = first + world
        waiting -= 1
        for k in range(best, waiting):
            a.pool[k] = a.pool[k + 1]


@stage(a1=ARRANGEMENT)
def arrange_block(a1, block):
    """Orders the worlds of a block for tiles.

    Reads:  signature.
    Writes: tile_world.
    Scratch: bit_count, bit_key, bit_buffer, bit_rank, pattern, sorted_world, world_key, world_buffer, pool, union.
    """
    first = block * BLOCK
    n = a1.nworld - first if a1.nworld - first < BLOCK else BLOCK
    words = (rank_pairs(a1, first, n) + WORD - 1) // WORD
    words = words if words > 0 else 1
    pack_patterns(a1, first, n, words)
    sort_worlds(a1, n, words)
    fill_tiles(a1, first, n, words)
