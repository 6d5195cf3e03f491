"""Contact parameters, mixed by hand: those of the geom with priority, else the softer and the larger of the two."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.collision.user_contacts import NO_CANDIDATE
from featherlane.engine.solver.lcp.rows import contact_parameters as parameters
from scenes.lcp_records import Rows

EXACT = 1e-12
K = 1  # the contact: not the first one, which belongs to another ball
BALLS = """<mujoco><worldbody><geom type="plane" size="9 9 1" priority="P"/>
  <body pos="1 0 .09"><freejoint/><geom size=".1"/></body>
  <body pos="0 0 .09" euler="20 30 40"><freejoint/><geom type="ellipsoid" size=".1 .1 .1" priority="Q"/></body>
</worldbody></mujoco>"""
OPT_ERP, OPT_CFM = 0.2, 1e-10
NAMES = ("erp", "cfm", "restitution", "restitution_vel")


def scene(euler="20 30 40", priority=(0, 0), **fields):
    """Returns a tile with the contact of a plane and a ball, and fields of the two geoms."""
    xml = BALLS.replace("20 30 40", euler)
    model = fl.load(xml.replace('"P"', f'"{priority[0]}"').replace('"Q"', f'"{priority[1]}"'))
    for name, values in fields.items():
        getattr(model, f"geom_{name}")[[0, 2]] = values
    return Rows(model, 2 * [model.qpos0], np.zeros((2, model.nv)))


@pytest.mark.parametrize("priority", [(0, 0), (2, 1), (1, 2)])
def test_parameters_are_mixed_or_taken_from_the_geom_of_higher_priority(priority, rng):
    for _ in range(6):
        own = {name: rng.choice([-1.0, 0.3, 0.7], 2) for name in ("erp", "cfm")}
        own |= {name: rng.random(2) for name in ("restitution", "restitution_vel")}
        slip, force = rng.random((2, 2)), rng.integers(0, 2, 2)
        tile = scene(priority=priority, slip=slip, frictionforce=force, **own)
        assert np.all(parameters.set_contact_parameters(tile.m, tile.d, K) == 0.0)
        who = [0, 1] if priority == (0, 0) else [int(np.argmax(priority))]
        erps = [x for x in own["erp"][who] if x >= 0.0]
        expected = {
            "erp": min(erps, default=OPT_ERP), "restitution": own["restitution"][who].max(),
            "cfm": max((x for x in own["cfm"][who] if x >= 0.0), default=OPT_CFM),
            "restitution_vel": own["restitution_vel"][who].max(), "frictionforce": float(force[who].any()),
        }  # fmt: skip
        for name, value in expected.items():
            assert getattr(tile.d, f"con_{name}").array[K].tolist() == [value, value], name
        np.testing.assert_array_equal(tile.d.con_compliance.array[2 * K : 2 * K + 2, 0], slip[who].max(0))


def test_mixing_takes_the_softer_erp_and_the_smallest_mu():
    a, b = np.array([-1.0, -1.0, 0.3, 0.3]), np.array([-1.0, 0.6, -1.0, 0.6])
    assert parameters.softer_erp(a, b).tolist() == [-1.0, 0.6, 0.3, 0.3]
    assert parameters.softer_erp(b, a).tolist() == [-1.0, 0.6, 0.3, 0.3]
    assert parameters.friction_without_minimum(np.array([0.0, 1e-5, 2e-5, 0.8])).tolist() == [0.0, 0.0, 2e-5, 0.8]


def test_given_parameters_are_kept():
    tile = scene(erp=[0.5, 0.6], restitution=[0.4, 0.1])
    d = tile.d
    d.con_cand.array[K] = NO_CANDIDATE
    d.con_erp.array[K], d.con_cfm.array[K], d.con_restitution.array[K] = [-1.0, 0.9], [0.3, -1.0], 0.77
    d.con_belt.array[3 * K : 3 * K + 3] = 0.25
    parameters.set_contact_parameters(tile.m, d, K)
    assert d.con_erp.array[K].tolist() == [OPT_ERP, 0.9] and d.con_cfm.array[K].tolist() == [0.3, OPT_CFM]
    assert (d.con_restitution.array[K] == 0.77).all() and (d.con_belt.array[3 * K : 3 * K + 3] == 0.25).all()
    d.con_cand.array[K] = 0
    parameters.set_contact_parameters(tile.m, d, K)
    assert not d.con_belt.array[3 * K : 3 * K + 3].any() and (d.con_restitution.array[K] == 0.4).all()


@pytest.mark.parametrize(("first", "second", "turns"), [
    ([1.0, 2.0, 0.5], [0, 0, 0], True), ([0, 0, 0], [1.0, -2.0, 0.5], True), ([1.0, 0.3, 0], [0, 1.0, 0], True),
    ([0, 0, 0], [1.0, 0, 0], True), ([0, 0, 0], [0, 1.0, 0], True), ([0, 0, 0], [0, 0, 1.0], True),
    ([0, 0, 0], [0, 0, 0], False), ([1e-8, 0, 1.0], [1.0, 0, 0], False),  # its normal component is unused
])  # fmt: skip
def test_the_first_tangent_lies_along_the_direction_of_friction(first, second, turns):
    tile = scene("0 0 0" if not turns else "20 30 40", fdir=[first, second])
    d = tile.d
    if not np.any([first, second]):
        d.con_frame.array[9 * K : 9 * K + 9] = np.arange(9.0)[:, None]
    before = d.con_frame.array[9 * K : 9 * K + 9, 0].reshape(3, 3).copy()
    parameters.set_contact_parameters(tile.m, d, K)
    frame = d.con_frame.array[9 * K : 9 * K + 9, 0].reshape(3, 3)
    if not turns:
        np.testing.assert_array_equal(frame, before)
        return
    geom = 0 if np.any(first) else 2
    f = tile.d.geom_xmat.array[9 * geom : 9 * geom + 9, 0].reshape(3, 3) @ (first if geom == 0 else second)
    n = before[0]
    t = f - (n @ f) * n
    np.testing.assert_allclose(frame, [n, t / np.linalg.norm(t), np.cross(n, t) / np.linalg.norm(t)], atol=EXACT)


def test_moving_surfaces_set_target_velocities():
    """The first surface's velocity less the second's, along the tangents; the spin is rotation about the normal."""
    velocity = [[0.3, -0.2, 0.1, 0.5, 0.4, 0.7], [0.05, 0.6, -0.4, -0.3, 0.2, 0.9]]
    tile = scene()
    tile.m.flg_surfacevel = 1
    tile.m.geom_surfacevel.array[...] = np.ravel([velocity[0], 6 * [9.0], velocity[1]])[:, None]
    d, p, v, w = tile.d, tile.d.con_pos.array[3 * K : 3 * K + 3, 0], [], []
    for g, moves in zip((0, 2), velocity, strict=True):
        turn = d.geom_xmat.array[9 * g : 9 * g + 9, 0].reshape(3, 3)
        w.append(turn @ moves[3:])
        v.append(turn @ moves[:3] + np.cross(w[-1], p - d.geom_xpos.array[3 * g : 3 * g + 3, 0]))
    spin = parameters.set_contact_parameters(tile.m, d, K)
    frame = d.con_frame.array[9 * K : 9 * K + 9, 0].reshape(3, 3)
    np.testing.assert_allclose(d.con_belt.array[3 * K : 3 * K + 3, 0], [0.0, *frame[1:] @ (v[0] - v[1])], atol=EXACT)
    np.testing.assert_allclose(spin[0], frame[0] @ (w[0] - w[1]), atol=EXACT)
