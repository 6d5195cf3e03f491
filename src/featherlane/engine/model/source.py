"""Reads a source of models into a `mujoco.MjSpec`: a path, XML text, or a specification.

The content of a file decides on its format, not its suffix.
"""

from __future__ import annotations

import os
import posixpath
import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.parsers.expat import ExpatError

from featherlane.engine.model.arguments import instance
from featherlane.engine.model.assignment import encodable
from featherlane.engine.model.global_coordinates import use_local_coordinates
from featherlane.engine.model.mjcf_repair import (
    drop_unknown_materials,
    lfs_pointers,
    located,
    missing_files,
    repaired_model,
    replace_missing,
)
from featherlane.engine.model.packages import Folders, listed_folders, resolve
from featherlane.engine.model.reader import forget_files, mujoco_module, version_numbers
from featherlane.engine.model.repair import is_repairing, repaired, repairing, without_visuals
from featherlane.engine.model.urdf_problems import urdf_problems
from featherlane.engine.model.urdf_reader import read_as_newest, with_distinct_names
from featherlane.errors import ModelError

ARCHIVE, BINARY = b"PK\x03\x04", b"\x31\xd4\x00\x00"  # first bytes of ZIP files, and of MuJoCo's binary models
USD = ("#usda", "PXR-USDC")
DECODED = (".xml", ".urdf")  # suffixes of files that MuJoCo reads into a specification
XACRO = re.compile(r"\$\{[^}]*\}|\$\([^)]*\)")
ATTACHED = re.compile(r"<model\b[^<>]*\bfile\s*=\s*[\"']([^\"']*)[/\\]")  # folder of the file of an attached model
INCLUDED = re.compile(r"<include\b[^<>]*\bfile\s*=\s*[\"']([^\"']*)[\"']")
PART = "mujocoinclude"  # root element of a part of a model
SHOWN = 8  # lines of each list in a message
SUBMODULE = "; its folder is empty: `git submodule update --init` downloads submodules"
# root elements and formats that MuJoCo does not read, and the programs that convert them
CONVERTED = {
    "sdf": "an SDFormat file; convert it with `sdf2mjcf` (pip install sdformat-mjcf), or export a URDF",
    "usd": "a USD file; convert it with `usd_to_urdf` (pip install nvidia-srl-usd-to-urdf), or export MJCF or URDF",
    "COLLADA": "a COLLADA mesh; load an MJCF or URDF file that refers to meshes",
}


class Source(NamedTuple):
    """Holds a source that was read.

    Attributes:
        name: its name for messages.
        spec: its `mujoco.MjSpec`; the given object if the source is one.
        text: its XML text, or "".
        folders: folders of attached models, in which their meshes are.
        repairs: changes that `repair` made.
    """

    name: str
    spec: Any
    text: str = ""
    folders: Sequence[str] = ()
    repairs: Sequence[str] = ()


def is_text(source: Any) -> bool:
    """Returns whether a source is XML text."""
    return isinstance(source, str) and clean(source).startswith("<")


def clean(text: str) -> str:
    """Returns XML text without the characters that may precede its first `<`."""
    return text.lstrip("\ufeff \t\r\n")


def root_element(text: str) -> str:
    """Returns the name of the first element of XML text, or ""."""
    first = re.search(r"<([A-Za-z_][\w.-]*)", re.sub(r"<!--.*?-->|<\?.*?\?>|<!DOCTYPE[^>]*>", "", text, flags=re.S))
    return "" if first is None else first.group(1)


def is_urdf(text: str) -> bool:
    """Returns whether XML text has `robot` as its first element."""
    return root_element(text) == "robot"


def found_file(source: str | Path) -> Path:
    """Returns the file of a path.

    Raises:
        ModelError: there is no such file.
    """
    path = Path(os.path.expanduser(encodable("path", str(source))))
    try:
        is_folder, is_file = path.is_dir(), path.is_file()
    except OSError as error:
        raise ModelError(f"{str(source)[:60]!r}: {error.strerror}") from None
    if is_file:
        return path
    raise ModelError(f"{path}: is a folder, allowed is an MJCF or URDF file" if is_folder else f"{path}: no such file")


def is_binary(source: Any) -> bool:
    """Returns whether a source is the path of a binary model of MuJoCo (`mj_saveModel`)."""
    return isinstance(source, str | Path) and not is_text(source) and _starts_with(found_file(source), BINARY)


