"""The order of a sweep: every block once, determined by the blocks and not by their positions."""

import numpy as np

from featherlane.engine.solver.dual.visit_order import (
    PERIOD,
    block_hash,
    is_scrambled,
    mix_hash,
    order_blocks,
    visited_block,
)
from oracles.uncompiled import call, record

ROWS, GENERAL, CONTACTS = 4, 3, 9
SWEEPS = range(12)


def blocks(keep=None, again=()):
    """Returns rows and contacts of a tile; `keep` selects worlds, in their order."""
    rng = np.random.default_rng(5)
    types, ids = rng.integers(1, 5, ROWS), np.arange(10, 10 + ROWS)
    general, names = rng.integers(1, 7, GENERAL), np.arange(3, 3 + GENERAL)
    points, carriers = rng.integers(0, 4, CONTACTS), rng.integers(0, 9, (CONTACTS, 2))
    geoms = rng.integers(-1, 9, (CONTACTS, 2))
    for k in again:
        points[k], carriers[k], geoms[k] = points[0], carriers[0], geoms[0]
    r, g, c = (np.arange(n) for n in (ROWS, GENERAL, CONTACTS)) if keep is None else map(np.array, keep)
    n = len(r) + len(g) + len(c)
    d = record(
        1,
        ndofrow=[len(r)],
        nrow=[len(r) + len(g)],
        row_type=[*types[r], *general[g]],
        row_id=[*ids[r], *names[g]],
        con_point=points[c],
        con_carrier=carriers[c].ravel(),
        con_geom=geoms[c].ravel(),
        dual={"ndual": [n], "visit_key": np.zeros(n + 1, int), "visit_room": np.zeros(n + 1, int)},
    )
    return d, [*(("row", k) for k in r), *(("general", k) for k in g), *(("contact", k) for k in c)]


def order(d, names, sweep):
    if call(is_scrambled, sweep):
        call(order_blocks, d, sweep)
    return [names[call(visited_block, d, sweep, place)] for place in range(len(names))]


def test_every_block_is_visited_once_and_some_sweeps_are_scrambled():
    d, names = blocks()
    for sweep in SWEEPS:
        found = order(d, names, sweep)
        assert sorted(found) == sorted(names)
        assert (found == names) == (sweep % PERIOD != PERIOD - 1)
    scrambled = [tuple(order(d, names, PERIOD * k - 1)) for k in range(1, 9)]
    assert len({*scrambled}) == 8
    first = {found[0] for found in scrambled}
    assert len(first) > 3


def test_the_order_is_the_same_in_any_batch():
    d, names = blocks()
    mates = ([0, 3], [1], [0, 2, 5, 8])
    few, few_names = blocks(mates)
    for sweep in SWEEPS:
        kept = [name for name in order(d, names, sweep) if name in few_names]
        assert order(few, few_names, sweep) == kept


def test_blocks_that_share_their_number_stay_in_their_order():
    d, names = blocks(again=(4, 7))
    same = [names.index(("contact", k)) for k in (0, 4, 7)]
    for sweep in (3, 7, 11):
        assert len({call(block_hash, d, q, sweep) for q in same}) == 1
        found = order(d, names, sweep)
        assert [k for kind, k in found if kind == "contact" and k in (0, 4, 7)] == [0, 4, 7]


def test_every_property_of_a_block_changes_its_hash():
    d, names = blocks()
    for q, (kind, _) in enumerate(names):
        before = call(block_hash, d, q, 3)
        k = q - (ROWS + GENERAL if kind == "contact" else 0)
        tables = [(d.con_point, k), *((t, 2 * k + i) for t in (d.con_carrier, d.con_geom) for i in range(2))]
        if kind != "contact":
            tables = [(d.row_type, k), (d.row_id, k)]
        for table, at in tables:
            table.array[at] += 1
            assert call(block_hash, d, q, 3) != before
            table.array[at] -= 1
        assert call(block_hash, d, q, 7) != before


def test_numbers_spread_evenly():
    """Keys of blocks from two integers: the same number in each 16th, hardly any twice, all below 2^31."""
    first = [call(mix_hash, 1, sweep) for sweep in (3, 7, 11)]
    found = np.array([call(mix_hash, call(mix_hash, h, x), y) for h in first for x in range(1000) for y in range(10)])
    assert (found >= 0).all() and (found < 2**31).all() and np.unique(found).size >= found.size - 2
    counts = np.histogram(found, 16, (0, 2**31))[0]
    assert np.abs(counts / found.size - 1 / 16).max() < 0.01
