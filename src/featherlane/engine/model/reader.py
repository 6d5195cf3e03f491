"""Imports the MuJoCo that reads models: any version from 3.6 on, if all its files are of one version.

Up to 3.17 the distribution `mujoco` owns all files of the module; since 4.0 `mujoco-core` does, and `mujoco` requires
it.  pip does not detect that two distributions own the same files: it overwrites them, or removes those of the other.
So everything that can be checked without importing a mixed installation is checked first.

Source: changelog of MuJoCo, 3.6 to 4.0.1.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from featherlane.errors import InstallationError

OLDEST = (3, 6)
CABLE = "mujoco.elasticity.cable"  # a plugin that MuJoCo 4.0 removed
SPLIT = (4,)  # since this version `mujoco-core` owns the files
OWNERS = ("mujoco", "mujoco-core")
INSTALL = "pip install 'mujoco>=3.6'"
REMOVE = "pip uninstall -y mujoco mujoco-core mujoco-studio"
# MJCF keywords that older versions do not support, with the first version that does
SINCE = {"discrete": "3.13", "ipc": "3.14", "speculative": "4.0", "springyield": "4.0"}


def version_numbers(version: str) -> tuple[int, ...]:
    """Returns the leading numbers of a version."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


@cache
def mujoco_module() -> Any:
    """Returns the module `mujoco`.

    Raises:
        InstallationError: the module is missing or too old, or its files are not of one version; with the command
            that repairs it.
    """
    folder = _folder()
    found = distributions(folder)
    check_distributions(found, folder)
    try:
        import mujoco
    except Exception as error:  # a library of another version: the error type depends on what is missing
        if "MUJOCO_GL" in str(error) or (os.environ.get("MUJOCO_GL") and "gl" in str(error).lower()):
            given = os.environ.get("MUJOCO_GL", "")
            raise InstallationError(
                f"MUJOCO_GL is {given!r}, and mujoco cannot be imported with this setting: {error}; "
                f"unset it, or set a rendering back end of this machine (egl, osmesa, glfw)"
            ) from error
        raise InstallationError(f"{_broken(found, folder)}: {error}; repair with:\n  {_repair(found)}") from error
    check_version(getattr(mujoco, "__version__", ""), found, folder)
    return mujoco


def forget_files() -> None:
    """Clears MuJoCo's cache of meshes, textures and height fields.

    MuJoCo reads a file in the cache again only if its time stamp differs in whole seconds.  Before 4.0, it reads an
    asset in memory again only if a hash differs, which is equal for many contents.
    """
    mujoco = mujoco_module()
    mujoco.mj_clearCache(mujoco.mj_getCache())


@contextmanager
def heard() -> Iterator[None]:
    """Converts MuJoCo's warnings to Python warnings, each text once: MuJoCo prints them, and appends them to
    MUJOCO_LOG.TXT in the current folder.

    If a handler is already installed (`mujoco.set_mju_user_warning`), nothing is changed.  Can be used as a decorator.
    """
    mujoco, texts = mujoco_module(), []
    if mujoco.get_mju_user_warning() is not None:
        yield
        return
    mujoco.set_mju_user_warning(texts.append)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(None)
        for text in dict.fromkeys(texts):
            warnings.warn(f"MuJoCo: {text.strip()}", stacklevel=4)


def _folder() -> Path:
    """Returns the parent folder of the module.

    Raises:
        InstallationError: the module is not installed.
    """
    loaded = sys.modules.get("mujoco")
    spec = loaded.__spec__ if loaded is not None else importlib.util.find_spec("mujoco")
    if spec is None:
        raise InstallationError(
            f"mujoco is not installed, but is required to read models; install it with:\n  {INSTALL}"
        )
    if spec.origin is None:
        # a folder without its __init__.py: left over, or installed by another package
        places = [str(Path(place).parent) for place in spec.submodule_search_locations or []]
        found = distributions(Path(places[0])) if places else {}
        where = f" in {places[0]}" if places else ""
        raise InstallationError(
            f"mujoco is incomplete{where}: __init__.py is missing; repair with:\n  {_repair(found)}"
        )
    return Path(spec.origin).parent.parent


