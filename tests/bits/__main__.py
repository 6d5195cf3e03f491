"""`python tests/bits NAME ...`: `record`, `replay` and `invariance`."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])

import program  # noqa: E402

if __name__ == "__main__":
    program.run("bits", "invariance", "record", "replay")
