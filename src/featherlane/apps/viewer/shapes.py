"""Builds closed, outward-facing triangle meshes of all shapes; scalable shapes have unit size.

Smoothly connected triangles share a vertex, and vertices are doubled along edges, because the browser averages normals
at shared vertices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import trimesh
from PIL import Image
from trimesh.exchange.gltf import export_glb
from trimesh.visual import TextureVisuals
from trimesh.visual.material import PBRMaterial

from featherlane import Model
from featherlane.apps.viewer.appearance import Look, linear

CREASE = np.cos(np.radians(40.0))  # triangles at a larger angle to the mean normal at a vertex have an edge there


class Mesh(NamedTuple):
    """A triangle mesh."""

    vertices: np.ndarray  # (V, 3) float32 [m]
    faces: np.ndarray  # (F, 3) uint32, counterclockwise seen from outside
    uv: np.ndarray | None = None  # (V, 2) float32, texture coordinates, right and down from the upper left corner


def join_meshes(parts: Sequence[Mesh]) -> Mesh:
    """Returns several meshes as one."""
    vertices, faces = trimesh.util.append_faces([part.vertices for part in parts], [part.faces for part in parts])
    return Mesh(vertices, faces.astype(np.uint32))


def revolved(profile: Sequence[tuple[float, float]], count: int) -> Mesh:
    """Returns the surface of revolution of points (radius, height), lowest first, about z in `count` segments."""
    surface = trimesh.creation.revolve(profile, sections=count)
    return Mesh(surface.vertices.astype(np.float32), surface.faces.astype(np.uint32))


def _arc(first: float, last: float, count: int) -> list[tuple[float, float]]:
    """Returns points (radius, height) of a unit circle between two latitudes; exact at the poles and the equator."""
    latitudes = np.linspace(first, last, count + 1)
    points = np.column_stack((np.cos(latitudes), np.sin(latitudes)))
    points[np.abs(points) < 1e-12] = 0.0
    return [(float(r), float(z)) for r, z in points]


def sphere(detail: int) -> Mesh:
    """Returns the unit sphere with `detail` segments about z; scaled, it is an ellipsoid."""
    return revolved(_arc(-np.pi / 2, np.pi / 2, max(detail // 2, 2)), detail)


def tube(detail: int) -> Mesh:
    """Returns the side of the cylinder of radius 1 and half length 1."""
    return revolved([(1.0, -1.0), (1.0, 1.0)], detail)


def cylinder(detail: int) -> Mesh:
    """Returns the cylinder of radius 1 and half length 1."""
    return join_meshes((
        tube(detail), revolved([(0.0, -1.0), (1.0, -1.0)], detail), revolved([(1.0, 1.0), (0.0, 1.0)], detail)
    ))  # fmt: skip


def capsule(length: float, detail: int) -> Mesh:
    """Returns the capsule of radius 1 and this half length between the centres of its caps."""
    quarter = max(detail // 4, 1)
    lower = [(r, z - length) for r, z in _arc(-np.pi / 2, 0.0, quarter)]
    return revolved(lower + [(r, z + length) for r, z in _arc(0.0, np.pi / 2, quarter)], detail)


def cone(detail: int) -> Mesh:
    """Returns the cone over the unit circle in z = 0, with its tip at height 1."""
    return join_meshes((revolved([(1.0, 0.0), (0.0, 1.0)], detail), revolved([(0.0, 0.0), (1.0, 0.0)], detail)))


def box() -> Mesh:
    """Returns the cube of half side 1."""
    cube = trimesh.creation.box((2.0, 2.0, 2.0))
    return creased(cube.vertices, cube.faces)


def rectangle() -> Mesh:
    """Returns the square of half side 1 in z = 0, facing up."""
    vertices = np.array([(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)], np.float32)
    return Mesh(vertices, np.array([(0, 1, 2), (0, 2, 3)], np.uint32), _from_above(vertices))


def _from_above(vertices: np.ndarray, half: Sequence[float] = (1.0, 1.0)) -> np.ndarray:
    """Returns texture coordinates of a texture that lies over [-half, half] in x and y."""
    return ((vertices[:, :2] / half * (1, -1) + 1) / 2).astype(np.float32)


def creased(vertices: np.ndarray, faces: np.ndarray, places: np.ndarray | None = None, uv=None) -> Mesh:
    """Returns a mesh whose vertices are doubled along its edges and along texture seams.

    `places` (F, 3) are indices into the texture coordinates `uv` (P, 2) of the corners of the triangles (F, 3).
    """
    across = _across(vertices, faces)
    mean, unit = _unit(_gathered(across, faces, len(vertices))), _unit(across)
    smooth = np.einsum("fi,fki->fk", unit, mean[faces]) > CREASE
    # triangles share a vertex if all are smooth there, else if they face the same way, to 1 part in 3 of each axis
    side = np.where(smooth, 0, 1 + (np.round(3 * unit).astype(np.int64) + 3) @ np.array([[49], [7], [1]]))
    key = faces.astype(np.int64) * 512 + side
    if places is not None:
        key = key * (int(places.max(initial=0)) + 1) + places
    _, first, place = np.unique(key.ravel(), return_index=True, return_inverse=True)
    found = None if places is None or uv is None else uv[places.ravel()[first]].astype(np.float32)
    corner = vertices[faces.ravel()[first]].astype(np.float32)
    return Mesh(corner, place.reshape(-1, 3).astype(np.uint32), found)


def _across(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Computes normals (F, 3) of triangles, with twice the area as length."""
    a, b, c = np.moveaxis(vertices[faces].astype(float), 1, 0)
    return np.cross(b - a, c - a)


