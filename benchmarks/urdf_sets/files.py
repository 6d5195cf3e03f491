"""Finds the URDF files of a folder and the files that they refer to, without Featherlane's path handling."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote
from xml.etree import ElementTree

POINTER = b"version https://git-lfs"  # first bytes of a file that Git LFS has not downloaded
REFERENCE = re.compile(r"""<mesh\b[^<>]*?\bfilename\s*=\s*["']([^"']*)["']""")
UNREAD = re.compile(r"<!--.*?-->|<visual\b[^>]*(?:/>|>.*?</visual\s*>)", re.DOTALL)  # a simulation needs no visuals
ROBOT = re.compile(r"<robot\b")
TEMPLATE = re.compile(r"\$\{[^}]*\}|<xacro:")


class Robot(NamedTuple):
    """Describes a URDF file.

    Attributes:
        path: the file.
        missing: collision meshes that are not in the folder.
        packages: folders of the packages that it names.
        suffixes: of its collision meshes, in lower case.
        is_template: whether it has to be expanded by Xacro.
    """

    path: Path
    missing: Sequence[str]
    packages: Sequence[Path]
    suffixes: frozenset[str]
    is_template: bool


def robots(folder: Path, exclude: re.Pattern[str] | None) -> Iterator[Robot]:
    """Yields the URDF files of a folder, except paths that match the pattern."""
    packages = _packages(folder)
    for path in sorted(path for path in folder.rglob("*") if path.suffix.lower() == ".urdf" and path.is_file()):
        if exclude is not None and exclude.search(path.relative_to(folder).as_posix()):
            continue
        text = UNREAD.sub("", path.read_text(encoding="utf-8", errors="replace"))
        if not ROBOT.search(text):
            continue
        missing, used = [], {}
        names = list(dict.fromkeys(REFERENCE.findall(text)))
        for name in names:
            found = next((file for file in _candidates(name, path, packages) if _is_present(file[0])), None)
            if found is None:
                missing.append(name)
            elif found[1] is not None:
                used[found[1]] = None
        suffixes = frozenset(Path(name).suffix.lower() for name in names)
        yield Robot(path, missing, list(used), suffixes, TEMPLATE.search(text) is not None)


def _packages(folder: Path) -> dict[str, list[Path]]:
    """Returns folders by the names that they have as packages: their own, and that in their `package.xml`."""
    found: dict[str, list[Path]] = {}
    for parent, _, files in os.walk(folder, followlinks=False):
        path, names = Path(parent), {Path(parent).name}
        if "package.xml" in files:
            with contextlib.suppress(ElementTree.ParseError):
                names.add((ElementTree.parse(path / "package.xml").findtext("name") or path.name).strip())
        for name in names:
            found.setdefault(name, []).append(path)
    return found


def _candidates(name: str, robot: Path, packages: dict[str, list[Path]]) -> Iterator[tuple[Path, Path | None]]:
    """Yields files that a name may mean, and the folder of the package; those nearest to the robot first."""
    name = name.replace("\\", "/")
    scheme, separator, rest = name.partition(":")
    if not separator:
        yield from ((robot.parent / each, None) for each in (name, unquote(name)))
    elif scheme.lower() == "file":
        yield Path(re.sub(r"^//", "", unquote(rest))), None
    elif scheme.lower() == "package":
        package, _, inside = unquote(rest).lstrip("/").partition("/")
        near = [parent for parent in robot.parents if parent.name == package]
        shared = sorted(packages.get(package, ()), key=lambda path: -len(os.path.commonpath([path, robot])))
        for folder in [*near, *shared]:
            yield folder / inside.lstrip("/"), folder


def _is_present(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return not file.read(len(POINTER)).startswith(POINTER)
