"""The adjoint of a rollout: products with the Jacobians of its steps, against differences of whole rollouts."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.tools.sensitivity.adjoint import jacobians, product_worlds
from featherlane.tools.sensitivity.adjoint.cotangent import Coordinates
from scenes.states import kicked
from sensitivity.test_transition import carts, exact

PRODUCT = 1e-12  # rounding of sums in another order
ROLLOUT = 2e-6  # relative: differences over 1e-6 of rollouts with stiff contacts
# a box that falls onto an edge and slides, next to a pendulum with a ball joint and a servo
SLIDING = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="5 5 1" friction="0.4"/>
  <body pos="0 0 0.13" euler="10 20 5"><freejoint/><geom type="box" size="0.1 0.08 0.06" mass="0.5"/></body>
  <body pos="2 0 1"><joint name="ball" type="ball" damping="0.02"/>
    <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/>
    <body pos="0.3 0 0"><joint name="hinge" axis="0 1 0" damping="0.05"/>
      <geom type="capsule" fromto="0 0 0 0.2 0 0" size="0.03"/></body></body></worldbody>
  <actuator><position joint="hinge" kp="2" kv="0.1"/><general joint="hinge" dyntype="filter" dynprm="0.05"/></actuator>
</mujoco>"""


def sliding(contact_model="convex"):
    model = exact(fl.load(SLIDING))
    model.opt.contact_model = contact_model
    return model


def started(model, rng, nworld=3, dtype="float64"):
    """Returns worlds that touch the ground, each with other velocities."""
    batch = fl.Batch(model, nworld, nthread=1, dtype=dtype)
    batch.qvel[:] += rng.normal(0.0, 0.1, batch.qvel.shape)
    batch.step(41)
    return batch


def ends(model, batch, control, dx):
    """Returns (qpos, qvel, act) after a rollout from displaced states."""
    work = fl.Batch(model, batch.nworld, nthread=1)
    work.restore(batch.checkpoint())
    work.qpos = fl.integrate_pos(model, batch.qpos, dx[:, : model.nv], 1.0)
    work.qvel, work.act = batch.qvel + dx[:, model.nv : 2 * model.nv], batch.act + dx[:, 2 * model.nv :]
    work.rollout(control.shape[1], control)
    return np.concatenate([work.qpos, work.qvel, work.act], 1)


def quotient(function, step=1e-6):
    """Returns Richardson's extrapolation of central differences."""
    coarse, fine = ((function(h) - function(-h)) / (2 * h) for h in (2 * step, step))
    return (4.0 * fine - coarse) / 3.0


def numbers(result):
    return [result.state, result.control, result.switching, *result.parameters.values()]


# ---- laws ------------------------------------------------------------------------------------------------------------
def test_a_linear_system_has_the_powers_of_its_matrices():
    """Compares with (A^T)^n l, B^T (A^T)^k l, from explicit matrices."""
    model, A, B = carts()
    batch, nstep, weights = fl.Batch(model, 2, nthread=1), 7, np.array([1.0, -2.0, 0.5, 3.0])
    found = fl.rollout_gradient(model, batch, np.full((nstep, 2), 0.3), loss_gradient=np.tile(weights, (2, 1)))
    costate = weights
    for k in range(nstep - 1, -1, -1):
        assert np.abs(found.control[:, k] - B.T @ costate).max() < 1e-8
        costate = A.T @ costate
    assert np.abs(found.state - costate).max() < 1e-8
    assert found.switching.tolist() == [1.0, 1.0] and found.parameters == {}


