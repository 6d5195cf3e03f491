"""Limits the restarts of a worker, with exponential backoff.

Losses in a burst (a failing node, a program that kills processes, replacements that are killed while they start) end
before the restarts are used up.  A request that kills its worker each time ends in an error.
Source: Erlang/OTP, `supervisor`, restart intensity and period; the delays are those of exponential backoff.
"""

from __future__ import annotations

import time

MOST = 8  # largest number of restarts; another loss ends the call
WINDOW = 30.0  # [s] after which a loss no longer counts, if the worker has answered
DELAY = 0.25  # [s] before the second restart, doubled for each counted loss: their sum exceeds the window


class Restarts:
    """The counted losses of a worker.

    Losses without an answer between them count without a time limit, since a request may take long to kill its
    worker.
    """

    def __init__(self):
        self._losses: list[float] = []

    def lost(self) -> float | None:
        """Counts a loss.

        Returns:
            Seconds to wait before the next restart; None after too many losses, which also clears the count.
        """
        self._losses = [*self._losses, time.monotonic()]
        number = len(self._losses)
        if number > MOST:
            self._losses = []
            return None
        return DELAY * 2.0 ** (number - 2) if number > 1 else 0.0

    def answered(self) -> None:
        """Discards losses before the window, because the worker has answered."""
        if self._losses:
            start = time.monotonic() - WINDOW
            self._losses = [moment for moment in self._losses if moment > start]

    @property
    def is_second_half(self) -> bool:
        """Returns whether more than half of the restarts are used."""
        return len(self._losses) > MOST // 2

    @property
    def limit(self) -> str:
        """Returns the limit of losses as text for messages."""
        return f"{MOST + 1} times within {WINDOW:g} s, or without an answer in between"
