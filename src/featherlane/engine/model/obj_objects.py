"""Reads OBJ files of several objects as one mesh: MuJoCo reads the vertices of all objects, and faces of the first.

The numbers of vertices in an OBJ file count through all objects.  Without its lines `o` and `g` the file is therefore
one object with the same faces.
Source: Wavefront OBJ specification, "Grouping"; MuJoCo's reader, which takes the first shape of tinyobjloader.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from featherlane.engine.model.mesh_files import files_of

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
    meshes = [m for m in spec.meshes if m.file.lower().endswith(".obj") or m.content_type == "model/obj"]
    contents: dict[str, bytes] = {}
    names = []
    for mesh, path, content in files_of(spec, meshes, folders):
        if (number := number_of_objects(content)) > 1:
            names.append(f"mesh {mesh.name!r} ({number} objects)")
        if path:
            contents[path] = content
    return {path: one_object(content) for path, content in contents.items() if names}, names
