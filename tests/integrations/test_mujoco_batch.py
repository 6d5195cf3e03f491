"""`featherlane.integrations.mujoco_batch` against `mujoco.batch`: MuJoCo's tests, and cases that they lack."""

import copy
import importlib.util
import re

import mujoco
import numpy as np
import pytest

import exam
import featherlane as fl

theirs = pytest.importorskip("mujoco.batch", reason="MuJoCo before 3.17 has no mujoco.batch")
ours = pytest.importorskip("featherlane.integrations.mujoco_batch")

BINDING = "it calls the private binding `_b`"
CALLBACK = "a callback in C is installed, which Featherlane does not call"
# tests of MuJoCo that fail, with the reason
FAILS = {
    "test_callbacks_checked_on_construction": CALLBACK,
    "test_count_outputs": "its last assertion names `nA`, a size of MuJoCo's sparse rows, in a message",
    "test_error_messages": BINDING,
    "test_integer_arguments_checked": BINDING,
    "test_private_binding_does_not_convert": BINDING,
    "test_python_callbacks_rejected": CALLBACK,
    "test_rollout_checks_buffers": BINDING,
}
SCENE = """<mujoco>
  <option timestep="0.005" tolerance="0"/>
  <asset> <mesh name="tet" vertex="0 0 0  .2 0 0  0 .2 0  0 0 .2"/> </asset>
  <worldbody>
    <geom name="floor" type="plane" size="2 2 .1"/>
    <body name="box" pos="0 0 .3">
      <freejoint/>
      <geom name="box" type="box" size=".1 .1 .1"/>
      <body name="arm" pos=".1 0 .1">
        <joint name="elbow" axis="0 1 0" damping=".1" range="-1 1" limited="true"/>
        <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
        <site name="tip" pos=".3 0 0"/>
      </body>
    </body>
    <body name="stone" pos="1 0 .3"> <freejoint/> <geom name="stone" type="mesh" mesh="tet"/> </body>
    <body name="target" mocap="true" pos="0 0 1"/>
  </worldbody>
  <equality> <connect body1="arm" body2="target" anchor=".3 0 0" active="false"/> </equality>
  <actuator> <motor joint="elbow" gear="2"/> </actuator>
  <sensor> <framepos objtype="site" objname="tip"/> <touch site="tip"/> </sensor>
  <keyframe> <key name="up" qpos="0 0 1 1 0 0 0 .2 1 0 1 1 0 0 0" ctrl=".3"/> </keyframe>
</mujoco>"""
NSIM = 11
CTRL = int(mujoco.mjtWarning.mjWARN_BADCTRL)
TIME = mujoco.mjtState.mjSTATE_TIME


def both(source=SCENE, nsim=NSIM, **how):
    model = mujoco.MjModel.from_xml_string(source) if isinstance(source, str) else source
    return [library.Batch(model, nsim, 2, **how) for library in (ours, theirs)]


def close(found, reference, rtol=1e-9):
    reference = np.asarray(reference, float)
    largest = np.abs(reference[np.isfinite(reference)]).max(initial=1.0)
    np.testing.assert_allclose(np.asarray(found, float), reference, rtol=rtol, atol=rtol * largest)


