"""The wheel's build hook: every kernel compiled into one shared object per CPU level, in featherlane/lanes/prebuilt.

Skipped for editable installs, off Linux x86-64, and with FEATHERLANE_PURE=1; kernels then compile on first use.  The
wheel is tagged linux_x86_64, or with the platform that FEATHERLANE_MANYLINUX names (manylinux2014_x86_64).

`python hatch_build.py FOLDER` writes the objects into a folder; the hook runs it so, in a process of its own.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

INSIDE = "featherlane/lanes/prebuilt"


class KernelBuildHook(BuildHookInterface):
    """Adds the compiled kernels to a wheel."""

    def initialize(self, version, build_data):
        here = sys.platform == "linux" and platform.machine() == "x86_64"
        if version == "editable" or not here or os.environ.get("FEATHERLANE_PURE") == "1":
            return
        self.folder = tempfile.TemporaryDirectory()
        if subprocess.run([sys.executable, __file__, self.folder.name], check=False).returncode:
            self.app.abort("the kernels could not be compiled; FEATHERLANE_PURE=1 builds a wheel without them")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{os.environ.get('FEATHERLANE_MANYLINUX') or 'linux_x86_64'}"
        for path in sorted(Path(self.folder.name).iterdir()):
            build_data["force_include"][str(path)] = f"{INSIDE}/{path.name}"

    def finalize(self, version, build_data, artifact_path):
        if hasattr(self, "folder"):
            self.folder.cleanup()


def main(folder: str) -> None:
    """Compile all stages for all CPU levels, from the sources beside this file."""
    sys.path.insert(0, str(Path(__file__).parent / "src"))
    from featherlane.lanes import build, processor
    from featherlane.simulation.library import library, stages

    start, every = time.monotonic(), list(stages().values())

    def progress(done, total, what):
        print(f"[{time.monotonic() - start:4.0f} s] {done} of {total} kernels {what}", file=sys.stderr, flush=True)

    build.compile_all(library(), every, build.VARIANTS, processor.LEVELS, progress)
    for level in processor.LEVELS:
        build.link_stages(library(), every, build.VARIANTS, level, Path(folder, f"{level}.so"))


if __name__ == "__main__":
    main(sys.argv[1])
