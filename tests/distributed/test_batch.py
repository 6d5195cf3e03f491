"""A batch on several workers is bitwise identical to a local batch; with stand-ins, and with real Ray."""

import copy
import gc

import numpy as np
import pytest

import featherlane as fl
from featherlane.distributed import Batch, Histogram
from featherlane.engine.lanes import sincos
from featherlane.engine.simulation.batch.reduction import Reduction
from featherlane.engine.simulation.tile import capacity
from sampling import in_ci

N = 50
BALL = """<mujoco><worldbody><geom name="floor" type="plane" size="5 5 1"/><body pos="0 0 .09"><freejoint/>
<geom name="ball" size=".1"/></body></worldbody></mujoco>"""
HINTS = {"signature"}  # the assignment of worlds to tiles depends on the batch, not on the world


@pytest.fixture(scope="module")
def model():
    return fl.bundled("humanoid")


@fl.kernel
def swing(m, d):
    for i in range(m.nu):
        d.ctrl[i] = 0.5 * sincos(10.0 * d.time[0])[0]


@pytest.fixture(scope="module", params=[None, 2], ids=["here", "two workers"])
def batch(request, model):
    """Returns a batch that a test may set to any state."""
    if request.param:
        request.getfixturevalue("cluster")
    with Batch(model, N, request.param, nthread=1) as made:
        yield made


def test_outputs_of_a_fresh_batch_are_refused(model):
    with Batch(model, 2, None, nthread=1) as fresh:
        with pytest.raises(fl.ModelError, match=r"^xpos: its values are not available.*bind\('xpos'\)"):
            _ = fresh.xpos
        assert np.isnan(fresh.bind("xpos")).all()
        fresh.forward()
        assert np.isfinite(fresh.xpos).all()


@pytest.fixture
def pair(batch, model):
    """Returns the batch and a local one, at the start and in the same state."""
    local = fl.Batch(model, N, nthread=1)
    batch.restore(local.checkpoint())
    rng = np.random.default_rng(1)
    local.qvel = rng.normal(0, 0.3, local.qvel.shape)
    batch.qvel = local.qvel
    return batch, local


def assert_equal(batch, local):
    there, here = batch.checkpoint(), local.checkpoint()
    assert there.keys() == here.keys()
    assert [k for k in here if k not in HINTS and not np.array_equal(here[k], there[k])] == []


def test_steps_and_resets_of_some_worlds(pair):
    batch, local = pair
    for b in pair:
        b.step(3)
        b.reset([1, 40, 33])
        b.step(5, ids=[49, 2, 30])
        b.step(2, ids=np.arange(N) % 2 == 0)
        b.reset(ids=[3], keyframe=-1, forward=False)
        b.step(ids=[])
    assert_equal(batch, local)
    assert np.array_equal(batch.time, local.time)


def test_images_and_scans_are_gathered(pair):
    batch, local = pair
    camera = fl.Camera("front", width=6, height=4, output=("depth", "rgb"), noise=fl.DepthNoise(std=0.1, seed=range(N)))
    for ids in (None, [49, 2, 30]):
        for rows, own in zip(batch.render(camera, ids=ids), local.render(camera, ids=ids), strict=True):
            assert (rows is None and own is None) or np.array_equal(rows, own)
        down = fl.patterns.grid((0.4, 0.2), 0.2)
        assert np.array_equal(batch.height_scan("torso", down, ids=ids), local.height_scan("torso", down, ids=ids))
        points = [b.scan("torso", down, output="point", ids=ids).point for b in pair]
        assert np.array_equal(*points)


def test_rollouts_record_images(pair, rng):
    camera = fl.Camera("front", width=6, height=4, output=("depth", "rgb"), noise=fl.DepthNoise(std=0.1, seed=range(N)))
    control = rng.uniform(-1, 1, (3, 4, pair[1].model.nu))
    for ids in ([2, 30, 49], [0, 7, 48]):
        images, own = (b.rollout(4, control, ("qpos", camera), ids=ids) for b in pair)
        assert images.keys() == own.keys() == {"qpos", "front/depth", "front/rgb"}
        assert all(np.array_equal(images[name], rows) for name, rows in own.items())


