"""`Data`: live arrays, copying assignment, errors, names, copies; contacts and rows against MuJoCo."""

import copy
import pickle
import threading

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.simulation.tile.call_lock import hold
from featherlane.engine.simulation.tile.fields import DATA
from scenes.joints import XML
from scenes.states import kicked

# equal states; results differ by the order of operations, at worst over badly scaled rows
ROUNDING = {"rtol": 1e-9, "atol": 1e-9}

PILE = """
<mujoco>
  <option timestep="0.004" jacobian="dense"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1" friction="0.8"/>
    <body name="low" pos="0 0 0.09">
      <freejoint/>
      <geom size="0.1" friction="0.6"/>
      <body name="flap" pos="0.25 0 0">
        <joint name="hinge" axis="0 1 0" limited="true" range="5 40" frictionloss="0.2"/>
        <geom type="capsule" size="0.08" fromto="0 0 -0.02 0.2 0 -0.02" condim="1" priority="1"/>
      </body>
    </body>
    <body name="high" pos="0.05 0 0.275"><freejoint/><geom size="0.1"/></body>
    <body name="near" pos="2 0 0.115"><freejoint/><geom size="0.1" margin="0.01" gap="0.02"/></body>
    <body name="bob" pos="4 0 1"><joint type="ball" limited="true" range="0 20"/><geom pos="0 0 -0.5" size=".1"/></body>
  </worldbody>
</mujoco>
"""


@pytest.fixture(scope="module")
def model():
    return fl.load(XML)


@pytest.fixture
def data(model, rng):
    data = fl.Data(model)
    data.qpos, data.qvel = kicked(model, rng)
    return data


@pytest.fixture(scope="module")
def pile():
    """Returns a model with every kind of row, and our and MuJoCo's data in one state of it, both after forward."""
    model = fl.load(PILE)
    data, reference = fl.Data(model), mujoco.MjData(model.mj_model)
    reference.qpos[-4:] = np.cos(0.4), np.sin(0.4), 0.0, 0.0
    reference.qvel[:] = np.linspace(-1.0, 1.0, model.nv)
    data.qpos, data.qvel = reference.qpos, reference.qvel
    mujoco.mj_forward(model.mj_model, reference)
    fl.forward(model, data)
    return model, data, reference


# ---- fields ----------------------------------------------------------------------------------------------------------


def test_every_field_has_its_declared_shape(data):
    for f in DATA.fields:
        value = getattr(data, f.name)
        if f.kind == "size" or f.is_number:
            assert isinstance(value, int | float), f.name
        else:
            assert value.shape == f.dims(data.workspace.sizes), f.name
            assert value.dtype == f.stored_as(np.dtype(np.float64)), f.name


def test_arrays_are_live(model, data):
    qpos, xpos = data.qpos, data.xpos
    before = qpos.copy()
    fl.step(model, data)
    assert qpos is data.qpos and xpos is data.xpos
    assert (qpos != before).any() and xpos.any()
    qpos[:] = model.qpos0
    fl.stages.kinematics(model, data)
    body = data.body("torso")
    np.testing.assert_array_equal(body.xpos, model.qpos0[:3])


def test_assigning_copies_with_broadcasting(model, data):
    qvel, source = data.qvel, np.arange(float(model.nv))
    data.qvel = source
    source[:] = -1.0
    assert data.qvel is qvel and qvel[3] == 3.0
    data.qvel = 2
    data.qvel += 1.0
    assert data.qvel is qvel and (qvel == 3.0).all()
    data.xfrc_applied = [0, 0, 1, 0, 0, 0]
    assert (data.xfrc_applied[:, 2] == 1.0).all()


def test_time_is_a_number_that_can_be_set(model, data):
    data.time = 2
    assert isinstance(data.time, float) and data.time == 2.0
    fl.step(model, data, 3)
    assert data.time == pytest.approx(2.0 + 3 * model.opt.timestep)


