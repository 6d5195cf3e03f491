"""A batch: its arrays, its calls, the errors it raises, and worlds with a non-finite state."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import threading

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.simulation.batch.arrays import EVOLVING, INPUTS, whole_rows
from featherlane.engine.simulation.tile.call_lock import hold
from featherlane.engine.simulation.tile.fields import DATA
from scenes.states import kicked

N = 19  # worlds: two full tiles of 8 and a part of one

SCENE = """
<mujoco>
  <option timestep="0.005"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1"/>
    <body name="stand" mocap="true" pos="1 2 3" quat="1 1 0 0"/>
    <body name="ball" pos="0 0 .3"><freejoint name="root"/><geom name="ball" size=".1"/>
      <body name="arm" pos="0 .1 0"><joint name="shoulder" range="-60 60"/>
        <geom type="capsule" size=".03" fromto="0 0 0 .3 0 0"/>
        <site name="tip" pos=".3 0 0"/></body>
    </body>
  </worldbody>
  <actuator><motor name="motor" joint="shoulder" ctrlrange="-1 1"/></actuator>
  <keyframe>
    <key name="high" time="2" qpos="0 0 2 1 0 0 0 .4" qvel="1 2 3 4 5 6 7" ctrl=".5" mpos="7 8 9" mquat="0 1 0 0"/>
    <key name="low" qpos="0 0 .1 1 0 0 0 .1"/>
  </keyframe>
</mujoco>"""
SHAPES = {
    "time": (N,),
    "qpos": (N, 8),
    "qvel": (N, 7),
    "act": (N, 0),
    "history": (N, 0),
    "plastic": (N, 0),
    "ctrl": (N, 1),
    "qacc_warmstart": (N, 7),
    "qfrc_applied": (N, 7),
    "xfrc_applied": (N, 4, 6),
    "mocap_pos": (N, 1, 3),
    "mocap_quat": (N, 1, 4),
    "eq_active": (N, 0),
    "ncon": (N,),
    "nefc": (N,),
    "solver_niter": (N,),
    "solver_residual": (N,),
    "solver_gap": (N,),
    "nreset": (N,),
}


@pytest.fixture
def model():
    return fl.load(SCENE)


@pytest.fixture
def batch(model, rng):
    """Returns worlds in different states near the floor."""
    made = fl.Batch(model, N)
    for w in range(N):
        made.qpos[w], made.qvel[w] = kicked(model, rng, 0.1)
    made.qpos[:, 2] = np.linspace(0.05, 0.4, N)
    made.ctrl = rng.uniform(-1, 1, (N, 1))
    return made


def oracle(batch, world, model=None):
    """Returns MuJoCo's model and data in the state of a world."""
    mj = (model or batch.model).to_mujoco()
    data = mujoco.MjData(mj)
    for name in ("qpos", "qvel", "ctrl", "qacc_warmstart", "qfrc_applied", "xfrc_applied", "mocap_pos", "mocap_quat"):
        getattr(data, name)[...] = getattr(batch, name)[world]
    data.time = batch.time[world]
    return mj, data


def snapshot(batch):
    return {name: getattr(batch, name).copy() for name in EVOLVING}


def assert_bits(batch, kept, worlds=slice(None)):
    for name, rows in kept.items():
        assert getattr(batch, name)[worlds].tobytes() == rows[worlds].tobytes(), name


# ---- arrays ----------------------------------------------------------------------------------------------------------


def test_fields_have_a_row_for_each_world(batch):
    for name, shape in SHAPES.items():
        assert getattr(batch, name).shape == shape, name
        assert getattr(batch, name).dtype == (np.int64 if DATA[name].dtype == "int64" else np.float64)
    assert set(batch.status) == {
        "contacts_full",
        "rows_full",
        "non_finite",
        "not_converged",
        "bad_control",
        "singular_inertia",
    }
    assert all(counts.shape == (N,) for counts in batch.status.values())


def test_worlds_start_at_the_models_defaults(model):
    batch, data = fl.Batch(model, N), fl.Data(model)
    for name in (*EVOLVING, *INPUTS):
        expected = np.broadcast_to(getattr(data, name), SHAPES[name])
        np.testing.assert_array_equal(getattr(batch, name), expected, err_msg=name)


def test_state_arrays_are_live(batch):
    arrays = {name: getattr(batch, name) for name in (*EVOLVING, *INPUTS)}
    before = arrays["qpos"].copy()
    batch.step()
    batch.qvel = 0.0
    for name, array in arrays.items():
        assert np.shares_memory(array, getattr(batch, name)) or array.size == 0
    assert (arrays["qpos"] != before).any()
    assert not arrays["qvel"].any()


def test_assignment_copies_with_broadcasting(batch):
    row = np.arange(8.0)
    batch.qpos, batch.ctrl, batch.time = row, 0.25, 3
    assert (batch.qpos == row).all() and (batch.ctrl == 0.25).all() and (batch.time == 3.0).all()
    row[0] = 9.0
    assert (batch.qpos[:, 0] == 0.0).all()


