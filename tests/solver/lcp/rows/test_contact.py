"""Rows of contacts: J is the velocity of body 2 relative to body 1, the rest is ODE's formula."""

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.constraint.contact_inertia import contact_inertia
from featherlane.engine.constraint.impedance import impedance, inverse_regularisation
from featherlane.engine.solver.lcp.rows import contact
from featherlane.engine.solver.lcp.rows.assembly import clear_rows
from featherlane.engine.solver.lcp.rows.metric import factor_step_inertia
from featherlane.engine.solver.lcp.rows.softness import softness_of_reference
from scenes.lcp_records import Rows
from scenes.states import kicked

EXACT = 1e-9  # of values through a mass matrix
# contacts of 1, 3, 4 and 6 rows: with the world, with another tree, and within one
XML = """<mujoco><option timestep=".004"/><worldbody><geom type="plane" size="9 9 1" friction=".8 .02 .01"/>
  <body pos="0 0 .1"><freejoint/><geom size=".12" condim="3"/></body>
  <body pos=".2 0 .1"><freejoint/><geom size=".12" condim="6" friction=".5 .03 .02"/></body>
  <body pos="1 0 .3"><joint axis="0 1 0"/><geom size=".05" contype="0" conaffinity="0"/>
    <body pos="0 0 .02"><joint axis="1 0 0"/><geom size=".05" contype="0" conaffinity="0"/>
      <body pos="0 .1 0"><joint axis="0 0 1"/><geom name="left" size=".1" condim="4" pos=".02 0 0"/></body>
      <body pos="0 -.05 0"><joint axis="0 1 0"/><geom size=".1" condim="1"/></body></body></body>
</worldbody></mujoco>"""


def scene(rng, **options):
    model = fl.load(XML)
    for name, value in options.items():
        (setattr(model.opt, name, value) if hasattr(model.opt, name) else getattr(model, name).__setitem__(..., value))
    state = [kicked(model, rng, 0.02) for _ in range(2)]
    tile = Rows(model, *zip(*state, strict=True))
    clear_rows(tile.m, tile.d)
    tile.run(factor_step_inertia)
    return tile


def made(tile):
    tile.run(contact.append_contact_rows)
    return tile


def jacobian(tile, k, world=0):
    """Returns (6, nv) along normal and tangents, and about them, by MuJoCo."""
    mj = mujoco.MjModel.from_xml_string(XML)
    data = mujoco.MjData(mj)
    data.qpos[:] = tile.d.qpos.array[: mj.nq, world]
    mujoco.mj_kinematics(mj, data)
    mujoco.mj_comPos(mj, data)
    J = np.zeros((2, 2, 3, mj.nv))
    for side, body in enumerate(tile.d.con_carrier.array[2 * k : 2 * k + 2]):
        mujoco.mj_jac(mj, data, *J[side], tile.d.con_pos.array[3 * k : 3 * k + 3, world], body)
    frame = tile.d.con_frame.array[9 * k : 9 * k + 9, world].reshape(3, 3)
    return np.concatenate([frame @ (J[1, c] - J[0, c]) for c in range(2)])


def slots(tile, world=0):
    return [k for k in range(tile.d.ncon_slot[0]) if tile.d.con_D.array[k, world] > 0.0]


def test_rows_are_the_velocity_of_the_second_body_from_the_first(rng):
    tile, seen = made(scene(rng)), set()
    for world in range(2):
        found = tile.lcp(world)
        for k in slots(tile, world):
            r, dim = tile.d.con_lcprow[k], tile.d.con_dim[k]
            np.testing.assert_allclose(found.J[r : r + dim], jacobian(tile, k, world)[:dim], atol=EXACT)
            seen.add((dim, *sorted(tile.m.body_rootid[b] for b in tile.d.con_carrier.array[2 * k : 2 * k + 2])))
    assert {dim for dim, *_ in seen} >= {3, 4, 6} and (4, 3, 3) in seen and any(0 not in s for s in seen)
    assert tile.d.lcp.n[0] == sum(tile.d.con_dim.array[: tile.d.ncon_slot[0]]) and not tile.d.dual.mark.array.any()


def test_the_normal_pushes_and_friction_is_bounded_by_it(rng):
    tile = made(scene(rng, erp=0.3, cfm=1e-4))
    h, d = 0.004, tile.d
    found = tile.lcp()
    for k in slots(tile):
        r = d.con_lcprow[k]
        depth = d.con_includemargin.array[k, 0] - d.con_dist.array[k, 0]
        np.testing.assert_allclose(found.c[r], 0.3 / h * depth if depth > 0 else depth / h, atol=EXACT)
        np.testing.assert_allclose([found.cfm[r], found.lo[r], found.hi[r]], [1e-4, 0.0, np.inf])
        assert found.findex[r] == -1
        for c in range(1, d.con_dim[k]):
            np.testing.assert_allclose([found.c[r + c], found.cfm[r + c], found.add[r + c]], [0, 1e-4, 0], atol=EXACT)
            assert found.findex[r + c] == r and found.hi[r + c] == d.con_friction.array[5 * k + c - 1, 0]


