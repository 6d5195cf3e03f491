"""Each factorization is chosen in a scene designed for it, and kept while the couplings stay."""

import numpy as np
import pytest

from featherlane.engine.solver.hessian import capacity
from featherlane.engine.solver.hessian.choice import select_factorization
from featherlane.engine.solver.hessian.entries.pattern import BLOCKS, ORDERED, PATHS, TREE
from featherlane.engine.solver.hessian.factorizations import ordered
from oracles.uncompiled import call
from scenes.factorizations import PATTERNS, on
from scenes.touching import touching


@pytest.mark.parametrize("way", PATTERNS)
def test_each_factorization_is_chosen_in_its_scene(way, monkeypatch, rng):
    s = on(way, monkeypatch, rng)
    if way == "apart":
        s.a["ordered"][...] = 2.0
        call(select_factorization, s.m, s.d)
    assert s.a["hessian.pattern"][0] == PATTERNS[way] and s.a["con_overflow"][0] == 0
    assert (s.a["ordered"] > 0).all() == (way == "ordered")
    assert not s.a["hessian.coupled"].any() and (s.a["hessian.ncoupling"][0] > 0) == (way not in ("tree", "recursion"))


def test_a_pattern_is_kept_if_the_couplings_are_unchanged(monkeypatch, rng):
    for way in ("paths", "blocks"):
        s = on(way, monkeypatch, rng)
        last, s.a["hessian.rowadr"][0] = s.a["hessian.rowadr"].copy(), 77
        call(select_factorization, s.m, s.d)
        assert s.a["hessian.rowadr"][0] == 77 and s.a["hessian.pattern"][0] == PATTERNS[way]
        s.a["hessian.coupling_last"][0] += 1
        call(select_factorization, s.m, s.d)
        np.testing.assert_array_equal(s.a["hessian.rowadr"], last)
        n = s.a["hessian.ncoupling"][0]
        assert s.a["hessian.ncoupling"][1] == n
        np.testing.assert_array_equal(s.a["hessian.coupling_last"][:n], s.a["hessian.coupling_key"][:n])
        # one coupling less
        s.a["hessian.rowadr"][0] = 77
        s.a["ncon_slot"][0] -= 1
        call(select_factorization, s.m, s.d)
        assert s.a["hessian.rowadr"][0] != 77 and s.a["hessian.ncoupling"][1] == s.a["hessian.ncoupling"][0] < n
        s.a["ncon_slot"][0], s.a["nrow"][0] = 0, s.a["ndofrow"][0]
        call(select_factorization, s.m, s.d)
        assert s.a["hessian.pattern"][0] == TREE


def test_tiles_with_two_factorizations_or_overflowing_rows_are_split(monkeypatch, rng):
    s = on("ordered", monkeypatch, rng)
    monkeypatch.setattr(ordered, "FILLED", 1.0)
    s.a["row_present"][...] = 0.0
    call(select_factorization, s.m, s.d)
    told = s.a["ordered"][0]
    assert told[:-1].any() or not told.any()
    s.a["row_present"][s.a["ndofrow"][0] : s.a["nrow"][0], :-1] = 1.0
    monkeypatch.setattr(ordered, "FILLED", 0.0)
    call(select_factorization, s.m, s.d)
    assert s.a["ordered"][0, :-1].all() and s.a["ordered"][0, -1] == 0
    assert s.a["con_overflow"][0] == 1 and s.a["hessian.pattern"][0] == 0
    s.a["con_overflow"][0], s.a["active"][0, -1] = 0, 0.0
    call(select_factorization, s.m, s.d)
    assert s.a["con_overflow"][0] == 0 and s.a["hessian.pattern"][0] == ORDERED

    s = touching()
    monkeypatch.setattr(capacity, "HESSIAN_LIMIT", int(s.model.chain_rownnz.sum()))
    s = touching(width=8)
    call(select_factorization, s.m, s.d)
    assert s.a["con_overflow"][0] == 1 and s.a["hessian.pattern"][0] == 0


def test_block_rows_are_used_beyond_the_capacity_of_paths(monkeypatch, rng):
    s = on("paths", monkeypatch, rng)
    s.a["hessian.pattern"][0], s.d.npath = 0, 0
    call(select_factorization, s.m, s.d)
    assert s.a["hessian.pattern"][0] == BLOCKS
    s.a["hessian.pattern"][0], s.d.npath = 0, 1000
    call(select_factorization, s.m, s.d)
    assert s.a["hessian.pattern"][0] == PATHS