@pytest.mark.parametrize(
    "name, value, given",
    [
        ("qpos", np.zeros(3), r"float64 \(3,\)"),
        ("qvel", 1j, r"complex128"),
        ("ctrl", "much", "<U4"),
        ("ctrl", [[1.0], [1.0, 2.0]], "list"),
        ("ctrl", None, "object"),
        ("time", [0.0, 1.0], r"float64 \(2,\)"),
    ],
)
def test_invalid_arguments_are_named(data, name, value, given):
    before = np.array(getattr(data, name))
    with pytest.raises(fl.ModelError, match=name):
        setattr(data, name, value)
    np.testing.assert_array_equal(getattr(data, name), before)


def test_unknown_names_suggest_near_ones(data):
    with pytest.raises(fl.errors.UnknownAttributeError, match="'qpos'"):
        data.qpso  # noqa: B018
    with pytest.raises(fl.errors.UnknownAttributeError):
        data.qvell = 0


@pytest.mark.parametrize("name", ["ncon", "nefc", "contact", "efc_J", "status", "solver_niter", "nconmax"])
def test_computed_values_cannot_be_set(data, name):
    with pytest.raises(fl.errors.UnknownAttributeError):
        setattr(data, name, 0)


def test_dir_lists_all_names(data):
    assert {"qpos", "time", "contact", "efc_J", "body", "nefc"} <= set(dir(data))


def test_named_objects_are_live(model, data):
    fl.forward(model, data)
    torso, knee, kick = data.body("torso"), data.joint("knee"), data.actuator("kick")
    np.testing.assert_array_equal(torso.xpos, data.xpos[torso.id])
    knee.qpos = 0.25
    assert data.qpos[model.jnt_qposadr[knee.id]] == 0.25
    kick.ctrl = 0.5
    assert data.ctrl[0] == 0.5
    assert data.site("imu").xpos.shape == (3,) and data.geom("chest").xmat.shape == (9,)
    data.body("target").mocap_pos = [1, 2, 3]
    np.testing.assert_array_equal(data.mocap_pos, [[1, 2, 3]])


def test_a_data_requires_a_model():
    with pytest.raises(fl.errors.ArgumentTypeError):
        fl.Data("robot.xml")


# ---- whole states ----------------------------------------------------------------------------------------------------


def test_a_new_data_equals_mujoco_reset_data(model):
    data, reference = fl.Data(model), mujoco.MjData(model.mj_model)
    for name in "time qpos qvel act ctrl qfrc_applied xfrc_applied mocap_pos mocap_quat qacc_warmstart".split():
        np.testing.assert_allclose(getattr(data, name), getattr(reference, name), atol=1e-15, err_msg=name)
    assert data.ncon == 0 and data.nefc == 0 and len(data.contact) == 0 and not any(data.status.values())


def test_reset_clears_everything(model, data):
    data.ctrl, data.xfrc_applied, data.mocap_pos = 1.0, 2.0, 3.0
    fl.step(model, data, 5)
    fl.reset_data(model, data)
    fresh = fl.Data(model)
    for f in DATA.fields:
        if f.traits.reset:
            np.testing.assert_array_equal(getattr(data, f.name), getattr(fresh, f.name), err_msg=f.name)


def test_reset_to_a_keyframe(model, data):
    reference = mujoco.MjData(model.mj_model)
    mujoco.mj_resetDataKeyframe(model.mj_model, reference, 0)
    data.reset(keyframe="up")
    for name in "time qpos qvel act ctrl mocap_pos mocap_quat".split():
        np.testing.assert_allclose(getattr(data, name), getattr(reference, name), atol=1e-15, err_msg=name)
    fl.reset_data_keyframe(model, data, 1)
    assert data.time == 0.0 and data.qvel[0] == 1.0


@pytest.mark.parametrize("key", ["upp", 2, -2])
def test_an_unknown_keyframe_changes_nothing(model, data, key):
    before = data.qpos.copy()
    with pytest.raises(fl.UnknownNameError):
        data.reset(keyframe=key)
    np.testing.assert_array_equal(data.qpos, before)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda d: pickle.loads(pickle.dumps(d))])
