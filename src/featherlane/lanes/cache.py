"""Object code on disk, one file for each stage, width, precision and CPU level, named by a hash of what it is made of.

A file ends in a checksum of its name and its object: what a crash or a full disk left broken, or what was copied over
another object, is compiled again.

The name covers the stage's own bytecode, that of every kernel inlined into it, the layouts of its records, the sources
of the compiler in this folder, and the version of llvmlite.  Editing a helper therefore recompiles its
callers and nothing else.  The wheel's build and the just-in-time path share this cache.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import tempfile
from pathlib import Path

from featherlane.lanes.kernel import Stage, variant

HERE = Path(__file__).parent
COMPILER = ("kernel.py", "layout.py", "processor.py", "toolchain.py", "compiler/*.py")  # what an object depends on


def directory() -> Path:
    """Where objects are kept: FEATHERLANE_CACHE, or the user's cache folder."""
    given = os.environ.get("FEATHERLANE_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "featherlane" / "kernels"


@functools.cache
def compiler_hash() -> str:
    """Hash of the compiler: its sources here and the version of LLVM's binding."""
    import importlib.metadata  # an eighth of the package's import time

    h = hashlib.sha256()
    for pattern in COMPILER:
        for path in sorted(HERE.glob(pattern)):
            h.update(path.read_bytes())
    h.update(f"llvmlite {importlib.metadata.version('llvmlite')}".encode())
    return h.hexdigest()


def key(stage: Stage, records, base: str, width: int, cpu: str, checked: bool) -> str:
    """File name of a stage's object."""
    h = hashlib.sha256(compiler_hash().encode())
    h.update(stage.code_hash().encode())
    for p in stage.parameters:
        h.update(f"{p}:{records[p][0].signature() if p in records else 'int'}".encode())
    base, width = variant(stage, base, width)
    form = f"{base}x{width}{'-checked' if checked else ''}"
    return f"{stage.name}-{form}-{cpu}-{h.hexdigest()[:20]}.o"


_unwritten: dict[str, bytes] = {}  # objects that the folder did not take; this process has them


def read(name: str) -> bytes | None:
    """The object of that name, or None where there is none that is whole."""
    try:
        kept = (directory() / name).read_bytes()
    except OSError:
        return _unwritten.get(name)
    code = kept[: -len(_checksum(name, b""))]
    return code if kept == code + _checksum(name, code) else _unwritten.get(name)


def holds(name: str) -> bool:
    """Is there an object of that name?"""
    return read(name) is not None


def write(name: str, code: bytes) -> None:
    """Keep an object; a reader never sees half of it.  A cache that cannot be written is said once, and is no error."""
    try:
        directory().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory()) as folder:
            part = Path(folder) / name
            part.write_bytes(code + _checksum(name, code))
            os.replace(part, directory() / name)
    except OSError as error:
        if not _unwritten:
            print(
                f"featherlane: {directory()} cannot be written ({error.strerror or error}): every process compiles its "
                "kernels anew; FEATHERLANE_CACHE names another folder",
                file=sys.stderr,
            )
        _unwritten[name] = code


def _checksum(name: str, code: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\0" + code).digest()
