"""Motors and stops: ODE's bounds and velocities, of joints and of links."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model.enums import Disable
from featherlane.engine.solver.lcp.rows import motor
from featherlane.engine.solver.lcp.rows.assembly import clear_rows
from featherlane.engine.solver.lcp.rows.metric import factor_step_inertia
from scenes.lcp_records import Rows

EXACT = 1e-9  # of values through a mass matrix
H, INF = 0.004, np.inf
JOINTS = """<mujoco><option timestep=".004"/><worldbody>
  <body><joint axis="0 1 0" limited="true" range="-40 40"/><geom size=".1" pos=".2 0 0"/>
    <body pos=".3 0 0"><joint type="slide" axis="1 0 0"/><geom size=".1" pos="0 .2 0"/>
      <body><joint type="ball"/><geom size=".1" pos="0 0 .2"/></body></body></body>
</worldbody></mujoco>"""
FREE = """<mujoco><option timestep=".004"/><worldbody>
  <body pos="0 0 1"><freejoint/><geom size=".1"/></body><body pos="0 .5 1"><freejoint/><geom size=".2"/></body>
</worldbody></mujoco>"""


def prepared(tile):
    clear_rows(tile.m, tile.d)
    tile.run(factor_step_inertia)
    motor.append_motor_rows(tile.m, tile.d)
    return tile


def joints(angles, **fields):
    model = fl.load(JOINTS)
    for name, value in ({"vel": 0.7, "force": 3.0} | fields).items():
        getattr(model, f"jnt_motor_{name}")[...] = value
    qpos = np.repeat([model.qpos0], len(angles), 0)
    qpos[:, 0] = angles
    return Rows(model, qpos, np.zeros((len(angles), model.nv)))


def test_a_motor_seeks_its_velocity_with_a_bounded_force():
    """Tested in worlds whose joint is not at a stop; a ball joint has no stop."""
    tile = prepared(joints([0.2, 0.8, -0.8, 0.3], vel=[0.7, -0.4, 9.0], force=[3.0, 5.0, 9.0], cfm=[0.01, -1.0, 9.0]))
    d = tile.d
    assert d.lcp.n[0] == 2
    assert d.lcp.hi.array[0].tolist() == [3.0, 0.0, 0.0, 3.0] and d.lcp.lo.array[0].tolist() == [-3.0, 0.0, 0.0, -3.0]
    for world in (0, 3):
        found = tile.lcp(world)
        np.testing.assert_allclose(found.J, np.eye(5)[:2], atol=EXACT)
        np.testing.assert_allclose(found.c, [0.7, -0.4], atol=EXACT)
        np.testing.assert_allclose(found.cfm, [0.01, 1e-10])
        assert found.lo.tolist() == [-3.0, -5.0] and found.hi.tolist() == [3.0, 5.0]
    np.testing.assert_allclose(tile.lcp(1).J, [np.zeros(5), np.eye(5)[1]], atol=EXACT)


def test_motors_without_force_or_between_equal_stops_have_no_row():
    assert prepared(joints([0.2], force=0.0)).d.lcp.n[0] == 0
    tile = joints([0.2])
    tile.m.jnt_range.array[:2] = 0.2
    assert prepared(tile).d.lcp.n[0] == 1
    assert prepared(joints([0.8])).d.lcp.n[0] == 1  # at its stop in all worlds: no row at all
    tile = joints([0.2])
    tile.m.opt_disableflags = int(Disable.CONSTRAINT)
    assert prepared(tile).d.lcp.n[0] == 0


def links(kind, position, velocity=(0.3, -0.2), tilt=0.0, **more):
    """Returns worlds with body 1 rotated about, or moved along, y by these positions, at rest and moving."""
    given = {"anchor": (0, 0, 1)} if kind == "hinge" else {}
    link = fl.Link(kind, 1, 2, axis=(0, 1, 0), **given, **more)
    model = fl.load(FREE, links=[fl.Link("ball", 2, None, anchor=(0, 0, 1)), link])  # not the first one
    qpos, qvel = np.repeat([model.qpos0], 2, 0), np.zeros((2, model.nv))
    qpos[:, 10:14] = np.cos(tilt / 2), np.sin(tilt / 2), 0, 0
    for world, (x, v) in enumerate(zip(position, velocity, strict=True)):
        if kind == "hinge":
            qpos[world, 3:7], qvel[world, 4] = [np.cos(x / 2), 0, np.sin(x / 2), 0], v
        else:
            qpos[world, 1], qvel[world, 1] = x, v
    return Rows(model, qpos, qvel)


@pytest.mark.parametrize("kind", ["hinge", "slider"])
def test_away_from_its_stops_a_link_has_its_motor(kind):
    tile = prepared(
        links(kind, (0.1, -0.1), tilt=0.05, motor_vel=0.7, motor_force=3.0, motor_cfm=0.01, range=(-0.2, 0.2))
    )
    assert tile.d.lcp.n[0] == 1 and tile.d.link_lcprow[3] == 0
    for world in range(2):
        found = tile.lcp(world)
        np.testing.assert_allclose([found.c[0], found.cfm[0], found.lo[0], found.hi[0]], [0.7, 0.01, -3, 3], atol=EXACT)
        moves = found.J[0] @ tile.d.qvel.array[:, world]
        np.testing.assert_allclose(moves, (0.3, -0.2)[world], atol=EXACT)
        own = found.J[0, 3:6] if kind == "hinge" else found.J[0, :3]
        np.testing.assert_allclose(own, [0, 1, 0], atol=EXACT)  # the axis of the first body, not of the second


@pytest.mark.parametrize("kind", ["hinge", "slider"])
def test_at_a_stop_a_motor_only_pushes_back(kind):
    """J v' >= -erp / h (position - stop) below, <= above; the motor adds an ordinary force there."""
    tile = prepared(links(kind, (-0.25, 0.3), motor_force=3.0, range=(-0.2, 0.2), stop_erp=0.5, stop_cfm=0.02))
    low, high = tile.lcp(0), tile.lcp(1)
    np.testing.assert_allclose([low.c[0], low.cfm[0], low.lo[0], low.hi[0]], [0.5 / H * 0.05, 0.02, 0, INF], atol=EXACT)
    np.testing.assert_allclose(
        [high.c[0], high.cfm[0], high.lo[0], high.hi[0]], [-0.5 / H * 0.1, 0.02, -INF, 0], atol=EXACT
    )


