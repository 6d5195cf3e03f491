"""Rows of ancestors: L^T D L in place, and several right-hand sides."""

import numpy as np
import pytest

from featherlane.engine.solver.hessian.entries.assembly import assemble_entries
from featherlane.engine.solver.hessian.entries.pattern import APART, TREE
from featherlane.engine.solver.hessian.factorizations.tree import (
    expand_chains,
    factor_chains,
    mark_all_contacts_unpaired,
    reduce_chains,
    use_model_tree,
)
from featherlane.engine.solver.rows.rows import PAIRED, REACHED
from oracles.uncompiled import call
from scenes.factorizations import on, solves
from scenes.touching import vectors


@pytest.mark.parametrize("way", ["tree", "paths", "apart"])
def test_the_factor_solves_like_a_dense_matrix(way, monkeypatch, rng):
    s = on(way, monkeypatch, rng)
    call(assemble_entries, s.m, s.d)
    for k in range(3):
        f = vectors(s, rng)
        s.a["primal.search"][: s.nv] = f
        if k:
            call(reduce_chains, s.m, s.d, s.d.primal.search)
        else:
            call(factor_chains, s.m, s.d)
        call(expand_chains, s.m, s.d)
        solves(s, f)


def test_the_pattern_equals_the_rows_of_the_inertia(monkeypatch, rng):
    s = on("paths", monkeypatch, rng)
    for name in ("hessian.rowadr", "hessian.rownnz", "hessian.below"):
        s.a[name][...] = 77
    call(use_model_tree, s.m, s.d, APART)
    assert s.a["hessian.pattern"][0] == APART != TREE
    parents = s.model.dof_parentid
    below = np.zeros(s.nv, int)
    for i in range(s.nv):
        depth, j = 1, parents[i]
        while j >= 0:
            below[j] += 1
            depth, j = depth + 1, parents[j]
        assert s.a["hessian.rownnz"][i] == depth
    np.testing.assert_array_equal(s.a["hessian.below"][: s.nv], below)
    np.testing.assert_array_equal(s.a["hessian.rowadr"][: s.nv], np.cumsum([0, *s.a["hessian.rownnz"][: s.nv - 1]]))


def test_with_independent_trees_every_contacted_body_has_its_own_stiffness(monkeypatch, rng):
    s = on("paths", monkeypatch, rng)
    s.a["body_reached"][:4] = [0, PAIRED, REACHED, 0]
    before = s.a["body_reached"][: s.mj.nbody].copy()
    call(mark_all_contacts_unpaired, s.m, s.d)
    np.testing.assert_array_equal(s.a["body_reached"][: s.mj.nbody], np.where(before > 0, REACHED, 0))