@pytest.mark.parametrize(
    "name, value", [("qpos", np.zeros(5)), ("qvel", "fast"), ("ctrl", np.zeros((N, 2))), ("time", None)]
)
def test_assignment_of_another_shape_or_kind_is_refused(batch, name, value):
    kept = getattr(batch, name).copy()
    with pytest.raises(fl.ModelError):
        setattr(batch, name, value)
    np.testing.assert_array_equal(getattr(batch, name), kept)


def test_unknown_and_computed_names_are_refused(batch):
    with pytest.raises(fl.errors.UnknownAttributeError):
        batch.qpo = 1.0
    with pytest.raises(fl.errors.UnknownAttributeError):
        _ = batch.xposs
    with pytest.raises(fl.errors.UnknownAttributeError):
        batch.qacc = 0.0
    with pytest.raises(AttributeError):
        batch.nworld = 3


def test_bound_outputs_follow_each_call(batch):
    xpos, site, _ = batch.bind("xpos"), batch.bind("site_xpos"), batch.bind("cvel")
    assert np.isnan(batch.xpos).all() and not xpos.flags.writeable
    batch.forward()
    for w in range(N):
        mj, data = oracle(batch, w)
        mujoco.mj_forward(mj, data)
        np.testing.assert_allclose(xpos[w], data.xpos, atol=1e-14)
        np.testing.assert_allclose(site[w], data.site_xpos, atol=1e-14)
    assert batch.bind("xpos").base is xpos.base
    assert batch.cvel.shape == (N, 4, 6)


@pytest.mark.parametrize("call", ["no call", "step", "forward", "reset", "rollout"])
def test_an_output_that_is_not_bound_is_refused(model, call):
    batch, bound = fl.Batch(model, N), fl.Batch(model, N)
    bound.bind("xpos")
    for b in (batch, bound) if call != "no call" else ():
        getattr(b, call)(*([2] if call == "rollout" else []))
    reads = (
        lambda: batch.xpos,
        lambda: batch.body("arm").xpos,
        lambda: batch.qacc,
        lambda: fl.add_sensor_noise(model, batch, 0),
    )
    for read in reads:
        with pytest.raises(fl.ModelError, match=r"bind\('\w+'\).*forward"):
            read()
    assert np.isnan(batch.bind("xpos")).all()
    for b in (batch, bound):
        b.step(ids=[0, 3])
    assert np.isnan(batch.xpos[1]).all()
    batch.step(ids=np.delete(np.arange(N), [0, 3]))
    bound.step(ids=np.delete(np.arange(N), [0, 3]))
    assert batch.xpos.tobytes() == bound.xpos.tobytes()


def test_outputs_of_a_fresh_mixed_batch_are_refused(model):
    mixed = fl.MixedBatch([(model, 2), (fl.bundled("pendulum"), 1)])
    for name in ("xpos", "qacc", "energy"):
        with pytest.raises(fl.ModelError, match=rf"^{name}: its values are not available.*bind\('{name}'\)"):
            getattr(mixed, name)
        assert np.isnan(mixed.bind(name)[mixed.mask(name)]).all()
    mixed.forward()
    assert np.isfinite(mixed.xpos).all()


@pytest.mark.parametrize("name", ["con_pos", "nv", "body_mass", "H", "nothing"])
def test_only_fields_of_worlds_can_be_bound(batch, name):
    with pytest.raises(fl.ModelError):
        batch.bind(name)


def test_named_access_shows_all_worlds(batch):
    batch.joint("shoulder").qpos = 0.1
    np.testing.assert_array_equal(batch.qpos[:, 7], 0.1)
    batch.actuator("motor").ctrl[:] = 0.5
    assert (batch.ctrl == 0.5).all()
    batch.bind("xpos")
    batch.forward()
    np.testing.assert_array_equal(batch.body("arm").xpos, batch.xpos[:, 3])


@pytest.mark.parametrize(
    "settings",
    [
        {"nworld": 0},
        {"nworld": -1},
        {"nworld": 2.0},
        {"nworld": True},
        {"nthread": -1},
        {"nthread": 100_000},
        {"dtype": "int32"},
        {"dtype": "x"},
        {"dtype": ">f8"},
        {"dtype": ">f4"},
    ],
)
def test_counts_and_types_out_of_range_are_refused(model, settings):
    with pytest.raises(fl.ModelError):
        fl.Batch(model, **{"nworld": 2, **settings})


@pytest.mark.parametrize("given", ["arm", None, 3])
def test_a_batch_requires_a_model(given):
    with pytest.raises(fl.errors.ArgumentTypeError):
        fl.Batch(given, 3)


# ---- running ---------------------------------------------------------------------------------------------------------


