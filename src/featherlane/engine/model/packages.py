"""Finds files that a URDF names by ROS package, `package://NAME/PATH`, in local folders.

Source: ROS REP 122 (layout of an install prefix); Pinocchio, `package_dirs`; rospack (ROS_PACKAGE_PATH);
    ament_index (AMENT_PREFIX_PATH).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from featherlane.errors import ModelError

SCHEME = "package://"
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
    return [Path(path).expanduser() for path in given]


def resolve(spec: Any, package_dirs: Folders, file: Path | None) -> None:
    """Replaces `package://` by paths in a specification's meshes and textures.

    Args:
        spec: the `mujoco.MjSpec` of a URDF, modified in place.
        package_dirs: folders that hold packages, or packages; searched first.
        file: the URDF's file, whose parent folders may be a package; None for text.

    Raises:
        ModelError: a file is in none of the folders; with the element and the folders.
    """
    folders = listed_folders(package_dirs)
    for kind, elements in (("mesh", spec.meshes), ("texture", spec.textures)):
        for element in elements:
            if element.file.startswith(SCHEME):
                element.file = str(_found(f"{kind} {element.name!r}", element.file, folders, file))


def _found(label: str, uri: str, folders: list[Path], file: Path | None) -> Path:
    """Returns the file of a URI."""
    package, _, inside = unquote(uri.removeprefix(SCHEME)).partition("/")
    tried = list(_packages(package, folders, file))
    for folder in tried:
        if (folder / inside).is_file():
            return (folder / inside).resolve()
    where = ", ".join(map(str, dict.fromkeys(tried))) or f"no folder (no package {package!r} was found)"
    raise ModelError(
        f"{label}: {uri} was not found; searched: {where}; the package must be in package_dirs= "
        f"(folders that contain packages), or in a folder of {', '.join((*SOURCES, *PREFIXES))}"
    )


def _packages(package: str, folders: list[Path], file: Path | None) -> Iterator[Path]:
    """Yields folders that may be the package, the most likely first."""
    for folder in [*folders, *_listed(SOURCES)]:
        if folder.name == package:
            yield folder
        for depth in range(DEPTH + 1):
            yield from sorted(folder.glob("*/" * depth + package)) if folder.is_dir() else ()
    for prefix in _listed(PREFIXES):
        if (prefix / "share" / package).is_dir():
            yield prefix / "share" / package
    if file is not None:
        yield from (parent for parent in file.resolve().parents if parent.name == package)


def _listed(variables: Sequence[str]) -> list[Path]:
    """Returns the folders listed in environment variables."""
    return [Path(path) for name in variables for path in os.environ.get(name, "").split(os.pathsep) if path]
