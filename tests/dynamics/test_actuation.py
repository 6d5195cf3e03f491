"""Actuators: every activation, gain and bias against MuJoCo, muscle curves, exact filters, errors."""

import mujoco
import numpy as np
import pytest

import featherlane as fl
from scenes.actuators import ACTUATORS, INTEGRATORS, OTHERS, scene
from scenes.states import kicked

EVERYTHING = mujoco.mjtState.mjSTATE_INTEGRATION.value
# relative to the field's largest value; forces and activations of one step from the same state
TOLERANCE = {
    "actuator_length": 1e-12,
    "actuator_velocity": 1e-12,
    "actuator_force": 1e-11,
    "qfrc_actuator": 1e-11,
    "act_dot": 1e-12,
    "act": 1e-12,
    "history": 1e-12,
    "qvel": 1e-10,
    "qacc": 1e-8,
}
BRANCHES = [*ACTUATORS, *OTHERS]
FASTEST = 1e3  # m/s, rad/s: at 6e4 a change of one ulp in the velocities changes MuJoCo's own result by 1e-3
SINGLE = 2e-4  # relative to a value's scale in float32, after one step


def branch(name, integrator="Euler", **options):
    """Returns MuJoCo's model of a branch; groups of that name are switched off."""
    if name.startswith("group"):
        options["option"] = 'actuatorgroupdisable="3"'
    mj = mujoco.MjModel.from_xml_string(scene(name, integrator, **options))
    mj.opt.tolerance = 0
    return mj


def random_control(mj, rng, step):
    """Returns controls, some of them beyond their range."""
    ctrl = rng.uniform(-1, 1, mj.nu)
    if mj.nu and step % 7 == 3:
        ctrl[rng.integers(mj.nu)] *= 3
    return ctrl


def states(mj, rng, count):
    """Returns states of a trajectory under random control, (count, n) in MuJoCo's layout, and its data after steps.

    An unstable trajectory starts again.
    """
    data, out, after = mujoco.MjData(mj), np.empty((count, mujoco.mj_stateSize(mj, EVERYTHING))), []
    data.qpos[:], data.qvel[:] = kicked(mj, rng)
    data.act[:] = rng.uniform(0, 0.1, mj.na)
    for k in range(count):
        if np.abs(data.qvel).max(initial=0) > FASTEST:
            data.qpos[:], data.qvel[:] = kicked(mj, rng)
        data.ctrl[:] = random_control(mj, rng, k)
        mujoco.mj_getState(mj, data, out[k], EVERYTHING)
        mujoco.mj_step(mj, data)
        after.append({name: getattr(data, name).copy() for name in TOLERANCE})
    return out, after


def is_start_velocity(mj, name: str) -> bool:
    """Returns whether MuJoCo's field is that at the start of a step of RK4: all others are of the last stage."""
    currents = (mj.actuator_dyntype == mujoco.mjtDyn.mjDYN_DCMOTOR) & (mj.actuator_actnum > 0)
    return name == "actuator_velocity" and mj.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4 and currents.any()


def check_parity(mj, rng, count):
    model = fl.load(mj)
    data = fl.Data(model)
    for k, (state, after) in enumerate(zip(*states(mj, rng, count), strict=True)):
        fl.set_state(model, data, state, EVERYTHING)
        fl.step(model, data)
        for name, tolerance in TOLERANCE.items():
            if not is_start_velocity(mj, name):
                expected = after[name]
                bound = tolerance * max(1.0, np.abs(expected).max(initial=0))
                assert np.allclose(getattr(data, name), expected, rtol=0, atol=bound), (k, name)


@pytest.mark.covers("transmission, activation, gain, bias, control", lambda: map(branch, BRANCHES))
@pytest.mark.parametrize("name", BRANCHES)
def test_a_step_equals_mujoco(name, rng):
    """Uses one integrator for each branch, in turn: the slow test covers all."""
    integrator = INTEGRATORS[BRANCHES.index(name) % len(INTEGRATORS)]
    check_parity(branch(name, integrator), rng, 10)