def _gathered(values: np.ndarray, faces: np.ndarray, count: int) -> np.ndarray:
    """Computes sums (count, 3) over the triangles at each vertex."""
    total = np.empty((count, 3))
    for i in range(3):
        total[:, i] = np.bincount(faces.ravel(), np.repeat(values[:, i], 3), count)
    return total


def normals(mesh: Mesh) -> np.ndarray:
    """Computes unit normals at the vertices (V, 3) as area-weighted means over their triangles."""
    return _unit(_gathered(_across(mesh.vertices, mesh.faces), mesh.faces, len(mesh.vertices))).astype(np.float32)


def textured(mesh: Mesh, repeat: Sequence[float]) -> Mesh:
    """Returns a mesh with repeated texture; one without texture coordinates is mapped from above, over [-1, 1]."""
    places = _from_above(mesh.vertices) if mesh.uv is None else mesh.uv
    return mesh._replace(uv=(places * repeat).astype(np.float32))


def _unit(vectors: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(length > 0, length, 1.0)


def mesh(model: Model, i: int) -> Mesh:
    """Returns the triangles of mesh i, with texture coordinates if its file has them."""
    mj = model.mj_model
    first, vertex = mj.mesh_faceadr[i], mj.mesh_vertadr[i]
    faces = mj.mesh_face[first : first + mj.mesh_facenum[i]]
    vertices = mj.mesh_vert[vertex : vertex + mj.mesh_vertnum[i]].astype(float)
    if mj.mesh_texcoordadr[i] < 0:
        return creased(vertices, faces)
    start = mj.mesh_faceadr[i]
    places = mj.mesh_facetexcoord[start : start + len(faces)]
    return creased(vertices, faces, places, mj.mesh_texcoord[mj.mesh_texcoordadr[i] :])


def hull(model: Model, i: int) -> Mesh:
    """Returns the convex hull of mesh i, face by face."""
    first, vertex = model.hull_polyadr[i], model.hull_vertadr[i]
    vertices, faces = [], []
    for face in range(first, first + model.hull_polynum[i]):
        start, number = model.hull_polyvertadr[face], model.hull_polyvertnum[face]
        corners = np.arange(number - 2)
        faces.append(np.column_stack((0 * corners, corners + 1, corners + 2)) + sum(map(len, vertices)))
        vertices.append(model.hull_vert[vertex + model.hull_polyvert[start : start + number]])
    return Mesh(np.concatenate(vertices).astype(np.float32), np.concatenate(faces).astype(np.uint32))


def height_field_mesh(model: Model, i: int) -> Mesh:
    """Returns height field i with its sides and its base, textured from above."""
    rows, columns, start = int(model.hfield_nrow[i]), int(model.hfield_ncol[i]), model.hfield_adr[i]
    x, y, scale, base = model.hfield_size[i]
    heights = model.hfield_data[start : start + rows * columns]
    ground_x, ground_y = np.meshgrid(np.linspace(-x, x, columns), np.linspace(-y, y, rows))
    top = np.column_stack((ground_x.ravel(), ground_y.ravel(), heights * scale))
    places = np.arange(rows * columns).reshape(rows, columns)
    a, b, c, d = places[:-1, :-1].ravel(), places[:-1, 1:].ravel(), places[1:, 1:].ravel(), places[1:, :-1].ravel()
    parts = [Mesh(top, np.concatenate((np.column_stack((a, b, d)), np.column_stack((b, c, d)))))]
    # around the border, counterclockwise from above; each side and the base have separate vertices
    corners = []
    for edge in (places[0], places[:, -1], places[-1, ::-1], places[::-1, 0]):
        n, k, low = len(edge), np.arange(len(edge) - 1), top[edge] * (1.0, 1.0, 0.0) - (0.0, 0.0, base)
        faces = np.concatenate((np.column_stack((k, k + 1, n + k + 1)), np.column_stack((k, n + k + 1, n + k))))
        parts.append(Mesh(np.concatenate((low, top[edge])), faces))
        corners.append(low[:-1])
    rim = np.concatenate(corners)
    k = np.arange(len(rim))
    centre = np.array([[0.0, 0.0, -base]])
    parts.append(Mesh(np.concatenate((rim, centre)), np.column_stack((np.roll(k, -1), k, np.full(len(k), len(k))))))
    whole = join_meshes([Mesh(part.vertices.astype(np.float32), part.faces.astype(np.uint32)) for part in parts])
    return Mesh(whole.vertices, whole.faces, _from_above(whole.vertices, (x, y)))


def glb(mesh: Mesh, rgba: Sequence[float], look: Look, picture: np.ndarray) -> bytes:
    """Returns a mesh with its texture and a colour that multiplies it as a binary glTF file.

    Source: Khronos Group, glTF 2.0 specification, sec. 3.9 (materials).
    """
    assert mesh.uv is not None
    factors = linear(np.asarray(rgba[:3]))

    def set_factors(document) -> None:
        # trimesh rounds a colour to 8 bits, too coarse for linear light, and stores a texture once for each use
        (material,) = document["materials"]
        material["pbrMetallicRoughness"]["baseColorFactor"] = [*factors.tolist(), rgba[3]]
        if look.emission > 0:
            material["emissiveFactor"] = linear(look.emission * np.asarray(rgba[:3])).tolist()
            material["emissiveTexture"] = {"index": 0}

    material = PBRMaterial(
        baseColorTexture=Image.fromarray(picture.squeeze(2) if picture.shape[2] == 1 else picture),
        metallicFactor=look.metallic,
        roughnessFactor=look.roughness,
        alphaMode="BLEND" if rgba[3] < 1 else None,
    )
    visual = TextureVisuals(mesh.uv * (1.0, -1.0) + (0.0, 1.0), material=material)  # v from below
    whole = trimesh.Trimesh(mesh.vertices, mesh.faces, vertex_normals=normals(mesh), visual=visual, process=False)
    return export_glb(trimesh.Scene(whole), include_normals=True, tree_postprocessor=set_factors)