def test_state_is_scattered_and_gathered(pair):
    batch, local = pair
    batch.ctrl = local.ctrl = 0.3
    batch.set("qpos", local.qpos[[7, 48]] + 0.01, ids=[7, 48])
    local.qpos[[7, 48]] += 0.01
    assert np.array_equal(batch.qpos, local.qpos)
    assert np.array_equal(batch.get("qpos", ids=[48, 0, 7]), local.qpos[[48, 0, 7]])
    with pytest.raises(ValueError):
        batch.qpos[0] = 1.0  # a copy: writes to it would be lost
    for b in pair:
        b.step(4)
    assert_equal(batch, local)


def test_rollouts_equal_a_local_batch(pair, rng):
    batch, local = pair
    control = rng.uniform(-1, 1, (N, 6, local.model.nu))
    record = ("qpos", "cvel", "time")
    for ids in (None, [4, 45, 3]):
        own = control if ids is None else control[ids]
        there, here = (b.rollout(6, own, record, ids=ids) for b in pair)
        for name in record:
            assert np.array_equal(there[name], here[name]), name
    shared = np.full((3, local.model.nu), 0.1)
    mine = {"qpos": np.empty((N, 3, local.model.nq))}
    assert batch.rollout(3, shared, "qpos", out=mine)["qpos"] is mine["qpos"]
    assert np.array_equal(mine["qpos"], local.rollout(3, shared, "qpos")["qpos"])
    assert_equal(batch, local)


def test_kernels_and_functions_control_rollouts(pair):
    batch, local = pair
    for control in (swing, lambda b, k: 0.1 * b.qpos[:, -b.model.nu :]):
        there, here = (b.rollout(4, control, ("qpos", "ctrl")) for b in pair)
        assert np.array_equal(there["qpos"], here["qpos"]) and np.array_equal(there["ctrl"], here["ctrl"])
    assert_equal(batch, local)


def test_outputs_are_bound_and_refreshed(pair):
    batch, local = pair
    for b in pair:
        b.bind("xpos")
        b.bind("sensordata")
        b.forward()
    assert np.array_equal(batch.xpos, local.xpos)
    for b in pair:
        b.step(2)
    assert np.array_equal(batch.xpos, local.xpos) and np.array_equal(batch.sensordata, local.sensordata)
    assert np.array_equal(batch.ncon, local.ncon) and np.array_equal(batch.solver_niter, local.solver_niter)
    assert batch.status.keys() == local.status.keys()


def test_an_output_that_the_last_call_did_not_keep_is_refused(pair):
    batch, local = pair
    for b in pair:
        b.step(2, ids=[0])
    for read in (lambda: batch.cvel, lambda: batch.get("cvel"), lambda: batch.reduce("mean", "cvel")):
        with pytest.raises(fl.ModelError):
            read()
    assert np.isnan(batch.bind("cvel")[0]).all()
    local.bind("cvel")
    for b in pair:
        b.forward()
    assert np.array_equal(batch.cvel, local.cvel)


def test_edits_of_the_model_reach_all_workers(pair):
    batch, local = pair
    model = local.model
    before = model.opt.gravity.copy()
    try:
        model.opt.gravity[2] = -3.0
        for b in pair:
            b.step(2)
        model.opt.iterations = 3
        for b in pair:
            b.step(2)
    finally:
        model.opt.gravity[:], model.opt.iterations = before, 100
    assert_equal(batch, local)


def test_reductions_equal_those_of_the_gathered_field(pair, rng):
    batch, local = pair
    for b in pair:
        b.step(3)
    np.testing.assert_allclose(batch.reduce("mean", "qpos"), local.qpos.mean(axis=0), rtol=1e-12, atol=1e-12)
    whole = Reduction("mean").merged([Reduction("mean").partial(local.qpos, np.arange(N))])
    assert batch.reduce("mean", "qpos").tobytes() == whole.tobytes()  # for any distribution of the worlds
    assert np.array_equal(batch.reduce("max", "qvel"), local.qvel.max(axis=0))
    assert np.array_equal(batch.reduce("min", "qvel", ids=[3, 44]), local.qvel[[3, 44]].min(axis=0))
    edges = (-1.0, 0.0, 1.0)
    assert np.array_equal(batch.reduce(Histogram(edges), "qvel")[5], np.histogram(local.qvel[:, 5], edges)[0])
    there = batch.rollout(4, record="qpos", reduce="mean")["qpos"]
    here = local.rollout(4)["qpos"]
    np.testing.assert_allclose(there, here.mean(axis=0), rtol=1e-12, atol=1e-12)
    counts = batch.rollout(2, record="time", reduce=Histogram((0.0, 100.0)))["time"]
    assert counts.tolist() == [[N], [N]]