@pytest.mark.slow
@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("name", BRANCHES)
def test_a_step_of_every_integrator_equals_mujoco(name, integrator, rng):
    check_parity(branch(name, integrator), rng, 300)


@pytest.mark.parametrize("option", ["clampctrl", "actuation"])
@pytest.mark.parametrize("name", ["motor", "muscle", "pid-all", "dcmotor-servo-all"])
def test_flags_act_as_in_mujoco(name, option, rng):
    check_parity(branch(name, "implicitfast", flag=f'{option}="disable"'), rng, 10)


@pytest.mark.covers("control", lambda: [branch("affine", joint='actuatorfrcrange="-0.4 0.5"')])
@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "discrete"])
@pytest.mark.parametrize("name", ["affine", "muscle", "dcmotor-bristles", "pid-all"])
def test_the_limit_of_the_joint_bounds_the_sum(name, integrator, rng):
    check_parity(branch(name, integrator, joint='actuatorfrcrange="-0.4 0.5"'), rng, 20)


@pytest.mark.parametrize("name", BRANCHES)
def test_a_world_is_bitwise_equal_in_any_batch(name, rng):
    mj = branch(name)
    model = fl.load(mj)
    rows, _ = states(mj, rng, 11)
    batch, data = fl.Batch(model, 11), fl.Data(model)
    fl.set_state(model, batch, rows, EVERYTHING)
    batch.step(3)
    for w, row in enumerate(rows):
        fl.set_state(model, data, row, EVERYTHING)
        fl.step(model, data, 3)
        for field in ("qpos", "qvel", "act", "history"):
            assert np.array_equal(getattr(batch, field)[w], getattr(data, field)), (w, field)


@pytest.mark.parametrize("name", ["muscle-smooth", "dcmotor-servo-all", "delay-cubic"])
def test_parameters_can_differ_by_world(name, rng):
    mj = branch(name, "implicitfast")
    model = fl.load(mj)
    rows, _ = states(mj, rng, 9)
    batch = fl.Batch(model, 9)
    for field in "dynprm gainprm biasprm lengthrange delay gear acc0".split():
        numbers = batch.expand(f"actuator_{field}")
        numbers *= rng.uniform(0.8, 1.2, numbers.shape)
    fl.set_state(model, batch, rows, EVERYTHING)
    batch.step(2)
    for w in (0, 4, 8):
        alone = batch.get_model(w)
        data = fl.Data(alone)
        fl.set_state(alone, data, rows[w], EVERYTHING)
        fl.step(alone, data, 2)
        assert np.array_equal(batch.qvel[w], data.qvel) and np.array_equal(batch.act[w], data.act)


@pytest.mark.parametrize("name", ["muscle", "filterexact", "dcmotor-servo-all", "pid-all", "delay-linear"])
def test_single_precision_follows(name, rng):
    mj = branch(name)
    model = fl.load(mj)
    rows, after = states(mj, rng, 5)
    batch = fl.Batch(model, 5, dtype=np.float32)
    fl.set_state(model, batch, rows, EVERYTHING)
    batch.step()
    for field in ("qvel", "act"):
        expected = np.stack([data[field] for data in after])
        assert np.allclose(
            getattr(batch, field), expected, rtol=SINGLE, atol=SINGLE * (1 + np.abs(expected).max(initial=0))
        )


def test_activations_are_reached_by_the_name_of_their_actuator():
    model = fl.load(scene("dcmotor-servo-all").replace("<dcmotor ", '<dcmotor name="drive" ', 1))
    data, batch = fl.Data(model), fl.Batch(model, 2)
    drive = data.actuator("drive")
    drive.act = [1, 2, 3, 4, 5]
    drive.ctrl = [6, 7, 8, 9]
    assert np.array_equal(data.act, [1, 2, 3, 4, 5, 0, 0, 0, 0, 0]) and np.array_equal(drive.act, [1, 2, 3, 4, 5])
    assert np.array_equal(data.ctrl[:5], [6, 7, 8, 9, 0]) and drive.force == 0 and drive.act_dot.shape == (5,)
    batch.actuator("drive").act = 0.5
    assert np.array_equal(batch.act[:, :5], np.full((2, 5), 0.5)) and batch.act.shape == (2, 10)
    single = fl.Data(fl.load(scene("filter")))
    assert single.actuator(1).act == 0 and single.actuator(0).ctrl.shape == (1,)


