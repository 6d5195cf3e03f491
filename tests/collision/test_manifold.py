"""Contact points of convex pairs: their selection, MuJoCo's in non-degenerate poses, and stable stacks."""

from __future__ import annotations

from collections import Counter

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.collision.convex.facet import CROSSING
from featherlane.engine.collision.convex.manifold import EQUAL
from featherlane.engine.collision.convex.pair import convex
from featherlane.engine.simulation.tile.workspace import Workspace
from robots.wheels import model_path
from sampling import in_ci
from scenes.poses import collide, frames, pair_model, random_quat
from scenes.shapes import COMPILED, KINDS, MESHES, SIZES, Oracle, Pair, assets, direction, few, geom, random_turn, turn

FLOAT32 = 3e-8  # vertices of meshes near 0.2
SLOPE = 1e-3
POINTS = 4
X, Y, Z = np.eye(3)

# second shape's orientation and centre above the first, which is fixed; number of points
PLAIN = {
    "cube on box": ("box", np.eye(3), "cube", np.eye(3), (0.01, 0.02, 0.2499), 4),
    "cube turned on table": ("table", np.eye(3), "cube", turn(Z, 0.7), (0.01, 0.02, 0.2499), 4),
    "cube beyond the table's edge": ("table", np.eye(3), "cube", turn(Z, 0.3), (0.25, 0.0, 0.2499), 4),
    "cube on cube": ("cube", np.eye(3), "cube", np.eye(3), (0.03, 0.04, 0.1999), 4),
    "cube leaning": ("box", np.eye(3), "cube", turn(X, SLOPE), (0.01, 0.02, 0.24995), 2),
    "cube on its edge": ("box", np.eye(3), "cube", turn(X, np.pi / 4), (0, 0, 0.15 + 0.1 * np.sqrt(2) - 1e-4), 2),
    "cube on its corner": ("box", np.eye(3), "cube", turn((1, -1, 0), 0.9553166), (0, 0, 0.15 + 0.17310508), 1),
    "cylinder lying": ("cylinder", turn(X, np.pi / 2), "box", np.eye(3), (0, 0, -0.2499), 2),
    "cylinder lying on cube": ("cylinder", turn(X, np.pi / 2), "cube", np.eye(3), (0, 0, -0.1999), 2),
    "capsule on cube": ("capsule", turn(X, np.pi / 2), "cube", np.eye(3), (0, 0, -0.1499), 2),
    "capsule on cylinder": ("capsule", turn(X, np.pi / 2), "cylinder", np.eye(3), (0, 0, -0.1699), 2),
    "sphere on stone": ("sphere", np.eye(3), "stone", np.eye(3), (0, 0, -0.2), 1),
    "ellipsoid on box": ("ellipsoid", np.eye(3), "box", np.eye(3), (0, 0, -0.2999), 1),
}


def by_place(pos, *rest):
    """Sorts rows by their positions, rounded to 0.1 mm."""
    order = np.lexsort(np.round(pos, 4).T)
    return (pos[order], *(x[order] for x in rest))


@pytest.mark.parametrize("name", list(PLAIN))
def test_points_equal_mujoco_in_aligned_poses(name):
    first, mat1, second, mat2, at, n = PLAIN[name]
    pair, oracle = Pair(), Oracle(first, second)
    pair.put(0, first, (0, 0, 0), mat1)
    pair.put(1, second, at, mat2)
    oracle.place([(0, 0, 0), at], [mat1, mat2])
    dist, pos, normal = pair.points()
    theirs, their_pos, their_normal = oracle.points()
    assert len(dist) == len(theirs) == n
    pos, dist = by_place(pos, dist)
    their_pos, theirs = by_place(their_pos, theirs)
    np.testing.assert_allclose(pos, their_pos, atol=1e-6)
    np.testing.assert_allclose(dist, theirs, atol=FLOAT32)
    np.testing.assert_allclose(normal, their_normal, atol=2 * SLOPE)  # its normal is that of a face


def test_a_cylinder_cap_has_contacts_on_its_rim():
    pair = Pair()
    for below in ("box", "cube", "cylinder"):
        half = {"box": 0.15, "cube": 0.1, "cylinder": 0.12}[below]
        pair.put(0, "cylinder")
        pair.put(1, below, (0, 0, -0.1199 - half))
        dist, pos, _ = pair.points()
        assert len(dist) == POINTS
        np.testing.assert_allclose(np.hypot(*pos[:, :2].T), 0.1, atol=1e-9)
        np.testing.assert_allclose(dist, -1e-4, atol=FLOAT32)
        np.testing.assert_allclose(pos.mean(0)[:2], 0, atol=1e-9)


