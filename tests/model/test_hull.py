"""Convex hulls of meshes: closed, convex, with consistent tables for kernels; on made and on real meshes."""

import itertools
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest

from featherlane.engine.collision.convex.support import cell_of, farthest_vertex
from featherlane.engine.model import load
from featherlane.engine.model.hull import hulls as hulls_of
from featherlane.engine.model.outline import outlines
from featherlane.engine.spatial.types import Vec3
from featherlane.errors import ModelError
from robots import wheels
from robots.models import ROBOTS
from sampling import every

CUBE = np.array([[x, y, z] for x in (-0.1, 0.1) for y in (-0.1, 0.1) for z in (-0.1, 0.1)])
# two triangles per side; vertices without faces always get a hull
FACES = "0 1 3 0 3 2 4 6 7 4 7 5 0 4 5 0 5 1 2 3 7 2 7 6 0 2 6 0 6 4 1 5 7 1 7 3"
MERGED = 3e-3  # MuJoCo merges triangles into one face if they bend by less than about this fraction of the mesh's size
REAL = ("mjx/shadow_hand/right_hand", "metaworld/sawyer_xyz/sawyer_soccer")

SCENE = """
<mujoco>
  <asset><mesh name="rock" vertex="{vertices}" {more}/></asset>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body name="stone"><freejoint/>{inertial}<geom name="face" type="mesh" mesh="rock" {geom}/></body>
  </worldbody>
</mujoco>"""
INERTIAL = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'


def hulls(mj) -> dict[str, np.ndarray]:
    """Returns the hulls of all meshes of a compiled model."""
    return hulls_of([mj] * mj.nmesh)


def text(vertices, more="", geom="", inertial=""):
    numbers = " ".join(f"{x:.9g}" for x in np.ravel(vertices))
    return SCENE.format(vertices=numbers, more=more, geom=geom, inertial=inertial)


def visual():
    """Returns a model whose mesh is visual only."""
    return mujoco.MjModel.from_xml_string(text(CUBE, f'face="{FACES}"', 'contype="0" conaffinity="0"', INERTIAL))


def hull_of(vertices, more=""):
    """Returns the fields of one mesh's hull, with lists in place of addresses."""
    return one_hull(hulls(mujoco.MjModel.from_xml_string(text(vertices, more))), 0)


def one_hull(h, mesh: int):
    """Returns (vertices, neighbours of each, normals, corners of each face, faces at each vertex) of one mesh."""
    v0, p0 = h["hull_vertadr"][mesh], h["hull_polyadr"][mesh]
    vertices, faces = range(v0, v0 + h["hull_vertnum"][mesh]), range(p0, p0 + h["hull_polynum"][mesh])

    def lists(name, rows):
        return [
            h[f"hull_{name}"][a : a + n] for a, n in ((h[f"hull_{name}adr"][i], h[f"hull_{name}num"][i]) for i in rows)
        ]

    return (
        h["hull_vert"][v0 : v0 + len(vertices)],
        lists("edge", vertices),
        h["hull_polynormal"][p0 : p0 + len(faces)],
        lists("polyvert", faces),
        lists("map", vertices),
    )


