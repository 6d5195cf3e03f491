"""The threads of a batch: each has a number, makes the workspace of its number and works there in every call.

A page of memory lies near the core that first writes to it, so a thread works on what it has made.

Python raises an interrupt (Ctrl-C) between two instructions of its main thread.  `Team.run` starts the other threads,
does the caller's part and waits for the others in one instruction: the functions that it chains are all written in C
and none of them looks at signals.  An interrupt therefore comes before all of the work or after it.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from _thread import start_new_thread
from collections.abc import Callable, Iterable, Mapping
from itertools import chain, repeat
from queue import SimpleQueue
from typing import TypeVar

from featherlane.simulation.tile.uninterrupted import call_all, take_all

T = TypeVar("T")

# Python's locks in C: to wait for one of `threading` is interrupted by signals, to wait for these is not
_python = ctypes.CDLL("python", handle=ctypes.pythonapi._handle)
_new_lock, _free_lock = _python.PyThread_allocate_lock, _python.PyThread_free_lock
_acquire, _release = _python.PyThread_acquire_lock, _python.PyThread_release_lock
_new_lock.argtypes, _new_lock.restype = (), ctypes.c_void_p
_acquire.argtypes, _acquire.restype = (ctypes.c_void_p, ctypes.c_int), ctypes.c_int
_release.argtypes, _release.restype = _free_lock.argtypes, _free_lock.restype = (ctypes.c_void_p,), None


class _Worker:
    """A thread that runs what stands in its queue, until it finds None there.

    Attributes:
        queue: pairs of a function without arguments, and the list that takes the error which it raises.
        done: a lock, released after each of them.
    """

    __slots__ = ("done", "queue")

    def __init__(self):
        self.queue, self.done = SimpleQueue(), _new_lock()
        _acquire(self.done, 1)


def _serve(queue: SimpleQueue, done: int) -> None:
    """The life of a worker; signals interrupt the main thread alone."""
    while (task := queue.get()) is not None:
        function, errors = task
        try:
            function()
        except BaseException as error:
            errors.append(error)
        del task, function, errors  # nothing of a call is kept alive after it
        _release(done)
    _free_lock(done)


def _end(workers: Mapping[int, _Worker]) -> None:
    """Let threads end."""
    for worker in list(workers.values()):
        worker.queue.put(None)


class Team:
    """Threads; the caller of a batch is number 0.

    Args:
        nthread: how many, with the caller.
    """

    def __init__(self, nthread: int):
        self.nthread = nthread
        self._workers: dict[int, _Worker] = {}
        self._pid = os.getpid()
        weakref.finalize(self, _end, self._workers)

    def _worker(self, number: int) -> _Worker:
        """The thread of a number, started when it is first needed."""
        if self._pid != os.getpid():  # a fork has none of its parent's threads
            self._workers.clear()
            self._pid = os.getpid()
        if number not in self._workers:
            new = _Worker()
            # at once: there is no thread without its entry
            call_all([(start_new_thread, _serve, (new.queue, new.done)), (self._workers.__setitem__, number, new)])
        return self._workers[number]

    def run(self, tasks: Mapping[int, Callable[[], object]], own: Iterable = ()) -> None:
        """Call each task in the thread of its number, and take all elements of `own` in this one, meanwhile.

        Args:
            tasks: by number of thread.
            own: the caller's part; an iterator in C that raises nothing, or it could not be waited for the others.

        Raises:
            BaseException: the first error of a task; all have ended then.
        """
        errors: list[BaseException] = []
        workers = [self._worker(number) for number in tasks]
        # lists, for a generator's frame could be interrupted
        starts = map(SimpleQueue.put, [w.queue for w in workers], [(task, errors) for task in tasks.values()])
        waits = map(_acquire, [w.done for w in workers], repeat(1))
        take_all(chain(starts, own, waits))
        if errors:
            raise errors[0]

    def build(self, make: Callable[[], T]) -> list[T]:
        """A thing for each thread, made by it.

        Raises:
            BaseException: what `make` raises.
        """
        made = {0: make()}

        def build_own(number: int) -> None:
            made[number] = make()

        self.run({number: lambda number=number: build_own(number) for number in range(1, self.nthread)})
        return [made[number] for number in range(self.nthread)]
