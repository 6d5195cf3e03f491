"""What is made of words of PCG64, against what NumPy makes of them."""

from __future__ import annotations

import numpy as np
import pytest

from featherlane.environments import RandomStreams, random_streams, raw_numbers
from featherlane.environments.raw_numbers import STRIPS, agrees, normals, units, ziggurat

WORLDS, EACH = 1000, 1500  # a million and a half normal numbers: 10,000 that a word does not suffice for
TAIL = 3.654152885361009  # where the ziggurat's tail begins


def words(seed, n):
    return np.random.PCG64(seed).random_raw(n)


def test_uniform_numbers_are_numpys():
    np.testing.assert_array_equal(units(words(1, 10**6)), np.random.default_rng(1).random(10**6))


def test_a_million_normal_numbers_are_numpys_with_wedges_and_tails():
    streams, ids, rng = RandomStreams(WORLDS, 5), np.arange(WORLDS), np.random.default_rng(0)
    drawn = []
    while (left := EACH - sum(part.shape[1] for part in drawn)) > 0:
        drawn.append(streams.normal(ids, min(left, int(rng.integers(1, 90)))))
    ours = np.concatenate(drawn, axis=1)
    np.testing.assert_array_equal(ours, [np.random.default_rng(5 + i).standard_normal(EACH) for i in ids])
    assert (np.abs(ours) > TAIL).sum() > 100


def test_words_that_suffice_are_most_and_known_for_sure():
    drawn, sure = normals(words(2, 10**6))
    assert 0.985 < sure.mean() < 0.995
    scale, bound = ziggurat()
    assert (np.abs(drawn[sure]) < TAIL).all()
    np.testing.assert_allclose(scale[STRIPS - 1] * 2.0**52, TAIL, rtol=1e-15)
    assert (np.diff(scale[1:STRIPS]) > 0).all() and (bound[2:STRIPS] > 0).all() and bound[1] == 0


@pytest.mark.parametrize("count", [1, 2, 7, 24, 10**9, 2**31 + 1, 2**32 - 1, 2**32, 2**40])
def test_whole_numbers_are_numpys(count):
    streams, ids = RandomStreams(40, 3), np.arange(40)
    theirs = [np.random.default_rng(3 + i) for i in ids]
    for n in (1, 3, 30, 2):
        expected = [generator.integers(-5, count - 5, n) for generator in theirs]
        np.testing.assert_array_equal(streams.integers(ids, -5, count - 5, n), expected)


def test_a_numpy_that_draws_otherwise_is_found_out(monkeypatch):
    assert agrees()
    for name, wrong in {
        "units": lambda words: units(words) + 2.0**-53,
        "normals": lambda words: (normals(words)[0] * (1.0 + 2.0**-52), normals(words)[1]),
        "least_accepted": lambda count: 0,
    }.items():
        with monkeypatch.context() as patch:
            patch.setattr(raw_numbers, name, wrong)
            assert not agrees.__wrapped__(), name


def test_where_numpy_draws_otherwise_it_draws_all(monkeypatch):
    monkeypatch.setattr(random_streams, "agrees", lambda: False)
    for name in ("units", "normals"):
        monkeypatch.setattr(random_streams, name, None)
    streams, ids, theirs = RandomStreams(3, 9), np.arange(3), [np.random.default_rng(9 + i) for i in range(3)]
    for n in (3, 70):
        np.testing.assert_array_equal(streams.uniform(ids, 1.0, 3.0, n), [g.uniform(1.0, 3.0, n) for g in theirs])
        np.testing.assert_array_equal(streams.normal(ids, n), [g.standard_normal(n) for g in theirs])
        np.testing.assert_array_equal(streams.integers(ids, 0, 9, n), [g.integers(0, 9, n) for g in theirs])
