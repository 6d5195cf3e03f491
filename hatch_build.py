"""The wheel's build hook: every kernel compiled into one shared object per CPU level, in featherlane/lanes/prebuilt.

A local build compiles for this machine's level alone; FEATHERLANE_LEVELS names others (`x86-64-v3,x86-64-v4`), and a
build that FEATHERLANE_MANYLINUX tags for release (manylinux2014_x86_64) compiles all of this architecture.  Editable
installs, systems without a C compiler that links, and FEATHERLANE_PURE=1 compile no kernels: what is installed needs
`llvmlite` then, and compiles them on first use.

`python hatch_build.py FOLDER LEVEL ...` writes the objects into a folder; the hook runs it so, in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

INSIDE = "featherlane/lanes/prebuilt"
SOURCES = str(Path(__file__).parent / "src")


class KernelBuildHook(BuildHookInterface):
    """Adds the compiled kernels to a wheel."""

    def initialize(self, version, build_data):
        why_not = self.reason_for_none(version)
        if why_not:
            self.app.display_info(f"kernels compile on first use: {why_not}")
            build_data["dependencies"] += [r for r in self.metadata.build.requires if r.startswith("llvmlite")]
            return
        try:
            levels = wanted_levels()
        except ValueError as error:
            self.app.abort(str(error))
        self.folder = tempfile.TemporaryDirectory()
        command = [sys.executable, __file__, self.folder.name, *levels]
        if subprocess.run(command, check=False).returncode:
            self.app.abort("the kernels could not be compiled; FEATHERLANE_PURE=1 builds a wheel without them")
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{os.environ.get('FEATHERLANE_MANYLINUX') or platform}"
        for path in sorted(Path(self.folder.name).iterdir()):
            build_data["force_include"][str(path)] = f"{INSIDE}/{path.name}"

    def reason_for_none(self, version) -> str:
        """Why no kernels are compiled ahead of time; empty where they are."""
        if version == "editable":
            return "the install is editable"
        if os.environ.get("FEATHERLANE_PURE") == "1":
            return "FEATHERLANE_PURE is 1"
        sys.path.insert(0, SOURCES)
        from featherlane.lanes import link

        return link.linking_problem()

    def finalize(self, version, build_data, artifact_path):
        if hasattr(self, "folder"):
            self.folder.cleanup()


def wanted_levels() -> list[str]:
    """The CPU levels to compile for.

    Raises:
        ValueError: FEATHERLANE_LEVELS names one that this architecture does not have.
    """
    sys.path.insert(0, SOURCES)
    from featherlane.lanes import processor

    every = processor.levels_of_architecture()
    given = [level.strip() for level in os.environ.get("FEATHERLANE_LEVELS", "").split(",") if level.strip()]
    for level in given:
        if level not in every:
            raise ValueError(f"FEATHERLANE_LEVELS names {level!r}; this architecture has {', '.join(every)}")
    return given or (every if os.environ.get("FEATHERLANE_MANYLINUX") else [processor.cpu_level()])


def main(folder: str, *levels: str) -> None:
    """Compile all stages for some CPU levels, from the sources beside this file."""
    sys.path.insert(0, SOURCES)
    from featherlane.lanes import build
    from featherlane.simulation.tile.library import library, stages

    start, every = time.monotonic(), list(stages().values())

    def progress(done, total, what):
        seconds = time.monotonic() - start
        print(f"[{seconds:4.0f} s] {done} of {total} kernels {what}", file=sys.stderr, flush=True)

    build.compile_all(library(), every, build.VARIANTS, levels, progress, by_package=True)
    for level in levels:
        build.link_stages(library(), every, build.VARIANTS, level, Path(folder, f"{level}.so"))


if __name__ == "__main__":
    main(*sys.argv[1:])
