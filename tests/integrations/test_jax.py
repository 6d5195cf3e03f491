"""Rollouts in JAX: JAX's gradient checker, both contact models, both precisions; jit, vmap; errors."""

import gc

import numpy as np
import pytest

import featherlane as fl
from sensitivity.test_rollout_gradient import sliding, started
from sensitivity.test_transition import carts

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

import featherlane.integrations.jax as fj  # noqa: E402
from featherlane.integrations.jax import header  # noqa: E402
from featherlane.tools.sensitivity.adjoint.dynamics import Dynamics  # noqa: E402

try:
    enable_x64 = jax.enable_x64
except AttributeError:  # JAX 0.5
    from jax.experimental import enable_x64

SEED = 0  # both worlds touch the ground, and no switch is within 1e-6 of their states
CLOSE = {"modes": ["rev"], "atol": 1e-5, "rtol": 1e-5, "eps": 1e-7}


@pytest.fixture(autouse=True)
def doubles():
    with enable_x64(True):
        yield


def arrays(batch, nstep, rng):
    control = rng.uniform(-0.5, 0.5, (batch.nworld, nstep, batch.model.nu))
    return [jnp.array(getattr(batch, name)) for name in ("qpos", "qvel", "act")] + [jnp.array(control)]


@pytest.fixture(params=["convex", "lcp"])
def world(request):
    """Returns two worlds that touch the ground, and their arguments for a rollout."""
    model, rng = sliding(request.param), np.random.default_rng(SEED)
    batch = started(model, rng, 2)
    given, out = arrays(batch, 4, rng), fl.Batch(model, 2, nthread=1)
    out.restore(batch.checkpoint())
    assert out.rollout(4, np.asarray(given[3]), ("ncon",))["ncon"].any(1).all()
    return model, batch, given


@pytest.mark.parametrize("compiled", [False, True])
def test_check_grads_of_a_rollout_with_contact(world, compiled):
    """Unnormalized quaternions are treated as their direction."""
    _, batch, (qpos, qvel, act, control) = world
    rollout = fj.Dynamics(batch).rollout
    given = qpos.at[:, 3:7].multiply(1.7), qvel, act, control
    check_grads(jax.jit(rollout) if compiled else rollout, given, 1, **CLOSE)


def test_check_grads_of_a_step_with_contact(world):
    _, batch, (*state, control) = world
    check_grads(fj.Dynamics(batch).step, (*state, control[:, 0]), 1, **CLOSE)


def test_check_grads_of_fields_of_the_model():
    model, rng = sliding(), np.random.default_rng(SEED)
    batch = started(model, rng, 2)
    given, worlds = arrays(batch, 3, rng), fj.Dynamics(batch)
    friction, mass = jnp.tile(model.geom_friction, (2, 1, 1)), jnp.tile(model.body_mass, (2, 1))

    def speeds(friction, scale):
        return worlds.rollout(*given, geom_friction=friction, body_mass=mass * scale)[1]

    check_grads(speeds, (friction, jnp.ones((2, 1))), 1, **CLOSE | {"eps": 1e-5, "rtol": 1e-4})


def test_a_rollout_equals_that_of_the_batch(world):
    model, batch, given = world
    out = fl.Batch(model, 2, nthread=1)
    out.restore(batch.checkpoint())
    recorded = out.rollout(4, np.asarray(given[3]), ("qpos", "qvel", "act"))
    worlds = fj.Dynamics(batch)
    for rollout in (worlds.rollout, worlds.rollout, jax.jit(worlds.rollout)):
        for found, expected in zip(rollout(*given), recorded.values(), strict=True):
            assert np.asarray(found).tobytes() == expected.tobytes()
    first = worlds.step(*given[:3], given[3][:, 0])
    assert np.asarray(first[0]).tobytes() == recorded["qpos"][:, 0].tobytes()


