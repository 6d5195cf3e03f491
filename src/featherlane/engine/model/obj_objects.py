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

from featherlane.engine.model.reader import mujoco_module, version_numbers

STORES_PATHS = (4,)  # since this version a compiled model has the whole path of a mesh's file
# lines, if they begin with the pattern; one pattern for both letters, or for the beginning too, takes 8 times as long
OBJECTS, FACE = (re.compile(rb"o[ \t][^\r\n]*"), re.compile(rb"g[ \t][^\r\n]*")), re.compile(rb"f[ \t]")


def number_of_objects(content: bytes) -> int:
    """Returns the number of objects and groups with faces, at least 1."""
    *heads, last = _parts(content)
    number = sum(map(_has_faces, heads))
    return number + 1 if number == 0 or _has_faces(last) else number


def one_object(content: bytes) -> bytes:
    """Returns the file without its lines of objects and groups."""
    return b"".join(content[start:end] for _, start, end in _parts(content))


def _parts(content: bytes) -> list[tuple[bytes, int, int]]:
    """Returns the parts between lines of objects and groups: the content, start and end."""
    lines = sorted(line.span() for kind in OBJECTS for line in _lines(kind, content, 0, len(content)))
    places = [0, *(place for line in lines for place in line), len(content)]
    return [(content, start, end) for start, end in zip(places[::2], places[1::2], strict=True)]


def _has_faces(part: tuple[bytes, int, int]) -> bool:
    return next(_lines(FACE, *part), None) is not None


def _lines(kind: re.Pattern[bytes], content: bytes, start: int, end: int) -> Iterator[re.Match[bytes]]:
    """Yields the lines of a kind: matches after the beginning of a line and spaces."""
    for match in kind.finditer(content, start, end):
        before = match.start() - 1
        while before >= 0 and content[before] in b" \t":
            before -= 1
        if before < 0 or content[before] in b"\r\n":
            yield match


def merged_objects(spec: Any, folders: Sequence[str]) -> tuple[dict[str, bytes], list[str]]:
    """Returns the OBJ files of a specification as files of one object each.

    Args:
        spec: the `mujoco.MjSpec`.
        folders: folders of models that its XML text attaches.

    Returns:
        Contents by path, for `spec.assets`, of all OBJ files; and the names of meshes of several objects.  Both are
        empty if no file has several objects.
    """
    contents: dict[str, bytes] = {}
    names = []
    meshes = [m for m in spec.meshes if m.file.lower().endswith(".obj") or m.content_type == "model/obj"]
    # an attached mesh has the compiler options of its model, and is in the folder of that model
    attached = any(mesh.compiler is not spec.compiler for mesh in meshes)
    stored = _stored_paths(spec) if attached else {}
    for mesh in meshes:
        if mesh.compiler is spec.compiler:
            paths = [full_path(spec, mesh, spec.modelfiledir)]
        else:
            paths = [*stored.get(mesh.name, []), *(full_path(spec, mesh, folder) for folder in folders)]
        path, content = next(_found(spec, paths), ("", b""))
        if (number := number_of_objects(content)) > 1:
            names.append(f"mesh {mesh.name!r} ({number} objects)")
        if path:
            contents[path] = content
    return {path: one_object(content) for path, content in contents.items() if names}, names


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


def _stored_paths(spec: Any) -> dict[str, list[str]]:
    """Returns the path of the file by the name of a mesh, which a model compiled by MuJoCo 4.0 has; empty without."""
    mujoco, probe = mujoco_module(), spec.copy()
    if version_numbers(mujoco.__version__) < STORES_PATHS:
        return {}
    for mesh in probe.meshes:
        mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL  # the first object may have no volume
    try:
        mj = probe.compile()
    except ValueError:
        return {}
    ends = [(mj.mesh(k).name, mj.paths[mj.mesh_pathadr[k] :]) for k in range(mj.nmesh) if mj.mesh_pathadr[k] >= 0]
    return {name: [path.split(b"\0")[0].decode(errors="replace")] for name, path in ends}


def full_path(spec: Any, mesh: Any, folder: str) -> str:
    """Returns the path under which MuJoCo looks for the file of a mesh."""
    file = re.split(r"[/\\]", mesh.file)[-1] if spec.strippath else mesh.file
    path = ""
    for part in (folder, mesh.compiler.meshdir, file):
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