@pytest.mark.parametrize(("speeds", "expected"), [
    ((-9.0, 9.0), (7.2, -7.2)),  # hits it, and bounces at 0.8 of that
    ((-0.1, 0.1), (0.2 / H * 0.01, -0.2 / H * 0.01)),  # slower than the error requires
    ((9.0, -9.0), (0.2 / H * 0.01, -0.2 / H * 0.01)),  # already leaving
])  # fmt: skip
def test_a_stop_bounces(speeds, expected):
    tile = prepared(links("slider", (-0.21, 0.21), speeds, range=(-0.2, 0.2), stop_bounce=0.8))
    # a slider's row has the velocity half way between the bodies
    v = np.array([tile.lcp(w).J[0] @ tile.d.qvel.array[:, w] for w in range(2)])
    np.testing.assert_allclose(v, speeds, atol=EXACT)
    np.testing.assert_allclose([tile.lcp(w).c[0] for w in range(2)], expected, atol=EXACT)


def test_two_equal_stops_hold_in_both_directions():
    tile = prepared(links("slider", (0.05, -0.1), range=(0.0, 0.0), motor_force=2.0, stop_bounce=0.8))
    for world, x in enumerate((0.05, -0.1)):
        found = tile.lcp(world)
        np.testing.assert_allclose(found.c, [-0.2 / H * x], atol=EXACT)
        assert (found.lo[0], found.hi[0]) == (-INF, INF)


def test_links_without_motor_stop_or_capacity_have_no_row():
    assert prepared(links("hinge", (0.1, 0.1), range=(-0.2, 0.2))).d.lcp.n[0] == 0
    tile = prepared(links("hinge", (0.1, 0.3), range=(-0.2, 0.2)))
    found = tile.lcp(0)
    assert tile.d.lcp.n[0] == 1 and not found.J.any() and found.lo[0] == found.hi[0] == 0.0
    tile = links("hinge", (0.1, 0.3), range=(-0.2, 0.2))
    tile.d.nlcp = 1
    assert prepared(tile).d.link_lcprow[3] == 0 and tile.d.con_overflow[0] == 0
    tile.d.nlcp = 0
    assert prepared(tile).d.link_lcprow[3] == -1 and tile.d.con_overflow[0] == 1
    tile = links("hinge", (0.1, 0.3), range=(-0.2, 0.2))
    tile.m.opt_disableflags = int(Disable.EQUALITY)
    assert prepared(tile).d.link_lcprow[3] == -1 and tile.d.lcp.n[0] == 0
