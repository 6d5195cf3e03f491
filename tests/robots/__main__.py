"""`python tests/robots models [wheel ...]`: what becomes of the models of wheels."""

import importlib
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])

import oracle  # noqa: E402

oracle.use()

NAMES = ("models",)

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in NAMES:
        sys.exit(f"python tests/robots NAME: allowed are {', '.join(NAMES)}")
    sys.exit(importlib.import_module(f"robots.{sys.argv[1]}").main(sys.argv[2:]))