def distributions(folder: Path) -> dict[str, str]:
    """Returns the distributions in a folder that own files of the module: versions by name."""
    from importlib import metadata  # slow to import

    found = {}
    for name in OWNERS:
        for distribution in metadata.distributions(name=name, path=[str(folder)]):
            found[name] = distribution.version
    return found


def installed() -> str:
    """Describes what `mujoco_module` would import, and from where; nothing is imported or checked."""
    try:
        folder = _folder()
    except InstallationError:
        return "not installed"
    found = distributions(folder)
    return f"{_named(found)}, {folder}"


def check_distributions(found: Mapping[str, str], folder: Path) -> None:
    """Raises an error, before any import, if two distributions own the same files, or one is too old.

    Args:
        found: installed distributions, version by name.
        folder: their folder, for the message.

    Raises:
        InstallationError: with the command that repairs it.
    """
    if len(found) == 2 and version_numbers(found["mujoco"]) < SPLIT:
        raise InstallationError(
            f"{_broken(found, folder)}: both packages contain the same files, so one has "
            f"overwritten the other; repair with:\n  {_repair(found)}"
        )
    for name, version in found.items():
        if version_numbers(version) < OLDEST:
            raise InstallationError(_too_old(f"{name} {version}", folder))


def check_version(version: str, found: Mapping[str, str], folder: Path) -> None:
    """Raises an error if the module is too old, or its version differs from the installed distribution.

    Args:
        version: the module's version, empty if it has none.
        found: installed distributions, version by name; empty if unknown.
        folder: their folder, for the message.

    Raises:
        InstallationError: with the command that repairs it.
    """
    versions = {version_numbers(each) for each in found.values()}
    if not version or (versions and version_numbers(version) not in versions):
        wrong = f"the imported module has version {version}" if version else "the module has no version"
        raise InstallationError(f"{_broken(found, folder)}: {wrong}; repair with:\n  {_repair(found)}")
    if version_numbers(version) < OLDEST:
        raise InstallationError(_too_old(f"mujoco {version}", folder))


def _broken(found: Mapping[str, str], folder: Path) -> str:
    return f"{_named(found)} in {folder}: files are missing or of different versions"


def _named(found: Mapping[str, str]) -> str:
    return " and ".join(f"{name} {version}" for name, version in found.items()) or "mujoco"


def _too_old(what: str, folder: Path) -> str:
    return f"{what} in {folder} is too old, allowed is >= 3.6; repair with:\n  {INSTALL}"


def _repair(found: Mapping[str, str]) -> str:
    """Returns the command that restores the version that the user chose: that of `mujoco`, whatever overwrote it."""
    (name, version), *_ = [*found.items(), ("mujoco", "")]
    chosen = f"{name}=={version}" if version_numbers(version) >= OLDEST else "mujoco>=3.6"
    return f"{REMOVE} && pip install '{chosen}'"


def hint(message: str, version: str) -> str:
    """Returns a hint for a parser's message: formats, or a word that a newer MuJoCo supports or has removed."""
    if "from mjb" in message:
        return f" (the file is damaged, or of another MuJoCo version; save it with MuJoCo {version})"
    if "no decoder found for mesh" in message:
        return " (allowed are STL, OBJ, MSH, COLLADA and glTF files; convert the file and change its name in the model)"
    if CABLE in message and version_numbers(version) >= SPLIT:
        return f" (MuJoCo 4.0 removed {CABLE}, and Featherlane does not compute it; use a chain of bodies with springs)"
    if version_numbers(version) >= SPLIT or not ("Schema violation" in message or "invalid keyword" in message):
        return ""
    word = re.search(r"'([^']*)'", message)
    since = SINCE.get(word[1]) if word else None
    if word and since and version_numbers(version) < version_numbers(since):
        return f" (installed is MuJoCo {version}; {word[1]!r} requires {since} or newer)"
    return f" (installed is MuJoCo {version}; a newer version may support it)"