def read_source(source: Any, assets: Mapping[str, bytes] | None, package_dirs: Folders) -> Source:
    """Reads a source; arguments as for `load`.

    Raises:
        ModelError: the source cannot be found or has a format that MuJoCo does not read, or a file of a package is
            missing.
        ValueError: MuJoCo cannot parse it.
    """
    mujoco = mujoco_module()
    listed_folders(package_dirs)
    if assets is not None and not is_text(source):
        raise ModelError("assets: allowed only with XML text; a file finds its own")
    if isinstance(source, mujoco.MjSpec):
        return Source("MjSpec", source)
    if not isinstance(source, str | Path):
        given = type(source).__name__
        raise ModelError(f"specification: got {given}, allowed are a bundled name, a path, XML text or an MjSpec")
    forget_files()
    name, path, text, files = _text_of(source)
    files |= _checked_assets(assets)
    kind, names = "usd" if text.startswith(USD) else root_element(text), {}
    if kind in CONVERTED:
        raise ModelError(f"{name}: is {CONVERTED[kind]}")
    if not is_text(text):
        raise ModelError(f"{name}: is no XML text; allowed are MJCF and URDF files, and ZIP files with one of them")
    repairs: list[str] = []
    parts: dict[str, bytes] = {}
    is_global = False
    if kind == "robot":
        text, repairs = repaired(text) if is_repairing() else (text, [])
        text, names = with_distinct_names(text)
        spec, text = _parsed_robot(mujoco, path, text, files, repairs)
        read_as_newest(spec, text, version_numbers(mujoco.__version__))
    else:
        if is_repairing():
            texts, repairs, is_global = repaired_model(path, text, files)
            text, *_ = texts.values()
            parts = {name: part.encode() for name, part in texts.items() if name and repairs}
        spec = _parsed(mujoco, path, text, files, parts)
    repairs = [*repairs, *resolve(spec, names, package_dirs, path, is_repairing())]
    if kind != "robot" and is_repairing():
        repairs += [*replace_missing(spec), *drop_unknown_materials(spec)]
        if is_global:
            use_local_coordinates(spec)
    folders = [os.path.join(spec.modelfiledir, folder) for folder in ATTACHED.findall(text)]
    return Source(name, spec, text, folders, repairs)


def possible_repairs(source: Any, assets: Mapping[str, bytes] | None = None) -> tuple[list[str], list[str]]:
    """Returns the changes that `repair` would make to a source, and problems of a URDF that it does not repair.

    Both are empty for a source that is no text, the first also if the source was repaired or remains invalid.

    Args:
        source, assets: as for `load`.
    """
    if not isinstance(source, str | Path) or is_binary(source):
        return [], []
    text = _text_of(source)[2]
    if is_urdf(text):
        new, repairs = repaired(text)
        return [] if is_repairing() else repairs, urdf_problems(new)
    if is_repairing():
        return [], []
    with repairing():
        try:
            return [*read_source(source, assets, ()).repairs], []
        except (ValueError, mujoco_module().FatalError):
            return [], []


def file_hints(message: str, source: Any, assets: Mapping[str, bytes] | None = None) -> list[str]:
    """Returns lines for a message about the files of a model: parts of models, missing files, Git LFS pointers.

    Args:
        message: error of MuJoCo's reader or compiler.
        source, assets: as for `load`.
    """
    path = None if is_text(source) or not isinstance(source, str | Path) else found_file(source)
    if PART in message:
        found = _including_files(path) if path is not None else []
        shown = f", such as {' or '.join(found[:3])}" if found else ""
        return [f"it is a part of a model; load a file that includes it{shown}"]
    if path is None or _starts_with(path, BINARY):
        return []
    included = re.search(r"Error opening file '([^']*)'\s*Element 'include'", message)
    if included:
        file = Path(os.path.normpath(path.parent / included[1]))
        folders = [folder for folder in file.parents if os.path.isdir(folder)]
        is_empty = not any(folders[0].glob("*")) and os.access(folders[0], os.R_OK)
        return [f"missing: {file}{SUBMODULE if is_empty else located([str(file)], path.parent)[0]}"]
    try:
        spec = read_source(source, assets, ()).spec
    except (ValueError, mujoco_module().FatalError):
        return []
    pointers = [f"{path} is a Git LFS pointer; `git lfs pull` downloads the file" for path in lfs_pointers(spec)]
    missing = missing_files(spec) if "opening file" in message else []
    ends = located([file for _, _, file in missing[:SHOWN]], path.parent) + [""] * len(missing[SHOWN:])
    lines = zip(missing, ends, strict=True)
    return [*pointers, *(f"missing: {kind} {element.name!r}, {file}{end}" for (kind, element, file), end in lines)]


