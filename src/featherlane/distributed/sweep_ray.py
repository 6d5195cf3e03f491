"""Chunks of a sweep as tasks of Ray: shipped once, computed wherever a core is free, kept here as they come.

A task that is lost with its process or its node is computed again by Ray; what comes of it has the same bits.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
from collections.abc import Generator
from typing import Any

import numpy as np

from featherlane.distributed.cluster import Cluster, connect, last_line
from featherlane.distributed.sweep_chunk import Columns, Pace, timed_chunk
from featherlane.distributed.sweep_plan import Plan
from featherlane.errors import FeatherlaneError, ModelError
from featherlane.lanes.cores import cores

THREADS = 4  # of a task, where the user does not say: what is done between rollouts is done by one
AHEAD = 2  # tasks for each place where one can run: the next waits there when one is done
LEAST = 16  # samples of a chunk near the end
RETRIES = 20  # of a task that was lost


class Workers:
    """Where chunks are computed by Ray; a context that ends what was started for it.

    Args:
        plan: the sweep.
        address: of a cluster; None for a Ray on this machine.
        nodes: workers of a Ray on this machine, which share its cores.
        nthread: threads of a task, 0 for a share of the machine's cores, on a cluster for 4.

    Raises:
        ModelError: what is to be computed cannot be shipped; as `connect` does.
        InstallationError: as `connect` does.
    """

    def __init__(self, plan: Plan, address: str | None, nodes: int, nthread: int):
        self.plan = plan
        if address is None:
            nthread = nthread or max(1, cores() // nodes)
        self.cluster: Cluster = connect(address, None if address is not None else nodes * nthread)
        try:
            least = min(node.cores for node in self.cluster.nodes)
            self.nthread = min(nthread or THREADS, least)
            self.places = max(1, sum(node.cores // self.nthread for node in self.cluster.nodes))
            self._ray = self.cluster.ray
            options = {"num_cpus": self.nthread, "max_retries": RETRIES, "retry_exceptions": False}
            self._task = self._ray.remote(compute).options(**options)
            self._shipped = self._ship()
        except BaseException:
            self.cluster.close()
            raise

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *error) -> None:
        self.cluster.close()

    def _ship(self) -> Any:
        """The plan in the object store, as bytes that a worker unpacks once."""
        try:
            packed = self._ray.cloudpickle.dumps(self.plan)
        except Exception as error:  # whatever an object makes of it
            raise ModelError(
                f"what is to be computed cannot be shipped to other processes: {type(error).__name__}: {error}; "
                "allowed are functions that hold no open files, locks, generators or the like"
            ) from error
        return self._ray.put((hashlib.sha256(packed).hexdigest(), packed))

    def try_one(self) -> Columns:
        """Sample 0 in another process, before hours of work."""
        return self._got(self._task.remote(self._shipped, 0, 1, 1), "sample 0 cannot be computed by a worker")[0]

    def chunks(self, left: list[tuple[int, int]], pace: Pace) -> Generator[tuple[np.ndarray, Columns]]:
        """Samples and columns of chunks, in the order in which they come."""
        ray, waiting = self._ray, _Ranges(left)
        running: dict[Any, tuple[int, int]] = {}
        try:
            while waiting.nsample or running:
                while waiting.nsample and len(running) < AHEAD * self.places:
                    fair = max(LEAST, -(-waiting.nsample // (AHEAD * self.places)))
                    start, stop = waiting.take(min(pace.size, fair))
                    running[self._task.remote(self._shipped, start, stop, self.nthread)] = start, stop
                ready, _ = ray.wait(list(running), num_returns=1)
                start, stop = running.pop(ready[0])
                columns, seconds = self._got(ready[0], f"samples {start} to {stop - 1}")
                pace.saw(stop - start, seconds)
                yield np.arange(start, stop), columns
        finally:
            for reference in running:
                with contextlib.suppress(Exception):
                    ray.cancel(reference, force=True)

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


def compute(shipped: tuple[str, bytes], start: int, stop: int, nthread: int) -> tuple[Columns, float]:
    """A task: the columns of neighbouring samples, and the seconds that they took."""
    global _unpacked
    name, packed = shipped
    if _unpacked is None or _unpacked[0] != name:
        _unpacked = name, pickle.loads(packed)
    return timed_chunk(_unpacked[1], np.arange(start, stop), nthread)