def test_a_step_equals_mujoco_in_every_world(batch):
    batch.qfrc_applied = 0.1
    batch.xfrc_applied[:, 2, 2] = 0.3
    batch.mocap_pos[:, 0, 0] = np.arange(N)
    worlds = [oracle(batch, w) for w in range(N)]
    batch.step(3)
    for w, (mj, data) in enumerate(worlds):
        for _ in range(3):
            mujoco.mj_step(mj, data)
        np.testing.assert_allclose(batch.qpos[w], data.qpos, atol=1e-8)
        np.testing.assert_allclose(batch.qvel[w], data.qvel, atol=1e-6)
        assert (batch.ncon[w], batch.nefc[w]) == (data.ncon, data.nefc)
        assert batch.time[w] == pytest.approx(data.time)


@pytest.mark.parametrize("nstep", [0, -1, 1.0, True, "2"])
def test_a_number_of_steps_is_at_least_one(batch, nstep):
    for call in (batch.step, batch.rollout):
        with pytest.raises(fl.ModelError):
            call(nstep)


def test_forward_does_not_change_the_state(batch):
    kept = snapshot(batch)
    batch.bind("qacc")
    batch.forward()
    assert_bits(batch, kept)
    assert batch.qacc.any()


def test_only_the_chosen_worlds_move(batch):
    kept, chosen = snapshot(batch), np.array([17, 3, 4])
    others = np.setdiff1d(np.arange(N), chosen)
    batch.step(2, ids=chosen)
    assert (batch.time[chosen] == 0.01).all()
    assert_bits(batch, kept, others)
    mask = np.zeros(N, bool)
    mask[others] = True
    batch.step(2, ids=mask)
    assert (batch.time == 0.01).all()
    batch.step(ids=[])
    batch.step(ids=np.zeros(N, bool))
    batch.step(ids=5)
    assert (batch.time > 0.012).nonzero()[0].tolist() == [5]


@pytest.mark.parametrize("ids", [[0, 0], [N], [-1], [0.5], np.zeros(N - 1, bool), [[0, 1]], "all"])
def test_ids_that_name_no_worlds_are_refused(batch, ids):
    kept = snapshot(batch)
    for call in (batch.step, batch.forward, batch.reset, batch.set_const):
        with pytest.raises(fl.ModelError):
            call(ids=ids)
    assert_bits(batch, kept)


def test_worlds_with_different_sizes_have_their_own_contacts():
    scene = """<mujoco><worldbody><geom type="box" size="1 1 .1"/>
      <body pos="0 0 .5"><freejoint/><geom type="{}" size=".2 .2 .2"/></body></worldbody></mujoco>"""
    for kind in ("box", "ellipsoid", "cylinder"):
        batch = fl.Batch(fl.load(scene.format(kind)), 3)
        batch.expand("geom_size")[1, 1] = [0.5, 0.5, 0.5]
        batch.set_const()
        batch.forward()
        assert batch.ncon[1] > 0 and batch.ncon[0] == batch.ncon[2] == 0


def test_a_refused_call_releases_the_batch(batch):
    with pytest.raises(fl.ModelError):
        batch.reset(keyframe=9)
    batch.step()


def test_reset_takes_worlds_to_the_defaults(batch, model):
    batch.qfrc_applied, batch.xfrc_applied, batch.mocap_pos = 1.0, 1.0, 0.0
    batch.bind("xpos")
    batch.step(5)
    kept, fresh = snapshot(batch), fl.Batch(model, N)
    batch.reset(ids=[0, 18])
    for name in (*EVOLVING, *INPUTS):
        np.testing.assert_array_equal(getattr(batch, name)[[0, 18]], getattr(fresh, name)[[0, 18]], err_msg=name)
    assert_bits(batch, kept, slice(1, 18))
    assert (batch.qfrc_applied[1:18] == 1.0).all()
    np.testing.assert_allclose(batch.xpos[18, 2], [0, 0, 0.3])


def test_reset_to_keyframes(batch):
    batch.reset(ids=[1, 2], keyframe="high")
    assert (batch.qpos[1:3, 2] == 2.0).all() and (batch.qvel[1] == np.arange(1, 8)).all()
    assert (batch.time[1:3] == 2.0).all() and (batch.ctrl[2] == 0.5).all()
    np.testing.assert_array_equal(batch.mocap_pos[1, 0], [7, 8, 9])
    np.testing.assert_array_equal(batch.mocap_quat[1, 0], [0, 1, 0, 0])
    batch.reset(ids=[1, 2, 3], keyframe=[1, -1, 0])
    np.testing.assert_array_equal(batch.qpos[[1, 2, 3], 2], [0.1, 0.3, 2.0])
    for wrong in (2, -2, 0.5, "none", [0, 1]):
        with pytest.raises(fl.ModelError):
            batch.reset(ids=[1, 2, 3], keyframe=wrong)


# ---- rollouts --------------------------------------------------------------------------------------------------------


