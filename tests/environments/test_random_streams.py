"""Generators of worlds: NumPy's numbers, independent of the sizes in which they are sampled."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.simulation.batch import random_rows
from featherlane.environments import RandomStreams

N = 5
ALL = np.arange(N)


def numpys(seed):
    return [np.random.default_rng(seed + i) for i in range(N)]


def test_uniform_samples_equal_numpy_for_any_chunk_sizes():
    streams, theirs = RandomStreams(N, 3), numpys(3)
    rng = np.random.default_rng(0)
    for n in (1, 7, 60, 64, 65, 128, 129, 200, 3, 5, 1500, 2, 0, 300):
        ids = np.flatnonzero(rng.random(N) < 0.7)
        expected = [theirs[i].uniform(-0.3, 0.7, n) for i in ids]
        np.testing.assert_array_equal(streams.uniform(ids, -0.3, 0.7, n), np.reshape(expected, (len(ids), n)))


@pytest.mark.parametrize("calls", ["unu", "nun", "uuiun", "ugu", "uupu", "opuo", "nonobuo", "obno", "ougoun", "puponp"])
def test_other_samples_continue_after_uniform_samples(calls):
    streams, theirs = RandomStreams(N, 8), numpys(8)
    for call in calls * 3:
        if call == "u":
            ours, other = streams.uniform(ALL, 0.0, 2.0, 9), [g.uniform(0.0, 2.0, 9) for g in theirs]
        elif call == "n":
            ours, other = streams.normal(ALL, 4), [g.standard_normal(4) for g in theirs]
        elif call == "i":
            ours, other = streams.integers(ALL, 2, 90, 6), [g.integers(2, 90, 6) for g in theirs]
        elif call == "o":  # an odd count leaves half a word
            ours, other = streams.integers(ALL, 2, 90, 5), [g.integers(2, 90, 5) for g in theirs]
        elif call == "b":  # 64 bits each: a remaining half word stays
            ours, other = streams.integers(ALL, 0, 2**60, 3), [g.integers(0, 2**60, 3) for g in theirs]
        elif call == "g":
            ours, other = streams[2].exponential(size=3), theirs[2].exponential(size=3)
        else:
            streams, ours, other = pickle.loads(pickle.dumps(streams)), 0, 0
        np.testing.assert_array_equal(ours, other)


@pytest.mark.parametrize("count", [1, 7, 2**31 + 1, 2**32, 2**40])
def test_integer_samples_equal_numpy(count):
    streams, theirs = RandomStreams(N, 3), numpys(3)
    for n in (1, 3, 30, 2):
        expected = [generator.integers(-5, count - 5, n) for generator in theirs]
        np.testing.assert_array_equal(streams.integers(ALL, -5, count - 5, n), expected)


def test_a_held_generator_stays_synchronized_with_its_world():
    streams, theirs = RandomStreams(N, 4), numpys(4)
    streams.integers(ALL, 0, 5, 1), [g.integers(0, 5, 1) for g in theirs]
    held = streams[3]
    for _ in range(5):
        np.testing.assert_array_equal(streams.normal(ALL, 3), [g.standard_normal(3) for g in theirs])
        assert held.random() == theirs[3].random() and held.integers(9) == theirs[3].integers(9)
    assert streams.generators[3] is held


@pytest.mark.parametrize("compiled", [True, False])
def test_many_and_few_generators_and_repeated_ones_sample_numpys_numbers(monkeypatch, compiled):
    if not compiled:  # a build of NumPy that does not export its C functions
        monkeypatch.setattr(random_rows, "functions", dict)
    elif sys.platform == "linux":
        assert random_rows.functions().keys() == {"random", "standard_normal"}
    streams, theirs = RandomStreams(40, 6), [np.random.default_rng(6 + i) for i in range(40)]
    for ids in (range(40), [39, 7, 0, 12, 5], [3], [2, 2, 2, 9, 2], [-1, -2, -3, -4, 8], [*range(40), 1]):
        ids = np.array(ids)
        np.testing.assert_array_equal(streams.uniform(ids, 0.0, 1.0, 3), [theirs[i].random(3) for i in ids])
        np.testing.assert_array_equal(streams.normal(ids, 5), [theirs[i].standard_normal(5) for i in ids])
        np.testing.assert_array_equal(streams.integers(ids, 0, 9, 3), [theirs[i].integers(0, 9, 3) for i in ids])
    assert [g.bit_generator.state for g in streams.generators] == [g.bit_generator.state for g in theirs]


def test_numbers_of_unknown_generators_are_refused():
    with pytest.raises(IndexError):
        RandomStreams(N).uniform(np.array([0, 1, 2, 3, N]), 0.0, 1.0, 2)


def test_an_empty_choice_consumes_no_random_numbers():
    streams, none = RandomStreams(N, 4), np.zeros(0, np.int64)
    for n in (0, 3, 2000):
        assert streams.uniform(none, 0.0, 1.0, n).shape == streams.normal(none, n).shape == (0, n)
        assert streams.integers(none, 0, 3, n).shape == (0, n)
    np.testing.assert_array_equal(streams.uniform(ALL, 0.0, 1.0, 2), [g.random(2) for g in numpys(4)])


def test_a_new_seed_restarts_the_stream_and_none_continues_it():
    streams = RandomStreams(N, 1)
    streams.uniform(ALL, 0, 1, 3)
    streams.integers(ALL, 0, 3, 1)  # leaves half a word
    streams.reseed(np.array([1, 2, 4]), [5, 6, None, 9, 1])
    theirs = {4: np.random.default_rng(1)}
    drawn = streams.uniform(ALL, 0, 1, 3)
    np.testing.assert_array_equal(drawn[4], theirs[4].random(3))
    for i in (0, 2, 3):
        fresh = np.random.default_rng(1 + i)
        fresh.random(3), fresh.integers(0, 3, 1)
        np.testing.assert_array_equal(drawn[i], fresh.random(3))
    np.testing.assert_array_equal(streams.integers(ALL, 0, 9, 1)[4], theirs[4].integers(0, 9, 1))
    assert streams.entropies == [1, 6, 3, 4, 1]


def test_worlds_without_a_seed_differ_and_report_their_seeds():
    streams = RandomStreams(N)
    drawn = streams.uniform(ALL, 0, 1, 2)
    assert len(np.unique(drawn)) == 2 * N
    np.testing.assert_array_equal(RandomStreams(N, streams.entropies).uniform(ALL, 0, 1, 2), drawn)


@pytest.mark.parametrize("seed", [np.array(1), np.ones((N, 2), int), "1", 1.0, True, -1])
def test_an_invalid_seed_is_named(seed):
    with pytest.raises(fl.ModelError, match="seed"):
        RandomStreams(N, seed)
    with pytest.raises(fl.ModelError):
        RandomStreams(N).reseed(ALL, seed)