@pytest.mark.parametrize("name", ["humanoid", "quadruped", "sliding"])
def test_it_is_the_product_with_the_jacobians_of_its_steps(name, rng):
    model = sliding() if name == "sliding" else fl.bundled(name)
    batch, nstep = fl.Batch(model, 2, nthread=1), 5
    batch.step(150 if name == "quadruped" else 50)
    control, nx = rng.uniform(-0.3, 0.3, (2, nstep, model.nu)), 2 * model.nv + model.na
    weights = rng.standard_normal((2, nstep + 1, nx))
    found = fl.rollout_gradient(model, batch, control, loss_gradient=weights)
    steps = []
    for k in range(nstep):
        batch.ctrl = control[:, k]
        steps.append(fl.linearize(model, batch))
        batch.step()
    costate = weights[:, nstep]
    for k in range(nstep - 1, -1, -1):
        by_u = np.einsum("wij,wi->wj", steps[k].B, costate)
        assert np.abs(found.control[:, k] - by_u).max() <= PRODUCT * np.abs(by_u).max(initial=1.0)
        costate = np.einsum("wij,wi->wj", steps[k].A, costate) + weights[:, k]
    assert np.abs(found.state - costate).max() <= PRODUCT * np.abs(costate).max()
    assert (found.switching == np.min([step.switching for step in steps], 0)).all()
    assert found.end.qpos.tobytes() == batch.qpos.tobytes() and found.end.time.tobytes() == batch.time.tobytes()


@pytest.mark.parametrize("contact_model", ["convex", "lcp"])
def test_it_equals_finite_differences_of_rollouts_with_contact(contact_model):
    """Tests the gradient by all states and some controls, of a loss in qpos, qvel and act: a box slides on its edge."""
    model, rng = sliding(contact_model), np.random.default_rng(4)  # no switch is within 1e-5 of these
    batch, nstep, nx = started(model, rng), 8, 2 * model.nv + model.na
    control = rng.uniform(-0.5, 0.5, (3, nstep, model.nu))
    weights = rng.standard_normal(model.nq + model.nv + model.na)
    found = fl.rollout_gradient(model, batch, control, loss_gradient=np.tile(weights, (3, 1)))
    work = fl.Batch(model, 3, nthread=1)
    work.restore(batch.checkpoint())
    touched = []
    for _ in range(nstep):
        work.step()
        touched.append(work.ncon.copy())
    assert np.count_nonzero(touched, 0).min() >= 3
    scale = np.abs(found.state).max()
    for i in range(nx):
        dx = np.zeros((3, nx))
        dx[:, i] = 1.0
        slope = quotient(lambda h, dx=dx: ends(model, batch, control, h * dx) @ weights)
        assert np.abs(found.state[:, i] - slope).max() < ROLLOUT * scale, i
    for k, i in ((0, 0), (5, 1), (nstep - 1, 1)):
        du = np.zeros_like(control)
        du[:, k, i] = 1.0
        slope = quotient(lambda h, du=du: ends(model, batch, control + h * du, np.zeros((3, nx))) @ weights)
        assert np.abs(found.control[:, k, i] - slope).max() < 1e-8


def test_shared_parameters_equal_per_world_parameters(rng):
    """Accepts shapes (nx,), (1, nx) and (1, nstep + 1, nx) in place of a row per world; also by coordinates."""
    model = sliding()
    batch, nstep = started(model, rng), 4
    control, nx, nc = np.zeros((nstep, model.nu)), 2 * model.nv + model.na, model.nq + model.nv + model.na
    for n in (nx, nc):
        last, every = rng.standard_normal(n), rng.standard_normal((1, nstep + 1, n))
        for given, whole in ((last, np.tile(last, (3, 1))), (last[None], np.tile(last, (3, 1)))):
            ours, theirs = (fl.rollout_gradient(model, batch, control, loss_gradient=a).state for a in (given, whole))
            assert ours.tobytes() == theirs.tobytes()
        ours, theirs = (
            fl.rollout_gradient(model, batch, control, loss_gradient=a).state
            for a in (every, np.tile(every, (3, 1, 1)))
        )
        assert ours.tobytes() == theirs.tobytes()
    for shape in ((nstep + 1, nx), (2, nx), (3, nstep, nx), (), (1, 1, 1, nx)):
        with pytest.raises(fl.ModelError):
            fl.rollout_gradient(model, batch, control, loss_gradient=np.zeros(shape))


def test_parameter_entries_equal_those_of_their_fields(rng):
    model = sliding()
    batch, control = started(model, rng, 2), np.zeros((3, model.nu))
    weights = rng.standard_normal((2, 2 * model.nv + model.na))
    whole = fl.rollout_gradient(model, batch, control, loss_gradient=weights, parameters=["geom_friction"])
    some = fl.rollout_gradient(model, batch, control, loss_gradient=weights, parameters=["geom_friction[:, 0]"])
    ours, theirs = some.parameters["geom_friction[:, 0]"], whole.parameters["geom_friction"][..., 0]
    assert np.abs(ours - theirs).max() <= 1e-12 * np.abs(theirs).max()


