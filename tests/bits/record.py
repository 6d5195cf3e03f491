"""Records the bits of all scenes: `python tests/bits record [scene ...]`.

Writes data/bits.json for the named scenes or for all, and prints the changed ones.  Such a change must be
listed in CHANGELOG.md under "Trajectories".
"""

from __future__ import annotations

import time

from bits import hashes
from bits.scenes import SCENES


def record(names: list[str]) -> None:
    """Computes these scenes, and writes the file."""
    before = hashes.recorded()["scenes"]
    after = {name: before[name] for name in SCENES if name in before}
    for name in names:
        start = time.perf_counter()
        after[name] = hashes.hashes(SCENES[name])
        what = "is new" if name not in before else "moved" if after[name] != before[name] else "stands"
        print(f"{time.perf_counter() - start:6.2f} s  {name} {what}", flush=True)
    hashes.write(after)


def main(arguments: list[str]) -> int:
    if unknown := sorted(set(arguments) - set(SCENES)):
        print(f"unknown scenes: {', '.join(unknown)}; tests/bits/scenes.py has the names")
        return 2
    record(arguments or list(SCENES))
    return 0
