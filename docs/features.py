"""Writes the table of kinds and the tests that check them into features.md: `python docs/features.py`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import oracle

oracle.use()
from featherlane.engine.model import features  # noqa: E402
from pages import features as feature_table  # noqa: E402

PAGE = Path(__file__).parent / "features.md"

if __name__ == "__main__":
    text = PAGE.read_text()
    head, rest = text.split(feature_table.BEGIN)
    tail = rest.split(feature_table.END)[1]
    table = feature_table.table(feature_table.marks(), features.refused_kinds())
    PAGE.write_text(f"{head}{feature_table.BEGIN}\n{table}\n{feature_table.END}{tail}")
    print(f"wrote {PAGE}")