def test_parameter_gradients_of_the_final_state(rng):
    """Compares friction and masses with differences of rollouts of worlds with different models."""
    model = sliding()
    batch, nstep = started(model, rng, 2), 6
    control, weights = np.zeros((nstep, model.nu)), rng.standard_normal((2, 2 * model.nv + model.na))
    names = {"geom_friction": (0, 0), "body_mass": (1,), "opt.gravity": (2,)}
    found = fl.rollout_gradient(model, batch, control, loss_gradient=weights, parameters=names)

    def end(name, entry, h):
        work = fl.Batch(model, 2, nthread=1)
        work.restore(batch.checkpoint())
        work.expand(name)[(slice(None), *entry)] += h
        if name == "body_mass":
            work.set_const()
        work.rollout(nstep, control)
        moved = fl.differentiate_pos(model, 1.0, found.end.qpos, work.qpos)
        return (np.concatenate([moved, work.qvel, work.act], 1) * weights).sum(1)

    for name, entry in names.items():
        field = name.replace("opt.", "opt_")
        assert found.parameters[field].shape == (2, *np.shape(getattr(model, field)))
        slope = quotient(lambda h, name=name, entry=entry: end(name, entry, h), 1e-5)
        ours = found.parameters[field][(slice(None), *entry)]
        assert np.abs(ours - slope).max() < 1e-5 * (np.abs(slope).max() + 1e-2)


# ---- losses ----------------------------------------------------------------------------------------------------------
def test_a_loss_function_and_given_gradients_agree(rng):
    """Covers losses by coordinates or by dof, at each state or at the last."""
    model = sliding()
    batch, nstep, control = started(model, rng), 4, rng.uniform(-1, 1, (4, model.nu))
    weights = rng.standard_normal((3, nstep + 1, model.nq + model.nv + model.na))
    seen = []

    def gradient(k, state):
        seen.append((k, state))
        return weights[:, k]

    called, given = (fl.rollout_gradient(model, batch, control, loss_gradient=loss) for loss in (gradient, weights))
    for one, other in zip(numbers(called), numbers(given), strict=True):
        assert one.tobytes() == other.tobytes()
    assert [k for k, _ in seen] == [4, 3, 2, 1, 0]
    out = fl.Batch(model, 3, nthread=1)
    out.restore(batch.checkpoint())
    for k, state in reversed(seen):
        assert state.qpos.tobytes() == out.qpos.tobytes() and state.qvel.tobytes() == out.qvel.tobytes()
        assert (state.time == out.time).all() and (
            state.ctrl is None if k == nstep else (state.ctrl == control[k]).all()
        )
        out.rollout(1, control[k : k + 1] if k < nstep else control[:1])
    by_dof = np.stack(
        [Coordinates(model).state_to_tangent(state.qpos, weights[:, k]) for k, state in reversed(seen)], 1
    )
    tangent = fl.rollout_gradient(model, batch, control, loss_gradient=by_dof)
    assert tangent.state.tobytes() == given.state.tobytes()
    last = fl.rollout_gradient(model, batch, control, loss_gradient=by_dof[:, nstep])
    alone = fl.rollout_gradient(
        model, batch, control, loss_gradient=lambda k, state: by_dof[:, k] if k == nstep else None
    )
    assert last.state.tobytes() == alone.state.tobytes() != tangent.state.tobytes()


