"""Runs programs in a test folder: `python tests/FOLDER NAME ...`, with the oracle's MuJoCo."""

import importlib
import sys

import oracle


def run(folder: str, *names: str) -> None:
    """Calls `main` of the folder's module that the command line names."""
    oracle.use()
    if len(sys.argv) < 2 or sys.argv[1] not in names:
        sys.exit(f"python tests/{folder} NAME: allowed are {', '.join(names)}")
    sys.exit(importlib.import_module(f"{folder}.{sys.argv[1]}").main(sys.argv[2:]))
