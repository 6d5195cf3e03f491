"""The inertia of a step: its factor, the acceleration without rows, and the map from rows to dofs."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model.enums import Disable
from featherlane.engine.solver.lcp.rows import metric
from featherlane.engine.solver.lcp.rows.assembly import make_lcp
from oracles.smooth import dense
from scenes.lcp import SCENE
from scenes.lcp_records import Rows
from scenes.states import kicked

EXACT = 1e-9  # relative, of values through a mass matrix


@pytest.fixture
def tile(rng):
    model = fl.load(SCENE)
    tile = Rows(model, *zip(*(kicked(model, rng, 0.1) for _ in range(2)), strict=True))
    tile.d.qfrc_smooth.array[...] = rng.standard_normal((model.nv, 2))
    return tile


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=EXACT * np.abs(expected).max())


@pytest.mark.parametrize("flag", [0, Disable.EULERDAMP, Disable.DAMPER])
def test_the_factor_equals_that_of_the_inertia_and_its_damping(flag, tile):
    tile.m.opt_disableflags = flag
    tile.run(metric.factor_step_inertia)
    m, d, nv = tile.m, tile.d, tile.model.nv
    for world in range(2):
        Mh = tile.inertia(world) if not flag else dense(tile.model, d.M.array[:, world])
        L, D = np.eye(nv), 1.0 / d.qHDiagInv.array[:nv, world]
        for i in range(nv):
            at = m.M_rowadr[i] + np.arange(m.M_rownnz[i] - 1)
            L[i, m.M_colind.array[at]] = d.qH.array[at, world]
        close(L.T * D @ L, Mh)
        close(d.lcp.scale.array[:nv, world], D**-0.5)
        close(d.qacc_step.array[:nv, world], np.linalg.solve(Mh, d.qfrc_smooth.array[:nv, world]))


def test_damping_counts(tile):
    tile.run(metric.factor_step_inertia)
    with_damping = tile.d.qacc_step.array.copy()
    tile.m.opt_disableflags = Disable.EULERDAMP
    tile.run(metric.factor_step_inertia)
    assert np.abs(with_damping - tile.d.qacc_step.array).max() > 1e-3


def test_row_forces_are_mapped_to_dofs(tile, rng):
    """Mh qacc = f + J^T x and qfrc_constraint = J^T x."""
    tile.run(make_lcp)
    d, n, nv = tile.d, tile.d.lcp.n[0], tile.model.nv
    d.lcp.x.array[:n] = rng.standard_normal((n, 2))
    d.lcp.z.array[...] = np.nan
    metric.sum_solution_rows(tile.m, d)
    metric.accelerate_by_rows(tile.m, d)
    for world in range(2):
        push = tile.lcp(world).J.T @ d.lcp.x.array[:n, world]
        close(d.qfrc_constraint.array[:nv, world], push)
        close(tile.inertia(world) @ d.qacc.array[:nv, world], d.qfrc_smooth.array[:nv, world] + push)