def test_a_loss_can_depend_on_controls(rng):
    """An extra term sum u^2 / 2 adds u to the gradient."""
    model = carts()[0]
    batch, control = fl.Batch(model, 2, nthread=1), rng.uniform(-0.5, 0.5, (5, 2))
    plain = fl.rollout_gradient(model, batch, control, loss_gradient=lambda k, state: state.qvel @ np.eye(2, 4, 2))
    found = fl.rollout_gradient(
        model,
        batch,
        control,
        loss_gradient=lambda k, state: (state.qvel @ np.eye(2, 4, 2), None if k == 5 else state.ctrl),
    )
    assert np.abs(found.control - plain.control - control).max() < 1e-14
    assert found.state.tobytes() == plain.state.tobytes()
    only = fl.rollout_gradient(
        model, batch, control, loss_gradient=lambda k, state: (None, None if k == 5 else state.ctrl)
    )
    assert (only.control == control).all() and not only.state.any()


def test_quaternion_and_rotation_gradients_convert_into_each_other(rng):
    """On the unit sphere one is the other's inverse; unnormalized values stand for their direction."""
    model = fl.load(SLIDING)
    coordinates = Coordinates(model)
    qpos, _ = kicked(model, rng)
    tangent = rng.standard_normal(model.nv)
    by_q = coordinates.from_tangent(qpos, tangent)
    assert np.abs(coordinates.to_tangent(qpos, by_q) - tangent).max() < 1e-14
    longer = qpos.copy()
    longer[3:7] *= 3.0

    def moved(step, h):
        turned = fl.normalize_quat(model, longer + h * step)
        return fl.differentiate_pos(model, 1.0, qpos, turned)

    for _ in range(3):
        step = rng.standard_normal(model.nq)
        slope = quotient(lambda h, step=step: moved(step, h)) @ tangent
        assert abs(coordinates.from_tangent(longer, tangent) @ step - slope) < 1e-8


# ---- memory ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("interval", [0, 2, 3, 11, 100])
def test_checkpoint_spacing_does_not_change_results(interval, rng, monkeypatch):
    model = sliding()
    batch, control = started(model, rng), rng.uniform(-0.5, 0.5, (3, 11, model.nu))
    weights = rng.standard_normal((3, 12, 2 * model.nv + model.na))
    all_kept = fl.rollout_gradient(model, batch, control, loss_gradient=weights)
    monkeypatch.setattr(jacobians, "REALS", 2000 * interval)  # few steps at once
    monkeypatch.setattr(product_worlds, "EACH", 1 + interval)
    for one, other in zip(
        numbers(all_kept),
        numbers(fl.rollout_gradient(model, batch, control, loss_gradient=weights, parameters=(), interval=interval)),
        strict=True,
    ):
        assert one.tobytes() == other.tobytes()


# ---- batches ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("contact_model", ["convex", "lcp"])
def test_a_gradient_does_not_depend_on_other_worlds(contact_model, rng):
    model = sliding(contact_model)
    batch, control = started(model, rng, 9), rng.uniform(-0.5, 0.5, (9, 6, model.nu))
    weights = rng.standard_normal((9, 7, 2 * model.nv + model.na))
    batch.expand("body_mass")[:] *= np.linspace(0.8, 1.2, 9)[:, None]
    batch.set_const()
    names = ("geom_friction",) if contact_model == "convex" else ()
    before = batch.checkpoint()
    together = fl.rollout_gradient(model, batch, control, loss_gradient=weights, parameters=names)
    threads = fl.rollout_gradient(model, batch, control, loss_gradient=weights, parameters=names, nthread=2)
    for one, other in zip(numbers(together), numbers(threads), strict=True):
        assert one.tobytes() == other.tobytes()
    for name, rows in batch.checkpoint().items():
        assert rows.tobytes() == before[name].tobytes(), name
    for w in (0, 4, 8):
        alone = fl.Batch(model, 1, nthread=1)
        alone.restore({name: rows[w : w + 1] for name, rows in before.items()})
        found = fl.rollout_gradient(
            model, alone, control[w : w + 1], loss_gradient=weights[w : w + 1], parameters=names
        )
        for one, other in zip(numbers(found), numbers(together), strict=True):
            assert one[0].tobytes() == other[w].tobytes()


