"""Links object files into one shared object with the system's C compiler."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from featherlane.errors import CallError

# no start file, no undefined symbol; stages call each other directly
FLAGS = {
    "linux": "-shared -nostartfiles -O2 -fPIC -Wl,-z,defs,-z,noexecstack,-Bsymbolic,--gc-sections,--as-needed",
    "darwin": "-dynamiclib -O2 -Wl,-dead_strip",
}
NAMELESS = {"linux": ["-s"], "darwin": []}  # strips the names of kernels that are not exported
LIBRARIES = ["-lm"]  # for processors without fused multiply-add


def compiler() -> list[str]:
    """Returns the C compiler: CC, else gcc, else cc."""
    return shlex.split(os.environ.get("CC") or ("gcc" if shutil.which("gcc") else "cc"))


def linking_problem() -> str:
    """Returns why shared objects cannot be linked here; empty if they can."""
    if sys.platform not in FLAGS:
        return f"ahead-of-time compilation of kernels is supported on Linux and macOS, not on {sys.platform}"
    with tempfile.TemporaryDirectory() as folder:
        try:
            link((), str(Path(folder, "empty.so")), {"empty": ""})
        except RuntimeError as error:
            return str(error)
    return ""


def link(objects: Iterable[str], out: str, symbols: dict[str, str]) -> None:
    """Links object files to one shared object that needs only libc and libm; `symbols` become exported strings.

    On Linux it exports no other names; FEATHERLANE_SYMBOLS=1 keeps the names of all kernels for a profiler.

    Raises:
        RuntimeError: the compiler is missing or fails; its message is quoted.
    """
    source = "".join(f'const char {k}[] = "{v}";\n' for k, v in symbols.items())
    names = [] if os.environ.get("FEATHERLANE_SYMBOLS") == "1" else NAMELESS[sys.platform]
    command = [*compiler(), *FLAGS[sys.platform].split(), *names, "-o", out, *objects, "-x", "c", "-", *LIBRARIES]
    try:
        subprocess.run(command, input=source.encode(), check=True, capture_output=True)
    except OSError as e:
        raise CallError(
            f"linking kernels requires {command[0]}, which was not found; set CC to another compiler"
        ) from e
    except subprocess.CalledProcessError as e:
        raise CallError(f"{command[0]} could not link the kernels: {e.stderr.decode()[-2000:]}") from e
