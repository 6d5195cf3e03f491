"""Defines `Clock`: what a session and a playback have in common: running or paused, at a speed."""

from __future__ import annotations

import time

from featherlane.extension import bounded

MOST_LAG = 0.1  # longest delay behind the wall clock that is made up for [s]
SPEEDS = (0.01, 10.0)


class Clock:
    """Measures the wall-clock time that has to be simulated or played.

    Attributes:
        running, speed: whether the clock runs, and how fast (1: real time).
        pace: measured speed: simulated time per wall-clock time.
    """

    def __init__(self) -> None:
        self.running, self.speed, self.pace = False, 1.0, 0.0
        self._last: float | None = None

    def elapsed(self, now: float | None) -> float | None:
        """Returns the time since the last call, at most MOST_LAG [s]; None if the clock did not run.

        Args:
            now: wall-clock time [s]; None for this machine's clock.
        """
        now = time.perf_counter() if now is None else now
        last, self._last = self._last, now
        return min(max(now - last, 0.0), MOST_LAG) if self.running and last is not None else None

    def run(self) -> None:
        """Starts the clock."""
        if not self.running:
            self.running, self._last = True, None

    def pause(self) -> None:
        """Stops the clock."""
        self.running = False

    def set_speed(self, speed: float) -> None:
        """Sets the speed of the clock; 1 is real time.

        Raises:
            ModelError: the speed is outside of 0.01 to 10.
        """
        self.speed = bounded("speed", speed, *SPEEDS)
