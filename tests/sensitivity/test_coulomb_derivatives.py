"""Derivatives under the contact model coulomb: implicit differentiation with the nonsymmetric derivative of the law."""

from __future__ import annotations

import numpy as np
import pytest

import featherlane as fl
from fuzz.columns import Columns
from fuzz.derivatives import check_accelerations, check_inverse, check_rollout, check_steps

BOX = """
<mujoco><worldbody><geom type="plane" size="5 5 1" friction=".1"/>
<body pos="0 0 .0995"><freejoint/><geom type="box" size=".1 .1 .1" friction=".5 .02 .01" condim="{}"/></body>
</worldbody></mujoco>"""
TILT = np.array([1.0, 0.01, 0.02, 0.3]) / np.linalg.norm([1.0, 0.01, 0.02, 0.3])
MOTIONS = {  # of the box: quaternion, velocity
    "rests": ((1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)),
    "slides": ((1.0, 0.0, 0.0, 0.0), (1.0, 0.3, 0.0, 0.0, 0.0, 0.2)),
    "tips": (TILT, (0.1, 0.1, 0.0, 0.2, 0.1, 0.3)),
    "tumbles": (TILT, (1.0, 0.1, -0.2, 0.2, 3.0, 0.3)),
}


def exact(model):
    """Returns the model with the contact model coulomb and a solver that iterates to rounding."""
    model.opt.contact_model, model.opt.tolerance, model.opt.iterations = "coulomb", 1e-14, 200
    return model


def boxes(condim: int) -> fl.Batch:
    batch = fl.Batch(exact(fl.load(BOX.format(condim))), len(MOTIONS))
    for w, (quaternion, velocity) in enumerate(MOTIONS.values()):
        batch.qpos[w, 3:], batch.qvel[w] = quaternion, velocity
    batch.step(3)
    return batch


def robots(name: str, integrator: str = "euler") -> fl.Batch:
    """Returns four worlds of a bundled robot with contacts."""
    model, rng = exact(fl.bundled(name)), np.random.default_rng(3)
    model.opt.integrator = integrator
    batch = fl.Batch(model, 4)
    batch.qvel = 0.3 * rng.standard_normal((4, model.nv))
    batch.step(300)
    batch.ctrl = rng.uniform(-0.1, 0.1, (4, model.nu))
    return batch


def assert_matches_differences(batch: fl.Batch, tolerance: float) -> None:
    """A and B are central differences of the step, in converged worlds away from switches; relative to the largest."""
    probe = batch.copy()
    probe.step()
    found = fl.linearize(batch.model, batch)
    steps = fl.linearize(batch.model, batch, method="finite_difference")
    far = (found.switching > 1e-4) & (probe.solver_residual < 1e-10)
    assert np.isfinite(found.switching).all() and far.sum() >= 3
    for formula, difference in ((found.A, steps.A), (found.B, steps.B)):
        size = np.abs(difference).max(axis=(1, 2), initial=1.0)
        assert (np.abs(formula - difference).max(axis=(1, 2), initial=0.0) < tolerance * size)[far].all()


@pytest.mark.parametrize("condim", [3, 4, 6])
def test_boxes_that_stick_slide_tip_and_tumble(condim):
    assert_matches_differences(boxes(condim), 2e-6)


@pytest.mark.parametrize(
    "name, integrator",
    [("humanoid", "euler"), ("humanoid", "implicit"), ("quadruped", "implicitfast"), ("hand", "euler")],
)
def test_robots(name, integrator):
    assert_matches_differences(robots(name, integrator), 2e-5)


def test_sliding_friction_follows_the_normal_force():
    """A vertical force on a sliding box changes its friction by mu times the part that contacts carry."""
    batch = boxes(3)
    found = fl.acceleration_derivatives(batch.model, batch)
    by_force, mass = found.DaDtau[1], batch.model.body_mass[1]
    slip = batch.qvel[1, :2] / np.linalg.norm(batch.qvel[1, :2])
    # of a force along z, the box accelerates by by_force[2, 2]; the contacts carry the rest
    carried = 1.0 / mass - by_force[2, 2]
    assert carried > 0.3 / mass
    np.testing.assert_allclose(by_force[:2, 2] @ slip, 0.5 * carried, rtol=1e-2)
    assert np.abs(by_force[2, :2]).max() < 1e-9 * by_force[2, 2] + 1e-6  # a force along the slip does not lift it


