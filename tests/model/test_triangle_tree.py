"""Trees of boxes over the triangles of meshes: each triangle once, inside all boxes above it, in few levels."""

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.collision.rays.ray_mesh import DEPTH
from featherlane.engine.model import triangle_tree
from featherlane.engine.model.triangle_tree import GROUP, NO_CHILD, Sorted, triangle_trees
from featherlane.errors import ModelError


def meshes(*triangles: np.ndarray) -> mujoco.MjModel:
    """Returns a model with a mesh of each array (n, 3, 3) of triangles."""
    spec = mujoco.MjSpec()
    for k, corners in enumerate(triangles):
        face = np.arange(3 * len(corners)).reshape(-1, 3)
        asset = spec.add_mesh(name=f"mesh{k}", uservert=corners.ravel(), userface=face.ravel())
        asset.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname=asset.name, contype=0, conaffinity=0)
    return spec.compile()


def walk(tree: dict[str, np.ndarray], node: int, lower, upper, level: int = 1):
    """Yields (level, triangle's face, corners, lower, upper) below a node within a box."""
    for k in range(GROUP):
        child, box = tree["meshnode_child"][node, k], tree["meshnode_box"][node, :, k]
        if child == NO_CHILD:
            continue
        low, high = np.maximum(lower, box[:3]), np.minimum(upper, box[3:])
        if child >= 0:
            yield from walk(tree, child, low, high, level + 1)
            continue
        faces, corners = tree["trianglegroup_face"][-1 - child], tree["trianglegroup_vert"][-1 - child]
        for slot in np.flatnonzero(faces >= 0):
            yield level, faces[slot], corners[:, slot].reshape(3, 3), low, high
        assert not corners[:, faces < 0].any()


def check(mj: mujoco.MjModel) -> int:
    """Checks the trees of all meshes; returns the number of levels."""
    tree, levels = triangle_trees(mj), 0
    for mesh in range(mj.nmesh):
        first, number = mj.mesh_faceadr[mesh], mj.mesh_facenum[mesh]
        vert = mj.mesh_vert[mj.mesh_vertadr[mesh] :]
        found = []
        for level, face, corners, low, high in walk(tree, tree["meshnode_adr"][mesh], -np.inf, np.inf):
            np.testing.assert_array_equal(corners, vert[mj.mesh_face[face]])
            assert (low <= corners).all() and (corners <= high).all()
            found.append(face)
            levels = max(levels, level)
        assert sorted(found) == list(range(first, first + number))
    return levels


def random_triangles(rng, n: int, scale=1.0) -> np.ndarray:
    return rng.normal(size=(n, 1, 3)) + scale * rng.normal(size=(n, 3, 3))


@pytest.mark.parametrize("numbers", [(2,), (8, 9), (2, 64, 65), (700, 3, 1500)])
def test_each_triangle_is_in_one_group_inside_the_boxes_above_it(rng, numbers):
    assert check(meshes(*(random_triangles(rng, n, 0.1) for n in numbers))) <= 1 + np.log2(max(numbers))