def run(pair, rng, nstep=30):
    """Applies the same random controls to both, and compares the states."""
    for _ in range(nstep // 5):
        control = rng.uniform(-1, 1, pair[1].ctrl.shape)
        for batch in pair:
            batch.ctrl = control
            batch.step(nstep=5)
    close(pair[0].state, pair[1].state, 1e-7)


def warned(pair):
    """Compares which warnings were counted; MuJoCo counts a bad control twice in a step."""
    numbers = [np.where(np.arange(7) == CTRL, batch.warning[..., 1] > 0, batch.warning[..., 1]) for batch in pair]
    np.testing.assert_array_equal(*numbers)


@pytest.mark.ci
@pytest.mark.skipif(importlib.util.find_spec("absl") is None, reason="MuJoCo's tests need absl-py")
def test_the_tests_of_mujoco_pass():
    done = exam.run("batch")
    failed = set(re.findall(r"^(?:FAIL|ERROR): (\w+)", done.stderr, re.MULTILINE))
    number = re.search(r"^Ran (\d+) tests", done.stderr, re.MULTILINE)
    assert failed == set(FAILS), done.stderr[-3000:]
    assert number and int(number[1]) >= 52


def test_the_private_binding_is_the_last_assertion_of_two_tests():
    """All assertions of `test_error_messages` and `test_integer_arguments_checked` before it pass."""
    done = exam.run("batch", "BatchTest.test_error_messages", "BatchTest.test_integer_arguments_checked")
    if importlib.util.find_spec("absl") is not None:
        assert len(re.findall("AttributeError: 'Batch' object has no attribute '_b'", done.stderr)) == 2


# ---- fields ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["humanoid", "quadruped", "arm"])
def test_outputs_equal_mujocos(name, rng):
    """MuJoCo computes some outputs only for sensors, and counts iterations by island."""
    model = fl.bundled(name).mj_model
    pair = both(model)
    lazy = {"cacc", "cfrc_int", "cfrc_ext", "energy", "subtree_linvel", "subtree_angmom", "solver_niter"}
    fields = [(n, *(batch.bind(n) for batch in pair)) for n in sorted(ours.DATA_FIELDS - lazy)]
    velocity = rng.normal(0, 0.2, (NSIM, model.nv))
    for batch in pair:
        batch.qvel = velocity
    run(pair, rng, 10)
    for each, found, reference in fields:
        assert found.shape == reference.shape and found.dtype == reference.dtype, each
        close(found, reference, 1e-6)
    for batch in pair:
        batch.forward(ids=[1, 4])
    for _, found, reference in fields:
        close(found, reference, 1e-6)


def test_names_are_those_of_mujoco():
    assert ours.DATA_FIELDS <= theirs.DATA_FIELDS
    assert ours.MODEL_FIELDS <= theirs.MODEL_FIELDS


def test_an_output_bound_between_calls_is_zero_until_the_next_call(rng):
    pair = both()
    for batch in pair:
        batch.step()
        assert not batch.bind("site_xpos").any()
        batch.step(ids=[2, 3])
        assert batch.site_xpos[2].any() and not batch.site_xpos[1].any()
    close(pair[0].site_xpos, pair[1].site_xpos)


def test_writes_to_the_state_vectors_act(rng):
    pair = both()
    force = rng.normal(0, 1, (NSIM, pair[0].model.nv))
    start = int(mujoco.mj_stateSize(pair[0].model, sum(1 << k for k in range(7))))  # what precedes qfrc_applied
    for batch in pair:
        close(batch.state[:, start : start + batch.model.nv], batch.qfrc_applied)
        batch.state[:, start : start + batch.model.nv] = force
    run(pair, rng, 5)
    assert np.abs(pair[0].qvel).max() > 0.01


def test_an_input_first_written_after_steps_acts(rng):
    pair = both()
    run(pair, rng, 5)
    for batch in pair:
        batch.xfrc_applied[:, 1, 2] = 3.0
    run(pair, rng, 5)


def test_reset_clears_inputs_and_user_data(rng):
    source = SCENE.replace("<option", '<size nuserdata="3"/><option')
    pair = both(source)
    for batch in pair:
        batch.userdata, batch.qfrc_applied, batch.ctrl = 1.0, 0.5, 0.2
        batch.step(nstep=3)
        batch.reset([1, 2])
        batch.reset([3, 4, 7], keyframe=np.array([0, -1, 0]))
    close(pair[0].state, pair[1].state)
    run(pair, rng, 10)


# ---- models ----------------------------------------------------------------------------------------------------------
def expanded(pair, values):
    for batch in pair:
        for name, value in values.items():
            batch.expand(name)[...] = value


def test_real_fields_differ_by_simulation(rng):
    pair = both()
    nbody = pair[0].model.nbody
    expanded(pair, {"body_mass": rng.uniform(0.5, 2, (NSIM, nbody)), "opt.timestep": rng.uniform(0.001, 0.005, NSIM)})
    expanded(pair, {"geom_size": rng.uniform(0.05, 0.1, (NSIM, 1, 1)), "geom_friction": 0.4})
    for batch in pair:
        batch.set_const()
    run(pair, rng)
    for name in ("body_invweight0", "geom_rbound", "dof_M0"):
        close(pair[0].expanded(name), pair[1].expanded(name))


def test_integers_differ_by_simulation(rng):
    """Simulations with other values step in a separate native batch, in the same rows."""
    pair = both()
    qpos, xpos = pair[0].qpos, pair[0].bind("xpos")
    run(pair, rng, 10)
    expanded(pair, {"geom_contype": np.arange(NSIM)[:, None] % 2, "jnt_limited": np.arange(NSIM)[:, None] % 3 == 0})
    expanded(pair, {"opt.disableflags": (np.arange(NSIM) == 5) * int(mujoco.mjtDisableBit.mjDSBL_GRAVITY)})
    for batch in pair:
        batch.bind("ncon")
    run(pair, rng, 60)
    np.testing.assert_array_equal(pair[0].ncon, pair[1].ncon)
    assert 0 < np.count_nonzero(pair[0].ncon) < NSIM
    assert qpos.base is pair[0].qpos.base
    close(xpos, pair[0].xpos)
    expanded(pair, {"geom_contype": 1, "body_mass": 1.5})
    run(pair, rng, 20)
    rays = [batch.ray([0.0, 0.0, 3.0], [0.0, 0.0, -1.0], normal=True) for batch in pair]
    for found, reference in zip(*rays, strict=True):
        close(found, reference)
    bodies = np.arange(NSIM) % 3
    for found, reference in zip(*(batch.jac(bodies, [0.1, 0.2, 0.3]) for batch in pair), strict=True):
        close(found, reference)


def test_a_simulation_with_an_invalid_value_keeps_its_state():
    batch = both()[0]
    batch.expand("opt.timestep")[[3, 6]] = np.nan
    with pytest.raises(ours.SimulationError, match=r"2 of 11 simulations \(3, 6\)") as error:
        batch.step()
    assert error.value.ids.tolist() == [3, 6]
    assert np.flatnonzero(batch.time == 0).tolist() == [3, 6]
    assert np.isnan(batch.expand("opt.timestep")[3])
    assert "timestep" in batch.error(6) and batch.error(0) == ""
    batch.step(ids=[0, 1])
    assert batch.error(3)
    batch.expand("opt.timestep")[...] = 0.002
    batch.step()
    assert not batch.status.any() and batch.error(3) == ""


def test_constants_of_the_other_simulations_are_computed_if_one_has_an_invalid_value():
    batch = both()[0]
    masses = batch.expand("body_mass")
    before = masses.sum(1)
    masses[...] *= 2.0
    masses[3, 1] = -1.0
    with pytest.raises(ours.SimulationError, match=r"1 of 11 .* simulation 3: body_mass .*'[^']*': got -1, "):
        batch.set_const()
    found = np.delete(batch.expand("body_subtreemass")[:, 0] / before, 3)
    np.testing.assert_allclose(found, 2.0, rtol=1e-12)
    assert masses[3, 1] == -1.0


@pytest.mark.parametrize("name, arguments", [("model", ("", 4)), ("nsim", (2.5,)), ("nthread", (4, "2"))])
def test_an_argument_of_another_type_is_named(name, arguments):
    given = arguments if name == "model" else (mujoco.MjModel.from_xml_string(SCENE), *arguments)
    for library in (ours, theirs):
        with pytest.raises(TypeError, match=name):
            library.Batch(*given)


def test_a_number_of_steps_that_is_not_an_integer_is_refused():
    for batch in both():
        for call in (batch.step, batch.rollout):
            with pytest.raises(TypeError, match=r"nstep|float"):
                call(nstep=1.5)


def test_there_are_at_most_as_many_threads_as_simulations():
    model = mujoco.MjModel.from_xml_string(SCENE)
    assert [library.Batch(model, 2, 5000).nthread for library in (ours, theirs)] == [2, 2]


def variants():
    """Returns models of different masses, meshes and flags."""
    models = []
    for k in range(NSIM):
        text = SCENE.replace("0 0 .2", f"0 0 {0.2 + 0.1 * (k % 2)}").replace(
            'damping=".1"', f'damping="{0.1 * (k + 1)}"'
        )
        models.append(mujoco.MjModel.from_xml_string(text))
    models[4].opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    return models


def test_models_of_the_caller(rng):
    pair, models = both(), variants()
    run(pair, rng, 10)
    for batch in pair:
        batch.bind("sensordata")
        batch.set_models(models)
    run(pair, rng, 60)
    close(pair[0].sensordata, pair[1].sensordata)
    for batch in pair:
        batch.reset(keyframe=0)
        batch.set_models(models[0])
    run(pair, rng, 20)
    for batch in pair:
        batch.set_models(None)
    run(pair, rng, 20)
    close(pair[0].sensordata, pair[1].sensordata)


def test_keyframes_of_models_of_the_caller(rng):
    pair, models = both(), variants()
    for k, model in enumerate(models):
        model.key_qpos[0, 2] = 1.0 + k
    models[6] = mujoco.MjModel.from_xml_string(re.sub("<keyframe>.*</keyframe>", "", SCENE))
    keys = np.where(np.arange(NSIM) % 2 | (np.arange(NSIM) == 6), -1, 0)
    for batch in pair:
        batch.set_models(models)
        batch.reset(keyframe=keys)
        with pytest.raises((ValueError, mujoco.FatalError)):
            batch.reset([5, 6], keyframe=0)
    close(pair[0].state, pair[1].state)


def test_models_of_other_sizes_are_refused(rng):
    other = mujoco.MjModel.from_xml_string(SCENE.replace('<site name="tip"', '<site/><site name="tip"'))
    for batch in both():
        with pytest.raises(mujoco.FatalError):
            batch.set_models(other)
        with pytest.raises(ValueError, match="per simulation"):
            batch.set_models([batch.model] * 3)
        batch.step()


def test_a_refused_model_changes_nothing():
    batch, models = both()[0], variants()
    models[2].opt.solver = 99
    with pytest.raises(ValueError):
        batch.set_models(models)
    assert batch.models is None
    batch.step()


def test_get_model_and_get_data(rng):
    pair = both(persistent=True)
    values = {"geom_rgba": rng.uniform(0, 1, (NSIM, 4, 4)), "geom_size": rng.uniform(0.05, 0.1, (NSIM, 4, 3))}
    expanded(pair, values | {"geom_condim": 4})
    for batch in pair:
        batch.set_const([2])
        batch.forward()
    for sim in (1, 2):
        found, reference = (batch.get_model(sim) for batch in pair)
        for name in ours.MODEL_FIELDS:
            if not name.startswith("opt."):
                close(getattr(found, name), getattr(reference, name))
        into = mujoco.MjModel.from_xml_string(SCENE)
        assert pair[0].get_model(sim, into) is into
        close(into.geom_rgba, found.geom_rgba)
        data = [batch.get_data(sim) for batch in pair]
        for name in ("qpos", "xpos", "qacc", "site_xpos", "qacc_warmstart"):
            close(getattr(data[0], name), getattr(data[1], name))


def test_keyframes_by_simulation(rng):
    pair = both()
    expanded(pair, {"key_ctrl": np.arange(NSIM)[:, None, None]})
    for batch in pair:
        batch.expand("key_qpos")[:, 0, 2] += np.linspace(0, 1, NSIM)
        batch.reset([0, 4, 9], keyframe=0)
    close(pair[0].state, pair[1].state)


def test_set_const_of_some_simulations():
    pair = both()
    for batch in pair:
        batch.body("box").mass = np.arange(1.0, NSIM + 1)[:, None]
        batch.set_const([0, 5])
        batch.body("box").mass = 3.0
        batch.set_const(np.arange(NSIM) > 7)
    close(pair[0].expanded("body_subtreemass"), pair[1].expanded("body_subtreemass"))
    close(pair[0].body("box").invweight0, pair[1].body("box").invweight0)


# ---- rollouts and warnings -------------------------------------------------------------------------------------------
def test_rollout_equals_steps_and_mujocos(rng):
    pair, spec = both(), mujoco.mjtState.mjSTATE_CTRL | mujoco.mjtState.mjSTATE_MOCAP_POS
    control = rng.normal(0, 0.3, (NSIM, 8, mujoco.mj_stateSize(pair[0].model, int(spec))))
    record = (mujoco.mjtState.mjSTATE_INTEGRATION, "xpos", "ncon", "eq_active", "sensordata", TIME)
    found, reference = (batch.rollout(8, control, int(spec), record) for batch in pair)
    for item in record:
        assert found[item].shape == reference[item].shape and found[item].dtype == reference[item].dtype
        close(found[item], reference[item], 1e-7)
    np.testing.assert_array_equal(found[record[0]][:, -1], pair[0].state)
    found, reference = (batch.rollout(3, control[[1, 4], :3], int(spec), record, ids=[1, 4]) for batch in pair)
    close(found["xpos"], reference["xpos"], 1e-7)


@pytest.mark.parametrize("step", [0, 2])
def test_a_rollout_stops_at_a_warning(step, rng):
    """The state after the rollout is that of the last recorded step, also of simulations with separate models."""
    pair = both()
    control = rng.normal(0, 0.3, (NSIM, 6, 1))
    control[4, step] = control[7, step] = np.nan
    for batch in pair:
        batch.expand("geom_condim")[4] = 4
        batch.qvel[2, 0] = np.nan
        out = batch.rollout(6, control, record=("qpos", TIME, "xpos"))
        assert (out[TIME][2] == out[TIME][2, 0]).all()
        np.testing.assert_array_equal(out["qpos"][:, -1], batch.qpos)
    close(pair[0].state, pair[1].state)
    warned(pair)
    run(pair, rng, 10)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e11])
