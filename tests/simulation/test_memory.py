"""Memory is freed with an object's last reference, without Python's garbage collector, which counts no bytes."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import featherlane as fl

USER = """<mujoco><worldbody><geom type="plane" size="5 5 1"/>
  <body pos="0 0 .09"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
  <body pos="1 0 1"><joint name="j" axis="0 1 0"/><geom size=".1" pos=".2 0 0"/></body></worldbody>
<actuator><general name="own" joint="j" gaintype="user"/></actuator></mujoco>"""


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("contact_model", ["convex", "lcp"])
def test_a_data_and_its_model_are_freed_with_their_last_reference(no_collector, contact_model):
    model = fl.load(USER)
    fl.set_user_actuator(model, "own", gain=lambda m, d, i: 1.0)
    model.opt.contact_model = contact_model
    data = fl.Data(model)
    fl.step(model, data)
    fl.forward(model, data)
    assert data.contact.dist.size and data.joint("j").qpos.size == 1
    gone = [weakref.ref(each) for each in (data, data.workspace, model)]
    del data, model
    assert [each() for each in gone] == [None] * 3


def test_a_batch_is_freed_with_its_last_reference(no_collector):
    model = fl.load(USER)
    fl.set_user_actuator(model, "own", gain=lambda m, d, i: 1.0)
    batch = fl.Batch(model, 9, nthread=2)
    batch.expand("body_mass")[:] *= 1.5
    batch.set_const()
    batch.bind("xpos")
    batch.rollout(2, control=lambda batch, k: np.zeros(model.nu))
    batch.restore(batch.checkpoint())
    data = batch.get_data(3)
    # tiles hold most of a batch's memory, and no public attribute returns them
    gone = [weakref.ref(each) for each in (batch, data, *batch.runner.plans.prepare(batch.width))]
    del batch, data
    assert [each() for each in gone] == [None] * len(gone)
