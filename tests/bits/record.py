"""Record the bits of all scenes: `python tests/bits record [scene ...]`.

Writes data/bits.json, of the scenes that are named or of all, and prints which moved.  A change that moves them is
listed in CHANGELOG.md under "Trajectories".
"""

from __future__ import annotations

import time

from bits import hashes
from bits.scenes import SCENES


def record(names: list[str]) -> None:
    """Compute these scenes, and write the file."""
    before = hashes.recorded()["scenes"]
    after = {name: before[name] for name in SCENES if name in before}
    for name in names:
        start = time.perf_counter()
        after[name] = hashes.hashes(SCENES[name])
        what = "is new" if name not in before else "moved" if after[name] != before[name] else "stands"
        print(f"{time.perf_counter() - start:6.2f} s  {name} {what}", flush=True)
    hashes.write(after)


def main(arguments: list[str]) -> int:
    record(arguments or list(SCENES))
    return 0