@pytest.mark.parametrize("extra", ["", 'thermal="1 2 0.004 25 25"', 'inductance="0 0.1"'])
def test_an_edit_cannot_add_or_remove_the_inductance_of_a_dc_motor(extra):
    """The current is an activation, so its time constant is refused live as it is at loading."""
    text = f"""<mujoco><worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody><actuator>
    <dcmotor name="drive" joint="j" motorconst=".05" resistance="2" {extra}/></actuator></mujoco>"""
    model, batch = fl.load(text), fl.Batch(fl.load(text), 2)
    other = 0.0 if "inductance" in extra else 0.1
    for worlds, values in ((model, model.actuator_dynprm), (batch, batch.expand("actuator_dynprm"))):
        values[..., 0] = other
        with pytest.raises(fl.ModelError, match="actuator 'drive'"):
            fl.step(model, fl.Data(model)) if worlds is model else batch.step()


@pytest.mark.parametrize("name", ["orientation", "orientation-quat"])
def test_orientation_servo_torque_is_limited(name, rng):
    """Under explicit integration, implicit rates vanish if MuJoCo's rounded torque norm reaches the bound."""
    mj = branch(name)
    mj.actuator_forcelimited[:], mj.actuator_forcerange[:] = 1, [0, 1.2]
    check_parity(mj, rng, 20)


# ---- laws ------------------------------------------------------------------------------------------------------------
FILTERS = """<mujoco><option timestep="{h}" gravity="0 0 0"/><worldbody><body><joint name="j"/><geom size="0.1"/></body>
</worldbody><actuator><general joint="j" dyntype="{kind}" dynprm="{tau}"/></actuator></mujoco>"""


def filtered(kind, h, tau, time, control=1.0):
    """Returns the activation after some time under a constant control."""
    model = fl.load(FILTERS.format(kind=kind, h=h, tau=tau))
    data = fl.Data(model)
    data.ctrl[0] = control
    fl.step(model, data, round(time / h))
    return data.act[0]


def test_exact_filters_are_exact_and_others_converge_at_first_order():
    exact = 1 - np.exp(-1)
    errors = []
    for h in (0.02, 0.01, 0.005):
        assert abs(filtered("filterexact", h, 0.1, 0.1) - exact) < 1e-14
        errors.append(abs(filtered("filter", h, 0.1, 0.1) - exact))
    assert 1.8 < errors[0] / errors[1] < 2.2 and 1.8 < errors[1] / errors[2] < 2.2


@pytest.mark.parametrize("tau", [1e-4, 1e-12, 1e12])
def test_exact_filters_are_stable_at_any_time_constant(tau):
    act = filtered("filterexact", 0.01, tau, 0.1)
    assert abs(act + np.expm1(-0.1 / tau)) < 1e-14


def test_muscle_curves_equal_mujoco(rng):
    """Covers both curves and beyond their ends, for random parameters."""
    text = scene("muscle-static")
    mj = mujoco.MjModel.from_xml_string(text)
    mj.actuator_forcelimited[:], mj.opt.gravity[:] = 0, 0
    model = fl.load(mj)
    data = fl.Data(model)
    for _ in range(50):
        prm = np.array([0.7, 1.1, rng.choice([-1, 40]), 300, 0.4, 1.7, 1.4, 1.3, 1.25]) * rng.uniform(0.9, 1.1, 9)
        data.qpos[0], data.qvel[0] = rng.uniform(-5, 5), rng.uniform(-12, 12)
        data.ctrl[:] = 0.6
        model.actuator_gainprm[0, :9] = model.actuator_biasprm[0, :9] = prm
        fl.forward(model, data)
        length, velocity = data.actuator_length[0], data.actuator_velocity[0]
        known = mj.actuator_lengthrange[0], mj.actuator_acc0[0], prm
        force = 0.6 * mujoco.mju_muscleGain(length, velocity, *known) + mujoco.mju_muscleBias(length, *known)
        assert abs(data.actuator_force[0] - force) <= 1e-12 * (1 + abs(force))


