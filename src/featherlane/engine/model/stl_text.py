"""Reads STL files in text, which MuJoCo does not read, as binary STL files.

Source: 3D Systems, StereoLithography interface specification.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from featherlane.engine.model.mesh_files import files_of
from featherlane.errors import ModelError

START, VERTEX = b"solid", re.compile(rb"\bvertex\s+(\S+)\s+(\S+)\s+(\S+)")
HEADER = 84  # bytes before the triangles of a binary file: a comment and the number of triangles
TRIANGLE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])


def binary_stl_files(spec: Any, folders: Sequence[str]) -> dict[str, bytes]:
    """Returns the STL files in text of a specification as binary files, by path, for `spec.assets`.

    Args:
        spec: the `mujoco.MjSpec`.
        folders: folders of models that its XML text attaches.

    Raises:
        ModelError: a file is damaged; with the mesh and the file.
    """
    meshes = [m for m in spec.meshes if m.file.lower().endswith(".stl") or m.content_type == "model/stl"]
    contents: dict[str, bytes] = {}
    for mesh, path, content in files_of(spec, meshes, folders):
        if path not in contents and is_text(content):
            try:
                contents[path] = _binary(content)
            except ValueError as error:
                raise ModelError(f"mesh {mesh.name!r}: {path}: cannot be read ({error})") from None
    return contents


def is_text(content: bytes) -> bool:
    """Returns whether an STL file is a text; the comment of a binary file may begin with the same word."""
    length = HEADER + TRIANGLE.itemsize * int.from_bytes(content[HEADER - 4 : HEADER], "little")
    return content.lstrip().startswith(START) and len(content) != length


def _binary(content: bytes) -> bytes:
    """Returns a text as a binary STL file; raises a ValueError if it is damaged."""
    numbers = np.array(VERTEX.findall(content)).astype(np.float32)
    if len(numbers) == 0 or len(numbers) % 3:
        raise ValueError(f"it has {len(numbers)} vertices, allowed are three of each triangle")
    if not np.isfinite(numbers).all():
        raise ValueError("it has coordinates that are not finite")
    triangles = np.zeros(len(numbers) // 3, TRIANGLE)
    triangles["corners"] = numbers.reshape(-1, 3, 3)
    return bytes(HEADER - 4) + len(triangles).to_bytes(4, "little") + triangles.tobytes()