def test_warnings_are_those_of_mujoco(bad, rng):
    pair = both()
    for batch in pair:
        batch.qpos[1, 0], batch.qvel[2, 3], batch.ctrl[3, 0], batch.qfrc_applied[4, 0] = bad, bad, bad, bad * 1e5
        batch.step()
        batch.qvel[6, 3] = bad
        batch.step(ids=[5, 6])
    warned(pair)
    for batch in pair:
        batch.reset([1, 6])
        batch.forward()
    warned(pair)
    close(pair[0].state, pair[1].state)


@pytest.mark.parametrize("autoreset", ["enable", "disable"])
def test_a_velocity_that_becomes_bad_within_a_call_is_counted_as_such(autoreset):
    pair = both(f"""<mujoco><option timestep="1" gravity="0 0 0"><flag autoreset="{autoreset}"/></option>
        <worldbody><body><joint type="ball"/><geom size=".1" mass="250"/></body></worldbody></mujoco>""")
    for batch in pair:
        batch.qfrc_applied[3, 0] = 9e9  # 9e9 rad/s^2
        batch.step(nstep=3)
        assert batch.warning[3, int(mujoco.mjtWarning.mjWARN_BADQVEL), 1]
        assert np.count_nonzero(batch.warning) == 1
    if autoreset == "enable":
        warned(pair)
        close(pair[0].state, pair[1].state)


