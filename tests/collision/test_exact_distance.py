"""Distance, normal and contact points of all convex pairs against brute force (`oracles/penetration.py`).

A direction n proves that the signed distance is at least -h(n).  So a result is exact if its normal proves it, and no
direction that the oracle finds proves more.  Its nearest points lie on both surfaces.
"""

from __future__ import annotations

import itertools

import mujoco
import numpy as np
import pytest

import featherlane as fl
from oracles.penetration import overlap, signed_distance, solids
from pages.pairs import CELLS, FAMILIES, MARGIN, model_of, poses
from sampling import every
from scenes.poses import aligned_poses, random_quat

FEW, MANY = 2, 200
PAIRS = [(a, b) for a, b, _, _ in CELLS if a not in ("plane", "hfield") and b != "sdf"]
ROUNDING = 1e-14  # m: of sums over coordinates of about 1 m
PROVED = 1e-12  # m: error of a normal's components, which are computed from the nearest points, times the size
# m: two nearly parallel faces, of which one is curved: the search of directions ends in a flat minimum
FLAT_MINIMUM = 1e-8
ON_SURFACE = 2e-9  # m: corners within 1e-9 m of a feature's border are in it
INCLINED = 0.0888 * 0.6  # m: two edges that are inclined by up to five degrees have points between them
SINGLE = 2e-6  # relative to the size: the rounding of float32 poses
OFFSETS = (0.0, 0.03, 0.05, 0.12, 0.2, 0.24, 0.31, 0.35)  # of aligned shapes: concentric, crossing axes, touching faces
PREFERS = {("box", "box"): 0.05}  # MuJoCo's closed form prefers a face of boxes to an edge


def check_pose(model, data, pair, rng, far=10.0) -> bool:
    """Asserts that one pose has the exact distance and contacts; returns whether the shapes have contacts."""
    a, b = solids(model, data.geom_xpos, data.geom_xmat)
    distance, ends = fl.query.geom_distance(model, data, 0, 1, far)
    exact = signed_distance(a, b, rng)
    assert distance > exact - FLAT_MINIMUM
    if abs(distance) > 1e-3:
        n = (ends[3:] - ends[:3]) / distance
        assert abs(distance + overlap(a, b, n)[0]) < PROVED
    if abs(distance - MARGIN) > FLAT_MINIMUM:
        assert (len(data.contact) > 0) == (distance < MARGIN)
    for contact in data.contact:
        n = np.reshape(contact.frame, (3, 3))[0]
        assert a.beyond(contact.pos - 0.5 * contact.dist * n) < INCLINED
        assert b.beyond(contact.pos + 0.5 * contact.dist * n) < INCLINED
    if len(data.contact):
        contact = min(data.contact, key=lambda c: c.dist)
        assert abs(contact.dist - distance) <= max(FLAT_MINIMUM, PREFERS.get(pair, 0.0) * abs(distance))
    return len(data.contact) > 0


def check(pair, moved, rng) -> None:
    """Asserts the exact result in poses of a pair."""
    model, touching = model_of(*pair), 0
    data = fl.Data(model)
    for p, q in zip(*moved(model), strict=True):
        data.mocap_pos[0], data.mocap_quat[0], data.qpos[:] = p[0], q[0], [*p[1], *q[1]]
        fl.forward(model, data)
        touching += check_pose(model, data, pair, rng)
    assert touching


@pytest.mark.parametrize(("pair", "family"), every(4, itertools.product(PAIRS, FAMILIES[:3])))
def test_distances_and_points_are_exact(pair, family, rng):
    check(pair, lambda model: poses(model, *pair, family, FEW, rng), rng)


@pytest.mark.parametrize(("pair",), every(2, [(pair,) for pair in PAIRS]))
def test_distances_and_points_of_aligned_shapes_are_exact(pair, rng):
    check(pair, lambda _: aligned_poses(rng, (OFFSETS,) * 3, 3 * FEW), rng)


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_distances_and_points_are_exact_in_many_poses(pair, rng):
    for family in FAMILIES:
        check(pair, lambda model, family=family: poses(model, *pair, family, MANY, rng), rng)
    check(pair, lambda _: aligned_poses(rng, (OFFSETS,) * 3, MANY), rng)


# ---- nearest points of shapes that touch along lines and areas -------------------------------------------------------
CROSSING = """<mujoco><worldbody><geom type="{0}" size="{1}"/><body pos="{4}"><freejoint/>
  <geom type="{2}" size="{3}" euler="{5}" mass="1"/></body></worldbody></mujoco>"""
LONG = {"cylinder": ".1 .3", "capsule": ".1 .3", "box": ".1 .05 .3"}


PLACES = ("0 0 0", ".1 0 0", "0 .15 0", "0 0 .2", "0 .05 .1", "0 .199999 0")
CROSSED = [
    (pair, place, angle)
    for angle, place, pair in itertools.product(
        (0, 1, 30, 45, 90), PLACES, itertools.combinations_with_replacement(LONG, 2)
    )
]