def test_a_world_that_is_reset_has_no_gradient(rng):
    """A non-finite world does not affect the others."""
    model = fl.bundled("cartpole")
    batch, control = fl.Batch(model, 3, nthread=1), np.zeros((4, model.nu))
    good = fl.rollout_gradient(model, batch, control, loss_gradient=np.ones((3, 4)))
    batch.qvel[1] = 1e12
    with pytest.warns(fl.NonFiniteWarning):
        found = fl.rollout_gradient(model, batch, control, loss_gradient=np.ones((3, 4)))
    assert np.isnan(found.state[1]).all() and np.isnan(found.control[1]).all()
    for w in (0, 2):
        assert found.state[w].tobytes() == good.state[w].tobytes()


def test_float32_worlds_have_gradients_in_float64(rng):
    model = sliding()
    batch = started(model, rng, 2, "float32")
    found = fl.rollout_gradient(
        model, batch, np.zeros((5, model.nu)), loss_gradient=np.ones((2, 2 * model.nv + model.na))
    )
    double = fl.Batch(model, 2, nthread=1)
    double.restore({name: rows.astype(float) for name, rows in batch.checkpoint().items()})
    other = fl.rollout_gradient(
        model, double, np.zeros((5, model.nu)), loss_gradient=np.ones((2, 2 * model.nv + model.na))
    )
    assert found.state.dtype == np.float64 and found.end.qpos.dtype == np.float32
    assert np.abs(found.state - other.state).max() < 1e-3 * np.abs(other.state).max()


def test_models_without_dofs_or_controls():
    model = fl.load("<mujoco><worldbody><geom size='1'/></worldbody></mujoco>")
    found = fl.rollout_gradient(model, fl.Batch(model, 2), np.zeros((3, 0)), loss_gradient=lambda k, state: None)
    assert found.state.shape == (2, 0) and found.control.shape == (2, 3, 0) and found.end.qpos.shape == (2, 0)
    model = fl.load("<mujoco><worldbody><body><joint/><geom size='0.1' pos='0.3 0 0'/></body></worldbody></mujoco>")
    found = fl.rollout_gradient(model, fl.Batch(model, 2), np.zeros((2, 3, 0)), loss_gradient=np.ones((2, 2)))
    assert found.state.shape == (2, 2) and np.isfinite(found.state).all()


# ---- wrong calls -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "change, message",
    [
        ({"control": np.zeros(2)}, "control:"),
        ({"control": np.zeros((4, 3))}, "control:"),
        ({"control": np.zeros((0, 2))}, "control: number of steps:"),
        ({"control": lambda batch, k: 0.0}, "control:"),
        ({"loss_gradient": np.zeros((2, 3))}, "loss_gradient:"),
        ({"loss_gradient": "energy"}, "loss_gradient:"),
        ({"loss_gradient": lambda k, state: np.zeros(3)}, "loss_gradient by state after 4 steps:"),
        ({"loss_gradient": lambda k, state: (None, 1.0)}, "loss_gradient by control after 4 steps:"),
        ({"loss_gradient": lambda k, state: (None, np.zeros(2))}, "after the last step"),
        ({"loss_gradient": np.full((1, 4), np.nan)}, r"loss_gradient: got nan at \(0, 0\)"),
        ({"loss_gradient": lambda k, state: np.array([0, 0, np.inf, 0])}, r"state after 4 steps: got inf at \(2,\)"),
        ({"parameters": ("body_masses",)}, "parameters: 'body_masses'"),
        ({"interval": -1}, "interval:"),
        ({"nthread": 0.5}, "nthread:"),
        ({"frictionloss": "no"}, "frictionloss: got"),
    ],
)
def test_invalid_arguments_are_named(change, message):
    model = carts()[0]
    arguments = {"control": np.zeros((4, 2)), "loss_gradient": np.zeros((2, 4))} | change
    with pytest.raises(fl.ModelError, match=message):
        fl.rollout_gradient(model, fl.Batch(model, 2, nthread=1), **arguments)


def test_it_takes_a_batch_of_the_model():
    model = carts()[0]
    with pytest.raises(fl.errors.ArgumentTypeError):
        fl.rollout_gradient(model, fl.Data(model), np.zeros((4, 2)), loss_gradient=np.zeros((1, 4)))
    with pytest.raises(fl.ModelError):
        fl.rollout_gradient(fl.bundled("arm"), fl.Batch(model, 2), np.zeros((4, 2)), loss_gradient=np.zeros((2, 4)))