def test_functions_run_on_the_workers(pair):
    batch, local = pair
    found = batch.call(lambda b: (b.nworld, float(b.qvel[0, 0])))
    assert [n for n, _ in found] == np.diff(batch.starts).tolist()
    assert [v for _, v in found] == local.qvel[batch.starts[:-1], 0].tolist()
    data = batch.get_data(47)
    assert np.array_equal(data.qvel, local.qvel[47])


def test_a_checkpoint_is_exchanged_with_a_local_batch(pair, model):
    batch, _ = pair
    batch.step(4)
    other = fl.Batch(model, N)
    other.restore(batch.checkpoint())
    other.step(3)
    batch.step(3)
    assert_equal(batch, other)


def test_non_finite_worlds_are_reported_with_global_world_numbers(model, cluster):
    with Batch(model, 20, 2, nthread=1, record_failures=3) as batch:
        batch.step(2)
        qpos = np.array(batch.qpos)
        qpos[18] = np.nan
        batch.qpos = qpos
        with pytest.warns(fl.NonFiniteWarning, match="world 18 "):
            batch.step(2)
        assert batch.nreset.tolist() == [0] * 18 + [1, 0]
        assert batch.status["non_finite"][18] == 1
        [failure] = batch.failures
        assert failure.world == 18 and "non_finite" in failure.causes


def test_lost_contacts_are_reported_with_global_world_numbers(model, monkeypatch):
    monkeypatch.setattr(capacity, "CONTACT_LIMIT", 3)
    with Batch(model, 6, None, nthread=1) as batch:
        qpos = np.array(batch.qpos)
        qpos[:, 2] += 5.0
        qpos[4, 2] = 0.0
        batch.qpos = qpos
        with pytest.warns(fl.CapacityWarning, match="world 4 .*more contacts than the 3 that fit"):
            batch.step(2)
        assert (batch.status["contacts_full"] > 0).tolist() == [False] * 4 + [True, False]


@pytest.mark.parametrize("nodes", [None, 2])
def test_fields_of_the_model_differ_by_world(model, nodes, request):
    if nodes:
        request.getfixturevalue("cluster")
    local = fl.Batch(model, N, nthread=1)
    with Batch(model, N, nodes, nthread=1) as batch:
        for b in (batch, local):
            b.expand("body_mass")[:] *= np.linspace(0.8, 1.2, N)[:, None]
            b.set_const()
            b.step(2)
            held = b.expand("opt.gravity")
            held[3:45, 2] = -1.0
            b.step(2)
            held[44, 2] = -20.0  # a live array, kept over several calls
            b.step(2)
            b.set_const([3])
        assert np.array_equal(batch.expand("body_subtreemass"), local.expand("body_subtreemass"))
        assert_equal(batch, local)
        assert batch.get_model(49).body_mass.tolist() == local.get_model(49).body_mass.tolist()
        with pytest.raises(fl.ModelError):
            batch.expand("body_mass")[7, 2] = -1.0
            batch.step()
        batch.expand("body_mass")[7, 2] = 1.0


