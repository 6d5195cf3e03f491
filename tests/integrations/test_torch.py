"""Rollouts in PyTorch: PyTorch's gradient checker, both contact models, both precisions; errors."""

import numpy as np
import pytest

import featherlane as fl
from sensitivity.test_rollout_gradient import sliding, started
from sensitivity.test_transition import carts

torch = pytest.importorskip("torch")
import featherlane.integrations.torch as ft  # noqa: E402

SEED = 0  # both worlds touch the ground, and no switch is within 1e-6 of their states


def tensors(model, batch, nstep, rng):
    control = torch.from_numpy(rng.uniform(-0.5, 0.5, (batch.nworld, nstep, model.nu)))
    return [torch.from_numpy(getattr(batch, name).copy()) for name in ("qpos", "qvel", "act")] + [control]


@pytest.fixture(params=["convex", "lcp"])
def world(request):
    """Returns two worlds that touch the ground, and their arguments for a rollout."""
    model, rng = sliding(request.param), np.random.default_rng(SEED)
    batch = started(model, rng, 2)
    given, out = tensors(model, batch, 4, rng), fl.Batch(model, 2, nthread=1)
    out.restore(batch.checkpoint())
    assert out.rollout(4, given[3].numpy(), ("ncon",))["ncon"].any(1).all()
    return model, batch, given


def test_gradcheck_of_a_step_with_contact(world):
    _, batch, (qpos, qvel, act, control) = world
    worlds = ft.Dynamics(batch)
    given = [t.requires_grad_() for t in (qpos, qvel, act, control[:, 0].clone())]
    assert torch.autograd.gradcheck(worlds.step, given, eps=1e-7, atol=1e-5, rtol=1e-4)


def test_gradcheck_of_a_rollout_with_contact(world):
    """Unnormalized quaternions are treated as their direction."""
    _, batch, (qpos, qvel, act, control) = world
    qpos[:, 3:7] *= 1.7
    given = [t.requires_grad_() for t in (qpos, qvel, act, control)]
    assert torch.autograd.gradcheck(ft.Dynamics(batch).rollout, given, eps=1e-7, atol=1e-5, rtol=1e-4)


def test_gradcheck_of_fields_of_the_model():
    model, rng = sliding(), np.random.default_rng(SEED)
    batch = started(model, rng, 2)
    given, worlds = tensors(model, batch, 3, rng), ft.Dynamics(batch)
    friction = torch.from_numpy(np.tile(model.geom_friction, (2, 1, 1))).requires_grad_()
    mass = torch.from_numpy(np.tile(model.body_mass, (2, 1))).requires_grad_()

    def speeds(friction, scale):
        return worlds.rollout(*given, geom_friction=friction, body_mass=mass.detach() * scale)[1]

    scale = torch.ones((2, 1), dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(speeds, (friction, scale), eps=1e-5, atol=1e-5, rtol=1e-4)
    plain = worlds.rollout(*given)[1]
    assert plain.numpy().tobytes() == ft.Dynamics(batch).rollout(*given)[1].numpy().tobytes()


def test_a_rollout_equals_that_of_the_batch(world):
    model, batch, given = world
    out = fl.Batch(model, 2, nthread=1)
    out.restore(batch.checkpoint())
    recorded = out.rollout(4, given[3].numpy(), ("qpos", "qvel", "act"))
    worlds = ft.Dynamics(batch)
    for _ in range(2):  # a call does not affect the next one
        for found, expected in zip(worlds.rollout(*given), recorded.values(), strict=True):
            assert found.numpy().tobytes() == expected.tobytes()
    first = worlds.step(*given[:3], given[3][:, 0])
    assert first[0].numpy().tobytes() == recorded["qpos"][:, 0].tobytes()
    model.opt.gravity = [0.0, 0.0, 0.0]  # neither does an edit
    batch.qvel = 0.0
    assert worlds.rollout(*given)[1].numpy().tobytes() == recorded["qvel"].tobytes()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_float32_tensors_have_gradients_in_float32(dtype):
    """Covers worlds in either precision."""
    model, rng = sliding(), np.random.default_rng(SEED)
    batch = started(model, rng, 2, dtype)
    wide = [t.double().requires_grad_() for t in tensors(model, batch, 4, rng)]
    narrow = [t.detach().float().requires_grad_() for t in wide]
    for given in (wide, narrow):
        qpos, qvel, _ = ft.Dynamics(batch).rollout(*given)
        assert qpos.dtype == given[0].dtype
        (qpos[:, -1].sum() + qvel[:, -1].pow(2).sum()).backward()
    for one, other in zip(wide, narrow, strict=True):
        assert other.grad.dtype == torch.float32
        assert (one.grad - other.grad).abs().max() < 2e-3 * one.grad.abs().max() + 1e-6


def test_a_policy_learns_through_steps():
    """Gradient descent on the gain of a damper, step by step: the cart comes to rest."""
    model = carts()[0]
    worlds, gain = ft.Dynamics(fl.Batch(model, 4, nthread=1)), torch.zeros(2, requires_grad=True, dtype=torch.float64)
    start = torch.zeros(4, 2, dtype=torch.float64), torch.ones(4, 2, dtype=torch.float64), None
    optimizer, losses = torch.optim.Adam([gain], 0.3), []
    for _ in range(15):
        (qpos, qvel, act), loss = start, 0.0
        for _ in range(20):
            qpos, qvel, act = worlds.step(qpos, qvel, act, -gain * qvel)
            loss = loss + qvel.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0] and (gain > 0.5).all()


