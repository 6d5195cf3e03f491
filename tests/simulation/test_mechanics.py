"""Contact against closed forms: the depth of a resting body, sticking and sliding on a slope."""

import mujoco
import numpy as np
import pytest

import featherlane as fl

G = 9.81
REST = 1e-9  # m
STEPS = 25000  # 50 s: a rest within 1e-10 m
# solref, impedance d, and the depth over g (1 - d): 1 / k of (-k, -b), (t zeta)^2 of (t, zeta)
SOFTNESS = (
    ("-100 -20", 0.9, 1 / 100),
    ("-1000 -60", 0.95, 1 / 1000),
    ("0.01 1", 0.99, 0.01**2),
    ("0.02 1.5", 0.9, 0.03**2),
)
MU = 0.5
# condim, cone, and the cone's factor of the depth: four edges of a pyramid share the load
SHARES = ((1, "pyramidal", 1.0), (3, "elliptic", 1.0), (3, "pyramidal", MU**2 * (1 + MU**2) / 2))

BALL = """
<mujoco>
  <option cone="{cone}" timestep="0.002"/>
  <default><geom condim="{condim}" friction="{mu}" solref="{solref}" solimp="{d} {d} 0.001"/></default>
  <worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 0.1"><freejoint/><geom size="0.1"/></body></worldbody>
</mujoco>
"""


@pytest.mark.parametrize(("condim", "cone", "share"), SHARES)
@pytest.mark.parametrize(("solref", "d", "softness"), SOFTNESS)
def test_a_ball_at_rest_sinks_as_deep_as_its_contact_is_soft(solref, d, softness, condim, cone, share):
    model = fl.load(BALL.format(cone=cone, condim=condim, mu=MU, solref=solref, d=d))
    data = fl.Data(model)
    fl.step(model, data, STEPS)
    assert abs(0.1 - data.qpos[2] - G * (1 - d) * softness * share) < REST


BOX = """
<mujoco>
  <option cone="{cone}" timestep="0.002" gravity="{x} 0 {z}"/>
  <default><geom friction="{mu}"/></default>
  <worldbody>
    <geom type="plane" size="9 9 1"/>
    <body pos="0 0 0.05"><freejoint/><geom type="box" size="0.2 0.2 0.05"/></body>
  </worldbody>
</mujoco>
"""
NEAR_COULOMB = 0.02  # of the acceleration: friction is as soft as the ground
CREEP = 0.01  # m/s: sticking bodies creep, because friction acts as a damper there
SETTLED, SLID = 250, 500  # steps


def on_slope(cone, degrees):
    """Returns the velocity down the slope after settling and a second later, and MuJoCo's at the end."""
    angle = np.radians(degrees)
    xml = BOX.format(cone=cone, mu=MU, x=G * np.sin(angle), z=-G * np.cos(angle))
    model, mj = fl.load(xml), mujoco.MjModel.from_xml_string(xml)
    data, expected = fl.Data(model), mujoco.MjData(mj)
    fl.step(model, data, SETTLED)
    before = data.qvel[0]
    fl.step(model, data, SLID)
    mujoco.mj_step(mj, expected, SETTLED + SLID)
    return before, data.qvel[0], expected.qvel[0]


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_a_box_slides_down_a_steep_slope_by_coulombs_law(cone):
    before, after, expected = on_slope(cone, 30.0)
    coulomb = G * (np.sin(np.radians(30.0)) - MU * np.cos(np.radians(30.0)))
    assert abs((after - before) / (SLID * 0.002) - coulomb) < NEAR_COULOMB * coulomb
    assert abs(after - expected) < 1e-6


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_a_box_sticks_to_a_gentle_slope(cone):
    before, after, expected = on_slope(cone, 20.0)
    assert 0.0 <= after < CREEP
    assert abs(after - before) < 1e-6
    assert abs(after - expected) < 1e-6
