"""Contacts beyond the capacity: splitting a tile changes no result; a world drops its last contacts and reports it."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.simulation.step.forward import forward
from featherlane.simulation.tile import capacity
from featherlane.simulation.tile.workspace import Workspace
from scenes.states import kicked

WORLDS, NSTEP = 24, 30
RECORDED = ("qpos", "qvel", "qacc", "qfrc_constraint", "ncon", "solver_niter", "solver_residual", "solver_gap")


def lying(model, n):
    """Returns bodies thrown onto the floor, each with another velocity."""
    rng = np.random.default_rng(2)
    worlds = [kicked(model, rng, 0.3, 2.0) for _ in range(n)]
    qpos, qvel = (np.array(x) for x in zip(*worlds, strict=True))
    qpos[:, 2] = np.linspace(0.0, 0.4, n)
    return qpos, qvel


def run(model, limit, monkeypatch, order=None, **settings):
    """Returns records and status of worlds under a contact limit."""
    if limit:
        monkeypatch.setattr(capacity, "CONTACT_LIMIT", limit)
    order = np.arange(WORLDS) if order is None else order
    batch = fl.Batch(model, len(order), **settings)
    batch.qpos, batch.qvel = (x[order] for x in lying(model, WORLDS))
    out = batch.rollout(NSTEP, record=RECORDED)
    return out, batch


def union(model):
    """Returns the slots that the first eight worlds need together."""
    tile = Workspace(model, 8)
    for name, rows in zip(("qpos", "qvel"), lying(model, 8), strict=True):
        tile.view(name)[...] = rows.T
    tile.run(forward)
    return tile.view("ncon_slot")[0]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "RK4", "discrete"])
def test_a_tile_that_is_split_is_bitwise_equal(integrator, dtype, monkeypatch):
    model = fl.bundled("humanoid")
    model.opt.integrator = integrator
    roomy, batch = run(model, None, monkeypatch, dtype=dtype)
    limit = int(roomy["ncon"].max())
    assert union(model) > limit
    tight, split = run(model, limit, monkeypatch, dtype=dtype)
    for name in RECORDED:
        assert tight[name].tobytes() == roomy[name].tobytes(), name
    for name, counts in split.status.items():
        np.testing.assert_array_equal(counts, batch.status[name])
    assert not split.status["contacts_full"].any()


def test_a_world_beyond_the_capacity_keeps_its_first_contacts(monkeypatch):
    model = fl.bundled("humanoid")
    qpos, _ = lying(model, 1)
    roomy = fl.Data(model)
    roomy.qpos = qpos[0]
    fl.forward(model, roomy)
    assert roomy.ncon > 3
    monkeypatch.setattr(capacity, "CONTACT_LIMIT", 3)
    tight = fl.Data(model)
    tight.qpos = qpos[0]
    fl.forward(model, tight)
    assert tight.ncon == 3
    assert tight.status["contacts_full"] == 1
    np.testing.assert_array_equal(tight.contact.dist, roomy.contact.dist[:3])
    assert np.isfinite(tight.qacc).all()


def test_worlds_beyond_the_capacity_are_bitwise_equal_in_any_batch(monkeypatch, rng):
    model, order = fl.bundled("humanoid"), rng.permutation(WORLDS)[:11]
    one, batch = run(model, 3, monkeypatch, nthread=1)
    two, other = run(model, 3, monkeypatch, order, nthread=2)
    assert batch.status["contacts_full"].any()
    assert not batch.status["non_finite"].any()
    for name in RECORDED:
        assert np.isfinite(one[name]).all()
        assert two[name].tobytes() == one[name][order].tobytes(), name
    np.testing.assert_array_equal(other.status["contacts_full"], batch.status["contacts_full"][order])