def test_equal_triangles_are_divided(rng):
    one = random_triangles(rng, 1) + 1e-6 * rng.normal(size=(300, 3, 3))
    one[:, :, :] = one[:1]
    mj = meshes(random_triangles(rng, 300))
    mj.mesh_vert[:] = np.tile(one[0], (len(mj.mesh_vert) // 3 + 1, 1))[: len(mj.mesh_vert)]
    assert check(mj) <= 4


@pytest.fixture
def clusters_of_64(monkeypatch):
    monkeypatch.setattr(triangle_tree, "CLUSTER", 64)


@pytest.mark.usefixtures("clusters_of_64")
@pytest.mark.parametrize("numbers", [(65,), (64, 2000), (5000, 3, 700)])
def test_clusters_keep_each_triangle_in_one_group_inside_the_boxes_above_it(rng, numbers):
    assert check(meshes(*(random_triangles(rng, n, 0.1) for n in numbers))) <= 1 + np.log2(max(numbers))


@pytest.mark.usefixtures("clusters_of_64")
def test_equal_triangles_in_several_clusters_are_divided(rng):
    mj = meshes(random_triangles(rng, 300))
    mj.mesh_vert[:] = np.tile(random_triangles(rng, 1)[0], (len(mj.mesh_vert) // 3 + 1, 1))[: len(mj.mesh_vert)]
    assert check(mj) <= 5


@pytest.mark.usefixtures("clusters_of_64")
def test_the_tree_does_not_depend_on_the_blocks(rng, monkeypatch):
    mj = meshes(random_triangles(rng, 3000, 0.1), random_triangles(rng, 200))
    one = triangle_trees(mj)
    monkeypatch.setattr(triangle_tree, "BLOCK", 100)
    for name, values in triangle_trees(mj).items():
        np.testing.assert_array_equal(values, one[name], name)


def test_overflowing_areas_leave_boxes_around_all_triangles(rng):
    mj = meshes(random_triangles(rng, 300, 0.1))
    mj.mesh_vert[:] *= np.float32(1e25)
    with np.errstate(over="ignore", invalid="ignore"):
        check(mj)


def brute_force(corners: np.ndarray, point: np.ndarray, direction: np.ndarray) -> float:
    """Returns the distance of the nearest of triangles (n, 3, 3) along a ray, -1 if none is hit."""
    a, ab, ac = corners[:, 0], corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    x = np.linalg.solve(np.stack([ab, ac, np.broadcast_to(-direction, a.shape)], axis=2), (point - a)[..., None])[
        ..., 0
    ]
    hit = (x[:, 0] >= 0) & (x[:, 1] >= 0) & (x[:, 0] + x[:, 1] <= 1) & (x[:, 2] >= 0)
    return x[hit, 2].min() if hit.any() else -1.0


@pytest.mark.usefixtures("clusters_of_64")
def test_rays_at_a_tree_of_clusters_hit_the_triangle_that_all_tests_find(rng):
    mj = meshes(random_triangles(rng, 2000, 0.1))
    model = fl.load(mj)
    data, corners = fl.Data(model), mj.mesh_vert[mj.mesh_face].astype(float)
    fl.forward(model, data)
    local = corners @ data.geom_xmat[0].reshape(3, 3).T + data.geom_xpos[0]
    points = 4.0 * rng.normal(size=(300, 3))
    directions = rng.normal(size=(300, 3)) - points
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    found = fl.query.ray(model, data, points, directions).distance
    expected = [brute_force(local, *ray) for ray in zip(points, directions, strict=True)]
    assert 50 < np.count_nonzero(np.array(expected) > 0) < 300
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_the_stack_of_a_ray_holds_a_tree_of_growing_triangles():
    """Each triangle is larger than all before it together, the worst case for splits by area."""
    size = 1.02 ** np.arange(3000)[:, None, None]
    corners = size * np.array([[1.0, 0.1, 0.0], [1.5, 0.0, 0.2], [1.2, 0.3, 0.1]])
    assert (GROUP - 1) * check(meshes(corners / size.max())) + 1 <= DEPTH


def test_model_without_meshes_has_empty_trees():
    model = fl.load("<mujoco><worldbody/></mujoco>")
    assert model.meshnode_child.shape == (0, 8)
    assert model.trianglegroup_vert.shape == (0, 9, 8)


def test_a_wrong_vertex_is_refused(rng):
    mj = meshes(random_triangles(rng, 5), random_triangles(rng, 5))
    mj.mesh_face[7, 1] = 999
    with pytest.raises(ModelError, match=r"mesh_face: got .* in triangle 2 of mesh 1, allowed are"):
        triangle_trees(mj)


def test_items_are_sorted_by_their_middles_within_each_part_and_ties_by_number(rng):
    box = np.zeros((3000, 8), np.float32)
    box[:1000, :6] = rng.choice([-1e38, -2.5, -1e-40, -0.0, 0.0, 1e-40, 1.0], (1000, 6))
    box[1000:, :6] = rng.normal(size=(2000, 6))
    part = np.sort(rng.integers(0, 40, len(box)))
    for k, order in enumerate(Sorted(box, part).order):
        np.testing.assert_array_equal(order, np.lexsort((box[:, k] - box[:, 3 + k], part)))