def check(vert, edge, normal, corners, faces, flipped=False):
    """Checks the laws of a hull; after flipped edges, the boundary edges of its faces may differ."""
    size = np.abs(vert - vert.mean(axis=0)).max()
    np.testing.assert_allclose(np.linalg.norm(normal, axis=1), 1.0, rtol=1e-12)
    # closed: symmetric neighbours, each triangle edge in two triangles, Euler's V - E + F = 2
    pairs = {(a, b) for a, around in enumerate(edge) for b in around}
    assert pairs == {(b, a) for a, b in pairs}
    sides = [(p[i - 1], p[i]) for p in corners for i in range(len(p))]
    assert len(set(sides)) == len(sides) and set(sides) == {(b, a) for a, b in sides}
    assert flipped or set(sides) <= pairs
    # of a convex triangulated surface: vertices without edges are inside
    left_out = sum(len(around) == 0 for around in edge)
    assert len(pairs) == 2 * (3 * (len(vert) - left_out) - 6)
    assert left_out < 0.1 * len(vert)
    met = {v for p in corners for v in p}
    assert len(met) - len(sides) // 2 + len(corners) == 2
    # convex: no vertex above a face, corners on the face, counterclockwise seen from outside
    for n, p in zip(normal, corners, strict=True):
        height = vert @ n
        assert height.max() - height[p].min() <= MERGED * size
        area = sum(np.cross(vert[p[i - 1]], vert[p[i]]) for i in range(len(p)))
        assert area @ n > 0.0
    # faces at a vertex
    at = [[f for f, p in enumerate(corners) if v in p] for v in range(len(vert))]
    assert all(np.array_equal(sorted(a), sorted(b)) for a, b in zip(at, faces, strict=True))


def test_a_cube_has_eight_vertices_and_six_faces():
    vert, edge, normal, corners, faces = hull_of(CUBE)
    check(vert, edge, normal, corners, faces)
    np.testing.assert_allclose(sorted(map(tuple, vert)), sorted(map(tuple, CUBE)), atol=1e-8)
    assert [len(p) for p in corners] == [4] * 6
    np.testing.assert_allclose(sorted(map(tuple, np.abs(normal))), [[0, 0, 1]] * 2 + [[0, 1, 0]] * 2 + [[1, 0, 0]] * 2)


@pytest.mark.parametrize("n", [4, 5, 8, 30, 200])
def test_hulls_of_random_points_are_closed_and_convex(n, rng):
    check(*hull_of(rng.standard_normal((n, 3))))


@pytest.mark.parametrize("name", every(2, reversed(REAL)))
def test_hulls_of_real_meshes_are_closed_and_convex(real_model, name):
    mj = mujoco.MjModel.from_xml_path(str(real_model(name)))
    h = hulls(mj)
    for mesh in np.flatnonzero(mj.mesh_graphadr >= 0):
        check(*one_hull(h, mesh), flipped=True)


@pytest.mark.parametrize("name", REAL)
def test_climbing_a_real_hull_ends_at_the_farthest_vertex(real_model, name, rng):
    mj = mujoco.MjModel.from_xml_path(str(real_model(name)))
    h = hulls(mj)
    assert h["hull_convex"].tolist() == (mj.mesh_graphadr >= 0).astype(int).tolist()
    for mesh in np.flatnonzero(h["hull_convex"]):
        vert, edge, *_ = one_hull(h, mesh)
        corners = np.flatnonzero([len(around) for around in edge])
        for u in rng.normal(size=(100, 3)):
            height, at, last = vert @ u, rng.choice(corners), -1
            while at != last:
                last, best = at, max(edge[at], key=lambda i: height[i])
                at = best if height[best] > height[at] else at
            assert height[at] >= height.max() - 1e-15 * np.abs(height).max()


@pytest.mark.slow
@pytest.mark.parametrize("wheel", ROBOTS)
def test_all_hulls_of_a_wheel_become_convex(wheel):
    hulls_met = 0
    for name in wheels.models_in(wheel):
        try:
            mj = mujoco.MjModel.from_xml_path(str(wheels.model_path(name)))
        except ValueError:  # part of another model
            continue
        assert hulls(mj)["hull_convex"].tolist() == (mj.mesh_graphadr >= 0).astype(int).tolist(), name
        hulls_met += (mj.mesh_graphadr >= 0).sum()
    assert hulls_met > 5


def test_points_inside_and_twice_change_nothing(rng):
    inside = rng.uniform(-0.09, 0.09, (50, 3))
    plain, crowded = hull_of(CUBE), hull_of(np.concatenate([CUBE, inside, CUBE]))
    check(*crowded)
    np.testing.assert_allclose(sorted(map(tuple, crowded[0])), sorted(map(tuple, plain[0])), atol=1e-6)