def test_copies_continue_independently_and_bitwise_equally(model, data, duplicate):
    fl.step(model, data, 2)
    other = duplicate(data)
    assert (other.model is model) == (duplicate is copy.copy)
    for name in DATA.that("copied"):
        np.testing.assert_array_equal(getattr(other, name), getattr(data, name), err_msg=name)
    fl.step(model, data, 3)
    before = other.qpos.copy()
    assert (before != data.qpos).any()
    fl.step(other.model, other, 3)
    np.testing.assert_array_equal(other.qpos, data.qpos)
    np.testing.assert_array_equal(other.qvel, data.qvel)


def test_a_model_and_its_data_copied_together_stay_together(model):
    pair = copy.deepcopy({"data": fl.Data(model), "model": model})
    assert pair["data"].model is pair["model"] is not model


def test_forward_is_a_method(model, data):
    other = copy.copy(data)
    data.forward()
    fl.forward(model, other)
    assert data.qacc.any()
    np.testing.assert_array_equal(data.qacc, other.qacc)


# ---- models ----------------------------------------------------------------------------------------------------------


def test_a_data_switches_to_another_model_of_equal_sizes_by_assignment(model, data):
    heavier = copy.deepcopy(model)
    heavier.body_mass[1:] *= 2.0
    heavier.opt.gravity = 0, 0, -1
    expected = copy.copy(data)
    expected.model = heavier
    fl.step(model, data)
    reference = fl.Data(heavier)
    for name in ("qpos", "qvel", "time", "qacc_warmstart"):
        setattr(reference, name, getattr(data, name))
    fl.step(heavier, reference)
    with pytest.raises(fl.ModelError, match="which is not the data's"):
        fl.step(heavier, data)
    data.model = heavier
    fl.step(heavier, data)
    np.testing.assert_array_equal(data.qpos, reference.qpos)
    assert data.model is heavier


def test_another_tree_of_equal_sizes_brings_its_own_pattern():
    link = '<body pos="0 0 -.3"><joint axis="0 1 0" limited="true" range="0 50"/><geom size=".1"/>{}</body>'
    chain, single = link.format(link.format(link.format(""))), link.format("")
    head, tail = '<mujoco><option><flag contact="disable"/></option><worldbody>', "</worldbody></mujoco>"
    first, second = fl.load(head + chain + single + tail), fl.load(head + single + chain + tail)
    data, fresh = fl.Data(first), fl.Data(second)
    data.qpos = fresh.qpos = -0.1
    fl.forward(first, data)
    assert data.nl == 4
    data.model = second
    for d in (data, fresh):
        d.qacc_warmstart = 0.0
        fl.forward(second, d)
    np.testing.assert_array_equal(data.qacc, fresh.qacc)


def test_a_model_of_other_sizes_is_refused(model, data):
    other = fl.bundled("pendulum")
    for call in (lambda: fl.step(other, data), lambda: setattr(data, "model", other)):
        with pytest.raises(fl.ModelError) as raised:
            call()
        message = str(raised.value)
        assert repr(other) in message and repr(model) in message
        assert message.count(" instead of ") == 1  # one size, not all that differ
    assert data.model is model