def test_a_rollout_records_the_values_of_steps(batch, rng):
    control = rng.uniform(-1, 1, (N, 6, 1))
    other = copy.deepcopy(batch)
    for name in ("xpos", "qfrc_constraint", "ncon"):
        other.bind(name)
    out = batch.rollout(6, control=control, record=("qpos", "time", "xpos", "qfrc_constraint", "ncon"))
    for k in range(6):
        other.ctrl = control[:, k]
        other.step()
        for name, rows in out.items():
            expected = other.bind(name)
            assert rows[:, k].reshape(expected.shape).tobytes() == expected.tobytes(), name
    np.testing.assert_array_equal(batch.ctrl, control[:, -1])


def test_scalars_per_world_have_no_trailing_axis(batch):
    numbers = [f.name for f in DATA.fields if f.is_number and f.traits.shown]
    mixed = fl.MixedBatch([(batch.model, 2), (fl.bundled("pendulum"), 1)])
    assert {"time", "ncon", "nisland"} < set(numbers)
    given = np.zeros((N, 2))
    out = batch.rollout(2, record=numbers, out={"time": given})
    assert out["time"] is given and given.all()
    for name, rows in mixed.rollout(2, record=numbers).items():
        assert rows.shape == (3, 2) and out[name].shape == (N, 2), name
        assert batch.bind(name).shape == (N,) and mixed.bind(name).shape == (3,), name
    np.testing.assert_array_equal(out["time"][:, -1], batch.time)
    batch.forward()
    mixed.forward()
    for name in numbers:
        assert getattr(batch, name).shape == (N,) and getattr(mixed, name).shape == (3,), name


def test_a_rollout_of_some_worlds_takes_controls_in_the_given_order(batch, rng):
    ids, control = np.array([12, 0, 7, 3, 18, 9, 5, 1, 2, 16]), rng.uniform(-1, 1, (10, 4, 1))
    other, kept = copy.deepcopy(batch), snapshot(batch)
    out = batch.rollout(4, control=control, record="qvel", ids=ids)
    assert set(out) == {"qvel"} and out["qvel"].shape == (10, 4, 7)
    for k in range(4):
        other.ctrl[ids] = control[:, k]
        other.step(ids=ids)
        assert out["qvel"][:, k].tobytes() == other.qvel[ids].tobytes()
    assert_bits(batch, kept, np.setdiff1d(np.arange(N), ids))


def test_calls_that_name_all_worlds_can_name_them_in_any_order(batch, rng):
    order = rng.permutation(N)
    control, qacc = rng.uniform(-1, 1, (N, 3, 1)), rng.normal(size=(N, 7))
    start = rng.uniform(-1, 1, (N, 1, 3)) + [0, 0, 2]
    batch.inverse(qacc)
    hits, twin = batch.ray(start, (0, 0, -1)), copy.deepcopy(batch)
    twin.inverse(qacc[order], ids=order)
    np.testing.assert_array_equal(twin.qfrc_inverse, batch.qfrc_inverse)
    np.testing.assert_array_equal(twin.ray(start[order], (0, 0, -1), ids=order).distance, hits.distance[order])
    expected = batch.rollout(3, control, ("qpos", "ctrl"))
    found = twin.rollout(3, control[order], ("qpos", "ctrl"), ids=order)
    for name, rows in expected.items():
        np.testing.assert_array_equal(found[name], rows[order], err_msg=name)
    assert_bits(twin, snapshot(batch))


def test_a_function_controls_each_step(batch):
    """A servo in plain Python gives the same result as its controls from an array."""
    model, kept = batch.model, []

    def servo(worlds, step):
        kept.append(-3.0 * worlds.qvel[:, -model.nu :] + 0.01 * step)
        return kept[-1]

    start = fl.get_state(model, batch, fl.State.INTEGRATION)
    out = batch.rollout(5, control=servo, record=("qpos", "qfrc_constraint"))
    fl.set_state(model, batch, start, fl.State.INTEGRATION)
    again = batch.rollout(5, control=np.stack(kept, 1), record=("qpos", "qfrc_constraint"))
    for name in out:
        assert np.array_equal(out[name], again[name]), name
    with pytest.raises(fl.ModelError):
        batch.rollout(2, control=lambda worlds, step: np.zeros((2, 77)))


def test_one_control_sequence_applies_to_all_worlds(batch, rng):
    tape = rng.uniform(-1, 1, (4, batch.model.nu))
    start = fl.get_state(batch.model, batch, fl.State.INTEGRATION)
    out = batch.rollout(4, control=tape)["qpos"]
    fl.set_state(batch.model, batch, start, fl.State.INTEGRATION)
    again = batch.rollout(4, control=np.tile(tape, (batch.nworld, 1, 1)))["qpos"]
    assert np.array_equal(out, again)
    for wrong in (tape[:3], tape[0], "hold", [[1.0], [2.0, 3.0]], 1j * tape):
        with pytest.raises(fl.ModelError):
            batch.rollout(4, control=wrong)