def test_a_hull_of_few_vertices_is_one():
    vert, *rest = hull_of(CUBE, 'maxhullvert="5"')
    assert len(vert) == 5
    check(vert, *rest)


def test_twenty_thousand_vertices_load(rng):
    v = rng.standard_normal((20_000, 3))
    spec = mujoco.MjSpec()
    spec.add_mesh(name="ball", uservert=(v / np.linalg.norm(v, axis=1)[:, None]).ravel().tolist())
    body = spec.worldbody.add_body()
    body.add_freejoint()
    body.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="ball")
    h = hulls(spec.compile())
    assert h["hull_vertnum"] == [20_000] and h["hull_edgenum"].sum() == 2 * (3 * 20_000 - 6)


def test_meshes_that_nothing_touches_have_no_hull():
    h = hulls(visual())
    assert h["hull_vertnum"] == [0] and h["hull_polynum"] == [0] and h["hull_vert"].shape == (0, 3)


# ---- bad meshes ------------------------------------------------------------------------------------------------------

FLAT = CUBE * [1, 1, 0]
BAD = {
    "flat": (FLAT, "coplanar"),
    "a line": (np.outer(range(4), [1, 2, 3]), "collinear"),
    "one place": (np.zeros((4, 3)), "colocated"),
    "one point": (np.zeros((1, 3)), "at least 4 vertices"),
    "two points": (CUBE[:2], "at least 4 vertices"),
    "three points": (CUBE[:3], "at least 4 vertices"),
    "no volume": (CUBE * 1e-6, "volume is too small"),
    "NaN": (np.where(CUBE[0] == CUBE, np.nan, CUBE), "not finite"),
    "infinite": (np.where(CUBE[0] == CUBE, np.inf, CUBE), "not finite"),
}


@pytest.mark.parametrize("inertial", ["", INERTIAL])
@pytest.mark.parametrize("more", ["", 'inertia="shell"'])
@pytest.mark.parametrize("what", BAD)
@pytest.mark.filterwarnings("ignore:MuJoCo. XML contains a 'NaN'")
def test_degenerate_meshes_are_refused_by_name(what, more, inertial):
    vertices, message = BAD[what]
    if what == "no volume" and more:
        message = "larger than mjMINVAL"  # a shell needs mass, but no volume
        if inertial:
            load(text(vertices, more, inertial=inertial))
            return
    with pytest.raises(ModelError, match=message) as caught:
        load(text(vertices, more, inertial=inertial))
    assert "rock" in str(caught.value) or "stone" in str(caught.value)


def test_a_mesh_without_a_hull_that_an_edit_lets_collide_is_refused_by_name():
    mj = visual()
    load(mj)
    mj.geom_contype[:] = mj.body_contype[:] = 1
    with pytest.raises(ModelError, match="face"):
        load(mj)


def test_vertices_that_an_edit_made_infinite_are_refused_by_name():
    mj = mujoco.MjModel.from_xml_string(text(CUBE))
    mj.mesh_vert[3, 1] = np.nan
    with pytest.raises(ModelError, match="rock"):
        load(mj)


def directions(n: int) -> np.ndarray:
    """Returns (6, 2 n + 1, 2 n + 1, 3): directions to corners, middles of edges and centres of cells; see `cell_of`."""
    at = np.linspace(-1.0, 1.0, 2 * n + 1)
    out = np.zeros((6, len(at), len(at), 3))
    for face in range(6):
        k = face // 2
        out[face, ..., k] = 1.0 if face % 2 else -1.0
        out[face, ..., (k + 1) % 3], out[face, ..., (k + 2) % 3] = np.meshgrid(at, at, indexing="ij")
    return out


def farthest(hull: dict, mesh: int, u: np.ndarray) -> int:
    """Returns the farthest vertex of a hull along u by the kernel, from the arrays of the model, with rows of Vec3."""
    return farthest_vertex.function(SimpleNamespace(**hull), mesh, Vec3(u))


