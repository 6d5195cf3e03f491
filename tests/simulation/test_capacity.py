"""Many contacts: none is lost; splitting a tile changes no result; beyond the capacity the last are dropped."""

import copy
import pickle
import warnings

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.simulation.step.forward import forward
from featherlane.engine.simulation.tile import capacity
from featherlane.engine.simulation.tile.workspace import Workspace
from scenes.states import kicked

WORLDS, NSTEP = 24, 30
RECORDED = ("qpos", "qvel", "qacc", "qfrc_constraint", "ncon", "nefc", "solver_niter", "solver_residual", "solver_gap")


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


def pile(n, gap=-0.001, size=""):
    """Returns the text of n x n x n boxes of edge 1 on a floor, with this gap between neighbours."""
    places = [(1.0 + gap) * np.array([i, j, k]) for i in range(n) for j in range(n) for k in range(n)]
    bodies = "".join(
        f'<body pos="{x} {y} {z + 0.5}"><freejoint/><geom type="box" size=".5 .5 .5" density="200"/></body>'
        for x, y, z in places
    )
    floor = '<geom type="plane" size="50 50 1"/>'
    return f'<mujoco>{size}<option timestep=".01"/><worldbody>{floor}{bodies}</worldbody></mujoco>'


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


@pytest.mark.filterwarnings("ignore::featherlane.CapacityWarning")
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


@pytest.mark.filterwarnings("ignore::featherlane.CapacityWarning")
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


@pytest.mark.parametrize("n", [5, 6])
def test_a_pile_of_touching_boxes_has_the_contacts_of_mujoco(n):
    """6^3 boxes are a crowd."""
    model = fl.load(pile(n))
    theirs, ours = mujoco.MjData(model.mj_model), fl.Data(model)
    mujoco.mj_forward(model.mj_model, theirs)
    fl.forward(model, ours)
    assert (model.ncrowd > 0) == (n == 6)
    assert ours.ncon == theirs.ncon > 4000
    assert ours.status["contacts_full"] == 0
    np.testing.assert_allclose(np.sort(ours.contact.dist), np.sort(theirs.contact.dist), atol=1e-12)


def test_a_pile_of_125_boxes_rests_as_in_mujoco():
    model = fl.load(pile(5))
    theirs, ours = mujoco.MjData(model.mj_model), fl.Data(model)
    for _ in range(30):
        mujoco.mj_step(model.mj_model, theirs)
    ours.step(30)
    drift, expected = (np.abs(q - model.qpos0).max() for q in (ours.qpos, theirs.qpos))
    assert drift == pytest.approx(expected, rel=0.1)
    np.testing.assert_allclose(ours.qpos, theirs.qpos, atol=0.1 * expected)


def test_a_world_with_many_contacts_has_the_same_bits_alone_and_in_a_batch():
    """The contacts of world 5 exceed 1,024 in the middle of the rollout; its slots change no other world."""
    model = fl.load(pile(4, gap=0.0005))
    start = np.tile(model.qpos0, (9, 1)).reshape(9, -1, 7)
    start[:, :, :3] *= np.linspace(2.0, 1.2, 9)[:, None, None]
    start[5, :, :3] = model.qpos0.reshape(-1, 7)[:, :3] * 0.9985
    start[5, :, 2] += 0.002
    start = start.reshape(9, -1)
    batch, alone = fl.Batch(model, 9, nthread=2), fl.Data(model)
    batch.qpos, alone.qpos = start, start[5]
    out = batch.rollout(12, record=RECORDED)
    record = alone.rollout(12, record=RECORDED)
    assert out["ncon"][5].min() < 1024 < 1500 < out["ncon"][5].max()
    for name in RECORDED:
        assert out[name][5].tobytes() == np.ascontiguousarray(record[name]).tobytes(), name
    larger = fl.load(pile(4, gap=0.0005, size='<size nconmax="100000"/>'))
    other = fl.Batch(larger, 9, nthread=1)
    other.qpos = start
    again = other.rollout(12, record=RECORDED)
    for name in RECORDED:
        assert again[name].tobytes() == out[name].tobytes(), name


def test_copies_and_resets_of_a_large_world_are_exact():
    model = fl.load(pile(4))
    data = fl.Data(model)
    data.step(2)
    copies = [copy.copy(data), pickle.loads(pickle.dumps(data))]
    for each in (data, *copies):
        each.step(2)
    for each in copies:
        assert each.qpos.tobytes() == data.qpos.tobytes() and each.efc_force.tobytes() == data.efc_force.tobytes()
    new = fl.Data(model)
    data.reset()
    for name in ("con_dist", "con_frame", "con_force", "primal.con_y"):
        np.testing.assert_array_equal(data.workspace.arrays[name], new.workspace.arrays[name])


# ---- warnings --------------------------------------------------------------------------------------------------------
def fallen(model, worlds=1):
    qpos = np.tile(model.qpos0, (worlds, 1))
    qpos[:, 2] = 0.0
    return qpos


@pytest.mark.parametrize("act", [fl.step, fl.forward, fl.stages.collision])
def test_a_data_warns_once_of_lost_contacts(act, monkeypatch):
    monkeypatch.setattr(capacity, "CONTACT_LIMIT", 3)
    model = fl.bundled("humanoid")
    data = fl.Data(model)
    data.qpos = fallen(model)[0]
    fl.stages.forward_position(model, data)
    with pytest.warns(fl.CapacityWarning, match=r"more contacts than the 3 that fit.*nconmax=\"6\".*once") as caught:
        act(model, data)
    assert len(caught) == 1 and caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fl.step(model, data)
        fl.forward(model, data)


@pytest.mark.parametrize("nthread", [1, 2])
def test_a_batch_warns_once_of_lost_contacts(nthread, monkeypatch):
    monkeypatch.setattr(capacity, "CONTACT_LIMIT", 3)
    model = fl.bundled("humanoid")
    batch = fl.Batch(model, 20, nthread=nthread)
    batch.qpos[:, 2] += 5.0
    batch.step()
    batch.qpos[[4, 17]] = fallen(model, 2)
    with pytest.warns(fl.CapacityWarning, match="worlds 4, 17 each had more contacts") as caught:
        batch.forward()
    assert len(caught) == 1 and caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        batch.step(3)
    muted = fl.Batch(model, 2)
    muted.mute()
    muted.qpos = fallen(model, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        muted.step(3)
    assert muted.status["contacts_full"].all()


def test_a_mixed_batch_warns_of_lost_contacts_with_its_world_numbers(monkeypatch):
    monkeypatch.setattr(capacity, "CONTACT_LIMIT", 3)
    model = fl.bundled("humanoid")
    batch = fl.MixedBatch([(fl.bundled("cartpole"), 3), (model, 2)])
    batch.groups[1].qpos = fallen(model, 2)
    with pytest.warns(fl.CapacityWarning, match="worlds 3, 4 each"):
        batch.step(2)


def test_the_model_reserves_more_contacts_by_nconmax(monkeypatch):
    monkeypatch.setattr(capacity, "CONTACT_LIMIT", 3)
    model = fl.load(pile(2, size='<size nconmax="200"/>'))
    data = fl.Data(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data.step(2)
    assert data.nconmax == 200 and data.ncon > 3