def test_forward_and_inverse_derivatives_are_inverse_to_each_other():
    batch = robots("humanoid")
    model = batch.model
    batch.bind("qacc")
    batch.forward()
    forward, inverse = fl.acceleration_derivatives(model, batch), fl.inverse_derivatives(model, batch, qacc=batch.qacc)
    for w in range(batch.nworld):
        by_force = forward.DaDtau[w]
        np.testing.assert_allclose(by_force @ inverse.DfDa[w].T, np.eye(model.nv), atol=1e-6)
        for ours, theirs in ((forward.DaDq[w], inverse.DfDq[w]), (forward.DaDv[w], inverse.DfDv[w])):
            assert np.abs(ours + by_force @ theirs.T).max() < 1e-7 * np.abs(ours).max()


def test_one_world_and_a_batch_have_equal_bits():
    batch = robots("quadruped")
    together = fl.linearize(batch.model, batch)
    for w in range(batch.nworld):
        data = batch.get_data(w)
        alone = fl.linearize(batch.model, data)
        assert together.A[w].tobytes() == alone.A.tobytes()
        assert together.B[w].tobytes() == alone.B.tobytes()


def test_a_world_without_formulas_is_differenced():
    batch = boxes(3)
    batch.expand("geom_friction_static")[1] = 0.9
    found = fl.linearize(batch.model, batch)
    steps = fl.linearize(batch.model, batch, method="finite_difference")
    assert np.isnan(found.switching).tolist() == [False, True, False, False]
    assert found.A[1].tobytes() == steps.A[1].tobytes()
    with pytest.raises(fl.UnsupportedFeatureError, match="world 1"):
        fl.acceleration_derivatives(batch.model, batch)


def test_a_gradient_through_steps_with_friction():
    """The distance that a sliding box travels, by its initial velocity."""
    model = exact(fl.load(BOX.format(3)))
    batch = fl.Batch(model, 1)
    batch.qpos[0, 2] = 0.0999
    batch.step(200)

    def distance(speed: float) -> tuple[fl.Batch, float]:
        start = batch.copy()
        start.qvel[0, 0] = speed
        return start, start.copy().rollout(20, record=("qpos",))["qpos"][0, -1, 0]

    start, _ = distance(1.0)
    found = fl.rollout_gradient(model, start, np.zeros((1, 20, 0)), loss_gradient=np.eye(1, 2 * model.nv))
    numeric = (distance(1.0 + 1e-5)[1] - distance(1.0 - 1e-5)[1]) / 2e-5
    np.testing.assert_allclose(found.state[0, model.nv], numeric, rtol=1e-5)


# contacts whose inertia A follows their arms: the end of a thin free rod, a wheel on its axle, two such rods
LEVERS = """
<mujoco><worldbody>{}<body pos="0 0 .255" quat=".92 .3 .1 0"><freejoint/>{}</body>{}</worldbody></mujoco>"""
FLOOR, ROD = '<geom type="plane" size="5 5 1"/>', '<geom type="capsule" size=".02 .3" mass="1" condim="{}"/>'
WHEEL = """<body pos="0 .05 .32"><joint axis="0 1 0"/><joint axis="0 0 1"/>
<geom type="ellipsoid" size=".3 .1 .1" mass="1" condim="{}"/></body>"""


@pytest.mark.ci
@pytest.mark.parametrize("flags", [0, "diagexact"])  # without formulas under `diagexact`
@pytest.mark.parametrize("condim", [1, 3, 4, 6])
@pytest.mark.parametrize("floor, wheel", [(FLOOR, ""), ("", WHEEL), (FLOOR, WHEEL)])
def test_contacts_at_long_arms_that_slide_or_stick(floor, wheel, condim, flags, rng):
    model = exact(fl.load(LEVERS.format(floor, ROD.format(condim), wheel.format(condim))))
    model.opt.enableflags = flags
    data, columns = fl.Data(model), Columns()
    data.qvel = 0.5 * np.sin(1.0 + np.arange(model.nv))
    data.step(3)
    probe = data.copy()
    probe.step()
    assert probe.ncon
    check_steps(model, data, probe, columns)
    check_accelerations(model, data, probe, columns)
    check_inverse(model, data, columns)
    check_rollout(model, data, columns, rng)
    assert columns.compared > 4 * columns.skipped
