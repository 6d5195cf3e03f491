"""`python tests/fuzz NAME ...`: a fuzzer by hand: `models`, `arguments`, `lcp` or `soak`; `--help` says the rest."""

import importlib
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])

import oracle  # noqa: E402

oracle.use()

NAMES = ("arguments", "lcp", "models", "soak")

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in NAMES:
        sys.exit(f"python tests/fuzz NAME: allowed are {', '.join(NAMES)}")
    sys.exit(importlib.import_module(f"fuzz.{sys.argv[1]}").main(sys.argv[2:]))
