"""Reads meshes from COLLADA and glTF files, which MuJoCo does not read, as MSH files: one mesh of all triangles.

Coordinates are those of RViz: transforms of nodes and COLLADA's `<unit>` are applied.  The up axis of a COLLADA file
is ignored: authors of robots align meshes with links in RViz, and MoveIt and Pinocchio ignore it, too.  A glTF file has
y up, which is turned to z as in RViz and Drake.  A node that mirrors also reverses the order of corners.
Source: COLLADA 1.4.1 specification; Khronos Group, glTF 2.0 specification, sec. 3.4 and 3.7.4; RViz, mesh loader
    (glTF: since 15.1.4); Drake, `Mesh`; MuJoCo, XML reference, MSH file format.
"""

from __future__ import annotations

import io
import json
import re
import struct
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

import numpy as np

from featherlane.engine.libraries import required
from featherlane.engine.model.mesh_files import contents_at, files_of, reduced
from featherlane.engine.model.ordered_sums import heights_along
from featherlane.errors import ModelError

MSH = "model/vnd.mujoco.msh"
UNREAD = "materials and textures"
MATERIALS = re.compile(rb"<(bind_material|library_(?:images|effects|materials))\b(?:[^>]*/>|.*?</\1\s*>)", re.DOTALL)
COLLADA, GLTF = ".dae", (".glb", ".gltf")
GLB = b"glTF"  # first bytes of a binary glTF file; the length of its JSON text is at byte 12, the text at byte 20


def is_scene(mesh: Any) -> bool:
    """Returns whether the file of a mesh of a specification is a COLLADA or glTF file."""
    return not mesh.content_type and mesh.file.lower().endswith((COLLADA, *GLTF))


def converted_scenes(spec: Any, folders: Sequence[str]) -> tuple[dict[str, bytes], list[str]]:
    """Returns the COLLADA and glTF files of a specification as MSH files.

    Args:
        spec: the `mujoco.MjSpec`.
        folders: folders of models that its XML text attaches.

    Returns:
        Contents by path, for `use_contents`; and what was not read from the files, with the names of meshes.

    Raises:
        ModelError: a file is missing or damaged, or has no triangles; with the mesh and the file.
        InstallationError: a library is missing; with the command that installs it.
    """
    contents: dict[str, bytes] = {}
    names: dict[str, list[str]] = {}
    for mesh, path, content in files_of(spec, [mesh for mesh in spec.meshes if is_scene(mesh)], folders):
        label = f"mesh {mesh.name!r}"
        if not path:
            raise ModelError(f"{label}: {mesh.file}: no such file")
        if path in contents:
            continue
        is_collada = path.lower().endswith(COLLADA)
        library = required("collada" if is_collada else "trimesh", f"{label} ({path})")
        try:
            corners, lost = _collada(library, content) if is_collada else _gltf(library, content, spec, path)
        except Exception as error:  # the libraries raise errors of many types
            raise ModelError(f"{label}: {path}: cannot be read ({type(error).__name__}: {error})") from None
        if len(corners) == 0 or not np.isfinite(corners).all():
            problem = "has no triangles" if len(corners) == 0 else "has coordinates that are not finite"
            raise ModelError(f"{label}: {path}: {problem}")
        contents[path] = _msh(corners)
        for each in lost:
            names.setdefault(each, []).append(label)
    return contents, [f"{each} of {', '.join(labels)}" for each, labels in names.items()]


def use_contents(spec: Any, contents: dict[str, bytes]) -> None:
    """Sets contents of mesh files, by path, in a specification; those of scenes are MSH files."""
    spec.assets.update(contents)
    for mesh in spec.meshes:
        if is_scene(mesh):
            mesh.content_type = MSH


def _collada(collada: Any, content: bytes) -> tuple[np.ndarray, list[str]]:
    """Returns the triangles (n, 3, 3) [m] of a COLLADA file, and what is not read."""
    ignored = [collada.common.DaeBrokenRefError, collada.common.DaeUnsupportedError]
    content, count = MATERIALS.subn(b"", content)  # a missing material would discard the geometry
    scene = collada.Collada(io.BytesIO(content), ignore=ignored)
    parts = [np.zeros((0, 3, 3))]
    for placed in scene.scene.objects("geometry") if scene.scene is not None else ():
        turn, order = placed.matrix[:3, :3], slice(None)
        if np.linalg.det(turn) < 0:
            order = slice(None, None, -1)
        for primitive in placed.original.primitives:
            surface = primitive.triangleset() if hasattr(primitive, "triangleset") else primitive
            if isinstance(surface, collada.triangleset.TriangleSet) and surface.vertex is not None:
                vertices = heights_along(surface.vertex, turn) + placed.matrix[:3, 3]
                parts.append(vertices[surface.vertex_index[:, order]])
    lost = [UNREAD] * (count > 0) + ["skinned geometry"] * (len(scene.controllers) > 0) + list(map(str, scene.errors))
    return np.concatenate(parts) * (scene.assetInfo.unitmeter or 1.0), lost


def _gltf(trimesh: Any, content: bytes, spec: Any, path: str) -> tuple[np.ndarray, list[str]]:
    """Returns the triangles (n, 3, 3) [m] of a glTF file, and what is not read."""
    is_binary = content.startswith(GLB)
    header = json.loads(content[20 : 20 + int.from_bytes(content[12:16], "little")] if is_binary else content)
    if unread := [name for name in header.get("extensionsRequired", ()) if "mesh" in name.lower()]:
        raise ValueError(f"requires {', '.join(unread)}, which is not supported")
    scene = trimesh.load_scene(
        io.BytesIO(content),
        file_type="glb" if is_binary else "gltf",
        resolver=_buffers(header, spec, PurePosixPath(path).parent),
        process=False,
        skip_materials=True,
    )
    parts = [part for part in scene.dump() if isinstance(part, trimesh.Trimesh)]
    lost = [UNREAD] if header.get("materials") else []
    corners = np.concatenate([np.zeros((0, 3, 3)), *(part.vertices[part.faces] for part in parts)])
    return corners[..., (0, 2, 1)] * (1.0, -1.0, 1.0), lost  # (x, y, z) becomes (x, -z, y)


def _buffers(header: dict[str, Any], spec: Any, folder: PurePosixPath) -> dict[str, bytes]:
    """Returns the files of buffers that a glTF file in a folder refers to, by URI."""
    result = {}
    for uri in (buffer.get("uri", "data:") for buffer in header.get("buffers", ())):
        if not uri.startswith("data:"):
            result[uri] = _content(spec, [reduced(str(folder / name)) for name in (uri, unquote(uri))])
    return result


def _content(spec: Any, paths: list[str]) -> bytes:
    """Returns the first content that is found at these paths; raises a FileNotFoundError if there is none."""
    for _, content in contents_at(spec, paths):
        return content
    raise FileNotFoundError(paths[0])


def _msh(corners: np.ndarray) -> bytes:
    """Returns triangles as an MSH file: equal corners are one vertex, and triangles without area are left out."""
    rows = corners.reshape(-1, 3).astype("<f4") + np.float32(0)  # -0.0 becomes 0.0
    vertices, index = np.unique(rows, axis=0, return_inverse=True)
    faces = index.reshape(-1, 3).astype("<i4")
    a, b, c = faces.T
    faces = faces[(a != b) & (b != c) & (c != a)]
    return struct.pack("<4i", len(vertices), 0, 0, len(faces)) + vertices.tobytes() + faces.tobytes()
