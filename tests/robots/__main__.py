"""`python tests/robots models [wheel ...]`, `... folder FOLDER ...`: results for the models of wheels or of folders."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])

import program  # noqa: E402

if __name__ == "__main__":
    program.run("robots", "models", "folder")
