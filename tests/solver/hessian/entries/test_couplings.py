"""Pairs of branches that rows couple: all of them, each once, in an order independent of the batch."""

import numpy as np
import pytest

from featherlane.engine.solver.hessian.entries.couplings import (
    coupling_key_of,
    coupling_tips,
    find_coupling,
    has_same_couplings,
    list_couplings,
    store_contact_couplings,
)
from oracles.uncompiled import call, record
from scenes.touching import touching


def chain(model, i):
    found = set()
    while i >= 0:
        found.add(int(i))
        i = model.dof_parentid[i]
    return found


@pytest.fixture(scope="module")
def s():
    s = touching()
    call(list_couplings, s.m, s.d)
    return s


def pairs(s):
    return [call(coupling_tips, s.d, k) for k in range(s.a["hessian.ncoupling"][0])]


def test_contacts_and_general_rows_couple_the_ends_of_their_branches(s):
    a, expected = s.a, set()
    for k in range(a["ncon_slot"][0]):
        tips = [s.model.body_lastdof[b] for b in a["con_body"][2 * k : 2 * k + 2]]
        if a["con_body"][2 * k + 1] > 0:
            expected.add((max(tips), min(tips)))
    for k in range(a["ndofrow"][0], a["nrow"][0]):
        dofs = {*a["row_dof"][a["row_dofadr"][k] :][: a["row_dofnum"][k]].tolist()}
        tips = [i for i in dofs if not any(i in chain(s.model, j) for j in dofs - {i})]
        expected |= {(i, j) for i in tips for j in tips if i > j}
    assert pairs(s) == sorted(expected) and len(expected) > 3


def row_of(dofs, parents):
    """Returns the couplings of one general row of these dofs, on a tree."""
    n = len(dofs)
    m = record(1, dof_parentid=[*parents])
    d = record(
        1,
        ncon_slot=[0],
        ndofrow=[0],
        nrow=[1],
        row_dofadr=[0],
        row_dofnum=[n],
        row_dof=[*dofs],
        hessian={
            "ncoupling": [0, 0],
            "coupling_key": np.zeros(40, int),
            "coupling_room": np.zeros(40, int),
            "coupling_last": np.zeros(40, int),
        },
    )
    call(list_couplings, m, d)
    return m, d, [call(coupling_tips, d, k) for k in range(d.hessian.ncoupling[0])]


@pytest.mark.parametrize("seed", range(12))
def test_every_two_branches_of_a_row_are_coupled(seed):
    """Rows over random trees couple tips, none above another, each with each."""
    rng = np.random.default_rng(seed)
    parents = [-1] + [int(rng.integers(-1, i)) for i in range(1, 14)]
    dofs = sorted({*rng.choice(14, 6).tolist()})

    def above(i):
        return {i} | (above(parents[i]) if parents[i] >= 0 else set())

    tips = [i for i in dofs if not any(i in above(j) for j in dofs if j != i)]
    _, _, found = row_of(dofs, parents)
    assert found == sorted((i, j) for i in tips for j in tips if i > j)


def test_every_contact_finds_its_coupling(s):
    call(store_contact_couplings, s.m, s.d)
    for k in range(s.a["ncon_slot"][0]):
        b, other = s.a["con_body"][2 * k : 2 * k + 2]
        if other == 0:
            assert s.a["hessian.con_coupling"][k] == -1
        else:
            tips = {int(s.model.body_lastdof[b]), int(s.model.body_lastdof[other])}
            assert {*call(coupling_tips, s.d, s.a["hessian.con_coupling"][k])} == tips
    for k, (i, j) in enumerate(pairs(s)):
        assert call(find_coupling, s.m, s.d, i, j) == call(find_coupling, s.m, s.d, j, i) == k
    assert call(coupling_key_of, 3, 5) == call(coupling_key_of, 5, 3) > call(coupling_key_of, 4, 2)


def test_couplings_are_the_same_or_not(s):
    n = s.a["hessian.ncoupling"][0]
    s.a["hessian.ncoupling"][1], s.a["hessian.coupling_last"][:n] = n, s.a["hessian.coupling_key"][:n]
    assert call(has_same_couplings, s.d)
    for k in (0, n - 1):
        s.a["hessian.coupling_last"][k] += 1
        assert not call(has_same_couplings, s.d)
        s.a["hessian.coupling_last"][k] -= 1
    s.a["hessian.ncoupling"][1] = n - 1
    assert not call(has_same_couplings, s.d)
    s.a["hessian.ncoupling"][1] = n
