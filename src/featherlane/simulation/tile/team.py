"""Threads of a batch, each with a number: what it works on is made by itself, and is its own again in the next call.

A page of memory lies near the core that first writes to it.  So each thread makes the workspace of its number, and
takes that one in a call if it is still free (`Work`): a preference, on which no result depends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

T = TypeVar("T")


class Team:
    """Threads; the caller of a batch is number 0.

    Args:
        nthread: how many, with the caller.

    Attributes:
        homes: numbers of the other threads, by their identity.
    """

    def __init__(self, nthread: int):
        self.nthread = nthread
        self.homes: dict[int, int] = {}
        self._pool: ThreadPoolExecutor | None = None

    def pool(self) -> ThreadPoolExecutor:
        """The other threads, started when they are needed."""
        if self._pool is None:
            # as many as all: where stages call plain Python, the caller only waits
            self._pool = ThreadPoolExecutor(self.nthread, thread_name_prefix="featherlane")
        return self._pool

    def build(self, make: Callable[[], T]) -> list[T]:
        """A thing for each thread, made by it.

        Raises:
            Exception: what `make` raises.
        """
        others = self.nthread - 1
        made: dict[int, T] = {}
        together, left, lock = threading.Barrier(max(1, others)), set(range(1, self.nthread)), threading.Lock()

        def build_own() -> None:
            together.wait()  # or one thread could take two
            me = threading.get_ident()
            with lock:
                number = self.homes.get(me)
                if number not in left:
                    number = self.homes[me] = min(left)
                left.discard(number)
            made[number] = make()

        waiting: list[Future] = []
        try:
            for _ in range(others):
                waiting.append(self.pool().submit(build_own))
            made[0] = make()
            for other in waiting:
                other.result()
        except BaseException:
            together.abort()  # for those that wait for one that was not started
            wait(waiting)
            raise
        return [made[number] for number in range(self.nthread)]
