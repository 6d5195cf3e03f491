"""Writes a source as an MJCF file with its meshes, which MuJoCo and `load` read as the same model.

Numbers have 17 significant digits, so that each is read as the number that was written.  Meshes, height fields and
textures are copied to a folder next to the file.
Source: IEEE 754-2019, sec. 5.12.2 (17 digits identify a float64); MuJoCo, `MjSpec.to_xml`.
"""

from __future__ import annotations

import ctypes
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from featherlane.engine.libraries import private
from featherlane.engine.model.load import errors_of, report_losses, with_setup
from featherlane.engine.model.mesh_files import contents_at, files_of
from featherlane.engine.model.mujoco_arrays import read_fields
from featherlane.engine.model.packages import Folders
from featherlane.engine.model.reader import heard, mujoco_module
from featherlane.engine.model.robot_setup import NOT_SET_UP, RobotSetup
from featherlane.engine.model.scene_meshes import MSH
from featherlane.engine.model.source import is_text
from featherlane.errors import ModelError

LIBRARY = re.compile(r"(lib)?mujoco\b.*\.(so|dylib|dll)\b")
UNUSUAL = re.compile(r"[^\w.+-]")  # characters that file names do not have
SUFFIX, MSH_SUFFIX = ".xml", ".msh"
DIGITS = 17
CLOSE = 1e-9  # relative difference of compiled values, which are computed again from those written


def write_mjcf(
    source: Any,
    path: str | Path,
    *,
    package_dirs: Folders = (),
    setup: RobotSetup = NOT_SET_UP,
    overwrite: bool = False,
) -> list[Path]:
    """Writes a source as an MJCF file.

    Args:
        source: a path, XML text or a `mujoco.MjSpec`.
        path: the file, with suffix `.xml`; its files are copied to the folder `NAME_assets` next to it.
        package_dirs: as for `load`.
        setup: base, floor, actuators and keyframe that are added.
        overwrite: whether existing files are replaced.

    Returns:
        The written files, the MJCF file first.

    Raises:
        ModelError: the source cannot be read or compiled, or has files that cannot be copied; the file exists, or is
            the source; the written file would be another model.
    """
    target = _checked_target(source, Path(path).expanduser(), overwrite)
    spec, read, notes = with_setup(source, None, package_dirs, setup.checked())
    files = _move_files(spec, read.folders, f"{target.stem}_assets")
    taken = [str(target.parent / name) for name in files if (target.parent / name).exists()]
    if taken and not overwrite:
        raise ModelError(f"{taken[0]}: exists already; --force replaces files")
    with heard(), errors_of(source), _all_digits():
        mj = spec.compile()
        text = spec.to_xml()
        _check_same(text, files, mj)
    for note in notes:
        warnings.warn(note, stacklevel=2)
    report_losses(read.name, read.text, [mj.body(b).name for b in range(mj.nbody)], setup.actuators)
    written = {target: text.encode(), **{target.parent / name: content for name, content in files.items()}}
    for file, content in written.items():
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content)
    return list(written)


def _checked_target(source: Any, target: Path, overwrite: bool) -> Path:
    """Returns the path of the file.

    Raises:
        ModelError: another suffix, a missing folder, an existing file, or the source itself.
    """
    if target.suffix != SUFFIX:
        raise ModelError(f"{target}: allowed is a name that ends with {SUFFIX}")
    if not target.parent.is_dir():
        raise ModelError(f"{target.parent}: no such folder")
    if target.is_file() and not is_text(source) and isinstance(source, str | Path):
        given = Path(source).expanduser()
        if given.exists() and target.samefile(given):
            raise ModelError(f"{target}: is the source; allowed is another file")
    if target.exists() and not (overwrite and target.is_file()):
        raise ModelError(f"{target}: exists already; --force replaces files")
    return target


@contextmanager
def _all_digits() -> Iterator[None]:
    """Writes numbers in XML with all their digits; MuJoCo writes 6."""
    mujoco = mujoco_module()
    folder = Path(mujoco.__file__).parent
    library = ctypes.CDLL(str(next(each for each in folder.iterdir() if LIBRARY.match(each.name))))
    read, write = (private("mujoco", library, f"_mjPRIVATE__{verb}_xml_precision") for verb in ("get", "set"))
    before = read()
    write(DIGITS)
    try:
        yield
    finally:
        write(before)


def _move_files(spec: Any, folders: Sequence[str], folder: str) -> dict[str, bytes]:
    """Names all files of a specification as files of a folder; returns their contents by relative path.

    Raises:
        ModelError: a file is missing, or belongs to an element whose files are not copied.
    """
    _check_elements(spec)
    moved: dict[str, bytes] = {}
    names: dict[str, str] = {}  # new path by path
    meshes = [mesh for mesh in spec.meshes if mesh.file]
    found = [("mesh", *each) for each in files_of(spec, meshes, folders)]  # before a mesh is changed
    found += [(kind, *each) for kind in ("hfield", "texture") for each in _files(spec, kind)]
    for kind, element, path, content in found:
        if not path:
            raise ModelError(f"{kind} {element.name!r}: {element.file}: no such file")
        if path not in names:
            suffix = MSH_SUFFIX if element.content_type == MSH else Path(path).suffix.lower()
            stem = f"{folder}/{UNUSUAL.sub('_', Path(path).stem)}"
            choices = (f"{stem}{end}{suffix}" for end in ("", *(f"_{k}" for k in range(1, len(moved) + 1))))
            names[path] = next(choice for choice in choices if choice not in moved)
            moved[names[path]] = content
        element.name = element.name or Path(path).stem  # otherwise it is that of the file
        element.file = names[path]
    spec.compiler.meshdir = spec.compiler.texturedir = ""
    spec.strippath = False
    spec.assets.update(moved)
    return moved


def _files(spec: Any, kind: str) -> Iterator[tuple[Any, str, bytes]]:
    """Yields height fields or textures, the path of their file and its content; both are empty if it is not found."""
    folder = spec.compiler.texturedir if kind == "texture" else spec.compiler.meshdir
    for element in spec.textures if kind == "texture" else spec.hfields:
        if element.file:
            path = os.path.join(spec.modelfiledir, folder, element.file)
            place, content = next(contents_at(spec, [path, element.file]), ("", b""))
            yield element, place, content


def _check_elements(spec: Any) -> None:
    """Raises an error for elements with files that are not copied."""
    for texture in spec.textures:
        if any(texture.cubefiles):
            raise ModelError(f"texture {texture.name!r}: its files of a cube are not copied; allowed is one file")
    for skin in spec.skins:
        if skin.file:
            raise ModelError(f"skin {skin.name!r}: its file is not copied; allowed are skins without files")


def _check_same(text: str, files: Mapping[str, bytes], mj: Any) -> None:
    """Raises an error if the written file would be another model."""
    new = mujoco_module().MjSpec.from_string(text, assets=dict(files)).compile()
    written, read = read_fields(mj), read_fields(new)
    different = [name for name in written if not _is_same(np.asarray(written[name]), np.asarray(read[name]))]
    if different:
        raise ModelError(f"the MJCF file would be another model; it differs in {', '.join(different)}")


def _is_same(one: np.ndarray, other: np.ndarray) -> bool:
    """Returns whether arrays are equal; real numbers up to rounding."""
    if one.shape != other.shape:
        return False
    if one.dtype.kind != "f":
        return bool((one == other).all())
    return np.allclose(one, other, rtol=CLOSE, atol=CLOSE * np.abs(one).max(initial=0.0), equal_nan=True)
