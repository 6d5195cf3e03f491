"""Nearly convex surfaces become the convex hull exactly; others raise an error."""

from fractions import Fraction

import mujoco
import numpy as np
import pytest

from featherlane.engine.model.convexity import convex_triangles


def hull(points):
    """Returns (points on the hull, its triangles), computed by MuJoCo's compiler."""
    spec = mujoco.MjSpec()
    spec.add_mesh(name="m", uservert=np.ravel(points).tolist(), inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX)
    body = spec.worldbody.add_body()
    body.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="m")
    mj = spec.compile()
    nvert, nface = mj.mesh_graph[:2]
    ids = mj.mesh_graph[2 + nvert : 2 + 2 * nvert]
    triangles = mj.mesh_graph[2 + 3 * nvert + 3 * nface :].reshape(-1, 3)
    number = np.zeros(mj.nmeshvert, int)
    number[ids] = np.arange(nvert)
    return points[ids], number[triangles]


def ball(rng, n=80):
    points = rng.normal(size=(n, 3))
    return hull(points / np.linalg.norm(points, axis=1, keepdims=True))


def above(vert, triangles, among):
    """Returns the number of points above each triangle, in exact fractions."""
    exact = [[Fraction(float(x)) for x in p] for p in vert]

    def volume(a, b, c, d):
        p, q, r = ([x - y for x, y in zip(exact[i], exact[a], strict=True)] for i in (b, c, d))
        normal = [p[i - 2] * q[i - 1] - p[i - 1] * q[i - 2] for i in range(3)]
        return sum(x * y for x, y in zip(normal, r, strict=True))

    return np.array([sum(volume(a, b, c, d) > 0 for d in among) for a, b, c in triangles.tolist()])


def check(vert, triangles):
    """Checks that the surface is closed, made of triangles, and has no point above any of them."""
    edges = {(t[i - 1], t[i]) for t in triangles.tolist() for i in range(3)}
    corners = np.unique(triangles)
    assert len(edges) == 3 * len(triangles) and edges == {(b, a) for a, b in edges}
    assert len(triangles) == 2 * len(corners) - 4
    assert not above(vert, triangles, range(len(vert))).any()
    return corners


def test_a_hull_stays_as_it_is(rng):
    vert, triangles = ball(rng)
    assert convex_triangles(vert, triangles) is triangles


@pytest.mark.parametrize("noise", [1e-9, 1e-6, 1e-3, 1e-2])
def test_slightly_moved_vertices_become_the_hull(rng, noise):
    vert, triangles = ball(rng, 80)
    vert = vert + noise * rng.normal(size=vert.shape)
    corners = check(vert, convex_triangles(vert, triangles))
    if noise > 1e-3:
        assert above(vert, triangles, range(len(vert))).any()
        assert len(corners) < len(vert)


def test_sides_of_a_box_with_points_all_over_are_made_convex(rng):
    u, v = np.meshgrid(np.linspace(-1, 1, 5), np.linspace(-1, 1, 5))
    side = np.c_[u.ravel(), v.ravel(), np.ones(25)]
    points = np.concatenate([np.roll(s * side, k, axis=1) for k in range(3) for s in (-1, 1)])
    bulge = np.unique(points, axis=0) * (1.1 - 0.1 * np.abs(np.unique(points, axis=0)).prod(axis=1, keepdims=True))
    vert, triangles = hull(bulge)
    flat = vert / np.abs(vert).max(axis=1, keepdims=True)
    for noise in (0.0, 1e-8, 1e-4):
        moved = flat + noise * rng.normal(size=flat.shape)
        check(moved, convex_triangles(moved, triangles))


@pytest.mark.ci
def test_a_cylinder_of_many_rings_is_made_convex(rng):
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    angle = 2 * np.pi * np.arange(40) / 40
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    # all points of bulging rings are on the hull; then float32 makes some of them collinear
    rings = [np.c_[(1 + 1e-3 * (1 - z * z)) * circle, np.full(40, z)] for z in np.linspace(-1, 1, 5)]
    bulged, triangles = hull(np.concatenate(rings))
    assert len(bulged) == 200
    flat = bulged / np.stack([1 + 1e-3 * (1 - bulged[:, 2] ** 2)] * 2 + [np.ones(200)], axis=1)
    for points in (flat, (flat @ turn.T).astype(np.float32).astype(float), np.round(flat @ turn.T, 4)):
        check(points, convex_triangles(points, triangles))


def test_one_concave_vertex_is_removed(rng):
    vert, triangles = ball(rng, 60)
    vert[7] *= 0.8
    corners = check(vert, convex_triangles(vert, triangles))
    assert 7 not in corners and len(corners) == len(vert) - 1


def test_coincident_points_yield_one_corner(rng):
    vert, triangles = ball(rng, 60)
    twin = next(b for a, b in triangles[:, :2] if a == 0)
    vert[twin] = vert[0]
    corners = check(vert, convex_triangles(vert, triangles))
    assert 0 in corners and twin not in corners


def test_the_hull_is_the_same_at_any_scale_and_place(rng):
    vert, triangles = ball(rng, 100)
    vert = np.round(vert * 2**12) / 2**12
    expected = convex_triangles(vert, triangles)
    for scale, shift in ((2.0**-60, 0.0), (2.0**40, 0.0), (1.0, 512.0)):
        np.testing.assert_array_equal(convex_triangles(scale * vert + shift, triangles), expected)


def test_open_or_strongly_concave_surfaces_are_refused(rng):
    vert, triangles = ball(rng, 60)
    assert convex_triangles(vert, triangles[1:]) is None
    assert convex_triangles(vert, triangles[:, ::-1]) is None
    assert convex_triangles(vert, triangles[:2]) is None
    assert convex_triangles(vert, np.concatenate([triangles, triangles])) is None
    assert convex_triangles(vert[rng.permutation(len(vert))], triangles) is None
    for bad in (np.nan, np.inf):
        vert[3, 1] = bad
        assert convex_triangles(vert, triangles) is None
