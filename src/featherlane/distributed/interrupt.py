"""Calls of one object, one at a time, which an exception may end at any bytecode.

A lock that a frame acquires and releases stays locked if an exception comes between two of its bytecodes.  Here a call
runs inside a generator, and is under way as long as the interpreter executes that generator.  `gi_running` is set and
cleared by the interpreter itself, however the frame ends, so that nothing has to be released.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Generator
from types import GeneratorType
from typing import Any, TypeVar

T = TypeVar("T")
BUSY = "another thread is in a call of this batch; give each thread a batch of its own"


class Turns:
    """Calls of an object: the oldest one that the interpreter executes is under way."""

    def __init__(self):
        self._calls: list[GeneratorType] = []

    def run(self, body: Callable[[GeneratorType], T]) -> T:
        """Runs a call.

        Args:
            body: what the call does; its argument is the generator that it runs in.

        Returns:
            The result of `body`.

        Raises:
            RuntimeError: another call is under way, also one of the same thread that calls this one.
        """
        box: list[GeneratorType] = []
        call: Any = self._turn(box, body)
        box.append(call)
        try:
            return next(call)
        finally:
            call.close()  # frees what the call refers to; a call that is left open does not run, either

    def _turn(self, box: list[GeneratorType], body: Callable[[GeneratorType], T]) -> Generator[T, None, None]:
        [own], calls = box, self._calls
        # Appending, copying and removing are atomic.  A call runs when it is appended, and never again after its end:
        # the later one of two calls that run finds the earlier one.
        calls.append(own)
        for other in calls.copy():
            if other is own:
                break
            if other.gi_running:
                raise RuntimeError(BUSY)
            with contextlib.suppress(ValueError):  # another thread removed it
                calls.remove(other)
        yield body(own)


class Held:
    """A context in which a first Ctrl-C is recorded, and raised at its end; a second one is raised at once.

    Only the main thread of a program receives signals; elsewhere this does nothing.

    Args:
        call: the generator in which the context is.  Once it has ended, the handler of this context gives way to the
            one before it, also where an exception kept the context from doing so.

    Attributes:
        came: was there a Ctrl-C?
    """

    def __init__(self, call: GeneratorType):
        self.came = False
        self._call = call
        self._before: Any = None

    def __enter__(self) -> Held:
        if threading.current_thread() is threading.main_thread():
            before = signal.getsignal(signal.SIGINT)
            owner = getattr(before, "__self__", None)
            if isinstance(owner, Held) and not owner._call.gi_running:
                before = owner._before
            # a program that ignores interrupts, or has a handler outside Python, keeps that
            if callable(before):
                self._before = before
                signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, number, frame) -> None:
        if not self._call.gi_running:
            signal.signal(signal.SIGINT, self._before)
            self._before(number, frame)
        elif self.came:
            raise KeyboardInterrupt
        else:
            self.came = True

    def __exit__(self, kind, error, trace) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            if self.came and kind is None:
                self._before(signal.SIGINT, None)
