"""Write the table of our own tasks into tasks.md: `python docs/tasks.py`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import oracle

oracle.use()
from pages import tasks  # noqa: E402

PAGE = Path(__file__).parent / "tasks.md"

if __name__ == "__main__":
    head, rest = PAGE.read_text().split(tasks.BEGIN)
    tail = rest.split(tasks.END)[1]
    PAGE.write_text(f"{head}{tasks.BEGIN}\n{tasks.table()}\n{tasks.END}{tail}")
    print(f"wrote {PAGE}")
