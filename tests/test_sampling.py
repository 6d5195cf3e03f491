"""The samples of tests/sampling.py: no case is lost, and pairwise samples contain every pair of values."""

from itertools import combinations

import pytest

from sampling import every, in_ci, pairwise

AXES = ("a", "b", "c"), (0, 1), ("x", "y"), (True, False)


def split(cases):
    """Returns (values that run by default, values that run in CI)."""
    params = [case for case in cases if isinstance(case, type(pytest.param()))]
    assert all("ci" in {mark.name for mark in case.marks} for case in params)
    return [case for case in cases if case not in params], [case.values for case in params]


def test_every_takes_each_nth_case_and_keeps_marks():
    assert split(every(2, "abcde")) == (["a", "c", "e"], [("b",), ("d",)])
    assert split(every(2, [(1, 2), (3, 4)])) == ([(1, 2)], [(3, 4)])
    marked = every(2, ["a", pytest.param("b", marks=pytest.mark.slow)])[1]
    assert marked.values == ("b",) and [mark.name for mark in marked.marks] == ["slow", "ci"]
    assert in_ci(1, 2).values == (1, 2)


def test_pairwise_samples_contain_every_pair_of_values():
    default, rest = split(pairwise(*AXES))
    assert len({*default, *rest}) == len(default) + len(rest) == 24
    assert 6 <= len(default) < 12
    for i, j in combinations(range(len(AXES)), 2):
        assert {(case[i], case[j]) for case in default} == {(a, b) for a in AXES[i] for b in AXES[j]}
