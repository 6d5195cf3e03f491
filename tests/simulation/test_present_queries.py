"""Queries of one world answer for its present state, as those of a batch, and change no field."""

import copy

import mujoco
import numpy as np
import pytest

import featherlane as fl

q = fl.query
SCENE = """
<mujoco>
  <option timestep=".002"/>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/>
    <body name="base" pos="0 0 .6">
      <freejoint/>
      <geom name="box" type="box" size=".2 .1 .1"/>
      <body name="arm" pos=".3 0 0" euler="10 20 30">
        <joint name="hinge" axis="0 1 0"/>
        <geom name="rod" type="capsule" size=".05 .2" pos=".1 .05 0" euler="0 40 0"/>
        <site name="tip" pos=".2 .1 0" euler="5 0 70"/>
        <camera name="eye" pos="0 .1 .1" euler="20 0 10"/>
        <site name="end" pos=".3 0 0"/>
      </body>
    </body>
    <body name="held" mocap="true" pos="1 0 1">
      <geom name="ball" type="sphere" size=".1"/>
      <site name="hook"/>
    </body>
  </worldbody>
  <tendon><spatial name="line" armature=".3"><site site="hook"/><site site="tip"/></spatial></tendon>
  <actuator><motor joint="hinge" gear="2"/></actuator>
</mujoco>
"""
X = np.arange(1.0, 8.0)
QUERIES = {
    "jac": lambda m, d: q.jac(m, d, (0.1, 0.2, 0.3), "arm"),
    "jac_body": lambda m, d: q.jac_body(m, d, "arm"),
    "jac_body_com": lambda m, d: q.jac_body_com(m, d, "arm"),
    "jac_geom": lambda m, d: q.jac_geom(m, d, "rod"),
    "jac_site": lambda m, d: q.jac_site(m, d, "tip"),
    "jac_subtree_com": lambda m, d: q.jac_subtree_com(m, d, "base"),
    "jac_dot": lambda m, d: q.jac_dot(m, d, (0.1, 0.2, 0.3), "arm"),
    "angular_momentum_matrix": lambda m, d: q.angular_momentum_matrix(m, d, "base"),
    "apply_ft": lambda m, d: q.apply_ft(m, d, (1, 2, 3), (4, 5, 6), (0.1, 0.2, 0.3), "arm"),
    "object_velocity": lambda m, d: q.object_velocity(m, d, ("site", "tip")),
    "object_acceleration": lambda m, d: q.object_acceleration(m, d, ("site", "tip")),
    "full_m": lambda m, d: q.full_m(m, d),
    "coriolis_matrix": lambda m, d: q.coriolis_matrix(m, d),
    "moment_arms": lambda m, d: q.moment_arms(m, d),
    "inertial_parameters": lambda m, d: q.inertial_parameters(m, d),
    "torque_regressor": lambda m, d: q.torque_regressor(m, d, X),
    "mul_m": lambda m, d: q.mul_m(m, d, X),
    "solve_m": lambda m, d: q.solve_m(m, d, X),
    "geom_distance": lambda m, d: q.geom_distance(m, d, "rod", "ball"),
    "ray": lambda m, d: q.ray(m, d, (0.1, 0.02, 5), (0, 0, -1)),
    "many rays": lambda m, d: q.ray(m, d, np.linspace((-1, 0, 5), (1, 0, 5), 100), (0, 0, -1)),
    "tendon_path": lambda m, d: q.tendon_path(m, d, "line"),
}


@pytest.fixture(scope="module")
def model():
    return fl.load(SCENE)


def moved(model, seed=0):
    """Returns a `Data` in a state that no pass has computed."""
    data, rng = fl.Data(model), np.random.default_rng(seed)
    data.qpos += 0.1 * rng.normal(size=model.nq)
    data.qvel = rng.normal(size=model.nv)
    data.mocap_pos += 0.1 * rng.normal(size=3)
    data.ctrl = 0.7
    return data


def flat(result):
    return np.concatenate([np.ravel(part) for part in (result if isinstance(result, tuple) else (result,))])


def change(data, what):
    if what == "qpos":
        data.qpos[0] += 0.3
        data.qpos[7] -= 0.4
    elif what == "mocap_pos":
        data.mocap_pos[0, 0] -= 0.7
        data.mocap_pos[0, 2] -= 0.1
    elif what == "step":
        fl.step(data.model, data, 3)
    elif what == "body_ipos":
        data.model.body_ipos[2] += 0.03
        data.model.body_pos[2] += 0.02
    elif what == "reset":
        data.reset()
    elif what == "stage":
        data.qpos[7] += 0.1
        fl.stages.kinematics(data.model, data)


def test_an_object_has_one_jacobian_by_name_and_by_each_kind_of_number(model):
    data = moved(model)
    expected = flat(q.jac_body(model, data, "arm"))
    for key in (2, np.int64(2), np.array(2), np.str_("arm")):
        assert flat(q.jac_body(model, data, key)).tobytes() == expected.tobytes()
    assert flat(q.jac_site(model, data, 2)).tobytes() != expected.tobytes()


