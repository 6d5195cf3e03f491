"""`python tests/robots models [wheel ...]`: results for the models of wheels."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])

import program  # noqa: E402

if __name__ == "__main__":
    program.run("robots", "models")