@pytest.mark.parametrize(
    ("nodes", "dtype"), [(None, "float64"), in_ci(None, "float32"), in_ci(2, "float64"), (2, "float32")]
)
def test_user_contacts_reach_worlds_on_all_workers(nodes, dtype, request):
    if nodes:
        request.getfixturevalue("cluster")
    model, rng = fl.load(BALL), np.random.default_rng(2)
    local = fl.Batch(model, N, nthread=1, dtype=dtype, given_contacts=3)
    point = rng.normal(0, 0.1, (N, 2, 3))
    what = {"dist": np.full((N, 2), -0.01), "pos": point, "frame": [0.0, 0.0, 1.0], "geom": [0, 1]}
    with Batch(model, N, nodes, nthread=1, dtype=dtype, given_contacts=3) as batch:
        for b in (batch, local):
            b.expand("geom_friction")[:] *= np.linspace(0.5, 2.0, N)[:, None, None]  # they are seeded from it
            b.give_contacts(**what, count=np.arange(N) % 3, replace=np.arange(N) % 2 == 0)
            b.step(3)
            b.give_contacts(fl.Contacts(**{**what, "dist": [-0.02], "pos": point[[40, 3], :1]}), ids=[40, 3])
            b.step(2)
            b.clear_given_contacts(ids=[7, 44])
            b.reset([2])
            b.step(4)
        assert local.given_present.any()
        assert_equal(batch, local)
        before = batch.checkpoint()
        for wrong, said in (
            ({**what, "geom": [0, 99]}, "geom"),
            ({**what, "dist": np.zeros(4)}, "allowed are at most 3"),
            ({**what, "count": 9}, "count"),
        ):
            with pytest.raises(fl.ModelError, match=said):
                batch.give_contacts(**wrong)
        after = batch.checkpoint()
        assert all(np.array_equal(before[name], after[name]) for name in before)
    with Batch(model, 4) as batch, pytest.raises(fl.ModelError):
        batch.give_contacts(**{**what, "dist": [-0.01], "pos": np.zeros((1, 3))})


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda b: b.step(0), "nstep"),
        (lambda b: b.step(1, ids=[N]), "ids:"),
        (lambda b: b.step(1, ids=[1, 1]), "twice"),
        (lambda b: b.set("xpos", 0.0), "set: got 'xpos', allowed"),
        (lambda b: b.set("qpos", np.zeros((2, 3))), "qpos:"),
        (lambda b: b.get("qpod"), "did you mean"),
        (lambda b: b.get(3), "unknown field 3"),
        (lambda b: b.reset(keyframe="nothing"), "nothing"),
        (lambda b: b.rollout(2, np.zeros((3, 3))), "control:"),
        (lambda b: b.rollout(2, record="nothing"), "record"),
        (lambda b: b.rollout(2, out="here"), "out: got str"),
        (lambda b: b.rollout(2, out=[1]), "out: got list"),
        (lambda b: b.rollout(2, out={"qpos": np.zeros(3)}), "out"),
        (lambda b: b.rollout(2, reduce="median"), "allowed are mean"),
        (lambda b: b.rollout(2, reduce="mean", out={}), "got arrays, allowed with reduce is None"),
        (lambda b: b.reduce("mean", "qpos", ids=[]), "at least one"),
        (lambda b: b.reduce(Histogram("wide"), "qpos"), "edges:"),
        (lambda b: b.reduce(Histogram((0.0, 0.0)), "qpos"), "edges: got"),
        (lambda b: b.reset(forward=np.array([True, False])), "forward:"),
        (lambda b: b.expand("body_parentid"), "which all worlds share"),
        (lambda b: b.expand(3), "not a real field"),
        (lambda b: b.restore({}), "does not contain"),
        (lambda b: b.restore(3), "got int"),
        (lambda b: b.restore(b.checkpoint() | {"qpos": np.zeros((3, 28))}), "allowed are rows of 50"),
        (lambda b: b.call(3), "function"),
        (lambda b: b.get_data(N), "from 0 to 49"),
    ],
)
def test_wrong_calls_are_refused_before_the_run(batch, call, said):
    before = batch.checkpoint()
    with pytest.raises(fl.ModelError, match=said):
        call(batch)
    after = batch.checkpoint()
    assert all(np.array_equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize(
    "given, said",
    [
        ({"nodes": 0}, "nodes:"),
        ({"nodes": True}, "nodes:"),
        ({"nodes": 1.5}, "nodes:"),
        ({"nodes": "nowhere"}, "HOST:PORT"),
        ({"nworld": 0}, "nworld"),
        ({"nthread": -1}, "nthread"),
        ({"dtype": "float16"}, "dtype|float16"),
    ],
)
def test_wrong_arguments_are_refused(model, given, said):
    with pytest.raises(fl.ModelError, match=said):
        Batch(model, **{"nworld": 4, **given})


def test_a_missing_model_is_refused():
    with pytest.raises(fl.errors.ArgumentTypeError):
        Batch("humanoid", 3)


def test_unknown_names_are_attribute_errors(batch):
    with pytest.raises(fl.errors.UnknownAttributeError):
        batch.qpod  # noqa: B018
    with pytest.raises(fl.errors.UnknownAttributeError):
        batch.xpos = 0.0


@pytest.mark.slow
def test_an_unclosed_batch_releases_its_workers(model, cluster):
    Batch(model, 8, 1, nthread=4)  # more than half of the cores
    gc.collect()
    with Batch(model, 8, 1, nthread=4, timeout=20) as batch:
        batch.step()
        with pytest.raises(fl.ModelError, match="cores"):
            Batch(model, 8, 1, nthread=4, timeout=5)
    with pytest.raises(fl.errors.CallError):
        batch.step()
    batch.close()  # again


def test_a_distributed_batch_cannot_be_copied(batch):
    with pytest.raises(fl.errors.ArgumentTypeError):
        copy.deepcopy(batch)