@pytest.mark.ci
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_float32_arrays_have_gradients_in_float32(dtype):
    """Covers worlds in either precision."""
    model, rng = sliding(), np.random.default_rng(SEED)
    batch = started(model, rng, 2, dtype)
    wide = [a.astype(jnp.float64) for a in arrays(batch, 4, rng)]
    worlds = fj.Dynamics(batch)

    def loss(given):
        qpos, qvel, _ = worlds.rollout(*given)
        assert qpos.dtype == given[0].dtype
        return qpos[:, -1].sum() + (qvel[:, -1] ** 2).sum()

    for one, other in zip(jax.grad(loss)(wide), jax.grad(loss)([a.astype(jnp.float32) for a in wide]), strict=True):
        assert other.dtype == jnp.float32
        assert jnp.abs(one - other).max(initial=0.0) < 2e-3 * jnp.abs(one).max(initial=0.0) + 1e-6


@pytest.mark.ci
def test_vmap_and_scan_go_through_steps():
    """A vmap member equals its separate result, gradients too; a scan of steps is a rollout without warm starts."""
    model, rng = carts()[0], np.random.default_rng(0)
    worlds = fj.Dynamics(fl.Batch(model, 2, nthread=1))
    qpos, control = jnp.array(rng.uniform(size=(3, 2, 2))), jnp.array(rng.uniform(-1, 1, (3, 2, 5, 2)))
    zeros = jnp.zeros((2, 2))

    def loss(qpos, control):
        return (worlds.rollout(qpos, zeros, None, control)[0] ** 2).sum()

    together = jax.vmap(jax.value_and_grad(loss, (0, 1)))(qpos, control)
    for k in range(3):
        value, gradients = jax.value_and_grad(loss, (0, 1))(qpos[k], control[k])
        assert together[0][k] == value
        assert all((a[k] == b).all() for a, b in zip(together[1], gradients, strict=True))

    def along(control):
        def step(state, ctrl):
            after = worlds.step(*state, ctrl)
            return after, after[0]

        start = qpos[0], zeros, jnp.zeros((2, 0))
        return (jax.lax.scan(step, start, jnp.moveaxis(control, 1, 0))[1] ** 2).sum()

    value, gradient = jax.jit(jax.value_and_grad(along))(control[0])
    assert value == pytest.approx(float(loss(qpos[0], control[0])), rel=1e-12)
    assert jnp.abs(gradient - jax.grad(loss, 1)(qpos[0], control[0])).max() < 1e-9


# ---- without Python --------------------------------------------------------------------------------------------------
def test_a_compiled_rollout_has_no_callback(world):
    """XLA-compiled code calls the engine directly; with model fields it calls back to Python."""
    model, batch, given = world
    worlds = fj.Dynamics(batch)
    text = jax.jit(worlds.rollout).lower(*given).as_text()
    assert "featherlane_rollout" in text and "callback" not in text
    mass = jnp.tile(model.body_mass, (2, 1))
    assert "callback" in jax.jit(worlds.rollout).lower(*given, body_mass=mass).as_text()


@pytest.mark.parametrize("of_worlds", ["float64", "float32"])
@pytest.mark.parametrize("of_arrays", ["float64", "float32"])
def test_a_compiled_rollout_is_bitwise_equal_to_the_callback(of_worlds, of_arrays, monkeypatch):
    """Covers every input that is converted; also one under 32-bit JAX, next to another one."""
    model, rng = sliding(), np.random.default_rng(SEED)
    batch = started(model, rng, 11, of_worlds)
    worlds = fj.Dynamics(batch)
    given = [a.astype(of_arrays) for a in arrays(batch, 7, rng)]
    found = jax.jit(lambda *a: (worlds.rollout(*a), worlds.rollout(a[0], 2 * a[1], *a[2:])))(*given)
    if of_arrays == "float32":
        with enable_x64(False):
            narrow = worlds.rollout(*given)
        assert all((a == b).all() for a, b in zip(narrow, found[0], strict=True))
    monkeypatch.setattr(worlds, "_native", lambda *what: None)
    assert all((a == b).all() for a, b in zip(worlds.rollout(*given), found[0], strict=True))
    faster = worlds.rollout(given[0], 2 * given[1], *given[2:])
    assert all((a == b).all() for a, b in zip(faster, found[1], strict=True))


