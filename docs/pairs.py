"""Writes pairs.md, the matrix of pairs of shapes, from the tests of each cell: `python docs/pairs.py`."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.progress import Progress

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import oracle

oracle.use()
from pages import pairs  # noqa: E402

PAGE = Path(__file__).parent / "pairs.md"
POSES = 1000  # of each pair

if __name__ == "__main__":
    with Progress() as bar:
        task = bar.add_task("pairs", total=len(pairs.CELLS))
        PAGE.write_text(
            pairs.page(
                POSES, lambda label: bar.update(task, advance=1, description=label)
            )
        )
    print(f"wrote {PAGE}")