@pytest.mark.parametrize("key", [2.0, 4, -1, "tip", [2], None])
def test_after_a_query_of_an_object_another_key_is_still_checked(model, key):
    data = moved(model)
    q.jac_body(model, data, 2)
    q.jac_site(model, data, "tip")
    for _ in range(2):
        with pytest.raises(fl.UnknownNameError):
            q.jac_body(model, data, key)


@pytest.mark.parametrize("what", ["nothing", "qpos", "mocap_pos", "step", "body_ipos", "reset", "stage"])
@pytest.mark.parametrize("passed", [False, True], ids=["fresh", "after a pass"])
def test_a_query_of_a_data_answers_for_the_present_state(model, what, passed):
    own = copy.deepcopy(model) if what == "body_ipos" else model
    data = moved(own)
    if passed:
        data.forward()
    for _ in range(2):  # the second time its memory holds the state before
        for call in QUERIES.values():
            call(own, data)
        change(data, what)
        fresh = fl.Data(own)
        fresh.set_state(data.get_state())
        fresh.forward()
        for name, call in QUERIES.items():
            expected = flat(call(own, fresh))
            assert flat(call(own, data)).tobytes() == expected.tobytes(), name


def test_queries_change_no_field_and_no_step(model):
    data, other = moved(model), moved(model)
    for d in (data, other):
        fl.step(model, d, 5)
    before = {f.name: data.workspace.arrays[f.name].copy() for f in data.layout.fields if f.kind != "size"}
    for call in QUERIES.values():
        call(model, data)
    scratch = {"qvec", "qproduct"}
    for name, array in before.items():
        if not name.startswith(("ray.", "distance.")) and name not in scratch:
            np.testing.assert_array_equal(data.workspace.arrays[name], array, err_msg=name)
    for d in (data, other):
        fl.step(model, d, 50)
    assert data.get_state().tobytes() == other.get_state().tobytes()


def test_a_query_after_steps_back_to_the_state_of_the_last_pass_is_current(model):
    data = moved(model)
    data.forward()
    start, expected = data.get_state(), q.jac_site(model, data, "tip")
    fl.step(model, data, 20)
    data.set_state(start)
    assert data.site("tip").xpos.tobytes() != fl.Data(model).site("tip").xpos.tobytes()
    np.testing.assert_array_equal(q.jac_site(model, data, "tip"), expected)


def test_two_data_of_a_model_notice_an_edit(model):
    own = copy.deepcopy(model)
    first, second = moved(own), moved(own)
    for d in (first, second):
        d.forward()
        q.full_m(own, d)
    own.body_mass[1] *= 3.0
    fl.step(own, first)  # checks the edit
    fresh = moved(own)
    np.testing.assert_array_equal(q.full_m(own, second), q.full_m(own, fresh))


def test_inputs_change_the_acceleration_of_an_object(model):
    data = moved(model)
    before = q.object_acceleration(model, data, ("site", "tip"))
    data.ctrl = -0.7
    changed = q.object_acceleration(model, data, ("site", "tip"))
    assert np.abs(changed - before).max() > 1e-3
    data.ctrl = 0.7
    np.testing.assert_array_equal(q.object_acceleration(model, data, ("site", "tip")), before)


def test_the_inertia_matrix_of_a_fresh_data_is_not_zero():
    model = fl.bundled("humanoid")
    data, batch = fl.Data(model), fl.Batch(model, 2)
    assert np.trace(q.full_m(model, data)) > 1.0
    np.testing.assert_array_equal(q.full_m(model, data), batch.full_m()[0])


OBJECTS = [("body", "arm"), ("xbody", "arm"), ("geom", "rod"), ("site", "tip"), ("camera", "eye")]
KINDS = {"body": "BODY", "xbody": "XBODY", "geom": "GEOM", "site": "SITE", "camera": "CAMERA"}


@pytest.mark.parametrize("local", [False, True], ids=["world", "local"])
@pytest.mark.parametrize(("kind", "name"), OBJECTS)
def test_motions_of_all_kinds_of_objects_equal_mujocos(model, kind, name, local):
    data, batch, mj = moved(model), fl.Batch(model, 3), mujoco.MjData(model.mj_model)
    batch.set_state(data.get_state())
    data.to_mujoco(mj, fields=("qpos", "qvel", "ctrl", "mocap_pos", "mocap_quat"))
    mujoco.mj_forward(model.mj_model, mj)
    mujoco.mj_rnePostConstraint(model.mj_model, mj)
    number = getattr(mujoco.mjtObj, f"mjOBJ_{KINDS[kind]}")
    i = mujoco.mj_name2id(model.mj_model, getattr(mujoco.mjtObj, f"mjOBJ_{KINDS[kind].lstrip('X')}"), name)
    for quantity in ("velocity", "acceleration"):
        expected = np.zeros(6)
        getattr(mujoco, f"mj_object{quantity.title()}")(model.mj_model, mj, number, i, expected, local)
        assert np.abs(expected).max() > 0.1
        ours = getattr(q, f"object_{quantity}")(model, data, (kind, name), local=local)
        np.testing.assert_allclose(ours, expected, rtol=1e-9, atol=1e-9, err_msg=quantity)
        theirs = getattr(batch, f"object_{quantity}")((kind, name), local=local)
        np.testing.assert_array_equal(theirs, np.broadcast_to(ours, (3, 6)), err_msg=quantity)
