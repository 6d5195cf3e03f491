"""Finds the files of meshes: MuJoCo's paths of them, and their contents in assets or on disk."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from featherlane.engine.model.reader import mujoco_module, version_numbers

STORES_PATHS = (4,)  # since this version a compiled model has the whole path of a mesh's file


def files_of(spec: Any, meshes: Sequence[Any], folders: Sequence[str]) -> Iterator[tuple[Any, str, bytes]]:
    """Yields meshes of a specification, the path of their file and its content; both are empty if it is not found.

    Args:
        spec: the `mujoco.MjSpec`.
        meshes: some of its meshes.
        folders: folders of models that its XML text attaches.
    """
    # an attached mesh has the compiler options of its model, and is in the folder of that model
    attached = any(mesh.compiler is not spec.compiler for mesh in meshes)
    stored = _stored_paths(spec) if attached else {}
    for mesh in meshes:
        if mesh.compiler is spec.compiler:
            paths = [full_path(spec, mesh, spec.modelfiledir)]
        else:
            paths = [*stored.get(mesh.name, []), *(full_path(spec, mesh, folder) for folder in folders)]
        path, content = next(contents_at(spec, paths), ("", b""))
        yield mesh, path, content


def contents_at(spec: Any, paths: Iterable[str]) -> Iterator[tuple[str, bytes]]:
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
    return asset_path(spec, mesh.file, mesh.compiler.meshdir, folder)


def asset_path(spec: Any, file: str, directory: str, folder: str) -> str:
    """Returns the path under which MuJoCo looks for a file in a directory of assets of the model in a folder."""
    path, file = "", re.split(r"[/\\]", file)[-1] if spec.strippath else file
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