@pytest.mark.parametrize("of_arrays", ["float64", "float32"])
def test_a_compiled_gradient_equals_that_of_the_callback(of_arrays, monkeypatch):
    """If formulas serve all steps the backward pass is compiled, too; else, and for other models, Python runs it."""
    model, rng = sliding(), np.random.default_rng(SEED)
    batch = started(model, rng, 11)
    assert batch.ncon.any()
    worlds = fj.Dynamics(batch)
    given = [a.astype(of_arrays) for a in arrays(batch, 6, rng)]
    weights = [jnp.array(rng.standard_normal((11, 6, n)), of_arrays) for n in (model.nq, model.nv, model.na)]

    def loss(given):
        return sum((w * a).sum() for w, a in zip(weights, worlds.rollout(*given), strict=True))

    called, back = [], Dynamics.pull_back
    monkeypatch.setattr(Dynamics, "pull_back", lambda *what: called.append(1) or back(*what))
    found = jax.jit(jax.grad(loss))(given)
    served = not called
    monkeypatch.setattr(worlds, "_native", lambda *what: None)
    expected = jax.grad(loss)(given)
    assert served and called
    for one, other in zip(found, expected, strict=True):
        rounding = 1e-13 if of_arrays == "float64" else 1e-6
        assert jnp.abs(one - other).max() <= rounding * jnp.abs(other).max()


@pytest.mark.ci
def test_a_step_without_formulas_uses_the_python_callback(monkeypatch):
    """A contact is within 2e-7 m of its end."""
    model = fl.load("""<mujoco><option timestep="0.002" gravity="0 0 0"/><worldbody><geom type="plane" size="5 5 1"/>
        <body pos="0 0 0.1"><freejoint/><geom size="0.1"/></body>
        <body pos="1 0 0.1"><freejoint/><geom size="0.1"/></body></worldbody></mujoco>""")
    batch, called = fl.Batch(model, 2, nthread=1), []
    batch.qpos[:, 2], batch.qpos[:, 9], batch.qvel[:, 8] = 0.099, 0.1205, -0.5
    worlds = fj.Dynamics(batch)
    back = Dynamics.pull_back
    monkeypatch.setattr(Dynamics, "pull_back", lambda *what: called.append(1) or back(*what))
    control = jnp.zeros((2, 5, 0))
    gradient = jax.jit(jax.grad(lambda q, v: worlds.rollout(q, v, None, control)[0][:, -1, 9].sum(), (0, 1)))
    for height, served in ((0.1205, True), (0.1 - 1e-7 + 0.001 * 3, False)):
        called.clear()
        by_q, by_v = gradient(jnp.array(batch.qpos).at[1, 9].set(height), jnp.array(batch.qvel))
        assert served is not bool(called)
        assert by_q[0, 9] == pytest.approx(1.0) and by_v[0, 8] == pytest.approx(5 * 0.002)
        assert (by_q[1, 9] == pytest.approx(1.0)) is served


def test_a_world_that_is_reset_has_no_gradient():
    model = fl.bundled("cartpole")
    worlds = fj.Dynamics(fl.Batch(model, 3, nthread=1))
    qvel = jnp.zeros((3, 2)).at[1, 0].set(1e12)
    gradient = jax.grad(lambda v: worlds.rollout(jnp.zeros((3, 2)), v, None, jnp.zeros((4, 1)))[0].sum())(qvel)
    assert jnp.isnan(gradient[1]).all() and jnp.isfinite(gradient[jnp.array([0, 2])]).all()


def test_worlds_with_plain_python_callbacks_use_the_python_callback():
    model = fl.load("""<mujoco><worldbody><body><joint name="j"/><geom size="0.1" pos="0.2 0 0"/></body></worldbody>
        <actuator><general joint="j" gaintype="user"/></actuator></mujoco>""")
    fl.set_user_actuator(model, 0, gain=lambda m, d, i: 2.0)
    worlds = fj.Dynamics(fl.Batch(model, 1, nthread=1))
    given = jnp.zeros((1, 1)), jnp.zeros((1, 1)), None, jnp.ones((1, 2, 1))
    assert "callback" in jax.jit(worlds.rollout).lower(*given).as_text()
    assert worlds.rollout(*given)[1][0, -1, 0] > 0.0