def test_a_rollout_without_controls_keeps_them(batch):
    kept = batch.ctrl.copy()
    batch.rollout(3)
    np.testing.assert_array_equal(batch.ctrl, kept)


def test_a_rollout_writes_into_given_arrays(batch):
    out = {"qpos": np.full((N, 3, 8), np.nan)}
    result = batch.rollout(3, record=("qpos", "qvel"), out=out)
    assert result["qpos"] is out["qpos"] and np.isfinite(out["qpos"]).all()
    assert result["qvel"].shape == (N, 3, 7)


@pytest.mark.parametrize(
    "arguments",
    [
        {"control": np.zeros((N, 2, 1))},
        {"control": np.zeros((N, 3))},
        {"control": "fast"},
        {"record": ("qposs",)},
        {"record": ("con_pos",)},
        {"out": {"qpos": np.zeros((N, 3, 7))}},
        {"out": {"qpos": np.zeros((N, 3, 8), np.float32)}},
        {"out": {"qpos": np.zeros((N, 8, 3)).swapaxes(1, 2)}},
        {"out": {"qpos": [[0.0]]}},
        {"out": {"qvel": np.zeros((N, 3, 7))}},
    ],
)
def test_a_rollout_refuses_invalid_arguments(batch, arguments):
    kept = snapshot(batch)
    with pytest.raises(fl.ModelError):
        batch.rollout(3, **arguments)
    assert_bits(batch, kept)


# ---- models that differ by world -------------------------------------------------------------------------------------


def test_worlds_with_different_masses_equal_separate_models(model, batch):
    scale = np.linspace(0.5, 2.0, N)[:, None]
    batch.expand("body_mass")[:] *= scale
    batch.expand("body_inertia")[:] *= scale[..., None]
    batch.expand("dof_armature")[:] = 0.01 * scale
    batch.expand("opt.gravity")[:, 2] = -9.81 * scale[:, 0]
    batch.set_const()
    kept = copy.deepcopy(batch)
    batch.step(10)
    for w in range(0, N, 3):
        own = copy.deepcopy(model)
        own.body_mass *= scale[w]
        own.body_inertia *= scale[w]
        own.dof_armature = 0.01 * scale[w]
        own.opt.gravity[2] *= scale[w, 0]
        fl.set_const(own)
        data = fl.Data(own)
        data.qpos, data.qvel, data.ctrl = kept.qpos[w], kept.qvel[w], kept.ctrl[w]
        for _ in range(10):
            fl.step(own, data)
        assert data.qpos.tobytes() == batch.qpos[w].tobytes()
        np.testing.assert_array_equal(kept.get_model(w).body_invweight0, own.body_invweight0)


def test_expanded_fields_start_equal_and_are_live(model, batch):
    mass = batch.expand("body_mass")
    assert mass.shape == (N, 4) and (mass == model.body_mass).all()
    assert batch.expand("body_mass") is mass and batch.expanded("body_mass") is mass
    assert batch.expanded("geom_friction") is None
    with pytest.raises(fl.ModelError):
        batch.expand("body_mas")
    with pytest.raises(fl.ModelError):
        batch.expand("body_parentid")


def test_set_const_of_some_worlds_leaves_the_others(batch):
    batch.expand("body_mass")[:] *= 2.0
    batch.set_const(ids=[3])
    weights = batch.expanded("body_invweight0")
    assert (weights[3] != weights[4]).any()
    np.testing.assert_array_equal(weights[4], batch.model.body_invweight0)


@pytest.mark.parametrize("edit", ["gravity", "mass", "timestep", "flag", "integrator", "friction"])
def test_edits_of_the_model_take_effect_at_the_next_step(model, batch, edit):
    batch.step(2)
    if edit == "gravity":
        model.opt.gravity = [0.0, 1.0, -3.0]
    elif edit == "mass":
        model.body("arm").mass *= 3.0
        fl.set_const(model)
    elif edit == "timestep":
        model.opt.timestep = 0.002
    elif edit == "flag":
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    elif edit == "integrator":
        model.opt.integrator = "RK4"
    else:
        model.geom_friction[:, 0] = 0.1
    mj, data = oracle(batch, 4)
    batch.step()
    mujoco.mj_step(mj, data)
    np.testing.assert_allclose(batch.qpos[4], data.qpos, atol=1e-9)
    np.testing.assert_allclose(batch.qvel[4], data.qvel, atol=1e-7)


def test_a_field_that_is_expanded_does_not_follow_the_model(model, batch):
    batch.expand("opt.timestep")
    model.opt.timestep = 0.001
    batch.step()
    assert (batch.time == 0.005).all()


# ---- non-finite states -----------------------------------------------------------------------------------------------


