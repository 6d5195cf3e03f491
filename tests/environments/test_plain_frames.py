"""Positions in MuJoCo's order of operations: bitwise identical, and cases that are not covered."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane import environments
from featherlane.environments.gymnasium_v5.plain_frames import chain, position

N = 500
ARM = """<mujoco><worldbody>
  <body pos="0.1 -0.2 0.3"><joint type="slide" axis="0.6 0 0.8"/><joint type="slide" axis="0 1 0" ref="0.3"/>
    <joint type="hinge" axis="0 0.6 0.8"/><geom size="0.1"/>
    <body pos="0.3 0.2 0.1" quat="0.9 0.1 -0.3 0.2"><joint type="hinge" axis="1 0 0" ref="0.2"/>
      <joint type="hinge" axis="0 0 -1"/><geom size="0.1"/>
      <body name="fixed" pos="0.7 0.1 -0.4" quat="1 1 0 0"><geom size="0.1"/>
        <body name="tip" pos="0.2 0 0.9"><joint type="hinge" axis="0.48 0.6 0.64"/><geom size="0.1"/></body>
      </body>
    </body>
  </body>
  <body name="ball"><joint type="ball"/><geom size="0.1"/></body>
  <body><joint type="hinge" axis="0 1 0" pos="0.1 0 0"/><geom size="0.1"/><body name="after"/></body>
  <body><joint type="hinge" axis="0 1 0"/><joint name="late" type="slide"/><geom size="0.1"/><body name="slid"/></body>
  <body name="turned" quat="0 1 0 0"><joint type="slide"/><geom size="0.1"/></body>
  <body name="led" mocap="true"><body name="on"><geom size="0.1"/></body></body>
</worldbody></mujoco>"""


@pytest.mark.parametrize("name", ["tip", "fixed"])
def test_positions_of_a_chain_are_bitwise_equal_to_mujoco(name):
    model, mj = fl.load(ARM), mujoco.MjModel.from_xml_string(ARM)
    body, data = model.body(name).id, mujoco.MjData(mj)
    qpos = np.random.default_rng(0).uniform(-3.0, 3.0, (N, model.nq))
    qpos[:, 6:10] /= np.linalg.norm(qpos[:, 6:10], axis=1, keepdims=True)
    bodies = chain(model, body)
    assert bodies is not None and bodies[-1] == body
    found = position(model, bodies, qpos)
    for k in range(N):
        data.qpos = qpos[k]
        mujoco.mj_kinematics(mj, data)
        np.testing.assert_array_equal(found[k], data.xpos[body])


@pytest.mark.parametrize("name", ["ball", "after", "slid", "turned", "on"])
def test_other_chains_are_not_supported(name):
    model = fl.load(ARM)
    assert chain(model, model.body(name).id) is None


def test_a_moved_reacher_is_observed_at_its_position():
    env = environments.make_vec("Reacher-v5", 4, nthread=1)
    env.reset(seed=0)
    env.batch.qpos[1, 0] += 1e-9
    env.batch.forward()
    expected = env.batch.xpos[:, env.task.tip] - env.batch.xpos[:, env.task.target]
    seen = env.task.to_target(env.batch)
    np.testing.assert_allclose(seen, expected, atol=1e-15)
    np.testing.assert_array_equal(seen[1], expected[1])
