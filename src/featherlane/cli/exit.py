"""Exit codes of the commands, and the line on stderr that goes with one."""

import sys

WRONG = 2  # exit code of bad input
BAD_WORLDS = 3  # exit code where numbers of a world turned bad
INTERRUPTED = 130  # 128 + SIGINT, as shells count


def complain(message: str, code: int = WRONG) -> int:
    """Prints one line on stderr and returns the exit code."""
    print(f"featherlane: {message}", file=sys.stderr)
    return code
