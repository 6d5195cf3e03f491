"""Derivatives of analytic functions by long-range differences: accuracy, and when they are used."""

from __future__ import annotations

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model.enums import Disable
from featherlane.tools.sensitivity.systems.served import BENDING, are_analytic
from sensitivity.test_derivative_sweep import SMOOTH, error, long_ways
from sensitivity.test_transition import exact

CHAIN = """
<mujoco><option integrator="{integrator}"><flag constraint="disable"/></option><worldbody>
  <body><joint name="a" axis="0 1 0" stiffness="3" damping=".1"/><geom type="capsule" size=".02" fromto="0 0 0 .3 0 0"/>
    <body pos=".3 0 0"><joint type="ball"/><geom type="capsule" size=".02" fromto="0 0 0 .2 0 .1"/>
      <body pos=".2 0 .1"><joint type="slide" axis="1 0 1"/><geom type="box" size=".05 .03 .02" euler="10 20 30"/>
      </body></body></body></worldbody>
  <actuator><position joint="a" kp="4" ctrlrange="-1 1"/></actuator></mujoco>
"""


def chain(integrator: str) -> fl.Model:
    return exact(fl.load(CHAIN.format(integrator=integrator)))


def analytic(model: fl.Model, disabled: int = 0) -> bool:
    return bool(are_analytic(model, disabled, {}, np.arange(1))[0])


@pytest.mark.parametrize("integrator", ["implicit", "discrete"])
def test_a_long_chain_keeps_eight_digits(integrator, rng):
    model = exact(fl.bundled("rope"))
    model.opt.disableflags, model.opt.integrator = "constraint", integrator
    data = fl.Data(model)
    data.qvel = 0.05 * rng.normal(size=model.nv)
    fl.step(model, data, 12)
    found, apart = error(model, data, 1e-3, long_ways)
    assert apart < SMOOTH and found < SMOOTH


def test_branching_trees_use_short_paths():
    model = chain("implicit")
    assert analytic(model)
    for name in BENDING:
        before = np.array(getattr(model, name))
        getattr(model, name)[...] = 1
        assert not analytic(model), name
        getattr(model, name)[...] = before
    assert analytic(model)
    model.opt.disableflags = 0
    assert not analytic(model) and analytic(model, Disable.CONSTRAINT)
    assert not analytic(fl.bundled("hand"), Disable.CONSTRAINT)  # a model with tendons


@pytest.mark.parametrize("integrator", ["implicit", "discrete"])
@pytest.mark.parametrize("name, value", [("dof_dampingpoly", 0.1), ("opt.density", 100.0)])
def test_a_world_is_independent_of_its_batch(integrator, name, value, rng):
    model = chain(integrator)
    batch = fl.Batch(model, 11)
    batch.qvel[:] = rng.normal(size=(11, model.nv))
    batch.expand(name)[::3] = value
    together = fl.linearize(model, batch)
    for w in range(11):
        data = batch.get_data(w)
        alone = fl.linearize(data.model, data)
        assert (together.A[w] == alone.A).all() and (together.B[w] == alone.B).all()


def test_edits_between_calls_take_effect(rng):
    model, other = chain("implicit"), chain("implicit")
    other.dof_dampingpoly[:, 0] = 0.2
    data, fresh = fl.Data(model), fl.Data(other)
    data.qvel = fresh.qvel = rng.normal(size=model.nv)
    fl.linearize(model, data)
    model.dof_dampingpoly[:, 0] = 0.2
    assert (fl.linearize(model, data).A == fl.linearize(other, fresh).A).all()
