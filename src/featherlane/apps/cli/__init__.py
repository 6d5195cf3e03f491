"""The command line: `featherlane simulate | sweep | view | inspect | diagnose | bench | compare | freeze | compile`.

A user error prints one message on stderr and returns exit code 2.  Worlds with non-finite or out-of-range values return
exit code 3 and a message that names them, after all results.  Ctrl-C prints the progress and returns 130.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence

from featherlane.apps.cli.exit import INTERRUPTED, WRONG, complain
from featherlane.errors import CapacityWarning, FeatherlaneError, NonFiniteWarning


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a command and exits with its code: 0, or another one after a message.

    Args:
        arguments: words after `featherlane`; None for those of this process.
    """
    sys.exit(run_command(arguments))


def run_command(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code."""
    from featherlane.apps.cli.application import application

    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed, for example by `>&-`
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    stdout = sys.stdout
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            for category in (CapacityWarning, NonFiniteWarning):  # the commands report the worlds and steps
                warnings.simplefilter("ignore", category)
            code = application(args=arguments, prog_name="featherlane", standalone_mode=False) or 0
            sys.stdout.flush()
            return code
    except BrokenPipeError:
        return 0  # the reader has closed the pipe (`featherlane inspect humanoid | head`)
    except (FeatherlaneError, ValueError, OSError, ImportError) as error:
        return complain(str(error) or type(error).__name__)
    except MemoryError as error:
        return complain(f"not enough memory: {error or 'use fewer worlds or fewer recorded frames'}")
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):
            sys.stdout = stdout  # the library that parses options replaces it, and exits with 1
            return 0
        raise
    except KeyboardInterrupt:
        return complain("interrupted", INTERRUPTED)
    except Exception as error:
        # a usage error, of either library that parses options
        describe = getattr(error, "format_message", None)
        if describe:
            message = describe()
            return complain(f"{message} (see {_help_of(error)})") if message else WRONG
        if type(error).__name__ == "Abort":
            return complain("interrupted", INTERRUPTED)
        raise
    finally:
        _drop_unwritten()


def _drop_unwritten() -> None:
    """Drops output that stdout cannot write, for example on a full disk: otherwise exiting would fail on it again."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _help_of(error) -> str:
    context = getattr(error, "ctx", None)
    return f"{context.command_path if context else 'featherlane'} --help"


def _show_warning(message, category, filename, lineno, file=None, line=None) -> None:
    print(f"featherlane: {message}", file=sys.stderr)