def with_a_bad_world(batch, name, value, world=5):
    other = copy.deepcopy(batch)
    getattr(other, name)[world].flat[0] = value
    return other


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 2e10])
@pytest.mark.parametrize("name", ["qpos", "qvel", "qfrc_applied"])
@pytest.mark.filterwarnings("ignore::featherlane.NonFiniteWarning")
def test_a_non_finite_world_is_reset_as_in_mujoco_without_affecting_others(batch, name, value):
    batch.model.qpos0[2] = 0.09  # the defaults touch the floor
    batch.qfrc_applied = 0.0
    batch.step(3)
    other = with_a_bad_world(batch, name, value * 1e5 if name == "qfrc_applied" else value)
    mj, data = oracle(other, 5)
    batch.step()
    other.step()
    mujoco.mj_step(mj, data)
    assert_bits(other, snapshot(batch), np.delete(np.arange(N), 5))
    for field in ("qpos", "qvel", "time", "ctrl", "qfrc_applied", "mocap_pos", "mocap_quat"):
        np.testing.assert_allclose(getattr(other, field)[5], getattr(data, field), atol=1e-9, err_msg=field)
    fresh = fl.Batch(batch.model, 1)
    fresh.step()
    for field in EVOLVING:
        assert getattr(other, field)[5].tobytes() == getattr(fresh, field)[0].tobytes(), field
    assert np.flatnonzero(other.nreset).tolist() == [5]
    assert np.flatnonzero(other.status["non_finite"]).tolist() == [5]
    other.step(5)
    assert other.nreset.sum() == 1 and np.isfinite(other.qpos).all()


@pytest.mark.filterwarnings("ignore::featherlane.NonFiniteWarning")
def test_without_autoreset_a_world_stays_non_finite_without_affecting_others(batch, model):
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
    other = with_a_bad_world(batch, "qvel", np.nan)
    batch.step(3)
    other.step(3)
    assert_bits(other, snapshot(batch), np.delete(np.arange(N), 5))
    assert np.isnan(other.qvel[5]).any()
    assert other.nreset.sum() == 0 and other.status["non_finite"][5] > 0


@pytest.mark.parametrize("contact_model", ["convex", "lcp"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -2e10])
@pytest.mark.parametrize("field", ["time", "qpos", "qvel", "act", "mocap_pos", "mocap_quat", "eq_active"])
@pytest.mark.filterwarnings("ignore::featherlane.NonFiniteWarning")
def test_every_non_finite_value_of_a_world_is_counted(field, value, contact_model):
    model = fl.load("""<mujoco><worldbody>
        <body mocap="true" pos="0 0 1" euler="10 20 30"><geom type="box" size=".3 .3 .1"/></body>
        <body name="ball" pos="0 0 1.2"><freejoint/><geom size=".1"/></body>
        <body name="rod" pos="2 0 0"><joint name="hinge"/><geom size=".1"/></body></worldbody>
        <equality><connect body1="rod" body2="ball" anchor="0 0 0" active="false"/></equality>
        <actuator><general joint="hinge" dyntype="integrator" gainprm="0" actlimited="true" actrange="-1 1"/></actuator>
        </mujoco>""")
    model.opt.contact_model = contact_model
    batch, clean = fl.Batch(model, 9), fl.Batch(model, 9)
    for each in (batch, clean):
        each.step(2)
    getattr(batch, field)[4] = value
    for each in (batch, clean):
        each.step()
    assert batch.status["non_finite"].tolist() == batch.nreset.tolist() == [int(w == 4) for w in range(9)]
    for name in EVOLVING:
        assert np.isfinite(getattr(batch, name)).all()
    np.testing.assert_allclose(batch.time[4], model.opt.timestep)
    assert_bits(batch, snapshot(clean), np.delete(np.arange(9), 4))
    batch.step()
    assert batch.nreset.sum() == 1