@pytest.mark.parametrize(("pair", "place", "angle"), every(11, CROSSED))
def test_nearest_points_of_crossing_axes_lie_on_both_shapes(pair, place, angle, rng):
    for euler in (f"{angle} 0 0", f"0 {angle} 0", f"{angle} {angle} 0"):
        first, second = sorted(pair, key=("capsule", "cylinder", "box").index)
        model = fl.load(CROSSING.format(first, LONG[first], second, LONG[second], place, euler))
        data = fl.Data(model)
        fl.forward(model, data)
        a, b = solids(model, data.geom_xpos, data.geom_xmat)
        distance, ends = fl.query.geom_distance(model, data, 0, 1, 10.0)
        assert distance > signed_distance(a, b, rng) - FLAT_MINIMUM
        assert max(a.beyond(ends[:3]), b.beyond(ends[3:])) < ON_SURFACE


# ---- contacts at touch -----------------------------------------------------------------------------------------------
TOUCHING = """<mujoco><asset><mesh name="cube" vertex="{cube}"/><mesh name="rock" vertex="{rock}"/></asset><worldbody>
  <body mocap="true"><geom {first}/></body><body><freejoint/><geom {second} mass="1"/></body></worldbody></mujoco>"""
FORMS = {
    "sphere": ("sphere", (1.0,)),
    "capsule": ("capsule", (0.5, 1.0)),
    "ellipsoid": ("ellipsoid", (1.0, 0.8, 0.6)),
    "cylinder": ("cylinder", (0.8, 0.7)),
    "box": ("box", (0.6, 0.8, 1.0)),
    "cube": ("mesh", ()),
    "rock": ("mesh", ()),
}
AWAY = 1e-2  # of the size: distance at which the normal is measured


def touching_model(first, second, size):
    """Returns a model of two shapes of about a size [m]."""
    rng = np.random.default_rng(1)
    rock = rng.standard_normal((20, 3))
    rock /= np.linalg.norm(rock, axis=1, keepdims=True)
    cube = 0.6 * np.array(list(itertools.product((-1, 1), repeat=3)))
    text = {name: " ".join(f"{x:.9g}" for x in np.ravel(size * v)) for name, v in (("cube", cube), ("rock", rock))}
    geoms = []
    for name in (first, second):
        kind, sizes = FORMS[name]
        number = " ".join(f"{size * x:.17g}" for x in sizes)
        geoms.append(f'type="mesh" mesh="{name}"' if kind == "mesh" else f'type="{kind}" size="{number}"')
    return fl.load(TOUCHING.format(**text, first=geoms[0], second=geoms[1]))


def approach(model, data, place, size, qa, qb, v):
    """Returns (position, normal) of the second shape at the distance AWAY from the first."""
    data.mocap_pos[0], data.mocap_quat[0] = place, qa
    p, n = place + 2.6 * size * v, v
    for _ in range(4):
        data.qpos[:] = [*p, *qb]
        fl.stages.kinematics(model, data)
        distance, ends = fl.query.geom_distance(model, data, 0, 1, 100 * size)
        n = (ends[3:] - ends[:3]) / distance
        p = p - n * (distance - AWAY * size)
    return p, n


def orientations(k, rng):
    """Returns two quaternions and a direction: faces that meet in the world's axes, in turned axes, or anything."""
    z, v = np.array([0.0, 0.0, 1.0]), rng.standard_normal(3)
    if k % 3 == 0:
        return np.eye(4)[0], np.eye(4)[0], z
    qa, qb = random_quat(rng, 2)
    if k % 3 == 1:
        mujoco.mju_rotVecQuat(v, z, qa)
        return qa, qa, v
    return qa, qb, v / np.linalg.norm(v)


SCALES = [
    (1.0, 0.0, "convex"),
    (1.0, 0.0, "coulomb"),
    (1e-3, 0.0, "convex"),
    (1e3, 0.0, "convex"),
    (1.0, 1e3, "convex"),
]
HULLED = {"cube", "rock"}
POLYTOPES = HULLED | {"sphere", "capsule", "box"}
HULLS = [pair for pair in itertools.combinations_with_replacement(FORMS, 2) if HULLED & set(pair)]


@pytest.mark.parametrize(("size", "offset", "contact_model"), every(4, SCALES))
def test_a_contact_exists_if_the_exact_distance_is_below_the_margin(size, offset, contact_model, rng):
    rounding = 1e-15 * (1.0 + offset)
    for first, second in HULLS if size == 1.0 else itertools.combinations_with_replacement(FORMS, 2):
        model = touching_model(first, second, size)
        model.opt.contact_model = contact_model
        data = fl.Data(model)
        for k in range(3):
            qa, qb, v = orientations(k, rng)
            p, n = approach(model, data, np.full(3, offset), size, qa, qb, v)
            # hulls touch beyond SLACK of their radii, of 2 to 4 sizes
            beyond = (1e-8, 1e-7) if {first, second} <= POLYTOPES and {first, second} & HULLED else (2e-12, 1e-9, 1e-7)
            for overlap_, touches in (*((depth, True) for depth in beyond), (-2e-12, False), (-1e-8, False)):
                depth = overlap_ + np.sign(overlap_) * rounding * 300
                data.qpos[:] = [*(p - n * (AWAY + depth) * size), *qb]
                fl.forward(model, data)
                assert (len(data.contact) > 0) == touches, (first, second, k, depth)


