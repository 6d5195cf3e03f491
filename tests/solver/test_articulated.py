"""Newton's system on a long tree: articulated bodies and the factor of H give the same step."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.simulation.step.forward import forward
from featherlane.engine.simulation.tile.workspace import Workspace

ROUNDING = 1e-9  # of an optimum: two methods for a matrix with a condition number of a million
STATES = 8

# limits of balls, slides and hinges, friction loss, unequal armatures, contacts of two dimensions with the world
ARM = """
<mujoco>
  <option tolerance="0" iterations="100" ls_iterations="100" cone="{cone}"/>
  <worldbody>
    <geom type="plane" size="5 5 0.1"/>
    <body pos="0 0 0.06">
      <joint type="ball" range="0 12" limited="true" armature="0.02"/>
      <joint type="slide" range="-0.01 0.01" limited="true" frictionloss="0.1"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.05" conaffinity="0"/>
      <body pos="0.3 0 0">
        <joint type="ball" range="0 9" limited="true"/>
        <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.05" conaffinity="0"/>
        <body pos="0.3 0 0">
          <joint range="-5 5" limited="true" axis="0 1 0" armature="0.01"/>
          <geom name="hand" type="capsule" fromto="0 0 0 0.3 0 0" size="0.05" condim="{condim}" conaffinity="0"/>
        </body>
      </body>
    </body>
    <body name="ball" pos="0.8 0 0.2"><freejoint/><geom size="0.04"/></body>
  </worldbody>
</mujoco>
"""


def kicked(model, near):
    """Returns states near the limits and the ground; optionally, in the last four, the ball lies on the arm."""
    rng, qpos = np.random.default_rng(3), np.tile(model.qpos0, (STATES, 1))
    qpos[:, :-7] += 0.15 * rng.standard_normal((STATES, model.nq - 7))
    qpos[:, 4] *= 0.1
    qpos[:, -7:-4] += (0.0, 3.0, 0.0)
    if near:
        qpos[4:, :-7] = model.qpos0[:-7]
        qpos[4:, -7:-4] = (0.75, 0.0, 0.145)
    return qpos, rng.standard_normal((STATES, model.nv))


def accelerations(model, way, near):
    """Returns qacc of all states, W = 8; the mean number of rows that balls' limits add; coupled worlds."""
    model.opt.forward_dynamics = way
    tile = Workspace(model, STATES)
    for name, value in zip(("qpos", "qvel"), kicked(model, near), strict=True):
        tile.arrays[name][: value.shape[1]] = value.T
    tile.run(forward)
    balls = tile.arrays["row_present"][tile.arrays["ndofrow"][0] : tile.arrays["nrow"][0]]
    return tile.arrays["qacc"][: model.nv].T.copy(), balls.sum(axis=0), tile.arrays["hessian.coupled"][0].copy()


@pytest.mark.parametrize("near", [False, True])
@pytest.mark.parametrize(("cone", "condim"), [("pyramidal", 3), ("elliptic", 6)])
def test_articulated_bodies_give_the_accelerations_of_the_factor(cone, condim, near):
    model = fl.load(ARM.format(cone=cone, condim=condim))
    expected, _, _ = accelerations(model, "crb", near)
    qacc, balls, coupled = accelerations(model, "aba", near)
    assert balls.max() == 2.0
    assert not coupled[:4].any() and coupled[4:].all() == near
    scale = np.abs(expected).max(axis=1, keepdims=True)
    assert (np.abs(qacc - expected) / scale).max() < ROUNDING


def test_the_algorithm_of_a_world_does_not_depend_on_other_worlds():
    model = fl.load(ARM.format(cone="elliptic", condim=3))
    together, _, coupled = accelerations(model, "aba", True)
    assert 0 < coupled.sum() < STATES
    data, states = fl.Data(model), kicked(model, True)
    for world in range(STATES):
        data.qpos[:], data.qvel[:] = (x[world] for x in states)
        data.qacc_warmstart[:] = 0.0
        fl.forward(model, data)
        assert np.array_equal(data.qacc, together[world])
