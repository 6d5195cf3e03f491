"""Computes chunks of a sweep as Ray tasks: the plan is sent once, tasks run on any free core, results come here.

Ray recomputes a task that is lost with its process or node; its result is bitwise identical.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Generator
from typing import Any

import numpy as np

from featherlane.distributed.cluster import Cluster, check_nodes, connect, last_line, ray_module
from featherlane.distributed.serialization import serialize, unpacked
from featherlane.distributed.sweeps.chunk import Columns, Pace, timed_chunk
from featherlane.distributed.sweeps.plan import Plan
from featherlane.errors import FeatherlaneError, ModelError
from featherlane.extension import cores

THREADS = 4  # default threads per task: the work between rollouts is serial
AHEAD = 2  # tasks per place: the next one waits there when one is done
LEAST, LEAST_SECONDS = 16, 0.04  # minimum of a chunk: samples, and duration in one place [s]
SENDING = 0.5e-3  # [s] of the driver per chunk (docs/distributed.md)
PATIENCE = 60.0  # longest wait for a free core [s]
RETRIES = 20  # restarts of a lost task


class Workers:
    """Computes chunks with Ray; as a context manager it ends what was started for it.

    Args:
        plan: the sweep.
        nodes: a number of workers, on the Ray that this process is connected to or on one that is started here; the
            address of a cluster; or a `Cluster`, which keeps running.
        nthread: threads per task; 0 for a share of the machine's cores, on a cluster for 4.

    Raises:
        ModelError: the plan cannot be serialized; also as `connect`.
        InstallationError: as `connect`.
    """

    def __init__(self, plan: Plan, nodes: int | str | Cluster, nthread: int):
        check_nodes(nodes)
        self.plan, self._ends = plan, not isinstance(nodes, Cluster)
        self.cluster, number, nthread = _cluster_of(nodes, nthread)
        try:
            self.nthread = min(nthread or THREADS, *(node.cores for node in self.cluster.nodes))
            places = max(1, sum(node.cores // self.nthread for node in self.cluster.nodes))
            self.places = min(places, number or places)
            # with more places than requested workers, no task may wait in another place
            self._most = AHEAD * places if self.places == places else self.places
            self._ray = self.cluster.ray
            self._wait_for_cores()
            options = {"num_cpus": self.nthread, "max_retries": RETRIES, "retry_exceptions": False}
            self._task = self._ray.remote(compute).options(**options)
            packet = serialize("model, parameters, control or reduce", self.plan)
            # in a list, because Ray would resolve a plain reference for each task; a process needs it once
            self._shipped = hashlib.sha256(packet).hexdigest(), [self._ray.put(packet)]
            self._running: dict[Any, tuple[int, int]] = {}
            self._waiting = _Ranges([])
            self._trial = self._task.remote(self._shipped, 0, 1, 1)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends what was started.

        A cluster that keeps running finishes the sent chunks, at most `AHEAD` per place, and their results are dropped.
        `ray.cancel` is not called: if the task finishes at this moment, Ray 2.60 aborts this process.
        """
        if self._ends:
            self.cluster.close()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *error) -> None:
        self.close()

    def _wait_for_cores(self) -> None:
        """Waits for a free core; otherwise tasks would wait without a message while other jobs use all cores."""
        until, pause = time.monotonic() + PATIENCE, 0.005
        while (free := self._ray.available_resources().get("CPU", 0.0)) < self.nthread:
            if time.monotonic() > until:
                raise ModelError(
                    f"nodes: a task needs {self.nthread} cores, but {free:g} of the cluster's "
                    f"{self.cluster.cores} cores are free (waited {PATIENCE:g} s); use fewer threads"
                )
            time.sleep(pause)
            pause = min(0.2, 2.0 * pause)  # cores of finished tasks are freed with a short delay

    def try_one(self) -> Columns:
        """Computes sample 0 in another process, before a long computation."""
        return self._got(self._trial, "sample 0 cannot be computed by a worker")[0]

    def begin(self, left: list[tuple[int, int]], pace: Pace) -> None:
        """Starts computing these samples."""
        self._waiting = _Ranges(left)
        self._send(pace)

    def _send(self, pace: Pace) -> None:
        """Sends chunks to places without a waiting task."""
        waiting = self._waiting
        while waiting.nsample and len(self._running) < self._most:
            start, stop = waiting.take(min(pace.size, next_chunk_size(waiting.nsample, self.places, pace.rate)))
            self._running[self._task.remote(self._shipped, start, stop, self.nthread)] = start, stop

    def chunks(self, pace: Pace) -> Generator[tuple[np.ndarray, Columns]]:
        """Yields samples and columns of chunks in order of completion."""
        while self._running:
            ready, _ = self._ray.wait(list(self._running), num_returns=1)
            start, stop = self._running.pop(ready[0])
            columns, seconds = self._got(ready[0], f"samples {start} to {stop - 1}")
            pace.saw(stop - start, seconds)
            self._send(pace)
            yield np.arange(start, stop), columns

    def _got(self, reference: Any, what: str) -> tuple[Columns, float]:
        """Returns the result of a task, or raises its error."""
        ray = self._ray
        try:
            return ray.get(reference)
        except ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, FeatherlaneError):
                raise error.cause from None
            raise ModelError(f"{what}: {last_line(error)}") from error
        except ray.exceptions.RayError as error:
            raise ModelError(f"{what}: {type(error).__name__}: {last_line(error)}") from error


def _cluster_of(nodes: int | str | Cluster, nthread: int) -> tuple[Cluster, int | None, int]:
    """Returns the cluster, the number of concurrent tasks (None: as many as fit), and threads per task (0: unset)."""
    if isinstance(nodes, Cluster):
        return nodes, None, nthread
    if isinstance(nodes, str):
        return connect(nodes), None, nthread
    nthread = nthread or max(1, cores() // nodes)
    return connect(cores=nodes * nthread), int(nodes), nthread


def next_chunk_size(waiting: int, places: int, rate: float) -> int:
    """Computes the number of samples of the next chunk.

    All places should have work until the end, but a chunk should be worth its overhead.  A driver that sends k chunks
    of S seconds in all takes k d + S / k, which is minimal if a chunk takes sqrt(S d).  If there are fewer places than
    such chunks, a chunk takes as long as sending one to each place.

    Args:
        rate: samples per second in one place; 0 if unknown.
    """
    worth = max(LEAST_SECONDS, min(places * SENDING, np.sqrt(waiting / rate * SENDING))) if rate else 0.0
    return max(LEAST, int(worth * rate), -(-waiting // (AHEAD * places)))


class _Ranges:
    """Waiting samples, as ranges."""

    def __init__(self, left: list[tuple[int, int]]):
        self._left = list(reversed(left))
        self.nsample = sum(stop - start for start, stop in left)

    def take(self, most: int) -> tuple[int, int]:
        """Returns the next consecutive samples, at most this many."""
        start, stop = self._left.pop()
        end = min(stop, start + most)
        if end < stop:
            self._left.append((end, stop))
        self.nsample -= end - start
        return start, end


# ---- in a worker -------------------------------------------------------------------------------------------------
_unpacked: tuple[str, Plan] | None = None


def compute(shipped: tuple[str, list], start: int, stop: int, nthread: int) -> tuple[Columns, float]:
    """Runs a task: returns the columns of consecutive samples, and the duration [s]."""
    global _unpacked
    name, [reference] = shipped
    if _unpacked is None or _unpacked[0] != name:
        _unpacked = name, unpacked("model, parameters, control or reduce", ray_module().get(reference))
    return timed_chunk(_unpacked[1], np.arange(start, stop), nthread)
