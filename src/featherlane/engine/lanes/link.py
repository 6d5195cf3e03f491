"""Links object files into one shared object: with the system's C compiler, or with Zig's for another system.

Zig's C compiler, in the package `ziglang`, has linkers and C libraries of all systems, so it needs no SDK.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from featherlane.engine.lanes.processor import host
from featherlane.errors import CallError

# no start file, no undefined symbol; stages call each other directly
FLAGS = {
    "linux": "-shared -nostartfiles -O2 -fPIC -Wl,-z,defs,-z,noexecstack,-Bsymbolic,--gc-sections,--as-needed",
    "macos": "-dynamiclib -O2 -Wl,-dead_strip",
    "windows": "-shared -O2 -Wl,--out-implib,/dev/null",  # no import library: stages are found by name at run time
}
NAMELESS = {"linux": ["-s"], "macos": [], "windows": ["-s"]}  # strips the names of kernels that are not exported
LIBRARIES = ["-lm"]  # for processors without fused multiply-add
SUFFIXES = {"linux": ".so", "macos": ".so", "windows": ".dll"}
ZIG_TARGETS = {  # the oldest C library of Linux is that of manylinux2014
    ("linux", "x86_64"): "x86_64-linux-gnu.2.17",
    ("linux", "aarch64"): "aarch64-linux-gnu.2.17",
    ("macos", "aarch64"): "aarch64-macos.11.0",
    ("windows", "x86_64"): "x86_64-windows-gnu",
}


def compiler() -> list[str]:
    """Returns the C compiler: CC, else gcc, else cc."""
    return shlex.split(os.environ.get("CC") or ("gcc" if shutil.which("gcc") else "cc"))


def linker(place: tuple[str, str]) -> list[str]:
    """Returns the command that compiles and links C for a (system, architecture)."""
    if place == host():
        return compiler()
    return [sys.executable, "-m", "ziglang", "cc", "-target", ZIG_TARGETS[place]]


def linking_problem(place: tuple[str, str] | None = None) -> str:
    """Returns why objects cannot be linked for a (system, architecture), or for this machine; empty if they can."""
    system, architecture = place or host()
    if place and place != host() and place not in ZIG_TARGETS:
        return (
            f"kernels are cross-compiled for {', '.join(map('-'.join, ZIG_TARGETS))}, not for {system}-{architecture}"
        )
    if not place and system not in ("linux", "macos"):
        return f"ahead-of-time compilation of kernels is supported on Linux and macOS, not on {system}"
    with tempfile.TemporaryDirectory() as folder:
        try:
            link((), str(Path(folder, f"empty{SUFFIXES[system]}")), {"empty": ""}, place)
        except RuntimeError as error:
            return str(error)
    return ""


def link(objects: Iterable[str], out: str, symbols: dict[str, str], place: tuple[str, str] | None = None) -> None:
    """Links object files to one shared object that needs only libc and libm; `symbols` become exported strings.

    On Linux and Windows it exports no other names; FEATHERLANE_SYMBOLS=1 keeps the names of all kernels for a profiler.

    Args:
        objects: paths of the object files.
        out: path of the shared object.
        symbols: name -> text.
        place: (system, architecture) of the objects; None: this machine's.

    Raises:
        RuntimeError: the compiler is missing or fails; its message is quoted.
    """
    place = place or host()
    source = "".join(f'const char {k}[] = "{v}";\n' for k, v in symbols.items())
    names = [] if os.environ.get("FEATHERLANE_SYMBOLS") == "1" else NAMELESS[place[0]]
    command = [*linker(place), *FLAGS[place[0]].split(), *names, "-o", out, *objects, "-x", "c", "-", *LIBRARIES]
    _run(command, source.encode(), "the kernels")


def link_loader(source: Path, out: Path, place: tuple[str, str] | None = None) -> None:
    """Compiles the C library that reads frozen worlds, which needs only libc.

    Args:
        source: its file of C code.
        out: path of the shared object.
        place: (system, architecture); None: this machine's.

    Raises:
        RuntimeError: the compiler is missing or fails; its message is quoted.
    """
    command = [*linker(place or host()), "-std=c99", "-O2", "-shared", "-fPIC", "-o", str(out), str(source), "-ldl"]
    _run(command, b"", "the loader of frozen worlds")


def _run(command: list[str], source: bytes, what: str) -> None:
    """Runs a C compiler with some code as its input."""
    try:
        subprocess.run(command, input=source, check=True, capture_output=True)
    except OSError as e:
        raise CallError(f"linking {what} requires {command[0]}, which was not found; set CC to another compiler") from e
    except subprocess.CalledProcessError as e:
        raise CallError(f"{command[0]} could not link {what}: {e.stderr.decode()[-2000:]}") from e
