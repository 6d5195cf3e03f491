"""Chunks of a sweep as tasks of Ray: shipped once, computed wherever a core is free, kept here as they come.

A task that is lost with its process or its node is computed again by Ray; what comes of it has the same bits.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Generator
from typing import Any

import numpy as np

from featherlane.distributed.cluster import Cluster, check_nodes, connect, last_line, ray_module
from featherlane.distributed.ship import packed, unpacked
from featherlane.distributed.sweeps.chunk import Columns, Pace, timed_chunk
from featherlane.distributed.sweeps.plan import Plan
from featherlane.errors import FeatherlaneError, ModelError
from featherlane.lanes.cores import cores

THREADS = 4  # of a task, where the user does not say: what is done between rollouts is done by one
AHEAD = 2  # tasks for each place where one can run: the next waits there when one is done
LEAST, LEAST_SECONDS = 16, 0.04  # of a chunk: samples, and the time that they take in one place
SENDING = 0.5e-3  # [s] of the driver for a chunk (docs/distributed.md)
PATIENCE = 60.0  # [s] for a core to be free
RETRIES = 20  # of a task that was lost


class Workers:
    """Where chunks are computed by Ray; a context that ends what was started for it.

    Args:
        plan: the sweep.
        nodes: a number of workers, on the Ray that this process is connected to or on one that is started here; the
            address of a cluster; or a `Cluster`, which stays.
        nthread: threads of a task, 0 for a share of the machine's cores, on a cluster for 4.

    Raises:
        ModelError: what is to be computed cannot be shipped; as `connect` does.
        InstallationError: as `connect` does.
    """

    def __init__(self, plan: Plan, nodes: int | str | Cluster, nthread: int):
        check_nodes(nodes)
        self.plan, self._ends = plan, not isinstance(nodes, Cluster)
        self.cluster, number, nthread = _cluster_of(nodes, nthread)
        try:
            self.nthread = min(nthread or THREADS, *(node.cores for node in self.cluster.nodes))
            places = max(1, sum(node.cores // self.nthread for node in self.cluster.nodes))
            self.places = min(places, number or places)
            # where there are more places than workers are asked for, none may wait in another
            self._most = AHEAD * places if self.places == places else self.places
            self._ray = self.cluster.ray
            self._wait_for_room()
            options = {"num_cpus": self.nthread, "max_retries": RETRIES, "retry_exceptions": False}
            self._task = self._ray.remote(compute).options(**options)
            packet = packed("what is to be computed", self.plan)
            # in a list: Ray would bring what a reference means to each task, which needs it in its process once
            self._shipped = hashlib.sha256(packet).hexdigest(), [self._ray.put(packet)]
            self._running: dict[Any, tuple[int, int]] = {}
            self._waiting = _Ranges([])
            self._trial = self._task.remote(self._shipped, 0, 1, 1)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End what was started."""
        for reference in self.__dict__.pop("_running", {}):
            with contextlib.suppress(Exception):
                self._ray.cancel(reference, force=True)
        if self._ends:
            self.cluster.close()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *error) -> None:
        self.close()

    def _wait_for_room(self) -> None:
        """Tasks that others' work leaves no core for would wait without a word."""
        until, pause = time.monotonic() + PATIENCE, 0.005
        while (free := self._ray.available_resources().get("CPU", 0.0)) < self.nthread:
            if time.monotonic() > until:
                raise ModelError(
                    f"nodes: a task of {self.nthread} threads has no room on the cluster, where {free:g} of "
                    f"{self.cluster.cores} cores are free (waited {PATIENCE:g} s); allowed are fewer threads"
                )
            time.sleep(pause)
            pause = min(0.2, 2.0 * pause)  # cores of tasks that have just ended are free in a moment

    def try_one(self) -> Columns:
        """Sample 0 in another process, before hours of work."""
        return self._got(self._trial, "sample 0 cannot be computed by a worker")[0]

    def begin(self, left: list[tuple[int, int]], pace: Pace) -> None:
        """Let workers begin with these samples."""
        self._waiting = _Ranges(left)
        self._send(pace)

    def _send(self, pace: Pace) -> None:
        """Chunks for places where nothing waits."""
        waiting = self._waiting
        while waiting.nsample and len(self._running) < self._most:
            start, stop = waiting.take(min(pace.size, share(waiting.nsample, self.places, pace.rate)))
            self._running[self._task.remote(self._shipped, start, stop, self.nthread)] = start, stop

    def chunks(self, pace: Pace) -> Generator[tuple[np.ndarray, Columns]]:
        """Samples and columns of chunks, in the order in which they come."""
        while self._running:
            ready, _ = self._ray.wait(list(self._running), num_returns=1)
            start, stop = self._running.pop(ready[0])
            columns, seconds = self._got(ready[0], f"samples {start} to {stop - 1}")
            pace.saw(stop - start, seconds)
            self._send(pace)
            yield np.arange(start, stop), columns

    def _got(self, reference: Any, what: str) -> tuple[Columns, float]:
        """What a task gives, or its error as it would be here."""
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
    """The cluster, how many tasks may run at once (None: as many as fit), and threads of each (0: nobody says)."""
    if isinstance(nodes, Cluster):
        return nodes, None, nthread
    if isinstance(nodes, str):
        return connect(nodes), None, nthread
    nthread = nthread or max(1, cores() // nodes)
    return connect(cores=nodes * nthread), int(nodes), nthread


def share(waiting: int, places: int, rate: float) -> int:
    """How many of the samples that wait the next chunk has.

    So many that all places have something to do until the end, but no fewer than are worth sending: a driver that
    sends k chunks of S seconds in all takes k d + S / k, which is least where a chunk takes sqrt(S d); where there are
    fewer places than that makes chunks, a chunk takes as long as sending one to each.

    Args:
        waiting: samples that wait.
        places: where a chunk can be computed.
        rate: samples per second in one place; 0 where nobody knows.
    """
    worth = max(LEAST_SECONDS, min(places * SENDING, np.sqrt(waiting / rate * SENDING))) if rate else 0.0
    return max(LEAST, int(worth * rate), -(-waiting // (AHEAD * places)))


class _Ranges:
    """Samples that wait, as ranges."""

    def __init__(self, left: list[tuple[int, int]]):
        self._left = list(reversed(left))
        self.nsample = sum(stop - start for start, stop in left)

    def take(self, most: int) -> tuple[int, int]:
        """The next samples, neighbours, at most so many."""
        start, stop = self._left.pop()
        end = min(stop, start + most)
        if end < stop:
            self._left.append((end, stop))
        self.nsample -= end - start
        return start, end


# ---- in a worker -----------------------------------------------------------------------------------------------------
_unpacked: tuple[str, Plan] | None = None


def compute(shipped: tuple[str, list], start: int, stop: int, nthread: int) -> tuple[Columns, float]:
    """A task: the columns of neighbouring samples, and the seconds that they took."""
    global _unpacked
    name, [reference] = shipped
    if _unpacked is None or _unpacked[0] != name:
        _unpacked = name, unpacked("what is to be computed", ray_module().get(reference))
    return timed_chunk(_unpacked[1], np.arange(start, stop), nthread)