@pytest.mark.parametrize("sleep", ["disable", "enable"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.filterwarnings("ignore::featherlane.NonFiniteWarning")
def test_mocap_bodies_start_at_the_pose_of_their_world(dtype, sleep):
    model = fl.load(f"""<mujoco><option><flag sleep="{sleep}"/></option><worldbody>
        <body name="hand" mocap="true" pos="0 0 1" euler="10 20 30"><geom size=".1"/></body>
        <body pos="0 0 3"><freejoint/><geom size=".1"/></body></worldbody></mujoco>""")
    places = np.arange(9.0)[:, None] + [0.25, 0.5, 1.0]
    turns = np.random.default_rng(0).standard_normal((9, 4))

    def worlds():
        batch = fl.Batch(model, 9, dtype=dtype)
        batch.expand("body_pos")[:, 1] = places
        batch.expand("body_quat")[:, 1] = turns
        batch.reset()
        return batch

    once, often = worlds(), worlds()
    unit = turns / np.linalg.norm(turns, axis=1, keepdims=True)
    for batch in (once, often):
        np.testing.assert_array_equal(batch.mocap_pos[:, 0], places)
        np.testing.assert_allclose(batch.mocap_quat[:, 0], unit, atol=1e-6)
        batch.mocap_pos[:] = 7.0
        batch.qvel[5] = np.nan
    once.step(3)
    for _ in range(3):
        often.step()
    for name in ("mocap_pos", "mocap_quat", "qpos", "qvel", *(("sleep_mocap",) if sleep == "enable" else ())):
        assert getattr(once, name).tobytes() == getattr(often, name).tobytes(), name
    np.testing.assert_array_equal(once.mocap_pos[5, 0], places[5])
    np.testing.assert_allclose(once.mocap_quat[5, 0], unit[5], atol=1e-6)
    assert (once.mocap_pos[[0, 8]] == 7.0).all()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_non_finite_control_acts_as_zero(batch, value):
    batch.ctrl[5] = 0.0
    other = with_a_bad_world(batch, "ctrl", value)
    kept = snapshot(other)
    batch.step()
    other.step()
    assert_bits(other, snapshot(batch), np.delete(np.arange(N), 5))
    mj, data = oracle(batch, 5)
    for name, rows in kept.items():
        if name != "time":
            getattr(data, name)[...] = rows[5]
    data.time, data.ctrl[0] = 0.0, value
    mujoco.mj_step(mj, data)
    np.testing.assert_allclose(other.qpos[5], data.qpos, atol=1e-9)
    each = int(np.isnan(value))  # infinity is clamped
    assert other.status["bad_control"].tolist() == [each * (w == 5) for w in range(N)] and not other.nreset.any()
    other.step(3)
    assert other.status["bad_control"][5] == 4 * each
    other.reset()
    assert not other.status["bad_control"].any()


@pytest.mark.parametrize("integrator", ["euler", "rk4", "implicit", "discrete"])
def test_a_non_finite_control_is_counted_once_per_step(integrator):
    model = fl.bundled("cartpole")
    model.opt.integrator = integrator
    data = fl.Data(model)
    data.ctrl[0] = np.nan
    fl.step(model, data, 3)
    assert data.status["bad_control"] == 3 and data.status["non_finite"] == 0
    fl.forward(model, data)
    assert data.status["bad_control"] == 4


@pytest.mark.filterwarnings("ignore::featherlane.NonFiniteWarning")
def test_a_repeated_step_counts_once_for_the_other_worlds():
    batch = fl.Batch(fl.bundled("cartpole"), 3)
    batch.ctrl[1:] = np.nan
    batch.qfrc_applied[0] = 1e300
    batch.step()
    assert batch.nreset.tolist() == [1, 0, 0]
    assert batch.status["bad_control"].tolist() == [0, 1, 1]


@pytest.mark.filterwarnings("ignore::featherlane.NonFiniteWarning")
def test_a_reset_clears_the_counts(batch):
    other = with_a_bad_world(batch, "qpos", np.nan)
    other.step()
    other.reset(ids=[5])
    assert not other.nreset.any() and not other.status["non_finite"].any()


# ---- keeping, copying, sharing ---------------------------------------------------------------------------------------


def test_restore_refuses_another_batchs_checkpoint_and_takes_nothing(batch, model):
    kept = snapshot(batch)
    wrong = fl.Batch(model, N + 1).checkpoint()
    with pytest.raises(fl.ModelError):
        batch.restore(wrong)
    single = fl.Batch(model, N, dtype="float32").checkpoint()
    with pytest.raises(fl.ModelError):
        batch.restore(single)
    good = batch.checkpoint()
    del good["qvel"]
    with pytest.raises(fl.ModelError, match="qvel"):
        batch.restore(good)
    with pytest.raises(fl.ModelError):
        batch.restore(batch.checkpoint() | {"nothing": np.zeros(3)})
    assert_bits(batch, kept)


def test_a_checkpoint_holds_expanded_fields_and_passes_through_npz(batch, model, tmp_path):
    batch.expand("body_mass")[:] *= 2.0
    batch.qfrc_applied = 0.5
    batch.step(3)
    np.savez(tmp_path / "kept.npz", **batch.checkpoint())
    other = fl.Batch(model, N)
    with np.load(tmp_path / "kept.npz") as kept:
        other.restore(kept)
    batch.step(5)
    other.step(5)
    assert_bits(other, snapshot(batch))


def test_restore_reverts_later_expansions(batch):
    kept, other = batch.checkpoint(), copy.deepcopy(batch)
    batch.expand("body_mass")[:] *= 2.0
    batch.step(3)
    batch.restore(kept)
    batch.step(3)
    other.step(3)
    assert_bits(batch, snapshot(other))


def test_copies_are_independent(batch):
    other = copy.deepcopy(batch)
    kept = snapshot(batch)
    other.step()
    other.model.opt.timestep = 0.001
    assert_bits(batch, kept)
    assert batch.model.opt.timestep == 0.005


def test_a_pickle_keeps_bound_fields_and_the_model_together(batch):
    batch.bind("xpos")
    batch.step()
    other = pickle.loads(pickle.dumps(batch))
    batch.step()
    other.step()
    np.testing.assert_array_equal(other.xpos, batch.xpos)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda batch: pickle.loads(pickle.dumps(batch))])
