"""`python tests/bits NAME ...`: `record` writes the bits of scenes anew, `company` draws worlds and mates."""

import importlib
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])

import oracle  # noqa: E402

oracle.use()

NAMES = ("company", "record")

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in NAMES:
        sys.exit(f"python tests/bits NAME: allowed are {', '.join(NAMES)}")
    sys.exit(importlib.import_module(f"bits.{sys.argv[1]}").main(sys.argv[2:]))
