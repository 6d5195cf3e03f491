"""Quaternions in `qpos` and `mocap_quat` that have no unit length step as in MuJoCo: of length 0, short, scaled."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl

BALLS = """
<mujoco><option timestep=".01" integrator="{}"><flag contact="disable"/></option><worldbody>
  <site name="w" pos="0 0 2"/>
  <body pos="0 0 1"><freejoint/><geom type="box" size=".1 .2 .05" pos=".03 0 .02"/><site name="a" pos=".1 0 0"/>
    <body pos=".3 0 0"><joint name="b" type="ball" damping=".1" stiffness="3" range="0 .5" limited="true"/>
      <geom type="box" size=".1 .05 .1" pos=".1 0 0"/></body></body>
  <body pos="2 0 1"><joint type="ball" damping=".01"/><geom type="box" size=".1 .2 .05"/></body>
  <body name="m" mocap="true" pos="3 0 0"><geom size=".1"/><site name="m" pos=".2 .1 .3"/></body>
</worldbody>
<tendon><spatial damping="3"><site site="w"/><site site="a"/></spatial>
  <spatial stiffness="3" springlength=".2"><site site="m"/><site site="a"/></spatial></tendon>
<actuator><velocity joint="b" gear="1 2 3" kv="2"/></actuator>
<sensor><ballquat joint="b"/><framequat objtype="body" objname="m"/></sensor></mujoco>
"""
QUATS = (3, 7, 11)  # addresses in qpos
UNIT = np.array((0.5, 0.5, -0.5, 0.5))
LENGTHS = {"zero": 0.0, "short": 1e-16, "hardly short": 9e-16, "hardly long": 1.2e-15, "small": 1e-9, "scaled": 5.0}
STEP = {"float64": 1e-9, "float32": 1e-5}  # one step of MuJoCo's from the same state, of about 3 rad/s
EXACT = 1e-14


def unnormalized(model, length):
    """Returns (qpos, qvel, quaternion of the mocap body) whose quaternions have the length."""
    rng, qpos = np.random.default_rng(1), model.qpos0.copy()
    for a in QUATS:
        qpos[a : a + 4] = length * UNIT
    return qpos, 2.0 * rng.standard_normal(model.nv), length * UNIT


@pytest.mark.parametrize("integrator", ["Euler", "implicit", "implicitfast", "discrete", "RK4"])
@pytest.mark.parametrize("length", LENGTHS)
def test_quaternions_of_any_length_step_as_in_mujoco(length, integrator):
    text = BALLS.format(integrator)
    model, mj = fl.load(text), mujoco.MjModel.from_xml_string(text)
    qpos, qvel, quat = unnormalized(model, LENGTHS[length])
    expected = mujoco.MjData(mj)
    expected.qpos[:], expected.qvel[:], expected.mocap_quat[0] = qpos, qvel, quat
    mujoco.mj_step(mj, expected)
    for dtype, tolerance in STEP.items():
        batch = fl.Batch(model, 3, dtype=dtype)
        batch.qpos[:], batch.qvel[:], batch.mocap_quat[:, 0] = qpos, qvel, quat
        batch.bind("sensordata")
        batch.step()
        for name in ("qpos", "qvel", "sensordata"):
            values = getattr(expected, name)
            np.testing.assert_allclose(
                getattr(batch, name)[1], values, rtol=0, atol=tolerance * (1 + np.abs(values).max())
            )


@pytest.mark.parametrize("rotation", ["finite", "infinitesimal"])
def test_a_zero_quaternion_steps_as_the_identity(rotation):
    model = fl.load(BALLS.format("Euler"))
    model.opt.rotation = rotation
    found = []
    for start in (np.zeros(4), (1.0, 0.0, 0.0, 0.0)):
        data = fl.Data(model)
        data.qvel = 0.3
        for a in QUATS:
            data.qpos[a : a + 4] = start
        fl.step(model, data)
        found.append(data.qpos.tobytes())
    assert found[0] == found[1]


@pytest.mark.parametrize("length", LENGTHS)
def test_positions_integrate_as_in_mujoco(length):
    model = fl.load(BALLS.format("Euler"))
    qpos, qvel, _ = unnormalized(model, LENGTHS[length])
    expected = qpos.copy()
    mujoco.mj_integratePos(model.to_mujoco(), expected, qvel, 0.1)
    np.testing.assert_allclose(fl.integrate_pos(model, qpos, qvel, 0.1), expected, rtol=0, atol=EXACT)


def test_derivatives_at_a_zero_quaternion_are_those_at_the_identity():
    model, found = fl.load(BALLS.format("Euler")), []
    for start in (np.zeros(4), (1.0, 0.0, 0.0, 0.0)):
        data = fl.Data(model)
        data.qvel = unnormalized(model, 1.0)[1]
        for a in QUATS:
            data.qpos[a : a + 4] = start
        found.append([fl.linearize(model, data, method=way)[0] for way in ("analytic", "finite_difference")])
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-12)
