"""Under `discrete`: the trees that rows and servos touch, and the rotation of untouched free bodies."""

import numpy as np
import pytest

from featherlane.engine.solver.free_bodies import accelerate_untouched_bodies, mark_touched
from oracles.uncompiled import call
from scenes.touching import touching

STEP = 0.004
# trees: 0 lies on the ground, 1 flies, 2 has a servo, 3 a motor, 4 a limit, 5 and 6 an equality, 7 flies with a tail
XML = """<mujoco><option cone="{cone}" timestep="0.004" jacobian="dense"/>
  <worldbody><geom type="plane" size="5 5 1" conaffinity="1"/>
    <body pos="0 0 0.095"><freejoint/><geom size="0.1"/></body>
    <body pos="1 0 3"><freejoint/><geom type="box" size="0.1 0.2 0.3"/></body>
    <body pos="0 5 1"><joint name="servo"/><geom size="0.1"/></body>
    <body pos="0 6 1"><joint name="motor"/><geom size="0.1"/></body>
    <body pos="0 7 1"><joint limited="true" range="10 20"/><geom size="0.1"/></body>
    <body pos="0 8 1"><joint name="a"/><geom size="0.1"/></body>
    <body pos="0 9 1"><joint name="b"/><geom size="0.1"/></body>
    <body pos="3 0 3"><freejoint/><geom type="box" size="0.1 0.2 0.3"/>
      <body pos="0.5 0 0"><joint/><geom size="0.1"/></body></body>
  </worldbody>
  <equality><joint joint1="a" joint2="b"/></equality>
  <actuator><position joint="servo" kp="3" group="2"/><motor joint="motor"/></actuator></mujoco>"""


@pytest.fixture
def s():
    return touching(xml=XML, integrator="discrete")


def marks(s):
    """Returns dof_touched of each tree's first dof, and all others."""
    first = s.model.tree_dofadr
    rest = np.delete(s.a["dof_touched"][: s.nv], first, axis=0)
    assert not rest[:, s.a["active"][0] > 0].any()
    return s.a["dof_touched"][first]


def test_trees_are_touched_by_rows_and_servos(s):
    s.a["dof_touched"][...] = 1.0
    s.a["con_carrier"][2 * s.a["ncon_slot"][0]] = 2  # of an earlier step, behind the last slot
    call(mark_touched, s.m, s.d)
    got = marks(s)
    expected = np.repeat([[1], [0], [1], [0], [1], [1], [1], [0]], s.width, axis=1).astype(float)
    expected[0] = (s.a["con_D"][: s.a["ncon_slot"][0]] > 0).any(0)  # the last world's ball is in the air
    np.testing.assert_array_equal(got, expected)
    assert expected[0].any() and not expected[0].all()


def test_rows_mark_bodies_per_world_and_per_tile_part(s):
    call(mark_touched, s.m, s.d)
    s.a["row_D"][0, 2] = s.a["row_D"][s.a["ndofrow"][0], 3] = 0.0
    s.a["active"][0, 5:] = 0.0
    s.a["dof_touched"][:, 5:] = 7.0
    call(mark_touched, s.m, s.d)
    got = marks(s)
    assert got[4, 2] == 0 and got[5, 3] == got[6, 3] == 0
    assert got[4, 0] == got[5, 0] == got[6, 0] == 1
    assert (s.a["dof_touched"][: s.nv, 5:] == 7.0).all()


def test_a_servo_that_is_switched_off_does_not_touch(s):
    s.model.opt.disableactuator = 1 << 2
    s.w.rows.refresh()
    for off, group in ((True, 2), (False, 3)):
        m = s.m
        m.opt_disableactuator = 1 << group
        call(mark_touched, m, s.d)
        np.testing.assert_array_equal(marks(s)[2], 0.0 if off else 1.0)


def bias(inertia, w):
    return np.cross(w, inertia * w)


def test_untouched_free_bodies_turn_with_their_gyroscopic_derivatives(s, rng):
    """Checks (M + h d(bias) / d qvel) qacc = force, for the box that flies alone."""
    call(mark_touched, s.m, s.d)
    v, e = s.model.tree_dofadr[1], 1e-6
    s.a["dof_touched"][v, 2] = 1.0
    before = rng.normal(size=s.a["qacc"].shape)
    s.a["qacc"][...] = before
    call(accelerate_untouched_bodies, s.m, s.d)
    mass, inertia = s.model.body_mass[2], s.model.body_inertia.reshape(-1, 3)[2]
    for lane in range(s.width):
        f, w = s.a["qfrc_step"][v : v + 6, lane], s.a["qvel"][v + 3 : v + 6, lane]
        D = np.array([(bias(inertia, w + e * i) - bias(inertia, w - e * i)) / (2 * e) for i in np.eye(3)]).T
        expected = np.array([*(f[:3] / mass), *np.linalg.solve(np.diag(inertia) + STEP * D, f[3:])])
        if lane == 2:
            expected = before[v : v + 6, lane]
        np.testing.assert_allclose(s.a["qacc"][v : v + 6, lane], expected, rtol=1e-8, atol=1e-12)
    # touched or coupled trees stay
    others = np.ones(s.nv, bool)
    others[v : v + 6] = others[:6] = False
    np.testing.assert_array_equal(s.a["qacc"][: s.nv][others], before[: s.nv][others])
    np.testing.assert_array_equal(s.a["qacc"][:6, 0], before[:6, 0])


def test_other_integrators_mark_nothing():
    s = touching(xml=XML)
    s.a["dof_touched"][...] = 7.0
    s.a["qacc"][...] = 3.0
    call(mark_touched, s.m, s.d)
    call(accelerate_untouched_bodies, s.m, s.d)
    assert (s.a["dof_touched"] == 7.0).all() and (s.a["qacc"] == 3.0).all()