def test_float32_contacts_exist_beyond_the_rounding_of_the_pose(rng):
    for first, second in HULLS[::2]:
        model = touching_model(first, second, 1.0)
        data, batch = fl.Data(model), fl.Batch(model, 16, dtype="float32")
        for k in range(3):
            qa, qb, v = orientations(k, rng)
            p, n = approach(model, data, np.zeros(3), 1.0, qa, qb, v)
            depth = np.array([SINGLE, -SINGLE] * 8)
            batch.mocap_pos[:], batch.mocap_quat[:] = data.mocap_pos, data.mocap_quat
            batch.qpos[:, :3], batch.qpos[:, 3:] = p - n * (AWAY + depth)[:, None], qb
            batch.forward()
            np.testing.assert_array_equal(batch.ncon > 0, depth > 0, err_msg=f"{first} {second} {k}")


# ---- a centre on a surface -------------------------------------------------------------------------------------------
GAPS = [0.0, *(sign * 10.0**-k for k in np.arange(3, 19, 0.5) for sign in (1, -1))]
ROUND = """<mujoco><worldbody><body><freejoint/><geom type="{0}" mass="1"/></body>
  <body><freejoint/><geom type="{1}" mass="1"/></body></worldbody></mujoco>"""
ELLIPSOID = np.array([0.1, 0.07, 0.05])


@pytest.mark.parametrize("first", ['sphere" size=".1', 'capsule" size=".1 .2'])
def test_the_depth_of_a_centre_on_an_ellipsoids_surface_is_the_radius(first, rng):
    model = fl.load(ROUND.format(first, 'ellipsoid" size=".1 .07 .05'))
    data, batch = fl.Data(model), fl.Batch(model, len(GAPS))
    for k in range(12):
        n = rng.standard_normal(3) if k % 2 else np.eye(3)[k // 2 % 3] * (1 if k < 6 else -1)
        n /= np.linalg.norm(n)
        surface = ELLIPSOID**2 * n / np.linalg.norm(ELLIPSOID * n)
        turn, z = np.zeros(4), np.array([0.0, 0.0, 1.0])
        mujoco.mju_quatZ2Vec(turn, n)
        for w, gap in enumerate(GAPS):
            away = (gap + (0.2 if first.startswith("capsule") else 0.0)) * n
            batch.qpos[w] = [*(surface + away), *turn, 0, 0, 0, 1, 0, 0, 0]
        found = batch.contacts(output=("dist",)).dist[:, 0]
        np.testing.assert_allclose(found, np.array(GAPS) - 0.1, rtol=0, atol=ROUNDING, err_msg=str((n, z)))
        for w in (0, 5, 30):
            data.qpos[:] = batch.qpos[w]
            fl.forward(model, data)
            assert data.contact[0].dist == found[w]


@pytest.mark.parametrize("corner", range(8))
def test_the_depth_of_a_centre_on_a_hulls_vertex_is_the_radius(corner):
    model = touching_model("sphere", "cube", 1.0)
    data = fl.Data(model)
    vertex = np.array(model.hull_vert[corner])
    for gap in GAPS:
        n = vertex / np.linalg.norm(vertex)
        data.mocap_pos[0], data.qpos[:] = vertex + gap * n, [0, 0, 0, 1, 0, 0, 0]
        fl.forward(model, data)
        # inside, the nearest faces are nearer than the vertex
        depth = gap if gap > 0 else gap / np.sqrt(3.0)
        np.testing.assert_allclose(min(c.dist for c in data.contact), depth - 1.0, rtol=0, atol=1e-7)


FLANGES = """<mujoco><asset><mesh name="flange" vertex="-1 -1 -1 1 -1 -1 1 1 -1 -1 1 -1 -1 -1 1 1 -1 1 1 1 1 -1 1 1"
scale=".0625 .0625 .0625"/></asset><worldbody><geom type="mesh" mesh="flange"/>
<body pos="0 0 {height}"><joint axis="0 0 1"/><geom type="mesh" mesh="flange"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize(("overlap_", "touches"), [(1e-11, False), (-1e-11, False), (1e-9, True)])
def test_flanges_of_a_joint_touch_beyond_the_rounding_of_their_poses(overlap_, touches):
    data = fl.Data(fl.load(FLANGES.format(height=0.125 - overlap_)))
    data.forward()
    assert (data.ncon > 0) == touches