OF_DATA = {
    "step": fl.step,
    "forward": fl.forward,
    "inverse": fl.inverse,
    "reset_data": fl.reset_data,
    "reset_data_keyframe": lambda m, d: fl.reset_data_keyframe(m, d, 0),
    "set_keyframe": lambda m, d: fl.set_keyframe(m, d, 0),
    "crb": fl.stages.crb,
    "aba": fl.stages.aba,
    "passive": fl.stages.passive,
    "collision": fl.stages.collision,
    "rne": fl.stages.rne,
    "half_solve": lambda m, d: fl.stages.half_solve(m, d, np.zeros(m.nv)),
    "full_m": fl.query.full_m,
    "mul_m": lambda m, d: fl.query.mul_m(m, d, np.zeros(m.nv)),
    "solve_m": lambda m, d: fl.query.solve_m(m, d, np.zeros(m.nv)),
    "ray": lambda m, d: fl.query.ray(m, d, (0, 0, 9), (0, 0, -1)),
    "no ray": lambda m, d: fl.query.ray(m, d, np.zeros((0, 3)), np.zeros((0, 3))),
    "geom_distance": lambda m, d: fl.query.geom_distance(m, d, 1, 2),
    "jac": lambda m, d: fl.query.jac(m, d, (0, 0, 0), 1),
    "jac_body": lambda m, d: fl.query.jac_body(m, d, 1),
    "jac_dot": lambda m, d: fl.query.jac_dot(m, d, (0, 0, 0), 1),
    "jac_subtree_com": lambda m, d: fl.query.jac_subtree_com(m, d, 1),
    "moment_arms": fl.query.moment_arms,
    "coriolis_matrix": fl.query.coriolis_matrix,
    "inertial_parameters": fl.query.inertial_parameters,
    "torque_regressor": lambda m, d: fl.query.torque_regressor(m, d, d.qacc),
    "angular_momentum_matrix": lambda m, d: fl.query.angular_momentum_matrix(m, d, 1),
    "apply_ft": lambda m, d: fl.query.apply_ft(m, d, (0, 0, 1), (0, 0, 0), (0, 0, 0), 1),
    "object_velocity": lambda m, d: fl.query.object_velocity(m, d, ("xbody", 1)),
    "object_acceleration": lambda m, d: fl.query.object_acceleration(m, d, ("xbody", 1)),
    "contact_force": lambda m, d: fl.query.contact_force(m, d, 0),
    "contact_residual": fl.query.contact_residual,
    "tendon_path": lambda m, d: fl.query.tendon_path(m, d, 0),
}
OF_WORLDS = {
    "get_state": lambda m, w: fl.get_state(m, w, fl.State.INTEGRATION),
    "set_state": lambda m, w: fl.set_state(m, w, w.get_state(), fl.State.INTEGRATION),
    "add_sensor_noise": lambda m, w: fl.add_sensor_noise(m, w, 0),
    "linearize": fl.linearize,
    "acceleration_derivatives": fl.acceleration_derivatives,
    "inverse_derivatives": fl.inverse_derivatives,
    "rnea_derivatives": fl.rnea_derivatives,
    "integrate": lambda m, w: fl.integrate(m, w, 0.01),
}


@pytest.mark.parametrize("name", [*OF_DATA, *OF_WORLDS])
def test_a_call_with_another_model_is_refused_and_changes_nothing(model, name):
    heavier, worlds = copy.deepcopy(model), [fl.Data(model)]
    heavier.body_mass[1:] *= 2.0
    if name in OF_WORLDS:
        worlds.append(fl.Batch(model, 2))
    for world in worlds:
        world.forward()
        world.bind("sensordata") if isinstance(world, fl.Batch) else None
        before = world.get_state()
        with pytest.raises(fl.ModelError, match=r"^model: got Model.*, which is not the (data|batch)'s Model"):
            (OF_DATA | OF_WORLDS)[name](heavier, world)
        assert world.model is model
        np.testing.assert_array_equal(world.get_state(), before)


def test_wrong_arguments_are_reported(model, data):
    with pytest.raises(fl.errors.ArgumentTypeError):
        fl.step(data, model)
    with pytest.raises(fl.errors.ArgumentTypeError):
        fl.stages.kinematics(model, mujoco.MjData(model.mj_model))
    with pytest.raises(fl.errors.ArgumentTypeError):
        fl.forward(model.mj_model, data)


def test_model_edits_take_effect_at_the_next_call():
    model = fl.load(XML)
    data = fl.Data(model)
    fl.forward(model, data)
    assert (data.energy == 0.0).all()
    model.opt.enableflags |= 1 << 1  # mjENBL_ENERGY
    model.opt.gravity = 0, 0, -1
    fl.forward(model, data)
    total = -model.body_mass[1:] @ data.xipos[1:] @ model.opt.gravity
    reference = mujoco.MjData(model.to_mujoco())
    mujoco.mj_forward(model.to_mujoco(), reference)
    assert data.energy[0] == pytest.approx(reference.energy[0]) and data.energy[0] == pytest.approx(total, rel=0.1)


# ---- contacts and rows -----------------------------------------------------------------------------------------------


