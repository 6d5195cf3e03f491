"""Rows closed under paths: a tree in which every coupling lies on one path, so fill-in is zero."""

import numpy as np
import pytest

from featherlane.engine.model import load
from featherlane.engine.simulation.tile.workspace import Workspace
from featherlane.engine.solver.hessian.entries.couplings import coupling_key_of
from featherlane.engine.solver.hessian.factorizations import paths
from featherlane.engine.solver.hessian.factorizations.block_rows import find_block_rows
from featherlane.engine.solver.hessian.factorizations.paths import (
    closes_paths,
    find_path_rows,
    merge_paths,
    path_cost,
)
from oracles.uncompiled import call, records
from scenes.coupled import ancestors, mixed

SEEDS = range(8)


@pytest.fixture(scope="module")
def w():
    return Workspace(load(mixed()), 1)


def joined(w, seed):
    """Returns random pairs of dofs, joined; (m, d, the pairs)."""
    rng, (m, d) = np.random.default_rng(seed), records(w)
    pairs = [tuple(map(int, rng.choice(w.model.nv, 2, False))) for _ in range(seed)] + [(0, w.model.nv - 1)]
    for i in range(w.model.nv):
        d.hessian.parent[i] = m.dof_parentid[i]
    for i, j in pairs:
        call(merge_paths, d, i, j)
    return m, d, pairs


@pytest.mark.parametrize("seed", SEEDS)
def test_joined_dofs_lie_on_one_path_and_existing_paths_remain(w, seed):
    _, _, pairs = joined(w, seed)
    parents = w.arrays["hessian.parent"][: w.model.nv]
    assert (parents < np.arange(w.model.nv)).all()
    for i, j in pairs:
        assert min(i, j) in ancestors(parents, max(i, j))
    for i in range(w.model.nv):
        assert {*ancestors(w.model.dof_parentid, i)} <= {*ancestors(parents, i)}


@pytest.mark.parametrize("seed", SEEDS)
def test_joining_adds_no_unneeded_dof(w, seed):
    """Eliminating ancestor rows by sets leaves the path: the dofs below a dof, and those that they reach."""
    _, _, pairs = joined(w, seed)
    parents = w.arrays["hessian.parent"][: w.model.nv]
    rows = [{*ancestors(w.model.dof_parentid, i)} for i in range(w.model.nv)]
    for i, j in pairs:
        rows[max(i, j)] |= rows[min(i, j)]
    for k in range(w.model.nv - 1, -1, -1):
        for i in sorted(rows[k] - {k}):
            rows[i] |= {c for c in rows[k] if c <= i}
    above = [max(row - {i}, default=-1) for i, row in enumerate(rows)]
    np.testing.assert_array_equal(parents, above)


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_are_ancestors_and_are_listed_from_both_sides(w, seed):
    m, d, _ = joined(w, seed)
    a, nv = w.arrays, w.model.nv
    rows = [sorted(ancestors(a["hessian.parent"], i)) for i in range(nv)]
    assert call(path_cost, m, d) == sum(len(row) ** 2 for row in rows)
    call(find_path_rows, m, d)
    adr = 0
    for i, row in enumerate(rows):
        assert a["hessian.rowadr"][i] == adr and a["hessian.rownnz"][i] == len(row)
        assert [*a["hessian.colind"][adr:][: len(row)]] == row
        adr += len(row)
    below = 0
    for j in range(nv):
        listed = [i for i in range(nv - 1, j, -1) if j in rows[i]]
        assert a["hessian.belowadr"][j] == below and a["hessian.below"][j] == len(listed)
        assert [*a["hessian.belowrow"][below:][: len(listed)]] == listed
        below += len(listed)


def test_paths_are_used_if_they_add_little_fill_in(w, monkeypatch):
    (m, d), a, model = records(w), w.arrays, w.model
    tips = [i for i in range(model.nv) if i not in {*model.dof_parentid.tolist()}]
    a["hessian.fill"][0], a["hessian.ncoupling"][0], a["hessian.coupling_key"][0] = (
        1,
        1,
        coupling_key_of.function(tips[0], tips[-1]),
    )
    call(find_block_rows, m, d)
    exact = int((a["hessian.rownnz"][: model.nv].astype(int) ** 2).sum())
    call(closes_paths, m, d)
    parents = a["hessian.parent"][: model.nv]
    assert min(tips[0], tips[-1]) in ancestors(parents, max(tips[0], tips[-1]))
    cost = sum(len(ancestors(parents, i)) ** 2 for i in range(model.nv))
    for worth, said in ((cost / exact * 1.001, True), (cost / exact * 0.999, False)):
        monkeypatch.setattr(paths, "PATH_WORTH", worth)
        assert call(closes_paths, m, d) == said
