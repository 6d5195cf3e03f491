"""Exit codes of the commands, and the message on stderr."""

import sys

WRONG = 2  # exit code of bad input
BAD_WORLDS = 3  # exit code if a world became non-finite or out of range
INTERRUPTED = 130  # 128 + SIGINT, the convention of shells


def complain(message: str, code: int = WRONG) -> int:
    """Prints one line on stderr and returns the exit code."""
    print(f"featherlane: {message}", file=sys.stderr)
    return code
