"""The order of visits: a permutation at any time, and equal to QuickStep's."""

import numpy as np
import pytest

from featherlane.engine.solver.lcp.sweep import order
from scenes.lcp_records import empty


def tile(findex):
    p = empty(nlcp=len(findex))
    p.lcp.n[0], p.lcp.findex.array[...] = len(findex), findex
    return p


FINDEX = [-1, 0, 0, -1, -1, 4, -1]


def test_rows_in_given_order_or_friction_last():
    p = tile(FINDEX)
    order.start_order(p, 0)
    assert p.lcp.order.array.tolist() == list(range(7))
    order.start_order(p, 1)
    assert p.lcp.order.array.tolist() == [0, 3, 4, 6, 1, 2, 5]


@pytest.mark.parametrize("n", [7, 40, 300])
def test_shuffles_equal_those_of_quickstep(n):
    """Swaps row k with a random row up to it, by a linear congruential generator, in every eighth sweep."""
    p = tile(n * [-1])
    order.start_order(p, 0)
    seed, expected, shuffles = 42, list(range(n)), 0
    p.lcp.seed[0] = seed
    for sweep in range(20):
        order.shuffle_order(p, sweep)
        if sweep in (8, 16):
            shuffles += 1
            for k in range(1, n):
                seed = (1664525 * seed + 1013904223) % 2**32
                j = order.random_below(seed, k + 1)
                expected[k], expected[j] = expected[j], expected[k]
        assert p.lcp.order.array.tolist() == expected and p.lcp.seed[0] == seed
    assert sorted(expected) == list(range(n)) != expected and shuffles == 2


def folded(r, n):
    """Folds the bits of r onto as few as n needs, then scales: dRandInt as documented."""
    for bits in (16, 8, 4, 2, 1):
        if n > 1 << bits:
            break
        r ^= r >> bits
    width = {16: 32, 8: 16, 4: 8, 2: 4, 1: 2}[bits] if n > 2 else 1
    return ((r & ((1 << width) - 1)) * n) >> width


def test_random_numbers_are_below_n_and_each_as_likely(rng):
    for n in (1, 2, 3, 4, 5, 8, 15, 16, 17, 60, 255, 256, 257, 1000, 65535, 65536, 65537, 10**6):
        drawn = [int(r) for r in rng.integers(1 << 32, size=400)]
        found = [order.random_below(r, n) for r in drawn]
        assert found == [folded(r, n) for r in drawn], n
        assert min(found) >= 0 and max(found) < n
        if n <= 16:
            counts = np.bincount(found, minlength=n)
            assert counts.min() > 0.3 * len(drawn) / n