@pytest.mark.ci
def test_a_compiled_program_without_its_worlds_raises():
    """Its table and its memory are freed."""
    worlds = fj.Dynamics(fl.Batch(carts()[0], 1, nthread=1))
    given = jnp.zeros((1, 2)), jnp.zeros((1, 2)), None, jnp.ones((1, 2, 2))
    program = jax.jit(worlds.rollout).lower(*given).compile()
    program(*given)
    jax.clear_caches()
    del worlds
    gc.collect()
    with pytest.raises(Exception, match="gone"):
        jax.block_until_ready(program(*given))


def test_the_layout_of_structs_is_read_from_the_header(tmp_path):
    path = tmp_path / header.FILE
    path.parent.mkdir(parents=True)
    path.write_text("""
        #define MAJOR 2
        typedef enum { KIND_A = 7, KIND_B = 8 } Kind;
        typedef uint32_t Bits;
        struct Inner { size_t size; Kind kind; };  // 4 bytes of padding
        typedef struct Outer { Bits bits; const struct Other* next;
            Inner inner;
            void** all; _XLA_FFI_API_STRUCT_FIELD(Create); } Outer;
        struct Strange { quad four; };""")
    found = header.Header(str(tmp_path))
    assert found.number("MAJOR") == 2 and found.number("KIND_B") == 8
    assert [found.offset("Outer", name) for name in ("bits", "next", "inner", "all", "Create")] == [0, 8, 16, 32, 40]
    assert found.offset("Outer", "inner", "kind") == 24
    for wrong in (lambda: found.number("MINOR"), lambda: found.struct("None"), lambda: found.struct("Strange")):
        with pytest.raises(fl.UnknownNameError, match="has no"):
            wrong()


# ---- errors ----------------------------------------------------------------------------------------------------------
def test_second_and_forward_derivatives_are_refused():
    model = carts()[0]
    worlds, zeros = fj.Dynamics(fl.Batch(model, 1)), jnp.zeros((1, 2))

    def loss(ctrl):
        return (worlds.step(zeros, zeros, None, ctrl)[0] ** 2).sum()

    with pytest.raises(fl.UnsupportedFeatureError):
        jax.grad(lambda ctrl: jax.grad(loss)(ctrl).sum())(zeros)
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(loss, (zeros,), (zeros,))


ZEROS = np.zeros((1, 2))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"qpos": np.zeros((1, 3))}, "qpos:"),
        ({"qpos": "home"}, "qpos:"),
        ({"qvel": None}, "qvel:"),
        ({"qvel": np.zeros((1, 2), np.float16)}, "qvel:"),
        ({"qvel": np.zeros((1, 2), np.float32)}, "float32 and float64"),
        ({"ctrl": np.zeros((1, 3))}, "control:"),
        ({"ctrl": np.zeros((1, 2), int)}, "ctrl:"),
        ({"ctrl": 3.0}, "control:"),
        ({"act": np.zeros((1, 1))}, "act:"),
        ({"body_masses": np.zeros((1, 1))}, "body_masses"),
        ({"body_mass": np.zeros((1, 1))}, "body_mass:"),
    ],
)
@pytest.mark.parametrize("compiled", [False, True])
def test_invalid_arguments_are_named(change, message, compiled):
    """The error is also raised while a program is traced."""
    given = {"qpos": ZEROS, "qvel": ZEROS, "act": None, "ctrl": ZEROS} | change
    step = fj.Dynamics(fl.Batch(carts()[0], 1)).step
    if compiled:
        message += "|non-array argument"
    with pytest.raises((fl.ModelError, TypeError), match=message):
        (jax.jit(step) if compiled else step)(**given)


def test_it_accepts_a_batch():
    with pytest.raises(fl.errors.ArgumentTypeError):
        fj.Dynamics(carts()[0])
