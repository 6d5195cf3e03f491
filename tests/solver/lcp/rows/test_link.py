"""Rows of links: equal velocities of two bodies, ODE's right-hand side, and the forces on the first body."""

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.dynamics.body.link import link_axis, link_point, orientation_error, position_error
from featherlane.engine.model.enums import Disable
from featherlane.engine.solver.lcp.rows import link
from featherlane.engine.solver.lcp.rows.assembly import clear_rows
from featherlane.engine.solver.lcp.rows.metric import factor_step_inertia
from scenes.lcp_records import Rows
from scenes.states import kicked

EXACT = 1e-9  # of values through a mass matrix
INF = np.inf
XML = """<mujoco><option timestep=".004"/><worldbody>
  <body pos="0 0 1"><freejoint/><geom type="box" size=".1 .2 .3" pos=".05 0 .1"/></body>
  <body pos="1 0 1"><freejoint/><geom type="box" size=".2 .1 .1" pos="0 .05 0"/></body>
  <body pos="2 0 1"><joint axis="0 1 0"/><geom size=".1" pos=".2 0 0"/>
    <body pos=".3 0 0"><joint axis="1 0 0"/><geom size=".1" pos="0 .2 0"/></body>
    <body pos="0 .3 0"><joint type="ball"/><geom size=".1" pos="0 0 .3"/></body></body>
</worldbody></mujoco>"""
LINKS = {
    "ball": {"anchor": (0.5, 0.1, 1.0)}, "hinge": {"anchor": (0.5, 0.1, 1.0), "axis": (0.3, -0.5, 0.8)},
    "slider": {"axis": (0.9, 0.3, 0.1)}, "fixed": {},
}  # fmt: skip
BODIES = [(1, 2), (1, None), (4, 5), (5, 1)]  # free, world, one tree, two trees
FIRST = fl.Link("ball", 5, None, anchor=(2.2, 0.3, 1.0))  # of 3 rows: the link of the test is the second one
SIZES = {"ball": 3, "hinge": 5, "slider": 5, "fixed": 6}


def scene(rng, kind, bodies, prepare=lambda m: None, **more):
    model = fl.load(XML, links=[FIRST, fl.Link(kind, *bodies, **LINKS[kind], **more)])
    prepare(model)
    tile = Rows(model, *zip(*(kicked(model, rng, 0.2) for _ in range(2)), strict=True))
    clear_rows(tile.m, tile.d)
    tile.run(factor_step_inertia)
    link.append_link_rows(tile.m, tile.d)
    return tile


def world_of(vectors, world=0):
    return np.array([np.ravel(x)[world % np.size(x)] for x in vectors])


def velocities(tile, world=0):
    """Returns (J of the point's velocity, of the rotation): first body relative to the second, by MuJoCo."""
    mj = mujoco.MjModel.from_xml_string(XML)
    data = mujoco.MjData(mj)
    data.qpos[:] = tile.d.qpos.array[: mj.nq, world]
    mujoco.mj_kinematics(mj, data)
    mujoco.mj_comPos(mj, data)
    J = np.zeros((2, 2, 3, mj.nv))
    for side in range(2):
        point = world_of(link_point(tile.m, tile.d, 1, side), world)
        mujoco.mj_jac(mj, data, *J[side], point, tile.m.link_body[2 + side])
    return J[0] - J[1]


def directions(tile, kind, world=0):
    """Returns (rotational?, unit vector) of each row."""
    axes = list(np.eye(3))
    n = world_of(link_axis(tile.m, tile.d, 1, 0), world)
    across = plane_space(n)
    return {
        "ball": [(0, u) for u in axes], "hinge": [(0, u) for u in axes] + [(1, u) for u in across],
        "slider": [(1, u) for u in axes] + [(0, u) for u in across], "fixed": [(t, u) for t in (0, 1) for u in axes],
    }[kind]  # fmt: skip


def plane_space(n):
    """Returns ODE's directions: p across the steeper of z and the others, q = n x p."""
    if not np.any(n):
        return None, None
    p = np.array([0, -n[2], n[1]]) if abs(n[2]) > np.sqrt(0.5) else np.array([-n[1], n[0], 0])
    p = p / np.linalg.norm(p)
    return p, np.cross(n, p)


@pytest.mark.parametrize("n", [(0, 0, 1), (0, 0, -1), (1, 0, 0), (0.6, 0, 0.8), (0.8, 0, 0.6), (0.48, -0.6, 0.64)])
def test_directions_across_an_axis_are_odes(n):
    p, q = link.plane_space(tuple(map(np.float64, n)))
    np.testing.assert_allclose([p, q], plane_space(n), atol=1e-15)
    np.testing.assert_allclose(np.array([p, q, n]) @ np.array([p, q, n]).T, np.eye(3), atol=1e-15)