def test_contacts_equal_mujoco(pile):
    _, data, reference = pile
    assert data.ncon == reference.ncon == len(data.contact) >= 4
    assert {1, 3} <= set(data.contact.dim.tolist()) and data.contact.exclude.any()
    for ours, theirs in zip(data.contact, reference.contact, strict=True):
        for name in "dist pos frame includemargin friction solref solreffriction solimp".split():
            np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), err_msg=name, **ROUNDING)
        for name in "dim geom geom1 geom2 exclude efc_address".split():
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), err_msg=name)


@pytest.mark.parametrize("name", ["humanoid", "quadruped"])
def test_contacts_of_a_bundled_model_equal_mujoco(name):
    model = fl.bundled(name)
    reference = mujoco.MjData(model.mj_model)
    mujoco.mj_step(model.mj_model, reference, 150)
    data = fl.Data(model)
    data.qpos, data.qvel = reference.qpos, reference.qvel
    mujoco.mj_forward(model.mj_model, reference)
    fl.forward(model, data)
    assert data.ncon == reference.ncon > 0 and data.nefc == reference.nefc
    for field in "dist pos frame dim geom efc_address".split():
        theirs = np.array([getattr(contact, field) for contact in reference.contact])
        np.testing.assert_allclose(getattr(data.contact, field), theirs, err_msg=field, **ROUNDING)
    for field in "pos D aref".split():
        ours, theirs = getattr(data, f"efc_{field}"), getattr(reference, f"efc_{field}")
        np.testing.assert_allclose(ours, theirs, err_msg=field, **ROUNDING)


def test_contacts_are_read_only(pile):
    with pytest.raises(ValueError):
        pile[1].contact.dist[0] = 1.0


def test_rows_equal_mujoco(pile):
    model, data, reference = pile
    assert (data.nefc, data.nf, data.nl) == (reference.nefc, reference.nf, reference.nl)
    assert data.nf == 1 and data.nl == 2 and data.nefc == len(data.efc_D)
    for name in "type id pos margin frictionloss diagA KBIP D R vel aref".split():
        ours, theirs = getattr(data, f"efc_{name}"), getattr(reference, f"efc_{name}")
        np.testing.assert_allclose(ours, np.reshape(theirs, ours.shape), err_msg=name, **ROUNDING)
    np.testing.assert_allclose(data.efc_J, np.reshape(reference.efc_J, (data.nefc, model.nv)), **ROUNDING)


def test_forces_of_rows_make_the_constraint_force(pile):
    _, data, reference = pile
    np.testing.assert_allclose(data.efc_J.T @ data.efc_force, data.qfrc_constraint, rtol=1e-7, atol=1e-7)
    # MuJoCo also stops at its tolerance
    np.testing.assert_allclose(data.qacc, reference.qacc, rtol=1e-5, atol=1e-5)


def test_contact_forces_equal_mujoco(pile):
    model, data, reference = pile
    force = np.zeros(6)
    for i in range(data.ncon):
        mujoco.mj_contactForce(model.mj_model, reference, i, force)
        np.testing.assert_allclose(fl.query.contact_force(model, data, i), force, rtol=1e-5, atol=1e-5)
    with pytest.raises(fl.errors.OutOfRangeError):
        fl.query.contact_force(model, data, data.ncon)


def test_a_collision_pass_creates_no_rows(pile):
    model, data, _ = pile
    other = copy.copy(data)
    fl.stages.collision(model, other)
    assert other.ncon == data.ncon and (other.contact.efc_address == -1).all()
    assert other.nefc == other.nf + other.nl
    fl.stages.make_constraint(model, other)
    np.testing.assert_array_equal(other.contact.efc_address, data.contact.efc_address)


@pytest.mark.filterwarnings("ignore::featherlane.NonFiniteWarning")
def test_status_counts_by_name(model, data):
    data.qvel[0] = np.nan
    fl.step(model, data)
    assert {name: n for name, n in data.status.items() if n} == {"non_finite": 1}
    assert data.nreset == 1 and np.isfinite(data.qpos).all()