def test_a_cap_over_an_edge_has_contacts_at_rim_edge_crossings():
    pair = Pair()
    pair.put(0, "cylinder")
    pair.put(1, "box", (0.12, 0, -0.2699))  # its face ends at x = 0.02
    _, pos, _ = pair.points()
    edge = pos[np.abs(pos[:, 0] - 0.02) < 1e-9]
    np.testing.assert_allclose(np.sort(edge[:, 1]), [-np.sqrt(0.01 - 4e-4), np.sqrt(0.01 - 4e-4)], atol=1e-9)


def test_reduction_keeps_the_deepest_and_most_distant_points():
    pair = Pair()
    pair.put(0, "box")
    pair.put(1, "box", (0, 0, 0.2995), turn(Z, np.pi / 4) @ turn(X, 1e-4))
    dist, pos, _ = pair.points()
    assert len(dist) == POINTS
    assert dist.min() == dist[0]
    assert abs(dist[0] - pair.distance()[0]) < 1e-12
    spread = np.linalg.norm(pos[:, None] - pos, axis=-1)
    assert spread[0].max() > 0.2


@pytest.mark.parametrize("limit", [0.0, 1e-4, 1e-2, 0.1])
def test_points_count_up_to_the_limit_and_keep_their_normal(limit, rng):
    pair = Pair()
    for _ in range(few(40)):
        kinds = rng.choice(list(KINDS)[:5] + list(MESHES), 2)
        for side, kind in enumerate(kinds):
            kind = "box" if kind == "mesh" else kind
            pair.put(side, kind, 0.25 * side * direction(rng), random_turn(rng))
        near, n, _ = pair.distance()
        dist, _, normal = pair.points(limit)
        assert (len(dist) > 0) == (near <= limit)
        assert len(dist) <= POINTS
        if len(dist):
            assert (dist <= limit).all()
            np.testing.assert_allclose(dist.min(), near, atol=1e-9)
            np.testing.assert_array_equal(normal, np.tile(n, (len(dist), 1)))


def test_face_contact_points_lie_between_the_faces(rng):
    pair = Pair()
    for first, second in (("box", "cube"), ("cube", "stone"), ("box", "box"), ("tetrahedron", "cube")):
        for _ in range(few(30)):
            R, v = random_turn(rng), rng.uniform(-0.05, 0.05, 2)
            pair.put(0, first, (0, 0, 0), R)
            pair.put(1, second, R @ (v[0], v[1], 0.4), R @ turn(Z, rng.uniform(0, 6)) @ turn(X, rng.choice([0, 0.01])))
            near, n, _ = pair.distance()
            pair.move(1, pair.arrays["shapes.pos"][3:] - n * (near + 1e-3), pair.arrays["shapes.mat"][9:].copy())
            dist, pos, normal = pair.points()
            top, bottom = (pair.vertices(0) @ normal[0]).max(), (pair.vertices(1) @ normal[0]).min()
            height = pos @ normal[0]
            assert (height + 0.5 * dist >= bottom - 1e-7).all()
            assert (height - 0.5 * dist <= top + 1e-7).all()


# ---- smooth hulls ----------------------------------------------------------------------------------------------------
def ball(rng, n, axes):
    """Returns points of an ellipsoid as a mesh attribute: faces of their hull bend slightly, some inwards."""
    v = rng.standard_normal((n, 3))
    return " ".join(f"{x:.9g}" for x in np.ravel(v / np.linalg.norm(v, axis=1)[:, None] * axes))


@pytest.fixture(scope="module")
def balls():
    """Returns two smooth hulls in a workspace, as `Pair`."""
    rng = np.random.default_rng(0)
    first, second = ball(rng, 400, (0.1, 0.08, 0.05)), ball(rng, 300, (0.06, 0.09, 0.07))
    pair = Pair()
    pair.model = fl.load(
        f'''<mujoco><asset><mesh name="a" vertex="{first}"/><mesh name="b" vertex="{second}"/></asset><worldbody>
        <geom type="mesh" mesh="a"/><body><freejoint/><geom type="mesh" mesh="b"/></body></worldbody></mujoco>'''
    )
    pair.workspace = Workspace(pair.model, 1)
    pair.arrays = pair.workspace.arrays
    for side in range(2):
        pair.arrays["shapes.type"][side], pair.arrays["shapes.data"][side] = KINDS["mesh"], side
    pair.move(0, (0, 0, 0))
    return pair


