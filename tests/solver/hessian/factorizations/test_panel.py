"""Panels: the position of each tree's rows, and agreement of the factor with a dense solve, uncompiled."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.simulation.tile.workspace import Workspace
from featherlane.engine.solver.hessian.factorizations.minimum_degree import clear_graph, couple_trees, order_trees
from featherlane.engine.solver.hessian.factorizations.panel import (
    allocate_panels,
    clear_panels,
    expand_panels,
    factor_panels,
    reduce_panels,
)
from oracles.uncompiled import call, records
from scenes.factorizations import assert_solution

# trees of 6, 6, 4, 1, 9, 6, 4, 1, 9 dofs: runs of six have a separate loop, nine take two vectors
FREE = '<body><freejoint/><geom size="0.1"/></body>'
OTHERS = """<body><joint/><geom size="0.1"/><body><joint type="ball"/><geom size="0.1"/></body></body>
<body><joint type="slide"/><geom size="0.1"/></body>
<body><freejoint/><geom size="0.1"/><body><joint type="ball"/><geom size="0.1"/></body></body>"""


def placed(seed, couplings):
    """Returns (workspace, m, d, a random matrix that couples some trees), with placed panels."""
    rng = np.random.default_rng(seed)
    w = Workspace(fl.load(f"<mujoco><worldbody>{FREE}{FREE}{OTHERS}{FREE}{OTHERS}</worldbody></mujoco>"), 1)
    (m, d), model, a = records(w), w.model, w.arrays
    a["panel.values"][...] = np.nan  # no entry of an earlier world remains
    call(clear_graph, m, d)
    H = np.eye(model.nv)
    for t in range(model.ntree):
        H[np.ix_(dofs(model, t), dofs(model, t))] += own(rng, len(dofs(model, t)))
    for _ in range(couplings):
        t, u = map(int, rng.choice(model.ntree, 2, False))
        call(couple_trees, m, d, t, u)
        J = np.zeros((3, model.nv))
        for one in (t, u):
            J[:, dofs(model, one)] = rng.normal(size=(3, len(dofs(model, one))))
        H += J.T @ J
    call(order_trees, m, d)
    call(allocate_panels, m, d)
    w.arrays["panel.values"][...] = np.nan
    call(clear_panels, m, d)
    return w, m, d, H


def own(rng, n):
    L = rng.normal(size=(n, n))
    return L @ L.T


def dofs(model, t):
    return np.arange(model.tree_dofadr[t], model.tree_dofadr[t] + model.tree_dofnum[t])


def row_of(a, t):
    """Returns trees in the row of t, and their columns."""
    at = slice(a["graph.rowadr"][t], a["graph.rowadr"][t] + a["graph.rownnz"][t])
    return [*zip(map(int, a["graph.col"][at]), map(int, a["graph.colstart"][at]), strict=True)]


@pytest.mark.parametrize("couplings", [0, 4, 20])
def test_panels_are_consecutive_and_padded_to_eight(couplings):
    w, _, d, _ = placed(couplings, couplings)
    model, a, end = w.model, w.arrays, 0
    assert a["panel.fits"][0] == 1
    order = [*a["graph.order"][: model.ntree]]
    for t in order:
        column = (model.tree_dofnum[t] + 7) // 8 * 8
        assert a["panel.adr"][t] == end
        places = [a["graph.position"][u] for u, _ in row_of(a, t)]
        assert places == sorted(places) and all(p > a["graph.position"][t] for p in places)
        for u, at in row_of(a, t):
            assert at == column
            column += (model.tree_dofnum[u] + 7) // 8 * 8
        assert a["panel.width"][t] == column
        end += column * model.tree_dofnum[t]
    assert not a["panel.values"][:end].any() and np.isnan(a["panel.values"][end:]).all() and d.npanel >= end


@pytest.mark.parametrize("couplings", [0, 4, 20])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_factor_solves_like_a_dense_matrix(couplings, seed):
    w, m, d, H = placed(seed, couplings)
    model, a = w.model, w.arrays
    for t in range(model.ntree):
        rows = a["panel.values"][a["panel.adr"][t] :][: model.tree_dofnum[t] * a["panel.width"][t]]
        rows = rows.reshape(-1, model.tree_dofnum[t], 8).transpose(1, 0, 2)
        for u, at in [(t, 0), *row_of(a, t)]:
            column = np.arange(at, at + model.tree_dofnum[u])
            rows[:, column // 8, column % 8] = H[np.ix_(dofs(model, t)[::-1], dofs(model, u)[::-1])]
    b, first = np.random.default_rng(seed).normal(size=(3, model.nv)), factor_panels
    tree = model.dof_treeid
    at = a["panel.start"][tree] + model.tree_dofadr[tree] + model.tree_dofnum[tree] - 1 - np.arange(model.nv)
    for f in b:
        a["panel.x"][...] = 0.0
        a["panel.x"][at] = f
        call(first, m, d)
        call(expand_panels, m, d)
        first = reduce_panels
        assert_solution(H, a["panel.x"][at], f)


@pytest.mark.parametrize("room", ["npanel", "nfill"])
def test_overflow_is_reported(room):
    w, m, d, _ = placed(3, 20)
    used = {"npanel": 0, "nfill": int(w.arrays["graph.rownnz"][: w.model.ntree].sum())}
    for t in range(w.model.ntree):
        used["npanel"] += int(w.model.tree_dofnum[t] * w.arrays["panel.width"][t])
    for size, fits in ((used[room], 1), (used[room] - 1, 0)):
        setattr(d, room, size)
        call(allocate_panels, m, d)
        assert w.arrays["panel.fits"][0] == fits
