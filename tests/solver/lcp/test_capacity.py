"""Capacity for an LCP: all rows that can exist fit, and one more would not."""

from types import SimpleNamespace

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.solver.lcp import capacity
from featherlane.engine.solver.lcp.rows.assembly import make_lcp
from scenes.lcp import SCENE
from scenes.lcp_records import Rows
from scenes.states import kicked


def room(nv=10, chain=4, njnt=6, nlink=2, ncon=5, dofrows=7, genrows=3):
    model = SimpleNamespace(nv=nv, chain_rownnz=[1, chain, 2], njnt=njnt, nlink=nlink)
    return capacity.lcp_capacity(model, ncon, {"ndofrowmax": dofrows, "nrowmax": dofrows + genrows})


def test_each_kind_of_row_has_its_share():
    """Rows of one dof, of joints and their motors: 7 + 6; general ones and links: 3 + 7 * 2; contacts: 6 * 5."""
    sizes, one, general, contacts = room(), 13, 17, 30
    assert sizes["nlcp"] == one + general + contacts
    assert sizes["nlcpcol"] == one * 4 + general * 10 + 5 * 8 + 10  # 2 chains of 4 dofs; the last group may have all
    assert sizes["nlcpY"] == one * 4 + general * 10 + contacts * 8 + 6 * 10
    assert (sizes["nlcpA"], sizes["nlcpz"]) == (0, 10)
    assert sizes["nlcpone"] == 64 and sizes["nlcppair"] == 64 * 64


def test_a_pair_of_chains_has_at_most_all_dofs():
    assert room(nv=5)["nlcpcol"] == 13 * 4 + 17 * 5 + 5 * 5 + 5
    assert room(nv=100)["nlcppair"] == 64 * 100  # a panel by dofs is also stored there


def test_capacities_are_bounded():
    sizes = room(nv=20000, ncon=200000, chain=10)
    assert sizes["nlcpcol"] == 130 + 17 * 20000 + 200000 * 20 + 20000
    assert sizes["nlcpY"] == 130 + 17 * 20000 + capacity.Y_LIMIT + 6 * 20000
    assert room(nv=200000, genrows=100)["nlcpY"] == 52 + capacity.Y_LIMIT + 30 * 8 + 6 * 200000
    assert sizes["nlcpone"] == capacity.ONE_LIMIT and capacity.ONE_LIMIT % 8 == 0


@pytest.mark.parametrize("seed", range(3))
def test_all_rows_of_a_scene_fit(seed):
    model, rng = fl.load(SCENE), np.random.default_rng(seed)
    tile = Rows(model, *zip(*(kicked(model, rng, 0.1) for _ in range(2)), strict=True))
    tile.run(make_lcp)
    assert tile.d.lcp.n[0] > 10 and not tile.d.warning.array[1].any() and tile.d.con_overflow[0] == 0
