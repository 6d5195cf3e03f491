"""The position of an entry of H: every lookup finds the column that is listed there."""

import numpy as np
import pytest

from featherlane.engine.solver.hessian.entries.pattern import (
    block_offset,
    diagonal_block,
    find_block,
    find_offset,
    has_block_rows,
    has_couplings,
    is_above,
    offset_in_block,
)
from oracles.hessians import columns
from oracles.uncompiled import call
from scenes.factorizations import PATTERNS, on

WAYS = ("tree", "paths", "blocks", "ordered", "apart")


@pytest.fixture(params=WAYS)
def s(request, monkeypatch, rng):
    s = on(request.param, monkeypatch, rng)
    s.way, s.listed = request.param, [[*map(int, columns(s.w, i))] for i in range(s.nv)]
    return s


def test_patterns_have_block_rows_and_couplings_or_not(s):
    assert call(has_block_rows, s.d) == (s.way in ("blocks", "ordered"))
    assert call(has_couplings, s.d) == (s.way in ("blocks", "ordered", "paths"))
    assert s.a["hessian.pattern"][0] == PATTERNS[s.way]


def test_places_of_columns_match_their_list(s):
    """Row after row from the diagonal down, in the order in which contact rows are entered."""
    blocks = call(has_block_rows, s.d)
    for i, row in enumerate(s.listed):
        assert row[-1] == i and row == sorted({*row})
        e = call(diagonal_block, s.m, s.d, i) if blocks else 0
        for j in reversed(row):
            e, place = call(find_offset, s.m, s.d, blocks, e, j)
            assert row[place] == j
            if blocks:
                assert call(find_block, s.m, s.d, call(diagonal_block, s.m, s.d, i), j) == e
                assert call(offset_in_block, s.m, s.d, e, j) == place


def test_a_block_is_placed_at_its_first_column(s):
    model = s.model
    for b in range(model.nblock):
        row = s.listed[model.block_dofadr[b]]
        for c in range(b + 1):
            if model.block_dofadr[c] in row:
                assert row[call(block_offset, s.m, s.d, b, c)] == model.block_dofadr[c]


def test_the_entries_of_h_have_their_places(s):
    """The pattern has all nonzero entries by definition, in any world."""
    for lane, problem in enumerate(s.problems):
        H = problem.hessian(s.point[:, lane])
        for i, row in enumerate(s.listed):
            others = {*np.flatnonzero(np.abs(H[i, : i + 1]) > 1e-12).tolist()} - {*row}
            assert not others or s.way == "apart" or (s.way == "ordered" and others)


def test_ancestors_are_on_the_path_to_the_root(monkeypatch, rng):
    s = on("paths", monkeypatch, rng)
    for j in range(s.nv):
        chain, i = set(), j
        while i >= 0:
            chain.add(i)
            i = s.model.dof_parentid[i]
        assert {i for i in range(s.nv) if call(is_above, s.m, i, j)} == chain