def test_slip_surface_motion_and_friction_as_a_force(rng):
    tile = scene(rng, geom_slip=[[0.3, 0.0]], geom_frictionforce=1)
    tile.m.flg_surfacevel = 1
    tile.m.geom_surfacevel.array[:6] = np.array([0.4, 0.3, 0.0, 0.0, 0.0, 2.0])[:, None]
    tile = made(tile)
    found, d, belts = tile.lcp(), tile.d, []
    for k in slots(tile):
        r, dim = d.con_lcprow[k], d.con_dim[k]
        if dim >= 3:
            np.testing.assert_allclose(found.cfm[r + 1 : r + 3], [0.3, 1e-10])
            np.testing.assert_allclose(found.c[r + 1 : r + 3], d.con_belt.array[3 * k + 1 : 3 * k + 3, 0], atol=EXACT)
            np.testing.assert_allclose(found.add[r + 1 : r + 3], d.con_friction.array[5 * k : 5 * k + 2, 0])
            assert not found.hi[r + 1 : r + 3].any() and (found.hi[r + 3 : r + dim] > 0.0).all()
            belts.append(np.abs(found.c[r + 1 : r + 3]).max())
        if dim > 3 and d.con_geom[2 * k] == 0:
            np.testing.assert_allclose(found.c[r + 3 : r + dim], [2.0, *(dim - 4) * [0.0]], atol=1e-6)
    assert max(belts) > 0.1


@pytest.mark.parametrize(("depth", "belt", "e", "v", "expected"), [
    (0.02, 0.0, 0.0, -1.0, 0.2 / 0.004 * 0.015), (0.003, 0.0, 0.0, -1.0, 0.0),  # less than min_depth
    (-0.01, 0.1, 0.0, -1.0, -0.01 / 0.004 + 0.1), (0.9, 0.0, 0.0, -1.0, 2.0),  # limited to max_vel
    (0.003, 0.1, 0.0, 0.0, 0.1), (0.003, 0.0, 0.5, -3.0, 1.5), (0.003, 0.0, 0.5, -0.3, 0.0),  # below its threshold
    (0.003, 0.1, 0.5, -3.0, 0.5 * 3.1 + 0.1), (0.9, 0.0, 0.9, -9.0, 8.1), (0.02, 0.0, 0.1, -1.0, 0.75),
])  # fmt: skip
def test_separation_velocity_of_a_contact(depth, belt, e, v, expected, rng):
    """ODE manual, sec. Contact: erp / h of the depth, at most max_vel, or restitution, which is not limited."""
    tile = scene(rng, contact_min_depth=0.005, contact_max_vel=2.0)
    d = tile.d
    for name, value in (("dist", -depth), ("includemargin", 0.0), ("restitution", e), ("restitution_vel", 0.4)):
        getattr(d, f"con_{name}").array[0] = value
    d.con_belt.array[0] = belt
    found = contact.normal_velocity(tile.m, d, 0, d.con_dist[0] * 0.0 + 0.2, d.con_dist[0] * 0.0 + v)
    np.testing.assert_allclose(found, expected)


def test_softness_by_solref(rng):
    tile = made(scene(rng, softness="solref"))
    m, d, found = tile.m, tile.d, tile.lcp()
    for k in slots(tile):
        solimp = [x[0] for x in d.con_solimp.array[5 * k : 5 * k + 5]]
        r = d.con_dist.array[k, 0] - d.con_includemargin.array[k, 0]
        D = inverse_regularisation(impedance(solimp, r), contact_inertia(m, d, k, 1, d.con_dist[k] * 0.0 + 1.0)[0])
        _, cfm = softness_of_reference(m, d.con_solref.array[2 * k : 2 * k + 2, 0], solimp, r, 1.0 / D)
        np.testing.assert_allclose(found.cfm[d.con_lcprow[k]], cfm[0])


def test_contacts_beyond_the_capacity_have_no_rows(rng):
    tile = scene(rng)
    tile.d.nlcp = 7
    tile.run(contact.append_contact_rows)
    d = tile.d
    assert d.con_overflow[0] == 1 and 0 < d.lcp.n[0] <= 7
    for k in range(d.ncon_slot[0]):
        assert (d.con_lcprow[k] >= 0) == bool(d.con_D.array[k].any())
