"""`python tests/fuzz NAME ...`: a fuzzer by hand: `models`, `arguments`, `lcp` or `soak`; `--help` says the rest."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])

import program  # noqa: E402

if __name__ == "__main__":
    program.run("fuzz", "arguments", "lcp", "models", "soak")
