"""The wheel's build hook: every kernel in one shared object per CPU level, in featherlane/engine/lanes/prebuilt.

A local build compiles for this machine's level alone; FEATHERLANE_LEVELS names others (`x86-64-v3,x86-64-v4`).
FEATHERLANE_PLATFORM is the tag of a release wheel (manylinux2014_x86_64, win_amd64): its kernels are compiled for all
levels of that platform.  For another system than this one, `ziglang` links them.  Editable installs, systems without a
C compiler that links, and FEATHERLANE_PURE=1 compile no kernels: the installed package requires `llvmlite` then, and
compiles them on first use.

`python hatch_build.py FOLDER PLATFORM LEVEL ...` writes the objects into a folder; the hook runs it in a new process.
PLATFORM is a tag, or an empty text for this machine.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

INSIDE = "featherlane/engine/lanes/prebuilt"
SOURCES = str(Path(__file__).parent / "src")
TAGS = {  # platform tags of wheels -> (system, architecture)
    r"manylinux\w+_x86_64": ("linux", "x86_64"),
    r"manylinux\w+_aarch64": ("linux", "aarch64"),
    r"macosx_\d+_0_arm64": ("macos", "aarch64"),
    r"win_amd64": ("windows", "x86_64"),
}


class KernelBuildHook(BuildHookInterface):
    """Adds the compiled kernels to a wheel."""

    def initialize(self, version, build_data):
        tag = os.environ.get("FEATHERLANE_PLATFORM", "")
        try:
            why_not = self.reason_for_none(version, place_of(tag))
            levels = wanted_levels()
        except ValueError as error:
            self.app.abort(str(error))
        if why_not and tag:
            self.app.abort(f"FEATHERLANE_PLATFORM is {tag}, but no kernels are compiled: {why_not}")
        if why_not:
            self.app.display_info(f"kernels compile on first use: {why_not}")
            build_data["dependencies"] += [r for r in self.metadata.build.requires if r.startswith("llvmlite")]
            return
        self.folder = tempfile.TemporaryDirectory()
        command = [sys.executable, __file__, self.folder.name, tag, *levels]
        if subprocess.run(command, check=False).returncode:
            self.app.abort("the kernels could not be compiled; FEATHERLANE_PURE=1 builds a wheel without them")
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{tag or platform}"
        for path in sorted(Path(self.folder.name).iterdir()):
            build_data["force_include"][str(path)] = f"{INSIDE}/{path.name}"

    def reason_for_none(self, version, place) -> str:
        """Returns why no kernels are compiled ahead of time; empty if they are."""
        if version == "editable":
            return "the install is editable"
        if os.environ.get("FEATHERLANE_PURE") == "1":
            return "FEATHERLANE_PURE is 1"
        sys.path.insert(0, SOURCES)
        from featherlane.engine.lanes import link

        return link.linking_problem(place)

    def finalize(self, version, build_data, artifact_path):
        if hasattr(self, "folder"):
            self.folder.cleanup()


def place_of(tag: str) -> tuple[str, str] | None:
    """Returns (system, architecture) of a wheel's platform tag; None for no tag.

    Raises:
        ValueError: a tag of another platform.
    """
    for pattern, place in TAGS.items():
        if re.fullmatch(pattern, tag):
            return place
    if tag:
        raise ValueError(
            f"FEATHERLANE_PLATFORM: got {tag!r}, allowed are manylinux*_x86_64, manylinux*_aarch64, macosx_*_0_arm64 "
            f"and win_amd64"
        )
    return None


def wanted_levels() -> list[str]:
    """Returns the CPU levels to compile for.

    Raises:
        ValueError: FEATHERLANE_LEVELS contains a level that the architecture does not have, or the platform is unknown.
    """
    sys.path.insert(0, SOURCES)
    from featherlane.engine.lanes import processor

    place = place_of(os.environ.get("FEATHERLANE_PLATFORM", ""))
    every = processor.levels_of_architecture(*(place or ()))
    given = [level.strip() for level in os.environ.get("FEATHERLANE_LEVELS", "").split(",") if level.strip()]
    for level in given:
        if level not in every:
            raise ValueError(f"FEATHERLANE_LEVELS names {level!r}; this architecture has {', '.join(every)}")
    return given or (every if place else [processor.cpu_level()])


def main(folder: str, platform: str, *levels: str) -> None:
    """Compiles all stages for some CPU levels, from the sources of this repository."""
    sys.path.insert(0, SOURCES)
    from featherlane.engine.lanes import build, processor
    from featherlane.engine.lanes.link import SUFFIXES, link_loader
    from featherlane.engine.simulation.frozen import loader
    from featherlane.engine.simulation.tile.library import library, stages

    start, every = time.monotonic(), list(stages().values())
    place = place_of(platform) or processor.host()
    targets = {level: processor.target_name(level, *place) for level in levels}

    def progress(done, total, what):
        seconds = time.monotonic() - start
        print(f"[{seconds:4.0f} s] {done} of {total} kernels {what}", file=sys.stderr, flush=True)

    build.compile_all(library(), every, build.VARIANTS, targets.values(), progress, by_package=True)
    for level, target in targets.items():
        out = Path(folder, level + SUFFIXES[place[0]])
        build.link_stages(library(), every, build.VARIANTS, target, out)
    if place[0] == "linux":
        link_loader(loader.SOURCE, Path(folder, loader.LIBRARY), place)


if __name__ == "__main__":
    main(*sys.argv[1:])
