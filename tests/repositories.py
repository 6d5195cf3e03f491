"""Provides files of public repositories for tests and benchmarks, downloaded once and never installed.

A file is identified by its repository, commit and path.  The cache is the folder `repositories` in that of the wheels
(`tests/robots/wheels.py`).
"""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path

from robots import wheels

RAW = "https://raw.githubusercontent.com"
MJBATCH = "kevinzakka/mjbatch"
MJBATCH_TESTS = "085a0613e7e8b64541dee276f2fbe6115baf3fed"  # mjbatch 0.1.4
MJBATCH_EXAMPLES = "64a3469493e8b23c33f079289599c1ab5dda7910"
WINDOW = ("window.py", "assets/theme.xml")
EXAMPLES = {  # what each example reads
    "hello": (),
    "cartpole_mpc": (*WINDOW, "assets/cartpole.xml"),
    "cartpole_swingup": (*WINDOW, "assets/cartpoles.xml"),
    "arm_throw": (*WINDOW, "assets/arm_throw.xml"),
    "go1_joystick": WINDOW,
}


def file(repository: str, commit: str, path: str) -> Path:
    """Returns a file of a repository, from the cache or downloaded.

    Raises:
        wheels.Unreachable: the file is not in the cache and cannot be downloaded.
    """
    place = wheels.cache_folder() / "repositories" / repository.replace("/", "+") / commit / path
    if not place.exists():
        address = f"{RAW}/{repository}/{commit}/{path}"
        try:
            with urllib.request.urlopen(address, timeout=60) as answer:
                content = answer.read()
        except (urllib.error.URLError, TimeoutError) as error:
            raise wheels.Unreachable(f"{address}: {error}") from error
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    return place


def example(name: str) -> Path:
    """Returns an example of mjbatch, next to the files that it reads; raises as `file` does."""
    for path in EXAMPLES[name]:
        file(MJBATCH, MJBATCH_EXAMPLES, f"examples/{path}")
    return file(MJBATCH, MJBATCH_EXAMPLES, f"examples/{name}.py")
