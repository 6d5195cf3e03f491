"""Shortens the message of Ctrl-C while the command line starts.

Importing the package takes most of the time of a short command, before `cli.main` can catch anything.  The package
imports this module first.
"""

import sys
from pathlib import PurePath

NAMES = ("featherlane", "featherlane.exe", "-m")  # of sys.argv[0]; "-m" while Python imports the package of `python -m`


def shorten_interrupts() -> None:
    """Reports an uncaught Ctrl-C by one line instead of a traceback, if this process is the command line."""
    if PurePath((getattr(sys, "argv", None) or [""])[0]).name in NAMES:
        sys.excepthook = _report


def _report(kind, error, trace) -> None:
    if issubclass(kind, KeyboardInterrupt):
        print("featherlane: interrupted", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


shorten_interrupts()
