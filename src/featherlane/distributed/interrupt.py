"""Defers Ctrl-C in calls that wait for workers."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType
from typing import Any

from featherlane.extension import Turn


class Held:
    """A context in which a first Ctrl-C is recorded, and raised at its end; a second one is raised at once.

    Only the main thread of a program receives signals; elsewhere this does nothing.

    When the frame of the context is no longer on any stack, its handler restores the previous one, even if an exception
    prevented the context from doing so.

    Attributes:
        came: whether there was a Ctrl-C.
    """

    def __init__(self):
        self.came = False
        self._call: FrameType | None = None
        self._before: Any = None

    @property
    def _is_running(self) -> bool:
        """Returns whether the frame of the context is on a stack."""
        return any(frame is self._call for frame in Turn.stack_frames())

    def __enter__(self) -> Held:
        if threading.current_thread() is threading.main_thread():
            self._call = sys._getframe(1)
            before = signal.getsignal(signal.SIGINT)
            owner = getattr(before, "__self__", None)
            if isinstance(owner, Held) and not owner._is_running:
                before = owner._before
            # a program that ignores interrupts, or has a handler outside Python, keeps its handler
            if callable(before):
                self._before = before
                signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, number, frame) -> None:
        if not self._is_running:
            signal.signal(signal.SIGINT, self._before)
            self._before(number, frame)
        elif self.came:
            raise KeyboardInterrupt
        else:
            self.came = True

    def __exit__(self, kind, error, trace) -> None:
        self._call = None  # the frame refers to this context
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            if self.came and kind is None:
                self._before(signal.SIGINT, None)