def test_the_farthest_vertex_is_a_candidate_of_its_cell(rng):
    dense = rng.normal(size=(200, 3)) * (1.0, 1.0, 0.01)  # most faces are nearly parallel
    meshes = {
        "round": rng.normal(size=(300, 3)),
        "four": np.vstack([np.zeros(3), np.eye(3)]),
        "flat": np.vstack([dense, -dense]),
        "cube": np.array(list(itertools.product((-1.0, 1.0), repeat=3))),
    }
    assets = "".join(
        f'<mesh name="{name}" vertex="{" ".join(f"{x:.5f}" for x in vert.ravel())}"/>' for name, vert in meshes.items()
    )
    geoms = "".join(f'<geom type="mesh" mesh="{name}"/>' for name in meshes)
    hull = hulls(
        mujoco.MjModel.from_xml_string(
            f"<mujoco><asset>{assets}</asset><worldbody><body><freejoint/>{geoms}</body></worldbody></mujoco>"
        )
    )
    assert hull["hull_cell"].shape == (6 * (hull["hull_cells"] ** 2).sum() + 1,)
    count, rows = np.diff(hull["hull_cell"]), [Vec3(vert) for vert in hull["hull_vert"]]
    assert (count > 0).all() and hull["hull_cell"][-1] == len(hull["hull_candidate"])
    for mesh, first in enumerate(hull["hull_vertadr"]):
        cells, place = hull["hull_cells"][mesh], hull["hull_celladr"][mesh]
        vert = hull["hull_vert"][first : first + hull["hull_vertnum"][mesh]]
        corners = np.flatnonzero(hull["hull_edgenum"][first : first + len(vert)])
        # cells are not larger than the vertices need, and their lists are short
        assert count[place : place + 6 * cells**2].mean() < 6
        normals = hull["hull_planenormal"][hull["hull_polyadr"][mesh] :][: hull["hull_polynum"][mesh]]
        grid = directions(cells).reshape(-1, 3)  # on the borders of cells, where rounding decides
        for u in (*rng.normal(size=(500, 3)), *grid[rng.integers(len(grid), size=500)], *normals):
            height = vert[corners] @ u
            assert (
                vert[farthest(hull | {"hull_vert": rows}, mesh, u)] @ u >= height.max() - 1e-15 * np.abs(height).max()
            )


def test_direction_cells_are_numbered_consistently():
    for n in (1, 4, 16):
        for k, u in enumerate(directions(n)[:, 1::2, 1::2].reshape(-1, 3)):
            assert cell_of.function(u, n) == k


@pytest.mark.parametrize("u", [(0.0, 0.0, 0.0), (np.nan, 1.0, 0.0), (np.inf, -np.inf, 0.0), (1e-310, 0.0, 1e-320)])
def test_any_direction_has_a_cell(u):
    with np.errstate(all="ignore"):
        assert 0 <= cell_of.function(np.array(u), 16) < 6 * 16**2


def test_face_planes_record_flatness_and_protrusion(rng):
    mj = mujoco.MjModel.from_xml_string(text(CUBE))
    hull = hulls(mj)
    vert = hull["hull_vert"]
    assert len(hull["hull_planeoffset"]) == 6
    for f in range(6):
        heights = vert @ hull["hull_planenormal"][f]
        start, n = hull["hull_polyvertadr"][f], hull["hull_polyvertnum"][f]
        corners = hull["hull_polyvert"][start : start + n]
        assert heights[corners] == pytest.approx(hull["hull_planeoffset"][f], abs=1e-7)
        assert hull["hull_planeoffset"][f] == heights.max()
        assert hull["hull_planeerror"][f] == pytest.approx(np.ptp(heights[corners]), abs=1e-15)
        assert hull["hull_planedrop"][f] == pytest.approx(0.2, rel=1e-5)