def test_forward_counts_and_resets_bad_states_of_its_simulations():
    pair = both()
    for batch in pair:
        batch.bind("xpos")
        batch.qvel[2, 3], batch.qpos[5, 0], batch.qpos[6, 0] = np.nan, 1e11, np.nan
        batch.forward(ids=[1, 2, 5])
    warned(pair)
    for name in ("state", "xpos"):
        found, reference = (np.delete(np.asarray(getattr(batch, name)), 6, axis=0) for batch in pair)
        close(found, reference)


# ---- the rest --------------------------------------------------------------------------------------------------------
def test_a_refused_model_is_reported_before_a_step():
    source = """<mujoco><worldbody><flexcomp name="f" type="grid" count="3 3 1" spacing=".1 .1 .1" dim="2"/>
    </worldbody></mujoco>"""
    with pytest.raises(fl.UnsupportedFeatureError):
        ours.Batch(mujoco.MjModel.from_xml_string(source), 4)


def test_results_do_not_depend_on_threads_and_batches(rng):
    model = mujoco.MjModel.from_xml_string(SCENE)
    control = rng.uniform(-1, 1, (NSIM, 30, 1))
    many, one = ours.Batch(model, NSIM, 2), ours.Batch(model, 1, 1)
    many.rollout(30, control)
    one.rollout(30, control[3:4])
    np.testing.assert_array_equal(one.state[0], many.state[3])


def test_the_batch_has_a_copy_of_the_model():
    model = mujoco.MjModel.from_xml_string(SCENE)
    batch, other = ours.Batch(model, 2, 1), ours.Batch(copy.copy(model), 2, 1)
    model.opt.gravity[2] = 0.0
    for each in (batch, other):
        each.step(nstep=3)
    np.testing.assert_array_equal(batch.state, other.state)


NOTHING = '<mujoco><worldbody><geom size=".1"/></worldbody></mujoco>'
HINGE = '<mujoco><worldbody><body><joint/><geom size=".1"/></body></worldbody></mujoco>'


@pytest.mark.parametrize("source", [NOTHING, HINGE], ids=["no joint", "no actuator"])
def test_a_rollout_records_fields_of_size_zero(source):
    names = ["qpos", "ctrl", "act", "sensordata", "mocap_pos", "userdata", "ten_length", "site_xpos", "eq_active", "M"]
    ours, theirs = (batch.rollout(4, record=names) for batch in both(source, 3))
    for name in names:
        assert ours[name].shape == theirs[name].shape, name