@pytest.mark.parametrize("bad", [np.nan, 1e11])
def test_a_forward_pass_counts_non_finite_values_and_resets_nothing(model, bad):
    data, batch = fl.Data(model), fl.Batch(model, 9)
    data.qvel[0] = batch.qvel[4, 0] = bad
    fl.forward(model, data)
    batch.forward()
    assert data.status["non_finite"] == 1 and data.nreset == 0
    np.testing.assert_array_equal(batch.status["non_finite"], np.arange(9) == 4)
    np.testing.assert_array_equal([data.qvel[0], batch.qvel[4, 0]], bad)
    data.qvel[0] = 0
    fl.forward(model, data)
    assert data.status["non_finite"] == 1


HEAVY = """<mujoco><option gravity="0 0 0"><flag energy="{}"/></option><worldbody>
<body><freejoint/><geom size=".1" mass="1e20"/></body></worldbody>{}</mujoco>"""  # float32's range ends at 3e38
KINETIC = "<sensor><e_kinetic/></sensor>"


@pytest.mark.parametrize(("flag", "sensors", "bound"), [("enable", "", "energy"), ("disable", KINETIC, "sensordata")])
def test_an_infinite_energy_or_sensor_value_is_counted_and_nothing_is_reset(flag, sensors, bound):
    model = fl.load(HEAVY.format(flag, sensors))
    batch, unseen = (fl.Batch(model, 3, dtype="float32") for _ in range(2))
    batch.bind(bound)
    for worlds in (batch, unseen):
        worlds.qvel[1, 0] = 9e9
    with pytest.warns(fl.NonFiniteWarning, match="world 1 .*continued"):
        batch.step(2)
    unseen.step(2)
    batch.forward(ids=[1])
    # counted by the last of two steps, which alone computes outputs, and by the forward pass
    assert batch.status["non_finite"].tolist() == [0, 2, 0] and not batch.nreset.any()
    assert not unseen.status["non_finite"].any()
    assert batch.qvel.tobytes() == unseen.qvel.tobytes()


@pytest.mark.parametrize("bound", ["energy", "time"])
def test_a_non_finite_acceleration_is_counted_once_with_and_without_energy(bound):
    text = HEAVY.format("enable", "").replace('gravity="0 0 0"', 'gravity="0 0 0" integrator="RK4"')
    batch = fl.Batch(
        fl.load(text.replace("<flag", '<flag autoreset="disable"').replace("1e20", "1")), 2, dtype="float32"
    )
    batch.bind(bound)
    batch.qfrc_applied[1, 0] = 1e30  # a later stage of the step has a velocity whose square overflows
    with pytest.warns(fl.NonFiniteWarning):
        batch.step()
    assert batch.status["non_finite"].tolist() == [0, 1]


def test_the_solver_reports_its_diagnostics(pile):
    data = pile[1]
    assert isinstance(data.solver_niter, int) and data.solver_niter > 0
    assert 0.0 <= data.solver_residual < 1e-6


def test_a_second_thread_on_one_data_is_reported(model):
    data, errors, start = fl.Data(model), [], threading.Barrier(4)
    nstep = 20_000  # longer than Python's interval of thread switches

    def work():
        start.wait()
        try:
            fl.step(model, data, nstep)
        except RuntimeError as error:
            errors.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done = round(data.time / model.opt.timestep)
    assert done == nstep * (4 - len(errors)) and errors and all("another thread" in error for error in errors)
    fl.step(model, data)


@pytest.mark.parametrize(
    "call",
    [
        lambda m, d: fl.step(m, d),
        lambda m, d: fl.forward(m, d),
        lambda m, d: fl.stages.crb(m, d),
        lambda m, d: fl.inverse(m, d),
        lambda m, d: fl.query.mul_m(m, d, np.zeros(m.nv)),
        lambda m, d: fl.query.ray(m, d, (0, 0, 9), (0, 0, -1)),
        lambda m, d: fl.query.geom_distance(m, d, 0, 1),
        lambda m, d: d.reset(),
        lambda m, d: setattr(d, "model", m),
    ],
    ids="step forward crb inverse mul_m ray geom_distance reset model".split(),
)
def test_a_concurrent_call_is_refused_and_changes_nothing(call):
    model = fl.bundled("quadruped")
    data = fl.Data(model)
    fl.step(model, data)
    before = data.qpos.copy()

    def within():
        with pytest.raises(fl.errors.CallError):
            call(model, data)

    hold(data._turns, within)  # locked as during a step, but the world does not move
    np.testing.assert_array_equal(data.qpos, before)
    call(model, data)


