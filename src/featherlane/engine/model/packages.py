"""Finds files that a model names by URI: `package://NAME/PATH` in local folders, `file://PATH`, and `~`.

Source: ROS REP 122 (layout of an install prefix), REP 149 (`package.xml`); Pinocchio, `package_dirs`; rospack
    (ROS_PACKAGE_PATH); ament_index (AMENT_PREFIX_PATH); RFC 8089 (`file`).
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
MANIFEST, NAME = "package.xml", re.compile(rb"<name>([^<]*)</name>")  # a folder may have another name than its package
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


def resolve(spec: Any, names: Mapping[str, str], package_dirs: Folders, file: Path | None, repair: bool) -> list[str]:
    """Replaces URIs by paths in a specification's meshes, height fields and textures.

    Args:
        spec: the `mujoco.MjSpec`, modified in place.
        names: file names in the source by file name in the specification, those of a URDF.
        package_dirs: folders that hold packages, or packages; searched first.
        file: the source's file, whose parent folders may be a package; None for text.
        repair: whether a mesh of a URDF that is in no package may be in a folder above the file.

    Returns:
        A line for each mesh that was found in a folder above the file.

    Raises:
        ModelError: a file is in none of the folders; with the element and the folders.
    """
    folders, lines = listed_folders(package_dirs), []
    above = list(file.resolve().parents) if file is not None and names else []
    for kind, elements in (("mesh", spec.meshes), ("hfield", spec.hfields), ("texture", spec.textures)):
        for element in elements:
            given = names.get(element.file, element.file)
            label = f"{kind} {element.name!r}"
            if kind == "mesh" and spec.strippath:
                path = given  # MuJoCo reads the last part of the path only
            elif PACKAGE.match(given):
                try:
                    path = str(_found(label, given, folders, file))
                except ModelError as error:
                    path = _above(given, above)
                    if not path or not repair:
                        raise ModelError(f"{error}{f'; repair=True (--repair) reads {path}' if path else ''}") from None
                    lines.append(f"{label}: {given} is in no package, read from {path}")
            elif FILE.match(given):
                from urllib.request import url2pathname  # imports network modules

                path = url2pathname(FILE.sub("", given, count=1))
            elif given.startswith("~"):
                path = os.path.expanduser(given)
            else:
                path = _relative(spec, element, given, folders) if kind == "mesh" and element.file in names else given
            if path != element.file:
                element.file = path
    return lines


def _above(uri: str, folders: Sequence[Path]) -> str:
    """Returns the file of a package URI in the first folder that has it, with or without the package's name, or ""."""
    whole = PACKAGE.sub("", unquote(uri), count=1).replace("\\", "/")
    for place in (whole, whole.partition("/")[2]):
        inside = os.path.normpath(place.lstrip("/"))
        for folder in folders if not inside.startswith("..") else ():
            if (folder / inside).is_file():
                return str(folder / inside)
    return ""


def _relative(spec: Any, mesh: Any, given: str, folders: Sequence[Path]) -> str:
    """Returns the path of a URDF's mesh that is named by a relative path.

    Files for MuJoCo before 3.7 have a `meshdir`, in which it looked for the last part of the path.  Other files name
    meshes from the folder of their package.
    """
    for name in dict.fromkeys((given, unquote(given))):
        mesh.file = name
        if name in spec.assets or Path(full_path(spec, mesh, spec.modelfiledir)).is_file():
            return name
    base, place = Path(spec.modelfiledir), unquote(given.replace("\\", "/"))
    for path in (
        base / place,
        base / spec.compiler.meshdir / Path(place).name,
        *(folder / place for folder in folders),
    ):
        if path.is_file():
            return str(path.absolute())
    return given


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
    tried: dict[Path, None] = {}
    for folder in _packages(package, folders, file):
        if folder not in tried and (folder / inside).is_file():
            return (folder / inside).resolve()
        tried[folder] = None
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
    parents = file.resolve().parents if file is not None else ()
    yield from (parent for parent in parents if parent.name == package)
    yield from (parent for parent in parents if _declared_name(parent / MANIFEST) == package)
    for folder in [*folders, *_listed(SOURCES)]:
        for depth in range(DEPTH + 1):
            files = sorted(folder.glob("*/" * depth + MANIFEST)) if folder.is_dir() else ()
            yield from (file.parent for file in files if _declared_name(file) == package)


def _declared_name(manifest: Path) -> str:
    """Returns the name of the package that a file `package.xml` describes, "" if there is no such file or name."""
    try:
        found = NAME.search(manifest.read_bytes())
    except OSError:
        return ""
    return found[1].decode(errors="replace").strip() if found else ""


def _listed(variables: Sequence[str]) -> list[Path]:
    """Returns the folders listed in environment variables."""
    return [Path(path) for name in variables for path in os.environ.get(name, "").split(os.pathsep) if path]
