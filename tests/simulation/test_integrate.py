"""Integration with error control: known solutions, impacts, events, requested times, callbacks, errors."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.results import IntegrationStatus as Status
from scenes.known_motions import BOUNCE, MOTIONS

ACCURACIES = 1e-2, 1e-4, 1e-6, 1e-8
FIRST_ORDER = "euler", "implicit", "implicitfast", "discrete"
G = 9.81

BODIES = {
    "ball": '<body pos="0 0 .2"><freejoint/><geom size=".05"/></body>',
    "block": '<body pos="0 0 .06"><freejoint/><geom type="box" size=".05 .05 .05"/></body>',
    "stack": "".join(
        f'<body pos="{x} 0 {z}"><freejoint/><geom type="box" size=".05 .05 .05"/></body>'
        for x, z in ((0, 0.0501), (0.01, 0.1502), (0, 0.2503))
    ),
}
MARKS = {("stack", 1.0): pytest.mark.slow, ("ball", 1.0): pytest.mark.ci, ("block", 1.0): pytest.mark.ci}  # by duration
SCENE = """<mujoco><option timestep=".002" integrator="{integrator}"/><default><geom solref="{timeconst} 1"/></default>
<worldbody><geom type="plane" size="5 5 1"/>{body}</worldbody></mujoco>"""
PUSHED = """<mujoco><option timestep=".002" integrator="RK4"/><worldbody><body>
<joint name="x" type="slide" axis="1 0 0"/><geom size=".1" mass="2"/></body></worldbody>
<actuator>{actuator}</actuator></mujoco>"""
MOTOR = '<motor name="motor" joint="x"/>'


def scene(body="ball", integrator="discrete", timeconst=0.02):
    return fl.load(SCENE.format(body=BODIES[body], integrator=integrator, timeconst=timeconst))


# ---- smooth motion ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("accuracy", ACCURACIES)
@pytest.mark.parametrize("name", MOTIONS)
def test_rk4_keeps_the_error_below_the_accuracy(name, accuracy):
    motion = MOTIONS[name]
    data = motion.start("rk4")
    result = fl.integrate(data.model, data, motion.duration, accuracy=accuracy)
    assert motion.error(data) < accuracy
    assert data.time == result.time == motion.duration and result.status == Status.REACHED
    assert result.error <= 0.05 * accuracy and result.evaluations == 3 * (result.accepted + result.rejected)


def check_euler(name, integrator, accuracy):
    """The duration is such that about as many steps are taken at every accuracy."""
    motion = MOTIONS[name]
    data = motion.start(integrator)
    fl.integrate(data.model, data, min(motion.duration, 2.0 * (accuracy / 1e-3) ** 0.5), accuracy=accuracy)
    assert motion.error(data) < accuracy


@pytest.mark.parametrize("integrator", FIRST_ORDER)
@pytest.mark.parametrize("name", MOTIONS)
def test_integrators_of_order_1_keep_the_error_below_the_accuracy(name, integrator):
    check_euler(name, integrator, 1e-2)


@pytest.mark.parametrize("accuracy", (1e-3, 1e-4, 1e-6, 1e-8))
def test_euler_reaches_high_accuracy(accuracy):
    check_euler("pendulum", "euler", accuracy)


@pytest.mark.slow
@pytest.mark.parametrize("accuracy", (1e-3, 1e-4, 1e-6, 1e-8))
@pytest.mark.parametrize("integrator", FIRST_ORDER)
@pytest.mark.parametrize("name", MOTIONS)
def test_integrators_of_order_1_reach_high_accuracy(name, integrator, accuracy):
    check_euler(name, integrator, accuracy)


@pytest.mark.ci
def test_the_step_size_follows_the_accuracy_and_the_order():
    """The number of steps is proportional to accuracy^(-1 / (p + 1))."""
    for integrator, order in (("rk4", 4), ("euler", 1)):
        counts = []
        for accuracy in (1e-3, 1e-3 / 32):
            data = MOTIONS["spring"].start(integrator)
            counts.append(fl.integrate(data.model, data, 2.0, accuracy=accuracy).accepted)
        assert 32 ** (1 / (order + 1)) == pytest.approx(counts[1] / counts[0], rel=0.15)


def test_recorded_values_are_those_of_the_requested_times():
    motion, times = MOTIONS["top"], np.linspace(0.0, 2.0, 9)
    data = motion.start("rk4")
    result = fl.integrate(data.model, data, 2.0, accuracy=1e-6, times=times, record=("qpos", "qvel", "time", "xquat"))
    np.testing.assert_array_equal(result.recorded["time"], times)
    np.testing.assert_array_equal(result.times, times)
    for t, qpos, qvel in zip(times, result.recorded["qpos"], result.recorded["qvel"], strict=True):
        exact = motion.exact(t)
        assert np.abs(fl.differentiate_pos(data.model, 1.0, qpos, exact[0])).max() < 1e-6
        np.testing.assert_allclose(qvel, exact[1], atol=1e-6)
    np.testing.assert_allclose(result.recorded["xquat"][:, 1], result.recorded["qpos"][:, 3:], atol=1e-15)
    np.testing.assert_allclose(data.xquat[1], data.qpos[3:], atol=1e-15)  # derived fields are those of the final state


def test_activations_are_integrated():
    model = fl.load(PUSHED.format(actuator='<general joint="x" dyntype="filter" dynprm=".3"/>'))
    for integrator in ("rk4", "euler"):
        model.opt.integrator = integrator
        data = fl.Data(model)
        fl.integrate(model, data, 0.5, accuracy=1e-5, control=[2.0])
        t, tau = 0.5, 0.3
        lag = 1 - np.exp(-t / tau)
        assert abs(data.act[0] - 2 * lag) < 1e-5
        assert abs(data.qvel[0] - (t - tau * lag)) < 1e-5
        assert data.ctrl[0] == 2.0


# ---- contact ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("body", "integrator", "velocity_time"),
    [
        pytest.param(body, integrator, tau, marks=MARKS.get((body, tau), ()))
        for body in BODIES
        for integrator in ("Euler", "implicitfast", "discrete", "RK4")
        for tau in (0.0, 1.0)
    ],
)
def test_stiff_impacts_are_refined_and_end(body, integrator, velocity_time):
    """The time constant is 1 ms.  Bodies sink at most by the accuracy, and do not bounce above their start."""
    model = scene(body, integrator, 1e-3)
    data = fl.Data(model)
    heights = data.qpos[2::7].copy()
    times = np.linspace(0.01, 0.4, 40)
    result = fl.integrate(model, data, 0.4, accuracy=1e-3, velocity_time=velocity_time, times=times)
    assert result.status == Status.REACHED and result.smallest_step < 1e-3
    z = result.recorded["qpos"][:, 2::7]
    resting = 0.05 + 0.1 * np.arange(len(heights))
    assert (z > resting - 1e-3).all() and (z < heights + 1e-3).all()


@pytest.mark.parametrize("body", BODIES)
def test_discrete_steps_resolve_a_time_constant_of_a_tenth_of_a_millisecond(body):
    model = scene(body, "discrete", 1e-4)
    data = fl.Data(model)
    result = fl.integrate(model, data, 0.5, velocity_time=0.0, times=np.linspace(0.1, 0.5, 5))
    assert result.status == Status.REACHED
    assert result.evaluations < 0.5 / (0.5 * 1e-4)  # time steps of half the time constant
    resting = 0.05 + 0.1 * np.arange(len(data.qpos) // 7)
    np.testing.assert_allclose(result.recorded["qpos"][-1, 2::7], resting, atol=1e-3)


@pytest.mark.parametrize("min_step", (1e-6, 1e-9))
def test_an_impact_of_rigid_bodies_ends_with_forced_steps(min_step):
    model = scene("ball", "Euler")
    model.opt.contact_model = "lcp"
    data = fl.Data(model)
    times = np.linspace(0.01, 0.3, 30)
    result = fl.integrate(model, data, 0.3, times=times, min_step=min_step)
    assert result.status == Status.FORCED and 1 <= result.forced <= 10
    assert result.smallest_step == min_step and result.rejected < 300
    assert result.recorded["qpos"][:, 2].min() > 0.05 - 1e-3
    assert abs(data.qpos[2] - 0.05) < 1e-3


@pytest.mark.parametrize(("integrator", "accuracy"), [("rk4", 1e-2), ("rk4", 1e-4), ("discrete", 1e-2)])
def test_a_bouncing_ball_keeps_the_error_below_the_accuracy(integrator, accuracy):
    data = BOUNCE.start(integrator)
    fl.integrate(data.model, data, BOUNCE.duration, accuracy=accuracy)
    assert BOUNCE.error(data) < accuracy


def test_coulomb_contact_is_integrated():
    model = scene("block", "Euler")
    model.opt.contact_model = "coulomb"
    data = fl.Data(model)
    data.qpos[2], data.qvel[0] = 0.05, 1.0
    result = fl.integrate(model, data, 1.0)
    assert result.status == Status.REACHED
    assert data.qpos[0] == pytest.approx(1.0 / (2 * G), rel=0.02)  # friction 1: v^2 / (2 mu g)


# ---- events ----------------------------------------------------------------------------------------------------------
def test_an_event_ends_a_world_at_the_sign_change():
    model = scene("ball", "RK4")
    model.opt.disableflags = "contact"
    batch = fl.Batch(model, 3)
    batch.qpos[:, 2] = heights = np.array([1.0, 2.0, 50.0])
    result = fl.integrate(model, batch, 1.0, event=lambda time, worlds: worlds.qpos[:, 2] - 0.5)
    fall = np.sqrt(2 * (heights[:2] - 0.5) / G)
    np.testing.assert_allclose(batch.time[:2], fall, rtol=0, atol=3e-9)
    assert (batch.qpos[:2, 2] <= 0.5).all() and batch.time[2] == 1.0
    np.testing.assert_array_equal(result.status, [Status.EVENT, Status.EVENT, Status.REACHED])
    np.testing.assert_array_equal(result.time, batch.time)
    again = fl.integrate(model, batch, 1.0, event=lambda time, worlds: worlds.qpos[:, 2] - 0.5)
    assert (again.status == Status.REACHED).all() and (batch.time == 1.0).all()


def test_an_event_may_read_derived_fields_and_jump():
    model = scene("ball", "discrete")
    data = fl.Data(model)

    def touches(time, world):
        world.forward()
        return 1.0 if world.ncon else -1.0

    result = fl.integrate(model, data, 1.0, event=touches)
    assert result.status == Status.EVENT and data.ncon == 1
    assert data.time == pytest.approx(np.sqrt(2 * 0.15 / G), abs=1e-4)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("direction", [0, -1])
def test_a_ball_that_bounces_at_events_has_the_times_of_the_closed_form(dtype, direction):
    """After an event the height is below 0 by rounding, and the reversed velocity changes its sign again."""
    model = scene("ball", "RK4")
    model.opt.disableflags = "contact"
    batch, restitution = fl.Batch(model, 3, dtype=dtype), np.array([0.9, 0.8, 0.5])
    batch.qpos[:, 2] = heights = np.array([1.0, 2.0, 0.5])

    def height(time, worlds):
        return worlds.qpos[:, 2]

    height.direction = direction
    exact, small = dtype == "float64", {"min_step": 1e-9 if dtype == "float64" else 1e-5}
    speed = np.sqrt(2 * G * heights)
    time = speed / G
    for _ in range(4):
        result = fl.integrate(model, batch, 20.0, accuracy=1e-9 if exact else 1e-4, event=height, **small)
        assert (result.status == Status.EVENT).all()
        np.testing.assert_allclose(batch.time, time, rtol=0, atol=1e-7 if exact else 2e-3)
        np.testing.assert_allclose(-batch.qvel[:, 2], speed, rtol=0, atol=1e-7 if exact else 2e-3)
        batch.qvel[:, 2] *= -restitution
        speed = restitution * speed
        time = time + 2 * speed / G


def test_the_direction_of_an_event_selects_sign_changes():
    model = scene("ball", "RK4")
    model.opt.disableflags = "contact"
    for direction, expected in ((0, 0.1), (1.0, 0.1), (-2, 0.3)):
        data = fl.Data(model)
        data.qpos[2], data.qvel[2] = 0.0, G * 0.2  # thrown up: at the height of 0.1 s and 0.3 s

        def height(time, world):
            return world.qpos[2] - G * (0.2 * 0.1 - 0.1**2 / 2)

        height.direction = direction
        assert fl.integrate(model, data, 1.0, accuracy=1e-9, event=height).status == Status.EVENT
        assert data.time == pytest.approx(expected, abs=1e-7)
    for name, value in (("direction", "up"), ("direction", np.nan), ("terminal", False), ("terminal", 3)):
        setattr(height, name, value)
        with pytest.raises(fl.ModelError, match=rf"event.{name}: got {value!r}"):
            fl.integrate(model, data, 2.0, event=height)
        height.direction, height.terminal = 0, True


# ---- controls --------------------------------------------------------------------------------------------------------
def test_control_functions_are_sampled_at_the_times_of_steps():
    """x'' = cos t."""
    model, calls = fl.load(PUSHED.format(actuator=MOTOR)), []

    def control(time, world):
        calls.append(time)
        assert world.time == time and world is not data
        return [2.0 * np.cos(time)]

    data = fl.Data(model)
    result = fl.integrate(model, data, 1.0, accuracy=1e-4, control=control)
    assert abs(data.qvel[0] - np.sin(1.0)) < 1e-4 and abs(data.qpos[0] - (1 - np.cos(1.0))) < 1e-4
    assert len(calls) == 2 * result.accepted + result.rejected + 1
    assert data.ctrl[0] == 2.0 * np.cos(1.0)


@fl.kernel
def push(m, d):
    d.ctrl[0] = 2.0 - 4.0 * d.qpos[0]


def test_control_kernels_keep_the_order_of_rk4():
    """x'' = 1 - 2 x."""
    model = fl.load(PUSHED.format(actuator=MOTOR))
    data = fl.Data(model)
    result = fl.integrate(model, data, 1.0, accuracy=1e-7, control=push)
    assert abs(data.qpos[0] - (1 - np.cos(np.sqrt(2.0))) / 2) < 1e-7 and result.accepted < 100


def test_control_functions_of_a_batch_return_rows():
    model = fl.load(PUSHED.format(actuator=MOTOR))
    batch = fl.Batch(model, 3)
    batch.time[:] = [0.0, 0.5, 0.0]
    fl.integrate(model, batch, [1.0, 1.0, 0.5], control=lambda time, worlds: 2.0 * np.array([[1.0], [2.0], [3.0]]))
    np.testing.assert_allclose(batch.qvel[:, 0], [1.0, 1.0, 1.5], atol=1e-6)


def test_user_actuators_are_integrated():
    model = fl.load(PUSHED.format(actuator='<general name="own" joint="x" gaintype="user"/>'))
    fl.set_user_actuator(model, "own", gain=lambda m, d, i: 2.0)
    data = fl.Data(model)
    fl.integrate(model, data, 1.0, control=[3.0])
    assert data.qvel[0] == pytest.approx(3.0, abs=1e-6)


# ---- batches ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ("float64", "float32"))
def test_worlds_have_the_bits_that_they_have_alone(dtype):
    model, times = fl.bundled("quadruped"), np.array([0.05, 0.1])
    rng, n, bits = np.random.default_rng(3), 11, fl.State.INTEGRATION
    batch = fl.Batch(model, n, dtype=dtype)
    batch.reset(keyframe=0)
    batch.qpos[:, 2] += rng.uniform(0.0, 0.1, n)
    batch.qvel[:] = rng.normal(0.0, 0.5, (n, model.nv))
    batch.expand("body_mass")[:] *= rng.uniform(0.8, 1.2, (n, 1))
    batch.set_const()
    start, masses = batch.get_state(bits), batch.expanded("body_mass").copy()
    whole = fl.integrate(model, batch, 0.1, accuracy=1e-2, times=times, velocity_time=0.1)
    assert len(set(whole.accepted.tolist())) > 1
    for world in (0, 7, 10):
        alone = fl.Batch(model, 1, dtype=dtype)
        alone.expand("body_mass")[:] = masses[world]
        alone.set_const()
        alone.set_state(start[world], bits)
        result = fl.integrate(model, alone, 0.1, accuracy=1e-2, times=times, velocity_time=0.1)
        np.testing.assert_array_equal(alone.get_state(bits)[0], batch.get_state(bits)[world])
        for name in ("accepted", "rejected", "smallest_step", "error"):
            assert getattr(result, name)[0] == getattr(whole, name)[world]
        np.testing.assert_array_equal(result.recorded["qpos"][0], whole.recorded["qpos"][world])


def test_a_data_has_the_bits_of_a_batch():
    model = scene("stack")
    data, batch = fl.Data(model), fl.Batch(model, 9)
    one, many = fl.integrate(model, data, 0.2), fl.integrate(model, batch, 0.2)
    np.testing.assert_array_equal(batch.get_state(), np.broadcast_to(data.get_state(), (9, len(data.get_state()))))
    assert many.accepted.shape == (9,) and one.accepted.shape == () and (many.accepted == one.accepted).all()


@fl.kernel
def lift(m, d):
    d.xfrc_applied[1][2] = 50.0


def test_a_call_does_not_depend_on_earlier_calls():
    model = scene("ball")
    used, fresh = fl.Batch(model, 2), fl.Batch(model, 2)
    fl.integrate(model, used, 0.1, control=lift)
    assert (used.qpos[:, 2] > 0.3).all()
    used.set_state(fresh.get_state())
    model.opt.gravity = [1.0, 0.0, -3.0]
    for batch in (used, fresh):
        fl.integrate(model, batch, 0.5)
    np.testing.assert_array_equal(used.get_state(), fresh.get_state())


def test_the_model_and_its_time_step_do_not_change():
    model = scene("ball")
    batch = fl.Batch(model, 2)
    steps = batch.expand("opt.timestep")
    steps[:] = [[0.001], [0.004]]
    batch.bind("xpos")
    revision = model.revision
    fl.integrate(model, batch, 0.1)
    np.testing.assert_array_equal(steps, [[0.001], [0.004]])
    assert model.opt.timestep == 0.002 and model.revision == revision
    np.testing.assert_array_equal(batch.xpos[:, 1], batch.qpos[:, :3])


def test_worlds_that_are_at_the_end_stay():
    model = scene("ball")
    batch = fl.Batch(model, 2)
    result = fl.integrate(model, batch, [0.0, 0.1], times=[0.0, 0.05])
    np.testing.assert_array_equal(result.accepted > 0, [False, True])
    assert (batch.qpos[0] == model.qpos0).all() and batch.time[0] == 0.0
    assert np.isnan(result.recorded["qpos"][0, 1]).all() and not np.isnan(result.recorded["qpos"][1]).any()


# ---- ends other than `until` -----------------------------------------------------------------------------------------
def test_the_number_of_attempts_is_limited():
    model = scene("ball")
    data = fl.Data(model)
    result = fl.integrate(model, data, 1.0, max_steps=7)
    assert result.status == Status.STEP_LIMIT and result.accepted + result.rejected == 7
    assert 0.0 < data.time == result.time < 1.0


def test_a_world_ends_where_its_forces_are_not_finite():
    model = fl.load(PUSHED.format(actuator='<general name="own" joint="x" gaintype="user"/>'))
    fl.set_user_actuator(model, "own", gain=lambda m, d, i: np.nan if d.qpos[0] > 0.1 else 1.0)
    data = fl.Data(model)
    result = fl.integrate(model, data, 10.0, control=[1.0])
    assert result.status == Status.NON_FINITE
    assert data.qpos[0] == pytest.approx(0.1, abs=1e-6) and data.time < 10.0 and data.nreset == 0


def test_after_an_interrupt_worlds_are_at_their_last_accepted_step():
    model = fl.load(PUSHED.format(actuator=MOTOR))
    states = {}

    def control(time, worlds):
        states[time[0]] = worlds.get_state()
        if len(states) > 20:
            raise KeyboardInterrupt
        return 2.0 * np.cos(time)[:, None]

    batch = fl.Batch(model, 1)
    with pytest.raises(KeyboardInterrupt):
        fl.integrate(model, batch, 1.0, control=control)
    assert 0.0 < batch.time[0] < 1.0
    assert abs(batch.qvel[0, 0] - np.sin(batch.time[0])) < 1e-3
    states.clear()
    fl.integrate(model, batch, 1.0, control=lambda time, worlds: 2.0 * np.cos(time)[:, None])
    assert abs(batch.qvel[0, 0] - np.sin(1.0)) < 1e-3


# ---- errors ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"until": -0.1}, "until"),
        ({"until": np.inf}, "until"),
        ({"until": [0.1, 0.2]}, "until"),
        ({"accuracy": 0.0}, "accuracy"),
        ({"accuracy": -1e-3}, "accuracy"),
        ({"accuracy": 1e-15}, "accuracy"),
        ({"accuracy": "high"}, "accuracy"),
        ({"times": [0.2, 0.1]}, "times"),
        ({"times": [2.0]}, "times"),
        ({"times": 0.5}, "times"),
        ({"record": "qpoz"}, "record"),
        ({"control": np.zeros(3)}, "control"),
        ({"control": lambda time, world: np.zeros(5)}, "control"),
        ({"event": 3}, "event"),
        ({"event": lambda time, world: np.nan}, "event"),
        ({"min_step": 0.0}, "min_step"),
        ({"min_step": 1.0}, "max_step"),
        ({"max_steps": 0}, "max_steps"),
        ({"velocity_time": -1.0}, "velocity_time"),
    ],
)
def test_arguments_are_checked_before_anything_runs(arguments, name):
    model = fl.load(PUSHED.format(actuator=MOTOR))
    data = fl.Data(model)
    before = data.get_state()
    with pytest.raises(fl.ModelError, match=name):
        fl.integrate(model, data, **{"until": 1.0} | arguments)
    np.testing.assert_array_equal(data.get_state(), before)


def test_a_state_that_is_not_finite_is_refused():
    model = scene("ball")
    data, batch = fl.Data(model), fl.Batch(model, 3)
    data.qvel[1] = np.nan
    batch.qpos[2, 4] = 1e11
    with pytest.raises(fl.ModelError, match=r"qvel\[1\]: got nan"):
        fl.integrate(model, data, 1.0)
    with pytest.raises(fl.ModelError, match=r"qpos\[2, 4\]"):
        fl.integrate(model, batch, 1.0)


def test_other_worlds_and_models_are_refused():
    model, other = scene("ball"), scene("block")
    with pytest.raises(TypeError, match="data"):
        fl.integrate(model, fl.MixedBatch([(model, 2)]), 1.0)
    with pytest.raises(fl.ModelError, match="model"):
        fl.integrate(other, fl.Batch(model, 2), 1.0)


def test_features_that_count_steps_are_refused():
    model = scene("ball", "Euler")
    model.opt.enableflags = "sleep"
    with pytest.raises(fl.UnsupportedFeatureError, match="sleep"):
        fl.integrate(model, fl.Data(model), 1.0)
    delayed = fl.load(PUSHED.format(actuator='<motor name="late" joint="x" delay=".01" nsample="5"/>'))
    with pytest.raises(fl.UnsupportedFeatureError, match="'late'"):
        fl.integrate(delayed, fl.Data(delayed), 1.0)