def test_a_failed_call_releases_the_data(model):
    data = fl.Data(model)
    for nstep in (0, -1, "2"):
        with pytest.raises(fl.ModelError):
            fl.step(model, data, nstep)
    with pytest.raises(fl.ModelError):
        fl.query.mul_m(model, data, np.zeros(model.nv + 1))
    fl.step(model, data)


# ---- verbs of Data and Batch -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("control", ["array", "function", None])
def test_a_rollout_of_a_data_equals_that_of_a_batch(control, rng):
    model = fl.bundled("humanoid")
    data, batch, names = fl.Data(model), fl.Batch(model, 2), ("qpos", "time", "xpos", "ncon", "sensordata")
    values = rng.uniform(-1, 1, (6, model.nu))
    given = {"array": values, "function": lambda worlds, k: values[k], None: None}[control]
    ours, theirs = data.rollout(6, given, names), batch.rollout(6, given, names)
    for name in names:
        assert np.array_equal(ours[name], theirs[name][0]), name
    data.step(2)
    batch.step(2)
    assert np.array_equal(data.qpos, batch.qpos[0])


@pytest.mark.parametrize("kind", [fl.Data, lambda model: fl.Batch(model, 3)], ids=["data", "batch"])
def test_states_and_copies_are_independent(kind):
    model = fl.bundled("humanoid")
    world = kind(model)
    world.step(3)
    state, other = world.get_state(), world.copy()
    assert np.array_equal(state, fl.get_state(model, world, fl.State.INTEGRATION)) and other.model is model
    world.step(2)
    assert np.array_equal(other.get_state(), state) and not np.array_equal(world.qpos, other.qpos)
    other.step(2)
    assert np.array_equal(other.qpos, world.qpos)
    world.set_state(state)
    assert np.array_equal(world.get_state(), state)


def test_a_rollout_of_a_data_refuses_invalid_arguments():
    data = fl.Data(fl.bundled("cartpole"))
    for arguments in (
        (0,),
        (2, np.zeros((3, 1))),
        (2, None, ("foo",)),
        (2, lambda world, k: "left"),
        (2, None, ("efc_J",)),
    ):
        with pytest.raises(fl.ModelError):
            data.rollout(*arguments)
    assert data.time == 0.0


@pytest.mark.parametrize("kind", ["batch", "data", "mixed"])
def test_a_rollout_accepts_inputs_other_than_controls(kind, rng):
    model = fl.bundled("humanoid")
    ctrl, force = rng.uniform(-1, 1, (2, 5, model.nu)), rng.normal(0, 20, (2, 5, model.nbody, 6))
    expected = fl.Batch(model, 2)
    for k in range(5):
        expected.ctrl, expected.xfrc_applied = ctrl[:, k], force[:, k]
        expected.step()
    if kind == "data":
        worlds = fl.Data(model)
        worlds.rollout(5, {"ctrl": ctrl[0], "xfrc_applied": force[0]})
        assert np.array_equal(worlds.qpos, expected.qpos[0])
        return
    worlds = fl.Batch(model, 2) if kind == "batch" else fl.MixedBatch([(model, 1), (model, 1)])
    worlds.rollout(5, {"ctrl": ctrl, "xfrc_applied": force})
    assert np.array_equal(worlds.qpos, expected.qpos)
    assert np.array_equal(worlds.xfrc_applied, force[:, -1])
    for wrong in ({"qvel": ctrl}, {"ctrl": ctrl[:, :2]}, {"force": 1}):
        with pytest.raises(fl.ModelError):
            worlds.rollout(5, wrong)
