"""DART for benchmarks: its wheel, fetched once into the cache of wheels and never installed, imported from there.

The wheel holds ODE's shared object, too.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from robots.wheels import Unreachable, cache_folder

VERSION = "6.20.0"


def folder() -> Path:
    """The unpacked wheel of dartpy for this interpreter.

    Raises:
        Unreachable: it is neither in the cache nor to be had from the package index.
    """
    place = cache_folder() / f"dartpy-{VERSION}-cp{sys.version_info[0]}{sys.version_info[1]}"
    if not place.exists():
        part = place.with_suffix(".part")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        result = subprocess.run([*command, f"--dest={part}", f"dartpy=={VERSION}"], capture_output=True, text=True)
        if result.returncode:
            raise Unreachable(f"dartpy {VERSION}: {result.stderr.strip().splitlines()[-1]}")
        (wheel,) = part.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(part)
        wheel.unlink()
        part.rename(place)
    return place


def dartpy():
    """The module.

    Raises:
        Unreachable: see `folder`.
    """
    sys.path.insert(0, str(folder()))
    import dartpy as module

    return module
