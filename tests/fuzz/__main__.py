"""`python tests/fuzz NAME ...` runs a fuzzer: `models`, `arguments`, `interrupts`, `lcp` or `soak`; see `--help`."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])

import program  # noqa: E402

if __name__ == "__main__":
    program.run("fuzz", "arguments", "crossed", "interrupts", "lcp", "models", "soak")
