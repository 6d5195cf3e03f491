"""Sums over worlds are bitwise identical for any distribution, by a fixed tree; without Ray."""

from itertools import pairwise

import numpy as np
import pytest

import featherlane as fl
from featherlane.distributed.world_assignment import Spread
from featherlane.engine.simulation.batch.reduction import (
    Histogram,
    Reduction,
)

N = 37


def over(parts, how, rows, worlds):
    """Reduces worlds that are split at some numbers."""
    cuts = [0, *parts, N]
    found = []
    for a, b in pairwise(cuts):
        here = (worlds >= a) & (worlds < b)
        found.append(Reduction.of(how).partial(rows[here], worlds[here]))
    return Reduction.of(how).merged(found)


@pytest.mark.parametrize("how", ["sum", "mean"])
def test_a_sum_is_bitwise_equal_for_any_distribution_of_worlds(how, rng):
    rows = rng.standard_normal((N, 3)) * 10.0 ** rng.integers(-8, 8, (N, 3))
    whole = over([], how, rows, np.arange(N))
    np.testing.assert_allclose(whole, getattr(rows, how)(axis=0), rtol=1e-9, atol=1e-6)
    for _ in range(50):
        parts = np.sort(rng.choice(np.arange(1, N), rng.integers(1, 6), replace=False))
        assert over(parts, how, rows, np.arange(N)).tobytes() == whole.tobytes()


def test_a_sum_over_some_worlds_is_bitwise_equal_in_any_order(rng):
    rows, worlds = rng.standard_normal((N, 2)) * 1e3, np.arange(N)
    some = rng.choice(N, 11, replace=False)
    whole = over([], "sum", rows[np.sort(some)], np.sort(some))
    for parts in ([5], [5, 6, 7], [1, 30]):
        assert over(parts, "sum", rows[some], worlds[some]).tobytes() == whole.tobytes()


def test_reductions_return_positive_zeros():
    rows = np.full((N, 1), -0.0)
    assert over([], "sum", rows, np.arange(N)).tobytes() == over([1, 2, 3], "sum", rows, np.arange(N)).tobytes()


def test_extremes_and_counts_over_parts(rng):
    rows = rng.standard_normal((N, 2, 3))
    assert np.array_equal(over([3, 20], "max", rows, np.arange(N)), rows.max(axis=0))
    assert np.array_equal(over([3, 3, 20], "min", rows, np.arange(N)), rows.min(axis=0))
    edges = (-1.0, 0.0, 1.0)
    counts = over([9], Histogram(edges), rows, np.arange(N))
    assert counts.shape == (2, 3, 2)
    assert np.array_equal(counts[1, 2], np.histogram(rows[:, 1, 2], edges)[0])


def test_nan_is_in_no_bin_and_makes_a_sum_nan():
    rows = np.array([[np.nan], [0.5], [2.0]])
    assert Reduction.of(Histogram((0.0, 1.0))).merged(
        [Reduction.of(Histogram((0.0, 1.0))).partial(rows, np.arange(3))]
    ).tolist() == [[1]]
    assert np.isnan(Reduction.of("mean").merged([Reduction.of("mean").partial(rows, np.arange(3))])).all()


@pytest.mark.parametrize("how", ["median", 3, None, Histogram((1.0, 0.0)), Histogram((1.0,)), Histogram((0.0, np.nan))])
def test_other_reductions_are_refused(how):
    with pytest.raises(fl.ModelError):
        Reduction.of(how)


@pytest.mark.parametrize(
    "nworld, threads", [(100, [1, 1]), (4096, [2, 1, 1]), (5, [1, 1, 1]), (1, [4]), (9, [8, 1]), (3, [99, 1, 1])]
)
def test_worlds_are_spread_by_threads_in_whole_tiles(nworld, threads):
    spread = Spread(nworld, threads, 8)
    numbers = [spread.number(k) for k in range(len(threads))]
    assert sum(numbers) == nworld and min(numbers) >= 1
    if nworld >= 8 * len(threads):
        assert all(n % 8 == 0 for n in numbers[:-1])
        np.testing.assert_allclose(numbers, nworld * np.array(threads) / sum(threads), atol=8)


def test_each_chosen_world_is_in_one_part(rng):
    spread = Spread(50, [1, 1, 1], 8)
    chosen = rng.permutation(50)[:20]
    found = np.full(20, -1)
    for part in spread.parts(chosen):
        found[part.at] = part.ids + spread.starts[part.worker]
    assert np.array_equal(found, chosen)
    assert [part.ids for part in spread.parts(np.arange(50))] == [None] * 3
    assert list(spread.parts(np.zeros(0, int))) == []
