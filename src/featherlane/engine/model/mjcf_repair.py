"""Repairs MJCF of older MuJoCo versions, and replaces missing textures and skins; other elements keep their bytes.

MuJoCo removed attributes without effect, renamed some, and replaced others.  Each is replaced by what has the same
effect.  Textures and skins have no effect on the motion.
Source: changelog of MuJoCo, 3.0 to 3.5.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.parsers.expat import ExpatError

from featherlane.engine.model.global_coordinates import UNSET
from featherlane.engine.model.mesh_files import asset_path, contents_at, reduced
from featherlane.engine.model.reader import mujoco_module
from featherlane.engine.model.xml_edits import Edits, Node, floats, tree

LFS = b"version https://git-lfs"  # beginning of a pointer
NEAR = 4  # folders from that of a model upwards in which a missing file is searched
NO_EFFECT = "it had no effect, removed"


class Older(NamedTuple):
    """Describes an attribute that MuJoCo removed.

    Attributes:
        since: first version without it.
        change: what is done.
        new: attributes with the same effect, from its value.
    """

    since: str
    change: str
    new: Callable[[str], dict[str, str]] = lambda value: {}


def _renamed(name: str) -> Callable[[str], dict[str, str]]:
    return lambda value: {name: value}


OLDER = {
    ("option", "apirate"): Older("3.3.7", NO_EFFECT),
    ("option", "mpr_tolerance"): Older("3.2.3", "renamed to ccd_tolerance", _renamed("ccd_tolerance")),
    ("option", "mpr_iterations"): Older("3.2.3", "renamed to ccd_iterations", _renamed("ccd_iterations")),
    ("compiler", "convexhull"): Older("3.2.5", "meshes always collide as their convex hulls, removed"),
    ("flag", "sensornoise"): Older("3.1.4", "sensors have no noise, removed"),
    ("flag", "passive"): Older(
        "3.3.6", "replaced by spring and damper", lambda value: {"spring": value, "damper": value}
    ),
    ("camera", "orthographic"): Older(
        "3.5",
        "replaced by projection",
        lambda value: {"projection": "orthographic" if value == "true" else "perspective"},
    ),
}
# modes of <option collision>
COLLISION = {
    "all": "removed, it is the only mode",
    "predefined": "removed, and contype and conaffinity of all geoms are 0",
    "dynamic": "removed with all <pair>",
}
# attributes with several numbers
NUMERIC = set(
    "pos quat axisangle xyaxes zaxis euler axis dir size fromto rgba friction solref solimp range diaginertia "
    "fullinertia gear ctrlrange forcerange gravity wind scale anchor ambient diffuse specular rgb1 rgb2".split()
)


class Repaired(NamedTuple):
    """Holds the texts of a model by path.

    Attributes:
        texts: the texts.
        lines: a line for each change.
        is_global: whether the coordinates are global, so that `use_local_coordinates` has to convert them.
    """

    texts: dict[str, str]
    lines: list[str]
    is_global: bool = False


class Files(NamedTuple):
    """Holds the texts of a model by path, first that of its file; and the path of each included file.

    Attributes:
        texts: text by path, "" for XML text.
        included: path by including file and attribute `file`.
    """

    texts: dict[str, str]
    included: dict[tuple[str, str], str]


def repaired_model(path: Path | None, text: str, others: Mapping[str, bytes]) -> Repaired:
    """Repairs the text of a model, which is the first in the result, and the files that it includes.

    Args:
        path: its file, None for XML text.
        text: its text.
        others: contents of other files by name.
    """
    return repaired_files(files_of_model(path.as_posix() if path is not None else "", text, others))


def files_of_model(main: str, text: str, others: Mapping[str, bytes]) -> Files:
    """Reads the files that a model includes.

    Args:
        main: path of the file, "" for XML text.
        text: its text.
        others: contents of other files by name, which take precedence over the disk.
    """
    folder, found, waiting = main.rpartition("/")[0], Files({main: text}, {}), [main]
    while waiting:
        path = waiting.pop()
        for node in _walk(_root(found.texts[path])):
            given = node.attributes.get("file", "") if node.tag == "include" else ""
            file = given.replace("\\", "/")
            # from the folder of the model, else from that of the including file
            for start in (folder, path.rpartition("/")[0]) if file else ():
                place = reduced(f"{start}/{file}" if start and not file.startswith("/") else file)
                content = others.get(place) or (Path(place).read_bytes() if Path(place).is_file() else None)
                if content is not None:
                    if place not in found.texts:
                        found.texts[place] = content.decode("utf-8-sig", errors="replace")
                        waiting.append(place)
                    found.included[path, given] = place
                    break
    return found


def repaired_files(files: Files) -> Repaired:
    """Replaces attributes that MuJoCo removed; texts that are not XML remain unchanged.

    MuJoCo finds contents by their name without folder, so that included files get distinct names.
    """
    texts = files.texts
    edits = {name: Edits(text.encode()) for name, text in texts.items()}
    roots = {name: _root(text) for name, text in texts.items()}
    found: dict[tuple[str, str], str] = {}
    for name, edit in edits.items():
        label = f" in {Path(name).name}" if name and len(texts) > 1 else ""
        for node in _walk(roots[name]):
            found |= _replace(edit, node, label)
            _separate_numbers(edit, node, label)
            for child in list(node.children) if node.tag == "worldbody" else ():
                if child.tag == "inertial":
                    edit.drop(node, child)
                    edit.lines.append(f"<worldbody>{label}: <inertial> of the world, which cannot move, is removed")
    lines = [line for edit in edits.values() for line in edit.lines]
    if not lines:
        return Repaired(texts, lines)
    main, *parts = texts
    names = {main: main} | {part: f"repaired_{k}_{part.rpartition('/')[2]}" for k, part in enumerate(parts)}
    for name, edit in edits.items():
        for node in _walk(roots[name]):
            _apply(edit, node, found)
            place = files.included.get((name, node.attributes.get("file", ""))) if node.tag == "include" else None
            if place is not None:
                start, slash, _ = node.attributes["file"].replace("\\", "/").rpartition("/")
                node.attributes["file"] = start + slash + names[place]
                edit.rewrite(node)
    results = {names[name]: edit.result() for name, edit in edits.items()}
    return Repaired(results, lines, ("compiler", "coordinate") in found)


def _root(text: str) -> Node | None:
    try:
        return tree(text.encode())
    except ExpatError:
        return None


def _walk(node: Node | None) -> Iterator[Node]:
    """Yields an element and all elements in it, except those of extensions."""
    if node is not None and node.tag != "custom":
        yield node
        for child in node.children:
            yield from _walk(child)


def _replace(edits: Edits, node: Node, label: str) -> dict[tuple[str, str], str]:
    """Replaces removed attributes of an element; returns those that change other elements."""
    found = {}
    for name, value in list(node.attributes.items()):
        older = OLDER.get((node.tag, name))
        if node.tag == "option" and name == "collision" and value in COLLISION:
            older = Older("3.0", COLLISION[value])
            found[node.tag, name] = value
        elif node.tag == "compiler" and name == "exactmeshinertia" and value in ("true", "false"):
            change = 'replaced by inertia="exact" of all meshes' if value == "true" else "removed, it is the default"
            older = Older("3.2.5", change)
            found[node.tag, name] = value
        elif node.tag == "compiler" and name == "coordinate" and value == "global":
            older = Older("2.3.4", "positions and orientations are converted to frames of bodies")
            found[node.tag, name] = value
        if older is not None:
            del node.attributes[name]
            node.attributes |= older.new(value)
            edits.rewrite(node)
            edits.lines.append(f"<{node.tag} {name}={value!r}>{label}: not in MuJoCo {older.since}; {older.change}")
    return found


def _separate_numbers(edits: Edits, node: Node, label: str) -> None:
    """Replaces commas between the numbers of an attribute by spaces."""
    for name, given in list(node.attributes.items()):
        new = " ".join(given.replace(",", " ").split())
        if name in NUMERIC and "," in given and floats(new):
            node.attributes[name] = new
            edits.rewrite(node)
            edits.lines.append(f"<{node.tag} {name}={given!r}>{label}: not a list of numbers, read as {new!r}")


def _apply(edits: Edits, parent: Node, found: Mapping[tuple[str, str], str]) -> None:
    """Changes the children of an element as removed options did."""
    collision, exact = found.get(("option", "collision")), found.get(("compiler", "exactmeshinertia"))
    for child in list(parent.children):
        if child.tag == "geom" and collision == "predefined" and parent.tag != "spatial":
            child.attributes |= {"contype": "0", "conaffinity": "0"}
            edits.rewrite(child)
        elif child.tag == "body" and ("compiler", "coordinate") in found and "pos" not in child.attributes:
            child.attributes["pos"] = f"{UNSET} 0 0"
            edits.rewrite(child)
        elif child.tag == "pair" and collision == "dynamic" and parent.tag == "contact":
            edits.drop(parent, child)
        elif child.tag == "mesh" and exact == "true" and parent.tag == "asset" and "inertia" not in child.attributes:
            child.attributes["inertia"] = "exact"
            edits.rewrite(child)


# ---- missing files ---------------------------------------------------------------------------------------------------
def _files(spec: Any) -> Iterator[tuple[str, Any, str, bytes | None]]:
    """Yields the files of a specification: kind, element, path and content, None if missing; not of attached models."""
    lists = (("mesh", spec.meshes), ("hfield", spec.hfields), ("texture", spec.textures), ("skin", spec.skins))
    for kind, elements in lists:
        for element in elements:
            own = getattr(element, "compiler", spec.compiler)
            if own is not spec.compiler:
                continue
            directory = own.texturedir if kind == "texture" else own.meshdir
            for file in (element.file, *(element.cubefiles if kind == "texture" else ())):
                path = asset_path(spec, file, directory, spec.modelfiledir)
                if file:
                    yield kind, element, path, next((content for _, content in contents_at(spec, [path])), None)


def missing_files(spec: Any) -> list[tuple[str, Any, str]]:
    """Returns the elements whose files are missing: kind, element and path."""
    return [(kind, element, path) for kind, element, path, content in _files(spec) if content is None]


def lfs_pointers(spec: Any) -> list[str]:
    """Returns the paths of files that Git LFS has not downloaded."""
    return [path for _, _, path, content in _files(spec) if content is not None and content.startswith(LFS)]


def replace_missing(spec: Any) -> list[str]:
    """Replaces missing textures by white ones, and removes missing skins; returns a line for each.

    If other files are missing, nothing is changed.
    """
    lines, missing = [], missing_files(spec)
    if any(kind not in ("texture", "skin") for kind, *_ in missing):
        return []
    for kind, element, path in missing:
        if kind == "texture" and (element.file or any(element.cubefiles)):
            element.file, element.builtin = "", mujoco_module().mjtBuiltin.mjBUILTIN_FLAT
            element.cubefiles = [""] * len(element.cubefiles)
            element.width, element.height, element.rgb1, element.rgb2 = 1, 6, (1.0, 1.0, 1.0), (1.0, 1.0, 1.0)
            element.gridsize = (1, 1)
            lines.append(f"texture {element.name!r}: no file {path}; it is white")
        elif kind == "skin":
            lines.append(f"skin {element.name!r}: no file {path}; removed")
            spec.delete(element)
    return lines


def drop_unknown_materials(spec: Any) -> list[str]:
    """Removes references to materials that do not exist; returns a line for each material."""
    known, lines = {"", *(material.name for material in spec.materials)}, {}
    for kind, elements in (("geom", spec.geoms), ("site", spec.sites), ("tendon", spec.tendons)):
        for element in elements:
            if element.material not in known:
                first = f"{kind} {element.name!r}"
                lines[element.material] = lines.get(element.material, f"material {element.material!r} of {first}")
                element.material = ""
    return [f"{line}, ...: no such material, ignored" for line in lines.values()]


def located(files: Sequence[str], folder: Path) -> list[str]:
    """Returns where missing files exist: the end of a path, in the folder of the model, or in folders near or above it.

    An entry is "" if a file is in none of them.
    """
    above = [folder, *folder.resolve().parents][:NEAR]
    places = [*above, *(place for parent in above for place in sorted(parent.glob("*")) if os.path.isdir(place))]
    found = []
    for file in files:
        parts = Path(file).parts[1:]
        ends = ((os.path.join(*parts[k:]), places if k < len(parts) - 1 else [folder]) for k in range(len(parts)))
        at = ((end, place) for end, nearest in ends for place in nearest if os.path.isfile(os.path.join(place, end)))
        found.append(next((f"; {end} is in {place}" for end, place in at), ""))
    return found
