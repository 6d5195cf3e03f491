"""Triangles of shapes: closed, oriented outwards, with the volume of the formulas."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.apps.viewer import shapes
from featherlane.apps.viewer.appearance import PLAIN
from featherlane.apps.viewer.shapes import Mesh

FINE = 96
# a polygon of 96 corners has 0.07 % less area than its circle, and a sphere of such polygons twice that less volume
ROUND = 3e-3
CLOSE = 1e-6  # of coordinates in float32
PLANE = 1e-3  # corners of a hull's face are coplanar up to this
SOLIDS = {
    "sphere": (shapes.sphere(FINE), 4 / 3 * np.pi),
    "cylinder": (shapes.cylinder(FINE), 2 * np.pi),
    "capsule": (shapes.capsule(2.5, FINE), 4 / 3 * np.pi + 5 * np.pi),
    "cone": (shapes.cone(FINE), np.pi / 3),
    "box": (shapes.box(), 8.0),
}


def welded(mesh: Mesh) -> np.ndarray:
    """Returns faces whose corners are numbered by their places."""
    _, number = np.unique(np.round(mesh.vertices, 5), axis=0, return_inverse=True)
    return number.reshape(-1)[mesh.faces]


def edges(mesh: Mesh) -> list[tuple[int, int]]:
    faces = welded(mesh)
    return [(int(a), int(b)) for face in faces for a, b in zip(face, np.roll(face, -1), strict=True)]


def is_closed(mesh: Mesh) -> bool:
    """Returns whether each edge belongs to two triangles, which run along it in opposite directions."""
    all_edges = edges(mesh)
    return len(set(all_edges)) == len(all_edges) and {(b, a) for a, b in all_edges} == set(all_edges)


def volume(mesh: Mesh) -> float:
    a, b, c = np.moveaxis(mesh.vertices[mesh.faces].astype(float), 1, 0)
    return float(np.einsum("fi,fi", a, np.cross(b, c)) / 6)


@pytest.mark.parametrize("name", SOLIDS)
def test_a_solid_is_closed_and_has_its_volume(name):
    mesh, exact = SOLIDS[name]
    assert is_closed(mesh)
    assert volume(mesh) == pytest.approx(exact, rel=ROUND)


@pytest.mark.parametrize("name", SOLIDS)
def test_normals_point_outwards(name):
    mesh, _ = SOLIDS[name]
    middle = mesh.vertices - np.mean(mesh.vertices, 0)
    assert (np.einsum("vi,vi->v", shapes.normals(mesh), middle) > 0).all()


@pytest.mark.parametrize("detail", (3, 4, 5, 8, 12, 33))
def test_any_number_of_steps_gives_a_closed_solid(detail):
    for mesh in (shapes.sphere(detail), shapes.cylinder(detail), shapes.capsule(0.5, detail), shapes.cone(detail)):
        assert is_closed(mesh)
        assert volume(mesh) > 0


def test_the_normals_of_a_sphere_are_its_points():
    mesh = shapes.sphere(FINE)
    assert np.abs(shapes.normals(mesh) - mesh.vertices).max() < 0.02  # triangles at a vertex differ in size


def test_a_box_has_flat_sides():
    assert len(shapes.box().vertices) == 24
    assert set(np.abs(shapes.normals(shapes.box())).max(1)) == {1.0}


def test_places_of_a_texture_begin_at_the_upper_left_corner():
    mesh = shapes.rectangle()
    for vertex, uv in zip(mesh.vertices, mesh.uv, strict=True):
        assert tuple(uv) == ((vertex[0] + 1) / 2, (1 - vertex[1]) / 2)
    assert shapes.textured(mesh, (3.0, 2.0)).uv.max(0).tolist() == [3.0, 2.0]
    assert shapes.textured(shapes.box(), (1.0, 1.0)).uv.shape == (24, 2)
    assert PLAIN.texture == -1


# ---- of models ---------------------------------------------------------------------------------------------
def field(heights: np.ndarray, sides=(2.0, 3.0, 0.5, 0.25)):
    """Returns a model with one height field; heights from 0 to 1."""
    rows, columns = heights.shape
    size = " ".join(map(str, sides))
    asset = f"<hfield name='h' nrow='{rows}' ncol='{columns}' size='{size}'/>"
    model = fl.load(f"<mujoco><asset>{asset}</asset><worldbody><geom type='hfield' hfield='h'/></worldbody></mujoco>")
    model.hfield_data[:] = heights.ravel()
    return model


def test_a_height_field_is_closed_and_has_its_volume():
    # on a slope, triangles are exact
    slope = np.broadcast_to(np.linspace(0, 1, 7), (5, 7))
    mesh = shapes.height_field_mesh(field(slope), 0)
    assert is_closed(mesh)
    assert volume(mesh) == pytest.approx(4 * 6 * (0.25 + 0.5 * 0.5), rel=CLOSE)
    assert mesh.vertices.min(0) == pytest.approx((-2, -3, -0.25))
    assert mesh.vertices.max(0) == pytest.approx((2, 3, 0.5))


def test_rows_of_a_height_field_run_along_y():
    heights = np.zeros((4, 6))
    heights[3, 0] = 1.0
    mesh = shapes.height_field_mesh(field(heights), 0)
    assert mesh.vertices[mesh.vertices[:, 2].argmax()] == pytest.approx((-2, 3, 0.5))


@pytest.mark.parametrize("i", range(4))
def test_meshes_and_hulls_of_a_model_are_closed_and_of_equal_size(i):
    model = fl.bundled("hand")
    mesh, hull = shapes.mesh(model, i), shapes.hull(model, i)
    assert is_closed(mesh) and is_closed(hull)
    assert volume(mesh) == pytest.approx(volume(hull), rel=PLANE)  # the hand is made of convex parts
    assert np.abs(mesh.vertices).max(0) == pytest.approx(np.abs(hull.vertices).max(0), rel=CLOSE)


def test_a_crease_doubles_vertices_and_a_smooth_surface_shares_them():
    cube, ball = shapes.box(), shapes.sphere(24)
    corners = np.unique(np.round(cube.vertices, 5), axis=0)
    assert len(shapes.creased(corners, welded(cube)).vertices) == 24
    points = np.unique(np.round(ball.vertices, 5), axis=0)
    assert len(shapes.creased(points, welded(ball)).vertices) == len(points)


def test_a_cut_in_a_texture_doubles_vertices():
    corners = np.array([(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)], float)
    faces = np.array([(0, 1, 2), (0, 2, 3)])
    uv = np.array([(0, 0), (1, 0), (1, 1), (0, 1), (0.5, 0.5)])
    whole = shapes.creased(corners, faces, faces, uv)
    cut = shapes.creased(corners, faces, np.array([(0, 1, 2), (4, 2, 3)]), uv)
    assert (len(whole.vertices), len(cut.vertices)) == (4, 5)
    for mesh in (whole, cut):
        assert np.array_equal(mesh.vertices[mesh.faces], corners[faces])
    assert np.allclose(cut.uv[cut.faces[1, 0]], (0.5, 0.5))
