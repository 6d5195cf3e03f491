"""The thread of a page; an interrupt of its callers does not reach it.

Python raises KeyboardInterrupt only in the main thread, between any two bytecodes, even directly after a lock was
acquired.  No `try` closes that gap, so callers acquire no lock here: they put a job into a `SimpleQueue` and wait for
its answer in another one, each by one call of C.  The server, its locks and its shutdown belong to the page's thread.
"""

from __future__ import annotations

import _thread
import contextlib
import queue
import time
from collections.abc import Callable
from typing import Any

from featherlane.errors import CallError

CLOSED = "the page is closed"
KEY = "featherlane"  # a key in the browser's storage; a read of it is answered after all earlier messages
SECONDS = 1.0  # longest wait for all browsers together; slower ones may log errors


class Worker:
    """A thread that runs jobs in order, until `end`."""

    def __init__(self):
        # runs before the thread waits for jobs; returns the longest wait [s], None for no limit
        self.turn: Callable[[], float | None] = lambda: None
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], queue.SimpleQueue]] = queue.SimpleQueue()
        self._ended = False
        self._ident = _thread.start_new_thread(self._loop, ())

    def do(self, job: Callable[[], Any]) -> None:
        """Runs a job asynchronously; drops its result and its exception."""
        self._jobs.put((job, queue.SimpleQueue()))

    def ask(self, job: Callable[[], Any], timeout: float | None = None) -> Any:
        """Runs a job after all waiting ones, and returns its result or raises its exception.

        If the caller is interrupted, the job runs to its end.

        Raises:
            RuntimeError: the worker has ended, or is busy for longer than the timeout [s].
        """
        if _thread.get_ident() == self._ident:
            return job()
        answer: queue.SimpleQueue = queue.SimpleQueue()
        if self._ended:
            raise CallError(CLOSED)
        self._jobs.put((job, answer))
        if self._ended:  # the thread may have looked for jobs for the last time
            self._refuse_jobs()
        try:
            value, error = answer.get(timeout=timeout)
        except queue.Empty:
            raise CallError(f"the page was busy for more than {timeout} s") from None
        if error is not None:
            raise error
        return value

    def end(self, job: Callable[[], Any], timeout: float) -> None:
        """Runs a last job and ends the thread; waits at most `timeout` [s] for it.  Further calls have no effect."""

        def last():
            self._ended = True
            job()

        if not self._ended:
            with contextlib.suppress(RuntimeError):  # busy: the job still runs; or another caller was first
                self.ask(last, timeout)

    def _loop(self) -> None:
        try:
            while not self._ended:
                try:
                    entry = self._jobs.get(timeout=self.turn())
                except queue.Empty:
                    continue
                self._answer(*entry)
                for _ in range(self._jobs.qsize()):
                    self._answer(*self._jobs.get())
        finally:
            self._ended = True
            self._refuse_jobs()

    def _refuse_jobs(self) -> None:
        """Answers all waiting jobs with an error."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._jobs.get_nowait()[1].put((None, CallError(CLOSED)))

    def _answer(self, job: Callable[[], Any], answer: queue.SimpleQueue) -> None:
        try:
            if self._ended:
                raise CallError(CLOSED)
            answer.put((job(), None))
        except BaseException as error:
            answer.put((None, error))


def wait_for_browsers(server) -> None:
    """Waits until the browsers have applied all sent updates; not for use on the server's event loop.

    The page applies the updates of a frame after its removals, and logs an update of a removed control as an error.
    """
    end = time.monotonic() + SECONDS
    server.flush()
    for client in list(server.get_clients().values()):
        try:
            client.local_storage.get_item(KEY, timeout=max(end - time.monotonic(), 0.0))
        except (RuntimeError, TimeoutError):  # the browser left, blocks its storage, or is slow
            continue
