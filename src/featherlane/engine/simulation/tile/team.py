"""Runs the threads of a batch.  Each thread has a number, and allocates and uses the workspace of that number.

A memory page is placed near the core that first writes to it, so each thread works in memory that it has allocated.

`Team.run` starts the other threads, does the caller's part and waits for the others within one bytecode.  All functions
of that chain are C functions that do not check for signals, so an interrupt (Ctrl-C) comes before the work or after it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import weakref
from _thread import start_new_thread
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import chain, repeat
from queue import SimpleQueue
from typing import TypeVar

import numpy as np

from featherlane.engine.simulation.tile.arrange import BLOCK
from featherlane.engine.simulation.tile.uninterrupted import call_all, take_all

T = TypeVar("T")

# CPython's C locks: signals interrupt a wait for a lock of `threading`, but not a wait for one of these
_python = ctypes.CDLL("python", handle=ctypes.pythonapi._handle)
_new_lock, _free_lock = _python.PyThread_allocate_lock, _python.PyThread_free_lock
_acquire, _release = _python.PyThread_acquire_lock, _python.PyThread_release_lock
_new_lock.argtypes, _new_lock.restype = (), ctypes.c_void_p
_acquire.argtypes, _acquire.restype = (ctypes.c_void_p, ctypes.c_int), ctypes.c_int
_release.argtypes, _release.restype = _free_lock.argtypes, _free_lock.restype = (ctypes.c_void_p,), None


class _Worker:
    """Runs the tasks in its queue in a thread, until it finds None there.

    Attributes:
        queue: pairs of a function without arguments, and the list to which its error is appended.
        done: address of a lock that is released after each task.
    """

    __slots__ = ("done", "queue")

    def __init__(self):
        self.queue, self.done = SimpleQueue(), _new_lock()
        _acquire(self.done, 1)


def _serve(queue: SimpleQueue, done: int, cpu: int | None) -> None:
    """Runs tasks in a worker, on a core if one is given.  Interrupts are raised in the main thread only."""
    if cpu is not None:
        with contextlib.suppress(OSError):  # the core was taken from this process since the check
            os.sched_setaffinity(0, (cpu,))  # of this thread
    while (task := queue.get()) is not None:
        function, errors = task
        try:
            function()
        except BaseException as error:
            errors.append(error)
        del task, function, errors  # or they would stay alive until the next task
        _release(done)
    _free_lock(done)


def _end(workers: Mapping[int, _Worker]) -> None:
    """Ends the threads of workers."""
    for worker in list(workers.values()):
        worker.queue.put(None)


class Team:
    """Manages threads; the caller of a batch is number 0.

    Args:
        nthread: number of threads, including the caller.
        cpus: cores to which the threads are pinned, one for each; then number 0 is a separate thread, too, and the
            caller only waits.  Empty: they are not pinned.
    """

    def __init__(self, nthread: int, cpus: tuple[int, ...] = ()):
        self.nthread, self.cpus = nthread, cpus
        self._workers: dict[int, _Worker] = {}
        self._pid = os.getpid()
        weakref.finalize(self, _end, self._workers)

    def _worker(self, number: int) -> _Worker:
        """Returns the worker of a number, started at its first use."""
        if self._pid != os.getpid():  # a forked process has none of its parent's threads
            self._workers.clear()
            self._pid = os.getpid()
        if number not in self._workers:
            new = _Worker()
            # in one bytecode, so that no thread runs without its entry
            given = new.queue, new.done, self.cpus[number] if self.cpus else None
            call_all([(start_new_thread, _serve, given), (self._workers.__setitem__, number, new)])
        return self._workers[number]

    def run(self, tasks: Mapping[int, Callable[[], object]], own: Iterable = ()) -> None:
        """Calls each task in the thread of its number, meanwhile exhausts `own` in this thread, and waits for all.

        Args:
            tasks: functions by number of the thread.
            own: the caller's part: an iterator in C that raises nothing, since the wait would be skipped.

        Raises:
            BaseException: the first error of a task, after all tasks have ended.
        """
        errors: list[BaseException] = []
        workers = [self._worker(number) for number in tasks]
        # lists, because an interrupt could be raised in the frame of a generator
        starts = map(SimpleQueue.put, [w.queue for w in workers], [(task, errors) for task in tasks.values()])
        waits = map(_acquire, [w.done for w in workers], repeat(1))
        take_all(chain(starts, own, waits))
        if errors:
            raise errors[0]

    def build(self, make: Callable[[], T]) -> list[T]:
        """Returns one object for each thread, made in that thread.

        Raises:
            BaseException: what `make` raises.
        """
        made = {} if self.cpus else {0: make()}

        def build_own(number: int) -> None:
            made[number] = make()

        self.run({number: partial(build_own, number) for number in range(len(made), self.nthread)})
        return [made[number] for number in range(self.nthread)]

    def place(self, rows: np.ndarray) -> None:
        """Writes zeros to an array (nworld, ...), each thread to the rows of worlds that it steps first (`work`)."""
        ends = [len(rows) * k // self.nthread // BLOCK * BLOCK for k in range(self.nthread)] + [len(rows)]
        self.run({k: partial(rows[ends[k] : ends[k + 1]].fill, 0) for k in range(self.nthread)})