def test_fields_of_a_copy_are_independent_and_live(batch, copied):
    names = ("qpos", "time", "xpos", "qfrc_applied")
    batch.bind("xpos")
    before = [getattr(batch, name) for name in names]
    assert all(getattr(batch, name) is value for name, value in zip(names, before, strict=True))
    other = copied(batch)
    other.step()
    other.qpos[:] += 1.0
    assert (other.time > 0.0).all() and np.abs(other.xpos).max() > 0.0 and not other.xpos.flags.writeable
    other.forward()
    kept = other.checkpoint()
    np.testing.assert_array_equal(other.qpos, kept["qpos"])
    np.testing.assert_array_equal(other.time, kept["time"][:, 0])


def test_counts_of_causes_equal_those_of_the_status(batch):
    batch.qvel[3] = np.nan
    with pytest.warns(fl.NonFiniteWarning):
        batch.step(2)
    found = batch.count_of("non_finite", "bad_control", "contacts_full")
    status = batch.status
    np.testing.assert_array_equal(found, status["non_finite"] + status["bad_control"] + status["contacts_full"])
    assert found[3] > 0


def test_one_world_as_data(batch):
    batch.expand("body_mass")[:] *= np.linspace(1, 2, N)[:, None]
    batch.step(3)
    data = batch.get_data(7)
    batch.bind("qacc")
    batch.forward()
    np.testing.assert_array_equal(data.qpos, batch.qpos[7])
    np.testing.assert_array_equal(data.qacc, batch.qacc[7])
    np.testing.assert_array_equal(batch.get_model(7).body_mass, batch.expanded("body_mass")[7])
    with pytest.raises(fl.ModelError):
        batch.get_data(N)


def test_a_second_thread_in_one_batch_is_reported(model):
    batch, errors, start = fl.Batch(model, 512, nthread=1), [], threading.Barrier(2)

    def work():
        start.wait()
        for _ in range(20):
            try:
                batch.step(50)
            except RuntimeError as error:
                errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors and "another thread" in str(errors[0])
    batch.step()


def child(batch, queue):
    batch.step(5)
    queue.put(batch.qpos.tobytes())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_batch_works_after_a_fork(model, rng):
    batch = fl.Batch(model, 200, nthread=2)
    batch.qpos[:, 2] = rng.uniform(0.1, 0.5, 200)
    batch.step(5)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=child, args=(batch, queue))
    process.start()
    bits = queue.get(timeout=120)
    process.join(timeout=120)
    batch.step(5)
    assert process.exitcode == 0 and bits == batch.qpos.tobytes()


def test_memory_grows_with_rows_only(model):
    def resident():
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    if not os.path.exists("/proc/self/statm"):
        pytest.skip("this system does not tell")
    fl.Batch(model, 64).step()
    before = resident()
    batch = fl.Batch(model, 50_000)
    batch.step()
    rows = sum(getattr(batch, name).nbytes for name in SHAPES if name not in ("qfrc_applied", "xfrc_applied"))
    assert resident() - before < 2 * rows + 50e6


def test_contiguous_rows_are_cleared_together():
    """Rows are also cleared element by element as a slice of wider rows, whose other elements stay."""
    plain, wide = np.ones((4, 2, 3)), np.ones((4, 3, 5))
    for array, inner in ((plain, plain), (wide, wide[:, :2, :3]), (wide.reshape(4, 15), wide.reshape(4, 15)[:, :7])):
        array[:] = 1.0
        rows, zero = whole_rows(inner)
        rows[np.array([0, 2])] = zero
        assert (inner[[0, 2]] == 0.0).all() and (inner[[1, 3]] == 1.0).all()
        assert array.sum() == array.size - inner[[0, 2]].size


@pytest.mark.parametrize("call", ["expand", "set_const", "restore"])
def test_arrays_are_not_replaced_during_a_step_of_another_thread(model, call):
    batch, errors = fl.Batch(model, N), []
    batch.expand("body_mass")
    kept = batch.checkpoint()
    given = {"expand": ("geom_size",), "set_const": (), "restore": ({**kept, "qpos": kept["qpos"] + 1.0},)}[call]

    def meanwhile():
        try:
            getattr(batch, call)(*given)
        except RuntimeError as error:
            errors.append(str(error))

    def within():  # as during a step of another thread
        thread = threading.Thread(target=meanwhile)
        thread.start()
        thread.join()

    hold((batch.runner.turn,), within)  # locked as during a step, but no world moves
    assert len(errors) == 1 and "another call of this batch" in errors[0]
    assert batch.expanded("geom_size") is None and (batch.qpos == kept["qpos"]).all()
    getattr(batch, call)(*given)
