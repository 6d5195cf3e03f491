"""Costates through steps without step matrices equal those through the derivatives, up to rounding."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.tools.sensitivity.adjoint import product_worlds, rollout
from featherlane.tools.sensitivity.adjoint.jacobians import JacobianSteps
from featherlane.tools.sensitivity.adjoint.product_worlds import ProductSteps
from featherlane.tools.sensitivity.systems.served import has_products
from sampling import pairwise
from sensitivity.test_force_derivatives import REST
from sensitivity.test_rollout_gradient import SLIDING, numbers
from sensitivity.test_transition import carts

PRODUCT = 1e-12  # rounding of sums in another order, relative to the largest entry
MUSCLES = """<mujoco><option timestep="0.004"/><worldbody><geom type="plane" size="5 5 1"/>
  <body pos="0 0 0.5"><joint name="a" axis="0 1 0" range="-60 60" limited="true" frictionloss="0.02" damping="0.1"/>
    <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/>
    <body pos="0.3 0 0"><joint name="b" axis="0 1 0" stiffness="1" armature="0.01"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/></body></body></worldbody>
  <actuator><muscle joint="a" lengthrange="-1 1" force="3"/><general joint="b" dyntype="filter" dynprm="0.05"/>
    <position joint="b" kp="2" ctrllimited="true" ctrlrange="-0.2 0.2"/></actuator></mujoco>"""


def by_derivatives(monkeypatch, *given, **more):
    with monkeypatch.context() as changed:
        changed.setattr(rollout, "steps_of", lambda *what: JacobianSteps(*what))
        return fl.rollout_gradient(*given, **more)


def close(one, other):
    for a, b in zip(numbers(one), numbers(other), strict=True):
        assert np.abs(a - b).max(initial=0.0) <= PRODUCT * np.abs(b).max(initial=1e-30)


MODELS = {
    "carts": lambda: carts()[0],
    "undamped carts": lambda: carts("disable")[0],
    "cartpole": lambda: fl.bundled("cartpole"),
    "arm": lambda: fl.bundled("arm"),
    "quadruped": lambda: fl.bundled("quadruped"),
    "quadruped_elliptic": lambda: fl.bundled("quadruped_elliptic"),
    "humanoid": lambda: fl.bundled("humanoid"),
    "muscles": lambda: fl.load(MUSCLES),
    "sliding": lambda: fl.load(SLIDING),
    "forces": lambda: fl.load(REST),
}


@pytest.mark.parametrize(
    ("name", "integrator", "rotation"),
    pairwise(tuple(MODELS), ("euler", "implicitfast"), ("finite", "infinitesimal")),
)
def test_products_are_those_with_the_derivatives(name, integrator, rotation, rng, monkeypatch):
    model = MODELS[name]()
    model.opt.integrator, model.opt.rotation = integrator, rotation
    batch, nstep = fl.Batch(model, 3, nthread=1), 20
    batch.qvel[:] += rng.normal(0.0, 0.2, batch.qvel.shape)
    batch.ctrl[:] = rng.uniform(-0.3, 0.3, batch.ctrl.shape)
    batch.step(40)
    control = rng.uniform(-0.3, 0.3, (3, nstep, model.nu))
    weights = rng.standard_normal((3, nstep + 1, 2 * model.nv + model.na))
    for frictionloss in (True, False):
        given = {"loss_gradient": weights, "frictionloss": frictionloss}
        gradient = fl.rollout_gradient(model, batch, control, **given)
        close(gradient, by_derivatives(monkeypatch, model, batch, control, **given))


def test_a_step_without_formulas_uses_derivative_matrices(rng, monkeypatch):
    """A ball rests, two fall: a contact is within 2e-7 m of its end at some steps, and only those are corrected."""
    ball = "<body pos='{} 0 0.1'><freejoint/><geom size='0.1'/></body>"
    model = fl.load(f"""<mujoco><option timestep="0.002" gravity="0 0 0"/><worldbody><geom type="plane" size="5 5 1"/>
        {ball.format(0)}{ball.format(1)}{ball.format(2)}</worldbody></mujoco>""")
    assert has_products(model)
    batch, nstep, mended = fl.Batch(model, 6, nthread=1), 12, []
    batch.qpos[:, 2], batch.qpos[:, [9, 16]], batch.qvel[:, [8, 14]] = 0.099, 0.1205, -0.5
    for world, one, step in ((1, 1, 4), (3, 1, 4), (3, 2, 7), (4, 2, 11)):
        batch.qpos[world, 7 * one + 2] = 0.1 - 1e-7 + 0.5 * 0.002 * step
    found = ProductSteps._derivatives  # the choice of steps that use it changes results only by rounding

    def derivatives(self, pairs):
        mended.extend((int(w), nstep - 1 - int(k)) for w, k in pairs)
        return found(self, pairs)

    monkeypatch.setattr(ProductSteps, "_derivatives", derivatives)
    control, weights = np.zeros((nstep, 0)), rng.standard_normal((6, nstep + 1, 36))
    gradient = fl.rollout_gradient(model, batch, control, loss_gradient=weights)
    assert sorted(mended) == [(1, 4), (3, 4), (3, 7), (4, 11)]
    close(gradient, by_derivatives(monkeypatch, model, batch, control, loss_gradient=weights))
    assert (gradient.switching[[1, 3, 4]] <= 2e-7).all() and (gradient.switching[[0, 2, 5]] > 1e-3).all()
    for each in (1, 5, 7):
        monkeypatch.setattr(product_worlds, "EACH", each)
        again = fl.rollout_gradient(model, batch, control, loss_gradient=weights)
        for one, other in zip(numbers(again), numbers(gradient), strict=True):
            assert one.tobytes() == other.tobytes()


def test_worlds_that_exceed_a_tile_are_computed_alone(monkeypatch):
    model = fl.bundled("pyramid")
    batch = fl.Batch(model, 3, nthread=1)
    batch.qpos[1, 2] += 0.5
    batch.step(20)
    weights = np.ones((3, 2 * model.nv))
    found = fl.rollout_gradient(model, batch, np.zeros((3, model.nu)), loss_gradient=weights)
    close(found, by_derivatives(monkeypatch, model, batch, np.zeros((3, model.nu)), loss_gradient=weights))


@pytest.mark.parametrize("change", [{"contact_model": "lcp"}, {"integrator": "rk4"}, {"noslip_iterations": 2}])
def test_cases_without_products(change):
    model = carts()[0]
    assert has_products(model)
    for name, value in change.items():
        setattr(model.opt, name, value)
    assert not has_products(model)
    assert not has_products(fl.bundled("rope"))  # by recursion
