"""Reads OBJ files of several objects as one mesh: MuJoCo reads the vertices of all objects, and faces of the first.

The numbers of vertices in an OBJ file count through all objects.  Without its lines `o` and `g` the file is therefore
one object with the same faces.
Source: Wavefront OBJ specification, "Grouping"; MuJoCo's reader, which takes the first shape of tinyobjloader.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

OBJECT = re.compile(rb"(?:(?<=[\r\n])|\A)[ \t]*[og][ \t][^\r\n]*")
FACE = re.compile(rb"(?:(?<=[\r\n])|\A)[ \t]*f[ \t]")


def number_of_objects(content: bytes) -> int:
    """Returns the number of objects and groups with faces."""
    return sum(FACE.search(part) is not None for part in OBJECT.split(content))


def merged_objects(spec: Any, folders: Sequence[str]) -> tuple[dict[str, bytes], list[str]]:
    """Returns the OBJ files of a specification as files of one object each.

    Args:
        spec: the `mujoco.MjSpec`.
        folders: further folders of its mesh files: those of attached models.

    Returns:
        Contents by path, for `spec.assets`, of all OBJ files; and the names of meshes of several objects.  Both are
        empty if no file has several objects.
    """
    contents, names = {}, []
    for mesh, path, content in _files(spec, folders):
        number = number_of_objects(content)
        if number > 1:
            names.append(f"mesh {mesh.name!r} ({number} objects)")
        contents[path] = OBJECT.sub(b"", content)
    return (contents, names) if names else ({}, [])


def _files(spec: Any, folders: Sequence[str]) -> Iterator[tuple[Any, str, bytes]]:
    """Yields the meshes of OBJ files, with the path under which MuJoCo looks for the file, and its content."""
    compiled: dict[str, str] | None = None
    for mesh in spec.meshes:
        if not (mesh.file.lower().endswith(".obj") or mesh.content_type == "model/obj"):
            continue
        found = next(_found(spec, [full_path(spec, mesh, folder) for folder in (spec.modelfiledir, *folders)]), None)
        if found is None:  # the mesh of a specification that was attached, which has another folder
            compiled = _compiled_paths(spec) if compiled is None else compiled
            found = next(_found(spec, [compiled.get(mesh.name, "")]), None)
        if found is not None:
            yield mesh, *found


def _found(spec: Any, paths: list[str]) -> Iterator[tuple[str, bytes]]:
    """Yields those paths that have a content: in the assets of the specification, else in a file."""
    by_path = {reduced(name): content for name, content in spec.assets.items()}
    by_name = {Path(path).name.lower(): content for path, content in by_path.items()}
    for path in paths:
        content = by_path.get(path, by_name.get(Path(path).name.lower()))
        if content is not None:
            yield path, content.encode() if isinstance(content, str) else content
        elif path and Path(path).is_file():
            yield path, Path(path).read_bytes()


def _compiled_paths(spec: Any) -> dict[str, str]:
    """Returns the paths of mesh files by the mesh's name, which MuJoCo 4.0 stores; empty if it cannot compile them."""
    import mujoco

    probe = spec.copy()
    for mesh in probe.meshes:
        mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL  # which the faces of one object may not bound
    try:
        mj = probe.compile()
    except ValueError:
        return {}
    paths = {mj.mesh(k).name: mj.paths[mj.mesh_pathadr[k] :] for k in range(mj.nmesh) if mj.mesh_pathadr[k] >= 0}
    return {name: path.split(b"\0")[0].decode(errors="replace") for name, path in paths.items()}


def full_path(spec: Any, mesh: Any, folder: str) -> str:
    """Returns the path under which MuJoCo looks for the file of a mesh."""
    directory = mesh.compiler.meshdir if hasattr(mesh, "compiler") else spec.meshdir
    file = re.split(r"[/\\]", mesh.file)[-1] if spec.strippath else mesh.file
    path = ""
    for part in (folder, directory, file):
        path = part if _is_absolute(part) or not path else f"{path.rstrip('/')}/{part}" if part else path
    return reduced(path)


def reduced(path: str) -> str:
    """Returns a path without `.` and `..`, with the separator `/`, as MuJoCo's FilePath::PathReduce."""
    root = "/" if path[:1] in ("/", "\\") else ""
    parts: list[str] = []
    for part in re.split(r"[/\\]", path[len(root) :]):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return root + "/".join(parts)


def _is_absolute(path: str) -> bool:
    return path[:1] in ("/", "\\") or ":/" in path or ":\\" in path
