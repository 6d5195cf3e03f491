"""Capacity for the Hessian: enough for every pattern that rows may need, none for a pattern that is never cheaper."""

import numpy as np

from featherlane.engine.model import load
from featherlane.engine.solver.hessian import capacity
from featherlane.engine.solver.hessian.capacity import hessian_capacity, hessian_entries, panel_capacity, path_entries
from featherlane.engine.solver.hessian.factorizations.minimum_degree import WORD_BITS
from scenes.coupled import mixed

BALL = '<body><freejoint/><geom size="0.1"/></body>'
LINK = '<body><joint/><geom size="0.1"/><body><joint type="ball"/><geom size="0.1"/></body></body>'


def trees(count):
    return load(f"<mujoco><worldbody>{BALL * count}{LINK}</worldbody></mujoco>")


def test_full_rows_fit():
    model = load(mixed())
    full = sum((model.block_dofadr[b] + model.block_dofnum[b]) * model.block_dofnum[b] for b in range(model.nblock))
    assert hessian_entries(model) == full
    assert path_entries(model) == sum(i + 1 for i in range(model.nv))


def test_models_of_many_dofs_have_no_paths_and_those_of_few_trees_no_panels(monkeypatch):
    model = load(mixed())
    assert not any(panel_capacity(model).values())
    monkeypatch.setattr(capacity, "PATH_DOFS", model.nv - 1)
    assert path_entries(model) == 0
    monkeypatch.setattr(capacity, "PATH_DOFS", model.nv)
    assert path_entries(model) > 0
    monkeypatch.setattr(capacity, "HESSIAN_LIMIT", 100)
    assert path_entries(model) == 0
    sizes = hessian_capacity(model, 17)
    assert sizes["npanelcontact"] == 0
    assert sizes["nH"] == 100 and sizes["ncouplingmax"] == 17 and sizes["npath"] == 0


def test_panels_of_full_rows_fit():
    model = trees(7)
    sizes, columns = panel_capacity(model), [(n + 7) // 8 * 8 for n in model.tree_dofnum]
    assert sizes["ngraph"] == model.ntree == 8 and sizes["nfill"] == 28
    assert sizes["npanelcolumn"] == sum(columns) and sizes["npanelscale"] == 48
    order = np.cumsum([0, *columns])
    assert sizes["npanel"] >= sum(n * (order[-1] - o) for n, o in zip(model.tree_dofnum, order, strict=False))
    assert not any(panel_capacity(trees(6)).values())
    many = panel_capacity(trees(2 * WORD_BITS))
    assert many["ngraphword"] == 3 and panel_capacity(trees(2 * WORD_BITS - 1))["ngraphword"] == 2
    assert hessian_capacity(model, 17)["npanelcontact"] == 17
    assert hessian_capacity(model, 1)["nHblock"] == model.nblock * (model.nblock + 1) // 2
