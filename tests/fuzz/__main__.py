"""`python tests/fuzz NAME ...` runs a fuzzer, for example `models`; a wrong name lists all names; see `--help`."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])

import program  # noqa: E402

if __name__ == "__main__":
    program.run("fuzz", "arguments", "crossed", "derivatives", "interrupts", "lcp", "models", "soak")
