"""Cache of object code on disk: a file per stage, width, precision and CPU level, named by a hash of its sources.

Stages of a package that the wheel's build compiles together share a file, named by a hash of their names.

A file ends in a checksum of its name and its object.  A file that is incomplete (crash, full disk) or was copied over
another object is compiled again.

The hash covers the stage's bytecode, that of every kernel inlined into it, the layouts of its records, the sources
of the compiler in this folder, and the version of llvmlite.  Editing a helper therefore recompiles only its
callers.  The wheel's build and the just-in-time compiler share this cache.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shlex
import stat
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from featherlane.engine.lanes.kernel import Stage, symbol

HERE = Path(__file__).parent
COMPILER = (
    "kernel.py",
    "layout.py",
    "processor.py",
    "rows.py",
    "toolchain.py",
    "compiler/*.py",
)  # sources an object depends on


def directory() -> Path:
    """Returns the cache folder: FEATHERLANE_CACHE, else the user's cache folder, or one in /tmp without a home."""
    given = os.environ.get("FEATHERLANE_CACHE")
    if given:
        return Path(given)
    try:
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # a user id without a name, as in containers, and no HOME
        caches = Path(tempfile.gettempdir(), f"cache-{os.getuid() if hasattr(os, 'getuid') else 'user'}")
    return caches / "featherlane" / "kernels"


@functools.cache
def compiler_hash() -> str:
    """Returns a hash of the compiler: its sources and the version of llvmlite."""
    import importlib.metadata  # takes an eighth of the package's import time

    h = hashlib.sha256()
    for pattern in COMPILER:
        for path in sorted(HERE.glob(pattern)):
            h.update(path.read_bytes())
    h.update(f"llvmlite {importlib.metadata.version('llvmlite')}".encode())
    return h.hexdigest()


def key(stage: Stage, records, base: str, width: int, cpu: str, checked: bool) -> str:
    """Returns the file name of a stage's object."""
    h = hashlib.sha256(compiler_hash().encode())
    h.update(stage.code_hash().encode())
    for name, record in zip(stage.parameters, stage.layouts(records), strict=True):
        h.update(f"{name}:{record[0].signature() if record else 'int'}".encode())
    return f"{symbol(stage, base, width, checked)}-{cpu}-{h.hexdigest()[:20]}.o"


def group_key(stages: Sequence[Stage], records, base: str, width: int, cpu: str) -> str:
    """Returns the file name of the object of stages that are compiled together; for a single stage, that of `key`."""
    names = [key(s, records, base, width, cpu, False) for s in stages]
    if len(names) == 1:
        return names[0]
    digest = hashlib.sha256(" ".join(names).encode()).hexdigest()
    return f"{stages[0].name}-and-{len(names) - 1}-{base}x{width}-{cpu}-{digest[:20]}.o"


_unwritten: dict[str, bytes] = {}  # objects that could not be written to the folder; this process keeps them
_reported: set[str] = set()  # messages that were printed


def read_object(name: str) -> bytes | None:
    """Returns the object of that name; None unless it is complete and only this user or root can write it."""
    kept = b"" if _refused() else _trusted_bytes(directory() / name)
    code = kept[: -len(_checksum(name, b""))]
    return code if kept and kept == code + _checksum(name, code) else _unwritten.get(name)


def has_object(name: str) -> bool:
    """Returns whether there is an object of that name."""
    return read_object(name) is not None


def write_object(name: str, code: bytes) -> None:
    """Stores an object atomically: readers never find an incomplete file.

    A refused or unwritable folder is reported once and raises no error: the process keeps the object.
    """
    if _refused():
        _unwritten[name] = code
        return
    try:
        directory().mkdir(mode=0o755, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory()) as folder:
            part = Path(folder) / name
            part.write_bytes(code + _checksum(name, code))
            part.chmod(0o644)  # independent of the umask: an object that a group can write would be refused
            os.replace(part, directory() / name)
    except OSError as error:
        _report(f"{directory()} is not writable ({error.strerror or error}); set FEATHERLANE_CACHE to another folder")
        _unwritten[name] = code


# ---- trust: an object is code that runs as this user ----------------------------------------------------------------
def distrusted(status: os.stat_result) -> str:
    """Returns why a user other than this one and root could have written a file or folder; empty if none could.

    Source: OpenSSH, StrictModes of sshd_config: the owner is the user or root, and group and others cannot write.
    """
    if not hasattr(os, "geteuid"):
        return ""  # Windows: owner and mode carry no information
    if status.st_uid not in (0, os.geteuid()):
        return f"belongs to the user {status.st_uid}, allowed are the user {os.geteuid()} and root"
    mode = stat.S_IMODE(status.st_mode)
    return f"is writable by other users (mode {mode:04o})" if mode & (stat.S_IWGRP | stat.S_IWOTH) else ""


def _refused() -> bool:
    """Returns whether the folder is refused; reports the reason and the repairing command once."""
    try:
        status = directory().stat()
    except OSError:
        return False  # it does not exist yet
    reason = distrusted(status)
    if reason:
        command = "chmod go-w" if status.st_uid == os.geteuid() else f"chown -R {os.geteuid()}"
        place = shlex.quote(str(directory()))
        _report(
            f"{directory()} is not used, because it {reason}; repair it with {command} {place}, or "
            f"set FEATHERLANE_CACHE to another folder"
        )
    return bool(reason)


def _trusted_bytes(path: Path) -> bytes:
    """Returns the content of a file; empty if it does not exist or another user could have written it."""
    try:
        with path.open("rb") as file:
            return b"" if distrusted(os.fstat(file.fileno())) else file.read()
    except OSError:
        return b""


def _report(text: str) -> None:
    if text not in _reported:
        _reported.add(text)
        print(f"featherlane: {text}; until then, every process compiles its kernels again", file=sys.stderr)


def _checksum(name: str, code: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\0" + code).digest()
