"""Selects the cases of a large parameter set that run by default; the others run in CI."""

from __future__ import annotations

from itertools import combinations, product

import pytest


def every(step: int, cases) -> list:
    """Returns cases of which every `step`-th runs by default, from the first on; a tuple holds one per parameter."""
    return [case if k % step == 0 else _in_ci(case) for k, case in enumerate(cases)]


def pairwise(*axes) -> list:
    """Returns all combinations of the axes' values; the default ones contain each pair of values of two axes.

    A combination runs by default if it contains a pair that no earlier default one does (greedy, by new pairs).
    """
    cases = list(product(*map(range, map(len, axes))))
    pairs = {case: {((i, case[i]), (j, case[j])) for i, j in combinations(range(len(axes)), 2)} for case in cases}
    missing, chosen = set().union(*pairs.values()), set()
    while missing:
        best = max(cases, key=lambda case: len(pairs[case] & missing))
        missing -= pairs[best]
        chosen.add(best)
    values = {case: tuple(axis[i] for axis, i in zip(axes, case, strict=True)) for case in cases}
    return [values[case] if case in chosen else in_ci(*values[case]) for case in cases]


def in_ci(*values, marks=()):
    """Returns a case that runs in CI only."""
    return pytest.param(*values, marks=[*marks, pytest.mark.ci])


def _in_ci(case):
    if isinstance(case, type(pytest.param())):
        return in_ci(*case.values, marks=case.marks)
    return in_ci(*case) if isinstance(case, tuple) else in_ci(case)
