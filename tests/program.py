"""Programs of a folder of the tests: `python tests/FOLDER NAME ...`, with the oracle's MuJoCo."""

import importlib
import sys

import oracle


def run(folder: str, *names: str) -> None:
    """Run the module of the folder that the command line names, by its `main`."""
    oracle.use()
    if len(sys.argv) < 2 or sys.argv[1] not in names:
        sys.exit(f"python tests/{folder} NAME: allowed are {', '.join(names)}")
    sys.exit(importlib.import_module(f"{folder}.{sys.argv[1]}").main(sys.argv[2:]))
