"""The command line: `featherlane simulate | sweep | view | inspect | doctor | bench | compare | compile`.

Whatever a user can do wrong ends as one message on stderr and exit code 2; worlds whose numbers turned bad as one that
names them and exit code 3, after all results; Ctrl-C as one that says how far things came, and 130.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence

from featherlane.cli.exit import INTERRUPTED, WRONG, complain
from featherlane.errors import BadNumberWarning, FeatherlaneError


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and leave with its exit code: 0, or another one after a message.

    Args:
        arguments: words after `featherlane`; those of this process where none are given.
    """
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its exit code."""
    from featherlane.cli.application import application

    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed, as by `>&-`
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            warnings.simplefilter("ignore", BadNumberWarning)  # the commands say which worlds, and when
            code = application(args=arguments, prog_name="featherlane", standalone_mode=False) or 0
            sys.stdout.flush()
            return code
    except BrokenPipeError:
        return 0  # the reader has seen enough (`featherlane inspect humanoid | head`)
    except (FeatherlaneError, ValueError, OSError, ImportError) as error:
        return complain(str(error) or type(error).__name__)
    except MemoryError as error:
        return complain(f"not enough memory: {error or 'ask for fewer worlds or recorded frames'}")
    except KeyboardInterrupt:
        return complain("interrupted", INTERRUPTED)
    except Exception as error:
        # an error of usage, of whichever library parses the options
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
    """Drops what stdout cannot write, as on a full disk: the end of the process would fail on it again."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _help_of(error) -> str:
    context = getattr(error, "ctx", None)
    return f"{context.command_path if context else 'featherlane'} --help"


def _show_warning(message, category, filename, lineno, file=None, line=None) -> None:
    print(f"featherlane: {message}", file=sys.stderr)
