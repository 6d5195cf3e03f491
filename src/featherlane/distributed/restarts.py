"""How often a worker may be lost, and how long its next restart waits.

A loss in a burst (a node that fails, a program that kills processes, replacements that are killed while they start)
ends sooner than the restarts do.  A request that kills its worker each time ends in an error.
Source: Erlang/OTP, `supervisor`, restart intensity and period; the delays are those of exponential backoff.
"""

from __future__ import annotations

import time

MOST = 8  # restarts; another loss ends the call
WINDOW = 30.0  # [s] after which a loss does not count any more, once the worker has answered
DELAY = 0.25  # [s] of the second restart, doubled with each loss that counts: all of them together exceed the window


class Restarts:
    """Losses of a worker that count.

    Losses without an answer between them count however long ago they were, since a request may take long to kill its
    worker.
    """

    def __init__(self):
        self._losses: list[float] = []

    def lost(self) -> float | None:
        """Counts a loss.

        Returns:
            Seconds that the next restart has to wait; None after too many losses, which are forgotten then.
        """
        self._losses = [*self._losses, time.monotonic()]
        number = len(self._losses)
        if number > MOST:
            self._losses = []
            return None
        return DELAY * 2.0 ** (number - 2) if number > 1 else 0.0

    def answered(self) -> None:
        """Forgets losses before the window: the worker has answered."""
        if self._losses:
            start = time.monotonic() - WINDOW
            self._losses = [moment for moment in self._losses if moment > start]

    @property
    def is_second_half(self) -> bool:
        """Were more than half of the restarts used?"""
        return len(self._losses) > MOST // 2

    @property
    def limit(self) -> str:
        """How many losses are too many, for messages."""
        return f"{MOST + 1} times within {WINDOW:g} s, or without an answer between"