def _including_files(part: Path) -> list[str]:
    """Returns the models in the folder of a part of a model, and in its parent, that include it."""
    found = []
    for folder in (part.parent, part.resolve().parent.parent):
        for path in sorted(folder.glob("*.xml")):
            text = path.read_text(encoding="utf-8", errors="replace")
            names = [name for name in INCLUDED.findall(text) if name.replace("\\", "/").split("/")[-1] == part.name]
            if names and root_element(text) == "mujoco":
                found.append(str(path))
    return list(dict.fromkeys(found))


def _text_of(source: str | Path) -> tuple[str, Path | None, str, dict[str, bytes]]:
    """Returns name, file, text and assets of a source; the model of an archive has no file.

    Raises:
        ModelError: the file is missing, or is a binary model, or an archive without one model.
    """
    if is_text(source):
        return "XML text", None, encodable("XML text", clean(str(source))), {}
    path = found_file(source)
    if _starts_with(path, BINARY):
        raise ModelError(f"{path}: is a compiled model of MuJoCo, allowed here are MJCF and URDF files")
    if _starts_with(path, ARCHIVE):
        return str(path), None, *_unpacked(path)
    return str(path), path, path.read_text(encoding="utf-8-sig", errors="replace"), {}


def _starts_with(path: Path, start: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(start)) == start


def _unpacked(path: Path) -> tuple[str, dict[str, bytes]]:
    """Returns the text of the model in a ZIP file, and the other files by their path from the model's folder.

    Raises:
        ModelError: the file is damaged, or the folder nearest to its root does not have one model.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            files = {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
    except zipfile.BadZipFile as error:
        raise ModelError(f"{path}: {error}") from None
    if any(name.lower().endswith((".usd", ".usda", ".usdc")) for name in files):
        raise ModelError(f"{path}: is {CONVERTED['usd']}")
    models = [name for name in files if name.lower().endswith(DECODED)]
    models = [name for name in models if name.count("/") == min(other.count("/") for other in models)]
    if len(models) != 1:
        shown = ", ".join(models) or "no model"
        raise ModelError(f"{path}: has {shown}; allowed are archives with one MJCF or URDF file and its assets")
    text = files.pop(models[0]).decode("utf-8-sig", errors="replace")
    folder = posixpath.dirname(models[0])
    return text, {posixpath.relpath(name, folder or "."): content for name, content in files.items()}


def _parsed_robot(
    mujoco: Any, path: Path | None, text: str, files: dict[str, bytes], repairs: list[str]
) -> tuple[Any, str]:
    """Returns the specification in the text of a URDF, and the text, without visuals if only they are invalid.

    Raises:
        ValueError: MuJoCo cannot parse it.
    """
    try:
        return _parsed(mujoco, path, text, files, {}), text
    except ValueError as error:
        if not is_repairing():
            raise
        try:
            bare = without_visuals(text)
            spec = _parsed(mujoco, path, bare, files, {})
        except (ValueError, ExpatError):
            raise error from None
        repairs.append(f"all <visual> and <material> are removed, as one is invalid: {' '.join(str(error).split())}")
        return spec, bare


def _parsed(mujoco: Any, path: Path | None, text: str, files: dict[str, bytes], parts: dict[str, bytes]) -> Any:
    """Returns the specification in XML text, with the folder of its file; `parts` replace files that it includes.

    Raises:
        ValueError: MuJoCo cannot parse it.
    """
    is_robot = is_urdf(text)
    try:
        if path is None:
            included = {name: content for name, content in files.items() if is_text(content.decode(errors="replace"))}
            included |= parts
            return mujoco.MjSpec.from_string(text, include=included, assets=files)
        if path.suffix in DECODED and not is_robot and not parts:
            return mujoco.MjSpec.from_file(str(path))
        place = path.as_posix() if path.suffix in DECODED else f"{path.as_posix()}.xml"
        return mujoco.MjSpec.from_file(place, include={**parts, place: text.encode()})
    except ValueError as error:
        if is_robot and (found := XACRO.search(text)):
            message = str(error).strip()
            raise ValueError(f"{message} (it contains {found[0]!r}: expand it with `xacro FILE > r.urdf`)") from None
        raise


def _checked_assets(assets: Mapping[str, bytes] | None) -> dict[str, bytes]:
    """Returns the assets in MuJoCo's form: bytes by file name."""
    result = {}
    instance("assets", assets, Mapping | None, "a dict of contents by file name")
    for name, content in (assets or {}).items():
        if not isinstance(content, str | bytes | bytearray):
            raise ModelError(f"asset {name!r}: got {type(content).__name__}, allowed are bytes or str")
        if isinstance(content, str):
            content = encodable(f"asset {str(name)!a}", content).encode()
        result[encodable("assets", str(name))] = bytes(content)
    return result
