"""One shared object from object files, by the system's C compiler."""

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
NAMELESS = {"linux": ["-s"], "darwin": []}  # leaves out the names of kernels that are not exported
LIBRARIES = ["-lm"]  # where a processor has no fused multiply-add


def compiler() -> list[str]:
    """The C compiler: what CC names, else gcc, else cc."""
    return shlex.split(os.environ.get("CC") or ("gcc" if shutil.which("gcc") else "cc"))


def missing() -> str:
    """Why shared objects cannot be linked here; empty where they can."""
    if sys.platform not in FLAGS:
        return f"kernels are compiled ahead of time on Linux and macOS, this is {sys.platform}"
    with tempfile.TemporaryDirectory() as folder:
        try:
            link((), str(Path(folder, "empty.so")), {"empty": ""})
        except RuntimeError as error:
            return str(error)
    return ""


def link(objects: Iterable[str], out: str, symbols: dict[str, str]) -> None:
    """One shared object, which needs libc and libm alone, from object files; `symbols` become exported strings.

    On Linux it has no other names, but with FEATHERLANE_SYMBOLS=1 those of all kernels, for a profiler.

    Raises:
        RuntimeError: the compiler is missing or refuses; its message is quoted.
    """
    source = "".join(f'const char {k}[] = "{v}";\n' for k, v in symbols.items())
    names = [] if os.environ.get("FEATHERLANE_SYMBOLS") == "1" else NAMELESS[sys.platform]
    command = [*compiler(), *FLAGS[sys.platform].split(), *names, "-o", out, *objects, "-x", "c", "-", *LIBRARIES]
    try:
        subprocess.run(command, input=source.encode(), check=True, capture_output=True)
    except OSError as e:
        raise CallError(f"linking kernels needs {command[0]}, which was not found; CC names another") from e
    except subprocess.CalledProcessError as e:
        raise CallError(f"{command[0]} could not link the kernels: {e.stderr.decode()[-2000:]}") from e