def test_no_vertex_of_a_rough_hull_is_above_a_face(rng):
    points = " ".join(f"{x:.5f}" for x in rng.normal(size=300))
    mj = mujoco.MjModel.from_xml_string(
        f'<mujoco><asset><mesh name="m" vertex="{points}"/></asset>'
        '<worldbody><body><freejoint/><geom type="mesh" mesh="m"/></body></worldbody></mujoco>'
    )
    hull = hulls(mj)
    heights = hull["hull_vert"] @ hull["hull_planenormal"].T
    for f, (start, n) in enumerate(zip(hull["hull_polyvertadr"], hull["hull_polyvertnum"], strict=True)):
        others = np.delete(heights[:, f], hull["hull_polyvert"][start : start + n])
        assert others.max() == pytest.approx(hull["hull_planeoffset"][f] - hull["hull_planedrop"][f], abs=1e-12)


def test_flat_faces_are_listed_at_their_corners():
    roof = np.concatenate([CUBE, [[0.0, 0.0, 2.0 * np.max(CUBE)]]])
    h = hulls(mujoco.MjModel.from_xml_string(text(roof)))
    flat = (h["hull_outlinenum"] > 3) & (h["hull_planeerror"] <= 0.25e-3 * h["hull_planedrop"])
    assert (flat.sum(), len(flat)) == (5, 9)
    for v in range(len(h["hull_vert"])):
        faces, listed = (
            h[f"hull_{name}"][h[f"hull_{name}adr"][v] : h[f"hull_{name}adr"][v] + h[f"hull_{name}num"][v]]
            for name in ("map", "flat")
        )
        assert listed.tolist() == [f for f in faces if flat[f]]


def outlines_of(h, mesh):
    """Yields (vertices of the outline, vertices of the face, normal) of each face of a mesh."""
    vert = h["hull_vert"][h["hull_vertadr"][mesh] :]
    for f in range(h["hull_polyadr"][mesh], h["hull_polyadr"][mesh] + h["hull_polynum"][mesh]):
        rings = [
            h[f"hull_{name}"][h[f"hull_{name}adr"][f] : h[f"hull_{name}adr"][f] + h[f"hull_{name}num"][f]]
            for name in ("outline", "polyvert")
        ]
        yield vert[rings[0]], vert[rings[1]], h["hull_planenormal"][f]


@pytest.mark.parametrize("name", REAL)
def test_outlines_are_convex_and_contain_all_corners(real_model, name):
    mj = mujoco.MjModel.from_xml_path(str(real_model(name)))
    h, less = hulls(mj), 0
    for mesh in np.flatnonzero(mj.mesh_graphadr >= 0):
        for ring, corners, normal in outlines_of(h, mesh):
            size = np.ptp(corners, axis=0).max()
            edges = np.roll(ring, -1, axis=0) - ring
            inwards = np.cross(normal, edges / np.linalg.norm(edges, axis=1)[:, None])
            # distance of each face corner inside each outline edge: float32 rounding rotates short edges
            assert np.einsum("ek,eck->ec", inwards, corners - ring[:, None]).min() > -1e-4 * size
            assert len(ring) > 2
            less += len(ring) < len(corners)
    assert less > 0


def test_a_corner_that_bends_inwards_is_left_out():
    arrow = np.array([[0, 0, 0], [2, -1, 0], [1, 0, 0], [2, 1, 0], [5, 5, 1]], float)
    square = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], float)
    vert = np.concatenate([arrow, square])
    corners, count = np.array([1, 2, 3, 0, 5, 6, 7, 8]), np.array([4, 4])
    ring, number = outlines(vert, np.array([[0, 0, 1.0], [0, 0, 1.0]]), corners, count)
    assert number.tolist() == [3, 4]
    assert ring.tolist() == [1, 3, 0, 5, 6, 7, 8]
    # corners moved inwards by float32 stay
    vert[2, 0] = 2.0 - 1e-7
    assert outlines(vert, np.array([[0, 0, 1.0], [0, 0, 1.0]]), corners, count)[1].tolist() == [4, 4]
