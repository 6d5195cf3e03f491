"""Runs cases in forked processes: a crash or a hang is a result, and the next case runs in a fresh process."""

from __future__ import annotations

import contextlib
import faulthandler
import multiprocessing as mp
import os
import resource
import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import wait
from pathlib import Path
from typing import NamedTuple

from featherlane.engine.lanes.cores import cores

MEMORY = 6 << 30  # bytes that a process may use in addition to those it was forked with
RENEWED = 500  # cases after which a process is replaced
PHASE_BYTES = 256
PHASE = mp.get_context("fork").RawArray("c", PHASE_BYTES)  # separate for each worker: set before the fork


def enter(phase: str) -> None:
    """Records the next action of this process, for the report of a crash or a hang."""
    PHASE.value = phase.encode()[: PHASE_BYTES - 1]


class Outcome(NamedTuple):
    """Holds the outcome of a case: a verdict and a text, as returned, or `finding` with the end of the process."""

    case: int
    verdict: str
    text: str


class _Worker:
    """Runs cases one by one in a process."""

    def __init__(self, work: Callable[[int], tuple[str, str]], folder: str):
        global PHASE
        context = mp.get_context("fork")
        PHASE = self.phase = context.RawArray("c", PHASE_BYTES)
        self.trace = Path(folder, f"trace{time.monotonic_ns()}")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(work, other, str(self.trace), folder), daemon=True)
        with warnings.catch_warnings():  # JAX, if it was imported, warns of threads; no worker uses it
            warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)
            self.process.start()
        other.close()
        self.case, self.since, self.done = -1, 0.0, 0

    def give(self, case: int) -> None:
        self.case, self.since = case, time.monotonic()
        self.pipe.send(case)

    def take(self) -> Outcome:
        """Returns the available result, or how the process ended."""
        try:
            verdict, text = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            return self.lost(f"crash ({_ending(self.process.exitcode)})")
        self.done += 1
        return Outcome(self.case, verdict, text)

    def lost(self, how: str) -> Outcome:
        """Returns the outcome of a case without a result; a crash of the oracle is not ours."""
        phase = self.phase.value.decode()
        stack = self.trace.read_text() if self.trace.exists() else ""
        lines = [line.strip() for line in stack.splitlines() if "featherlane" in line or "fuzz" in line][:3]
        self.end()
        verdict = "MuJoCo's own" if phase.startswith("mujoco") else "finding"
        return Outcome(self.case, verdict, f"{how} in {phase}: {' < '.join(lines)}".rstrip(": "))

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()
        with contextlib.suppress(OSError):
            self.trace.unlink()


def _ending(code: int | None) -> str:
    return signal.Signals(-code).name if code and code < 0 else f"exit {code}"


def _address_space() -> int:
    """Returns the size of this process's address space on Linux: after many tests it exceeds its memory."""
    file = Path("/proc/self/statm")
    return int(file.read_text().split()[0]) * resource.getpagesize() if file.exists() else 0


def _serve(work, pipe, trace: str, folder: str) -> None:
    """Runs the loop of a worker, in a separate folder, with bounded memory."""
    os.chdir(folder)
    limit = _address_space() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    with open(trace, "w") as file:
        faulthandler.enable(file)
        parent = os.getppid()
        while parent == os.getppid():
            if pipe.poll(1.0):
                pipe.send(work(pipe.recv()))


def outcomes(
    work: Callable[[int], tuple[str, str]], cases: Iterable[int], timeout: float, count: int = cores()
) -> Iterator[Outcome]:
    """Yields the outcome of each case, as they finish.

    Args:
        work: function from a case to a verdict and a text; runs in a forked process.
        cases: their numbers.
        timeout: [s] after which a case counts as a hang.
        count: processes.
    """
    cases, ended = iter(cases), False
    with tempfile.TemporaryDirectory() as folder:
        workers = [_Worker(work, folder) for _ in range(count)]
        try:
            idle, busy = list(workers), []
            while not ended or busy:
                while idle and not ended:
                    case = next(cases, None)
                    if case is None:
                        ended = True
                        break
                    worker = idle.pop()
                    worker.give(case)
                    busy.append(worker)
                ready = wait([worker.pipe for worker in busy], timeout=1.0)
                for worker in list(busy):
                    if worker.pipe in ready:
                        outcome = worker.take()
                    elif time.monotonic() - worker.since > timeout:
                        outcome = worker.lost(f"hang (more than {timeout:g} s)")
                    else:
                        continue
                    busy.remove(worker)
                    if not worker.process.is_alive() or worker.done >= RENEWED:
                        if worker.process.is_alive():
                            worker.end()
                        workers.remove(worker)
                        worker = _Worker(work, folder)
                        workers.append(worker)
                    idle.append(worker)
                    yield outcome
        finally:
            for worker in workers:
                worker.end()