def poses_of_balls(pair, rng, n, limit=0.0):
    """Yields points of poses in which they overlap slightly."""
    found = 0
    while found < n:
        pair.move(1, rng.uniform(0.08, 0.14) * direction(rng), random_turn(rng))
        if -5e-3 < pair.distance()[0] < 0.0:
            found += 1
            yield pair.points(limit)


def test_faces_with_crossing_edges_have_at_least_three_points(balls, rng):
    met = 0
    for dist, _, _ in poses_of_balls(balls, rng, few(400), limit=0.1):
        if balls.arrays["facet.kind"][0] == CROSSING and (balls.arrays["feature.count"] > 2).all():
            met += 1
            assert len(dist) > 2
    assert met >= few(400) // 10


def test_contact_points_are_distinct_and_no_deeper_than_the_depth(balls, rng):
    for dist, pos, _ in poses_of_balls(balls, rng, few(400)):
        assert abs(dist.min() - balls.arrays["convex.dist"][0]) <= EQUAL
        apart = np.linalg.norm(pos[:, None] - pos, axis=-1) + np.eye(len(pos))
        assert apart.min() > 1e-6


@pytest.mark.parametrize("name", [in_ci("robots/ur5e/robot"), "robots/xarm7/robot"])
def test_hulls_of_robots_have_as_many_points_as_in_mujoco(name, rng):
    """With few exceptions: its features may be outside the tolerance of the contact's normal, ours may not."""
    path = str(model_path(f"robosuite/{name}"))
    mj, model = mujoco.MjModel.from_xml_path(path), fl.load(path)
    theirs, data, differences = mujoco.MjData(mj), fl.Data(model), Counter()
    hinges = np.flatnonzero(mj.jnt_type >= int(mujoco.mjtJoint.mjJNT_SLIDE))
    for _ in range(few(300)):
        low, high = np.where(mj.jnt_limited[hinges, None], mj.jnt_range[hinges], (-1.0, 1.0)).T
        theirs.qpos[mj.jnt_qposadr[hinges]] = rng.uniform(low, high)
        mujoco.mj_forward(mj, theirs)
        data.qpos[:] = theirs.qpos
        fl.forward(model, data)
        here = Counter(map(tuple, np.reshape(data.con_geom, (-1, 2))[: int(data.ncon)].tolist()))
        there = Counter(map(tuple, theirs.contact.geom.tolist()))
        hulls = [pair for pair in here | there if (mj.geom_type[list(pair)] == KINDS["mesh"]).all()]
        differences.update(here[pair] - there[pair] for pair in hulls)
    assert differences.total() > few(300) // 8
    assert differences[0] >= 0.95 * differences.total(), differences


# ---- in scenes -------------------------------------------------------------------------------------------------------
SCENE = """
<mujoco>
  <option timestep="0.002" impratio="1"/>
  {assets}
  <worldbody>
    <geom {first} pos="0 0 {low}" euler="{turned}" mass="1"/>
    <body pos="0.02 0.01 {high}" euler="{lying}"><freejoint/><geom {second} mass="1"/></body>
  </worldbody>
</mujoco>
"""
REST = {
    "mesh on box": ("table", "0 0 0", -0.15, "cube", 0.1, "0 0 30"),
    "mesh on mesh": ("cube", "0 0 0", -0.1, "tetrahedron", 0.0375, "0 0 10"),
    "cylinder on box": ("box", "0 0 0", -0.15, "cylinder", 0.12, "0 0 0"),
    "cylinder on mesh": ("cube", "0 0 0", -0.1, "cylinder", 0.12, "0 0 20"),
    "cylinder on cylinder": ("cylinder", "0 0 0", -0.12, "cylinder", 0.12, "0 0 0"),
}