def test_muscle_activation_equals_mujoco(rng):
    mj = mujoco.MjModel.from_xml_string(scene("muscle"))
    model = fl.load(mj)
    data = fl.Data(model)
    for k in range(60):
        model.actuator_dynprm[0, :3] = prm = [*rng.uniform(0.005, 0.1, 2), rng.choice([0, 0.1, 1])]
        data.act[0], data.ctrl[0] = rng.uniform(-0.3, 1.3), rng.uniform(0, 1)
        if k % 5 == 0:
            data.act[0] = data.ctrl[0]
        fl.forward(model, data)
        rate = mujoco.mju_muscleDynamics(data.ctrl[0], data.act[0], np.array(prm))
        assert abs(data.act_dot[0] - rate) <= 1e-12 * (1 + abs(rate))


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast"])
def test_step_derivatives_include_activations(integrator, rng):
    mj = branch("muscle-smooth", integrator)
    model = fl.load(mj)
    data, given = fl.Data(model), mujoco.MjData(mj)
    given.qpos[:], given.qvel[:] = kicked(mj, rng)
    given.act[:], given.ctrl[:] = [0.3, 0.4], [0.6, 0.2]
    state = np.empty(mujoco.mj_stateSize(mj, EVERYTHING))
    mujoco.mj_getState(mj, given, state, EVERYTHING)
    fl.set_state(model, data, state, EVERYTHING)
    n = 2 * mj.nv + mj.na
    A, B = np.zeros((n, n)), np.zeros((n, mj.nu))
    mujoco.mjd_transitionFD(mj, given, 1e-6, True, A, B, None, None)
    found = fl.linearize(model, data, method="finite_difference")
    assert np.allclose(found.A, A, atol=1e-6) and np.allclose(found.B, B, atol=1e-6)


# ---- errors ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("attributes", ['dyntype="filter" dynprm="-0.1"', 'dyntype="muscle" dynprm="0.1 0"'])
def test_invalid_actuator_parameters_are_refused(attributes):
    with pytest.raises(
        fl.ModelError, match=r"actuator_dynprm of actuator 'pull': got .* allowed are time constants > 0"
    ):
        fl.load(scene(f'<general name="pull" joint="hinge" {attributes}/>'))


def test_a_muscle_without_a_range_is_refused():
    mj = branch("muscle")
    mj.actuator_gainprm[1, :2] = 1
    with pytest.raises(fl.ModelError):
        fl.load(mj)
    mj.actuator_lengthrange[:] = 0
    with pytest.raises(fl.ModelError, match="lengthrange"):
        fl.load(mj)


def test_a_motor_with_a_removed_state_is_refused():
    mj = branch("dcmotor-lag")
    mj.actuator_dynprm[0, 0] = 0
    with pytest.raises(fl.ModelError):
        fl.load(mj)


def test_a_current_with_a_tiny_time_constant_follows_immediately():
    text = scene("dcmotor-lag")
    mj = mujoco.MjModel.from_xml_string(text)
    R, K = 1e16, mj.actuator_gainprm[:, 1]
    mj.actuator_gainprm[:, 0], mj.actuator_dynprm[:, 0] = R, 1e-18
    model = fl.load(mj)
    data = fl.Data(model)
    data.act, data.ctrl = 0.5, 0.7
    fl.forward(model, data)
    following = (0.7 - K * data.actuator_velocity) / R
    fl.step(model, data)
    np.testing.assert_allclose(data.act, following, rtol=0, atol=1e-15)  # MuJoCo's is -499.5
