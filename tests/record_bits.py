"""Record the bits of all scenes: python tests/record_bits.py [scene ...]

Writes data/bits.json, of the scenes that are named or of all, and prints which moved.  A change that moves them is
listed in CHANGELOG.md under "Trajectories".
"""

from __future__ import annotations

import sys
import time

import oracle

oracle.use()
import bits  # noqa: E402
from bits_scenes import SCENES  # noqa: E402


def record(names: list[str]) -> None:
    """Compute these scenes, and write the file."""
    before = bits.recorded()["scenes"]
    after = {name: before[name] for name in SCENES if name in before}
    for name in names:
        start = time.perf_counter()
        after[name] = bits.hashes(SCENES[name])
        what = "is new" if name not in before else "moved" if after[name] != before[name] else "stands"
        print(f"{time.perf_counter() - start:6.2f} s  {name} {what}", flush=True)
    bits.write(after)


if __name__ == "__main__":
    record(sys.argv[1:] or list(SCENES))
