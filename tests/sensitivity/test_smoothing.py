"""Gradients of a push that misses: zero, and useful when smoothed (docs/derivatives.md#smoothed-gradients)."""

import numpy as np
import pytest

import featherlane as fl

CRATE = """<mujoco><option timestep="0.01" gravity="0 0 0"/><worldbody>
  <body><joint name="hand" type="slide" axis="1 0 0" damping="2"/><geom size="0.05" mass="0.5"/></body>
  <body pos="0.3 0 0"><joint type="slide" axis="1 0 0" damping="4"/>
    <geom type="box" size="0.05 0.05 0.05" mass="1"/></body>
</worldbody><actuator><motor joint="hand"/></actuator></mujoco>"""
NSTEP, GOAL, SCALE = 100, 0.4, 1.0


def crate(contact_model="convex", soft=False):
    model = fl.load(CRATE)
    model.opt.contact_model = contact_model
    if soft:
        model.geom_margin[:], model.geom_solimp[:, :3], model.geom_solref[:] = 0.15, (0.0001, 0.5, 0.3), (0.1, 1.0)
    return model


def slope(model, forces):
    """Returns the loss of a constant force, and its derivative, of a world for each force."""
    batch, control = fl.Batch(model, len(forces), nthread=1), np.tile(np.reshape(forces, (-1, 1, 1)), (1, NSTEP, 1))

    def loss_gradient(k, state):
        return np.c_[0 * state.qpos[:, 0], state.qpos[:, 1] - GOAL, 0 * state.qvel] if k == NSTEP else None

    found = fl.rollout_gradient(model, batch, control, loss_gradient=loss_gradient)
    return 0.5 * (found.end.qpos[:, 1] - GOAL) ** 2, found.control.sum((1, 2))


@pytest.mark.parametrize("contact_model", ["convex", "lcp"])
def test_without_contact_there_is_no_gradient(contact_model):
    losses, slopes = slope(crate(contact_model), [-1.0, 0.0, 0.3])
    assert not slopes.any() and (losses == 0.5 * GOAL**2).all()


def test_forces_before_contact_give_an_exact_gradient_towards_the_crate():
    model, forces = crate(soft=True), np.array([0.0, 0.3, 1.0])
    _, slopes = slope(model, forces)
    difference = (slope(model, forces + 1e-5)[0] - slope(model, forces - 1e-5)[0]) / 2e-5
    assert np.abs(slopes - difference).max() < 1e-7
    assert (slopes < -0.01).all()


@pytest.mark.parametrize("contact_model", ["convex", "lcp"])
def test_randomized_smoothing_estimates_the_smoothed_gradient(contact_model):
    """Compares with the smoothed loss itself, a sum over a grid.

    Averaged derivatives have less variance.  They omit the loss's small jumps where contact begins a step earlier, and
    are not checked under hard contact, where the jumps are the whole effect.
    """
    model, grid = crate(contact_model), np.linspace(-5.0, 5.0, 401)
    weights = np.exp(-0.5 * grid**2) / np.exp(-0.5 * grid**2).sum()
    values, slopes = slope(model, SCALE * grid)
    expected = (weights * values * grid).sum() / SCALE  # Stein's identity
    noise = np.random.default_rng(0).standard_normal(512)
    losses, sampled = slope(model, SCALE * noise)
    by_values = (losses - values[200]) * noise / SCALE
    for samples in (by_values, sampled)[: 2 if contact_model == "convex" else 1]:
        assert abs(samples.mean() - expected) < 3 * samples.std() / np.sqrt(512) < 0.4 * abs(expected)
    if contact_model == "convex":
        assert (weights * slopes).sum() == pytest.approx(expected, rel=0.1)
        assert sampled.std() < by_values.std()