@pytest.mark.parametrize("bodies", BODIES)
@pytest.mark.parametrize("kind", LINKS)
def test_rows_are_velocities_that_agree(kind, bodies, rng):
    """J is that of the first body relative to the second; c is erp / h of the error, J v' + cfm x = c."""
    tile = scene(rng, kind, bodies, erp=0.3, cfm=1e-3)
    assert tile.d.lcp.n[0] - 3 == SIZES[kind] == link.link_row_count(tile.m, 1) and tile.d.link_lcprow[2] == 3
    for world in range(2):
        found, J = tile.lcp(world), velocities(tile, world)
        shift, turn = (world_of(f(tile.m, tile.d, 1), world) for f in (position_error, orientation_error))
        for r, (turns, u) in enumerate(directions(tile, kind, world)):
            np.testing.assert_allclose(found.J[3 + r], u @ J[turns], atol=EXACT)
            np.testing.assert_allclose(found.c[3 + r], 0.3 / 0.004 * u @ (turn if turns else shift), atol=EXACT)
        np.testing.assert_allclose(found.cfm, 3 * [1e-10] + SIZES[kind] * [1e-3])
        assert (found.lo == -INF).all() and (found.hi == INF).all() and (found.findex == -1).all()
    assert not tile.d.dual.mark.array.any()


def test_a_link_without_parameters_uses_those_of_the_model(rng):
    def prepare(model):
        model.opt.erp, model.opt.cfm = 0.6, 1e-5

    found, tile = None, scene(rng, "ball", (1, 2), prepare)
    found = tile.lcp()
    np.testing.assert_allclose(found.c[3:], 0.6 / 0.004 * world_of(position_error(tile.m, tile.d, 1)), atol=EXACT)
    np.testing.assert_allclose(found.cfm, 1e-5)


@pytest.mark.parametrize("motor", [-1, 12])
@pytest.mark.parametrize("kind", LINKS)
def test_forces_on_the_first_body_equal_those_of_the_rows(kind, motor, rng):
    """Power: rows on a free body do force times velocity of its com, and torque times its angular velocity."""
    tile = scene(rng, kind, (1, None))
    m, d, n = tile.m, tile.d, tile.d.lcp.n[0]
    d.lcp.x.array[:n] = rng.standard_normal((n, 2))
    d.lcp.x.array[:3] = 0.0
    d.link_force.array[...], d.link_lcprow[3] = 5.0 + np.arange(12.0)[:, None], -1
    d.active.array[0] = [1.0, 0.0]
    J = tile.lcp().J
    power = d.lcp.x.array[:n, 0] @ J
    if motor > 0 and kind in ("hinge", "slider"):
        d.link_lcprow[3], d.lcp.x.array[motor] = motor, 0.4
        u = world_of(link_axis(m, d, 1, 0))
        power = power + 0.4 * u @ velocities(tile)[1 if kind == "hinge" else 0]
    link.link_forces(m, d)
    force = d.link_force.array[6:12, 0]
    mj = mujoco.MjModel.from_xml_string(XML)
    data = mujoco.MjData(mj)
    data.qpos[:] = d.qpos.array[: mj.nq, 0]
    mujoco.mj_kinematics(mj, data)
    mujoco.mj_comPos(mj, data)
    com, turn = np.zeros((2, 3, mj.nv))
    mujoco.mj_jacBodyCom(mj, data, com, turn, 1)
    np.testing.assert_allclose(com.T @ force[:3] + turn.T @ force[3:], power, atol=EXACT)
    assert d.link_force.array[:, 1].tolist() == [5.0 + i for i in range(12)]  # a resting world
    d.link_lcprow.array[2:4] = -1
    link.link_forces(m, d)
    assert not d.link_force.array[6:12, 0].any()


@pytest.mark.parametrize("flag", [Disable.EQUALITY, Disable.CONSTRAINT])
def test_links_can_be_disabled_or_exceed_the_capacity(flag, rng):
    tile = scene(rng, "hinge", (1, 2))
    m, d = tile.m, tile.d
    clear_rows(m, d)
    m.opt_disableflags = int(flag)
    link.append_link_rows(m, d)
    assert d.lcp.n[0] == 0 and d.link_lcprow[2] == -1 and d.con_overflow[0] == 0
    m.opt_disableflags, d.nlcp = 0, 3 + 5
    link.append_link_rows(m, d)
    assert d.lcp.n[0] == 8 and d.con_overflow[0] == 0
    clear_rows(m, d)
    d.nlcp = 3 + 4
    link.append_link_rows(m, d)
    assert d.lcp.n[0] == 3 and d.link_lcprow[2] == -1 and d.con_overflow[0] == 1