@pytest.mark.skipif(not COMPILED, reason="500 steps of the whole engine")
@pytest.mark.parametrize("name", list(REST))
def test_rest_poses_equal_mujoco(name):
    first, turned, low, second, high, lying = REST[name]
    scene = SCENE.format(
        assets=assets(), first=geom(first), second=geom(second), low=low, high=high, turned=turned, lying=lying
    )
    model = fl.load(scene)
    data, mj = fl.Data(model), model.to_mujoco()
    theirs = mujoco.MjData(mj)
    fl.step(model, data, 500)
    mujoco.mj_step(mj, theirs, 500)
    np.testing.assert_allclose(data.qpos[:2], theirs.qpos[:2], atol=1e-4)  # pyramidal friction creeps
    np.testing.assert_allclose(data.qpos[2], theirs.qpos[2], atol=3e-6)
    np.testing.assert_allclose(np.abs(data.qpos[3:]), np.abs(theirs.qpos[3:]), atol=1e-4)
    np.testing.assert_allclose(data.qvel, 0, atol=1e-4)
    np.testing.assert_allclose(data.qfrc_constraint, theirs.qfrc_constraint, atol=1e-3)  # 9.81 N


def test_contact_points_in_a_tile_equal_those_of_single_worlds(rng):
    model = pair_model('type="cylinder" size="0.1 0.15"', 'type="ellipsoid" size="0.1 0.12 0.15"', margin=0.02)
    n = 24
    pos = np.zeros((n, 2, 3))
    pos[:, 1] = 0.2 * np.array([direction(rng) for _ in range(n)])
    quat = np.stack([random_quat(rng, n), random_quat(rng, n)], 1)
    poses = frames(model, pos, quat)
    alone, together = collide(model, *poses, 1), collide(model, *poses, 8)
    assert sum(len(x) for x in alone) > 10
    for a, b in zip(alone, together, strict=True):
        assert a.tobytes() == b.tobytes()


# ---- arbitrary input -------------------------------------------------------------------------------------------------
def fuzz(n, rng):
    """Pairs of any shapes in any poses, including degenerate ones: the result is finite and within its bounds."""
    pair, a = Pair(), None
    a = pair.arrays
    kinds = [*SIZES, *MESHES, "prism"]
    lattice = np.array([-0.2, -0.1, 0, 0.05, 0.1, 0.15, 0.2, 0.25])
    quarter = [np.eye(3)[list(p)] * s for p, s in (((0, 1, 2), 1), ((1, 2, 0), 1), ((0, 2, 1), -1), ((2, 1, 0), -1))]
    for _ in range(n):
        for side in range(2):
            kind = rng.choice(kinds)
            size = (
                (0.1, 0.1, 0.1) if rng.random() < 0.5 else 10.0 ** rng.uniform(-8 if rng.random() < 0.1 else -2, 0.5, 3)
            )
            mat = random_turn(rng) if rng.random() < 0.4 else quarter[rng.integers(4)]
            if rng.random() < 0.3:
                mat = mat @ turn(direction(rng), 10.0 ** rng.uniform(-16, -3))
            pos = rng.choice(lattice, 3) if rng.random() < 0.6 else 0.2 * rng.standard_normal(3)
            pair.put(side, kind, pos, mat, size)
        flat = 0.0 if rng.random() < 0.3 else 1.0
        a["shapes.prism"][:] = (0.1 * rng.standard_normal((6, 3)) * (1, 1, flat)).ravel()
        healthy = rng.random() > 0.01
        if not healthy:
            a["shapes.pos"][rng.integers(6)] = rng.choice([np.nan, np.inf, -np.inf, 1e300])
        pair.run(convex, rng.choice([0, 0.01, 0.1, 1.0]))
        m = int(a["manifold.count"][0])
        assert 0 <= m <= POINTS
        if healthy:
            for name, width in (("dist", 1), ("pos", 3), ("normal", 3)):
                assert np.isfinite(a[f"manifold.{name}"][: width * m]).all()
            np.testing.assert_allclose(
                np.linalg.norm(a["manifold.normal"][: 3 * m].reshape(m, 3), axis=1), 1, atol=1e-9
            )


def test_no_pair_of_shapes_hangs_or_writes_out_of_bounds(rng, monkeypatch):
    if COMPILED:
        monkeypatch.setenv("FEATHERLANE_MODE", "checked")
    fuzz(few(3000), rng)


@pytest.mark.slow
def test_a_million_pairs_neither_hang_nor_write_out_of_bounds(rng, monkeypatch):
    monkeypatch.setenv("FEATHERLANE_MODE", "checked")
    fuzz(1_000_000, rng)