def test_controls_can_be_shared_by_all_worlds():
    model = carts()[0]
    worlds, control = ft.Dynamics(fl.Batch(model, 3)), torch.zeros(5, 2, dtype=torch.float64, requires_grad=True)
    qpos, _, act = worlds.rollout(*torch.zeros(2, 3, 2, dtype=torch.float64), None, control)
    qpos.sum().backward()
    assert control.grad.shape == (5, 2) and act.shape == (3, 5, 0) and control.grad[0, 0] > 0


# ---- errors ----------------------------------------------------------------------------------------------------------
def test_second_derivatives_are_refused():
    model = carts()[0]
    worlds, zeros = ft.Dynamics(fl.Batch(model, 1)), torch.zeros(1, 2, dtype=torch.float64)
    ctrl = torch.ones(1, 2, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(worlds.step(zeros, zeros, None, ctrl)[0].pow(2).sum(), ctrl, create_graph=True)
    with pytest.raises(fl.UnsupportedFeatureError):
        slope.sum().backward()


@pytest.mark.parametrize(
    "change, message",
    [
        ({"qpos": torch.zeros(1, 3).double()}, "qpos:"),
        ({"qpos": np.zeros((1, 2))}, "qpos:"),
        ({"qvel": torch.zeros(1, 2).half()}, "qvel:"),
        ({"qvel": torch.zeros(1, 2)}, "float32 and torch.float64"),
        ({"ctrl": torch.zeros(1, 2, device="meta").double()}, "ctrl|control:"),
        ({"ctrl": torch.zeros(1, 3).double()}, "control:"),
        ({"ctrl": 3.0}, "control:"),
        ({"act": torch.zeros(1, 1).double()}, "act:"),
        ({"body_masses": torch.zeros(1, 1).double()}, "body_masses"),
        ({"body_mass": torch.zeros(1, 1).double()}, "body_mass:"),
    ],
)
def test_invalid_arguments_are_named(change, message):
    model = carts()[0]
    zeros = torch.zeros(1, 2, dtype=torch.float64)
    given = {"qpos": zeros, "qvel": zeros, "act": None, "ctrl": zeros} | change
    with pytest.raises(fl.ModelError, match=message):
        ft.Dynamics(fl.Batch(model, 1)).step(**given)


def test_it_accepts_a_batch():
    with pytest.raises(fl.errors.ArgumentTypeError):
        ft.Dynamics(carts()[0])
