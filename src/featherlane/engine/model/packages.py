"""Finds files that a model names by URI: `package://NAME/PATH` in local folders, `file://PATH`, and `~`.

Source: ROS REP 122 (layout of an install prefix); Pinocchio, `package_dirs`; rospack (ROS_PACKAGE_PATH);
    ament_index (AMENT_PREFIX_PATH); RFC 8089 (`file`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from glob import escape
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from featherlane.engine.model.mesh_files import full_path
from featherlane.errors import ModelError

PACKAGE = re.compile(r"package:[/\\]+", re.IGNORECASE)
FILE = re.compile(r"file:(?://localhost(?=/)|//)?", re.IGNORECASE)
SOURCES = ("ROS_PACKAGE_PATH",)  # workspace folders that contain packages (such as src); searched DEPTH folders deep
PREFIXES = ("AMENT_PREFIX_PATH", "CMAKE_PREFIX_PATH")  # install prefixes; their packages are in share/
DEPTH = 2
Folders = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def listed_folders(package_dirs: Folders) -> list[Path]:
    """Returns folders of packages as a list; a single folder becomes a list of one.

    Raises:
        ModelError: an entry is not a path.
    """
    given = [package_dirs] if isinstance(package_dirs, str | os.PathLike) else package_dirs
    if not isinstance(given, Sequence) or not all(isinstance(path, str | os.PathLike) for path in given):
        raise ModelError(f"package_dirs: got {package_dirs!r}, allowed are paths of folders that contain packages")
    return [Path(os.path.expanduser(path)) for path in given]  # unlike Path.expanduser, it keeps unknown users


def resolve(spec: Any, names: Mapping[str, str], package_dirs: Folders, file: Path | None) -> None:
    """Replaces URIs by paths in a specification's meshes, height fields and textures.

    Args:
        spec: the `mujoco.MjSpec`, modified in place.
        names: file names in the source by file name in the specification, where they differ.
        package_dirs: folders that hold packages, or packages; searched first.
        file: the source's file, whose parent folders may be a package; None for text.

    Raises:
        ModelError: a file is in none of the folders; with the element and the folders.
    """
    folders = listed_folders(package_dirs)
    for kind, elements in (("mesh", spec.meshes), ("hfield", spec.hfields), ("texture", spec.textures)):
        for element in elements:
            path = given = names.get(element.file, element.file)
            if kind == "mesh" and spec.strippath:
                pass  # MuJoCo reads the last part of the path only
            elif PACKAGE.match(given):
                path = str(_found(f"{kind} {element.name!r}", given, folders, file))
            elif FILE.match(given):
                from urllib.request import url2pathname  # imports network modules

                path = url2pathname(FILE.sub("", given, count=1))
            elif given.startswith("~"):
                path = os.path.expanduser(given)
            elif kind == "mesh" and "%" in given:
                element.file = given
                exists = Path(full_path(spec, element, spec.modelfiledir)).is_file()
                path = given if exists or given in spec.assets else unquote(given)
            if path != element.file:
                element.file = path


def _found(label: str, uri: str, folders: list[Path], file: Path | None) -> Path:
    """Returns the file of a package URI.

    Raises:
        ModelError: no such file, no name of a package, or a path that leaves the package.
    """
    package, _, inside = PACKAGE.sub("", unquote(uri).replace("\\", "/"), count=1).partition("/")
    inside = os.path.normpath(inside.lstrip("/"))
    if package in ("", ".", "..") or inside == ".":
        raise ModelError(f"{label}: got {uri}, allowed is package://NAME/PATH")
    if inside.split(os.sep)[0] == "..":
        raise ModelError(f"{label}: got {uri}, which leaves the package {package!r}; allowed are files inside")
    tried = list(dict.fromkeys(_packages(package, folders, file)))
    for folder in tried:
        if (folder / inside).is_file():
            return (folder / inside).resolve()
    where = ", ".join(map(str, tried)) or f"no folder (no package {package!r} was found)"
    raise ModelError(
        f"{label}: {uri} was not found; searched: {where}; the package must be in package_dirs= "
        f"(--package-dirs; folders that contain packages), or in a folder of {', '.join((*SOURCES, *PREFIXES))}"
    )


def _packages(package: str, folders: list[Path], file: Path | None) -> Iterator[Path]:
    """Yields folders that may be the package, the most likely first."""
    for folder in [*folders, *_listed(SOURCES)]:
        if folder.name == package:
            yield folder
        for depth in range(DEPTH + 1):
            yield from sorted(folder.glob("*/" * depth + escape(package))) if folder.is_dir() else ()
    for prefix in _listed(PREFIXES):
        if (prefix / "share" / package).is_dir():
            yield prefix / "share" / package
    if file is not None:
        yield from (parent for parent in file.resolve().parents if parent.name == package)


def _listed(variables: Sequence[str]) -> list[Path]:
    """Returns the folders listed in environment variables."""
    return [Path(path) for name in variables for path in os.environ.get(name, "").split(os.pathsep) if path]
