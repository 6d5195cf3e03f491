"""Ctrl-C that waits until all workers are at the same step."""

from __future__ import annotations

import signal
import threading


class Held:
    """A context in which a first Ctrl-C is noted, and raised at its end; a second one is raised at once.

    Only the main thread of a program hears of signals; elsewhere this does nothing.

    Attributes:
        came: has there been one?
    """

    def __init__(self):
        self.came = False
        self._before = None

    def __enter__(self) -> Held:
        if threading.current_thread() is threading.main_thread():
            before = signal.getsignal(signal.SIGINT)
            # who ignores interrupts, or has a handler outside Python, keeps that
            if callable(before):
                self._before = before
                signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, number, frame) -> None:
        if self.came:
            raise KeyboardInterrupt
        self.came = True

    def __exit__(self, kind, error, trace) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            if self.came and kind is None:
                self._before(signal.SIGINT, None)  # type: ignore
