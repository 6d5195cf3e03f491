"""Reserves cores for workers in a Ray placement group, one worker per NUMA node by default."""

from __future__ import annotations

import importlib
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from featherlane.distributed.cluster import Cluster, Node, last_line
from featherlane.distributed.machine import Machine
from featherlane.distributed.worker import WorkerWorlds
from featherlane.errors import ModelError

POLL = 0.2  # [s] between two calls of an actor that Ray restarts


class Pool:
    """Workers as Ray actors in reserved places; Ray restarts the process of an actor that is lost.

    Args:
        number: number of workers; None for one per NUMA node.
        nthread: threads per worker; 0 for one per core.
        timeout: longest wait for free places, and for an actor [s].
        most: largest useful number of workers.

    Attributes:
        threads: number of threads of each worker.
        actors: one for each worker.

    Raises:
        ModelError: the cluster has too few free cores.
    """

    def __init__(self, cluster: Cluster, number: int | None, nthread: int, timeout: float, most: int):
        self.ray, self.timeout = cluster.ray, timeout
        cores = shares(cluster.nodes, number, nthread)[:most]
        self.threads = [nthread or max(1, int(c)) for c in cores]
        self.actors: list[Any] = []
        self._used: dict[int, tuple[str, tuple[int, ...]]] = {}  # machine and NUMA node of each worker
        group = importlib.import_module("ray.util.placement_group")
        self._group: Any = group.placement_group([{"CPU": c} for c in cores], strategy="PACK")
        self._remove = group.remove_placement_group
        if not self._group.wait(timeout):
            free = self.ray.available_resources().get("CPU", 0.0)
            self.close()
            raise ModelError(
                f"nodes: got {len(cores)} workers with {' + '.join(f'{c:g}' for c in cores)} cores, but "
                f"{free:g} of the cluster's {cluster.cores} cores are free (waited {timeout:g} s); use fewer workers"
            )
        strategies = importlib.import_module("ray.util.scheduling_strategies")
        remote = self.ray.remote(WorkerWorlds)
        for k, c in enumerate(cores):
            place = strategies.PlacementGroupSchedulingStrategy(self._group, placement_group_bundle_index=k)
            options = {"num_cpus": c, "scheduling_strategy": place, "max_restarts": -1, "max_task_retries": 0}
            self.actors.append(remote.options(**options).remote())

    def machine(self, k: int) -> tuple[Machine, bool]:
        """Returns the machine of a worker, and whether it has worlds; waits for a process that Ray starts.

        Raises:
            ModelError: it does not start in time.
        """
        until = time.monotonic() + self.timeout
        while True:
            try:
                return self.ray.get(self.actors[k].machine.remote(), timeout=max(until - time.monotonic(), POLL))
            except self.ray.exceptions.ActorUnavailableError as error:  # it is being restarted
                wrong: Exception = error
            except self.ray.exceptions.RayError as error:
                wrong, until = error, 0.0
            if time.monotonic() > until:
                raise ModelError(f"nodes: worker {k} does not start: {last_line(wrong)}") from None
            time.sleep(POLL)

    def cores(self, k: int, machine: Machine) -> tuple[int, ...]:
        """Returns the cores for a worker: those of the NUMA node with the fewest threads of other workers."""
        used: Counter = Counter()
        for j, place in self._used.items():
            if j != k:
                used[place] += self.threads[j]
        found = max(machine.cores, key=lambda group: len(group) - used[machine.boot, group])
        self._used[k] = machine.boot, found
        return found

    def close(self) -> None:
        """Ends the actors and frees their places; may be called again."""
        if self._group is not None and self.ray.is_initialized():
            for actor in self.actors:
                self.ray.kill(actor, no_restart=True)
            self._remove(self._group)
        self._group = None


def shares(nodes: Sequence[Node], number: int | None, nthread: int) -> list[float]:
    """Computes the number of cores of each worker.

    Args:
        number: number of workers; None for one per NUMA node.
        nthread: threads per worker; 0 for as many as fit.
    """
    if number is None:
        found = []
        for node in nodes:
            groups = [len(group) for group in node.machine.cores]
            if node.cores < len(groups):
                groups = [sum(groups)]
            found += [float(max(1, node.cores * size // sum(groups))) for size in groups]
        return [float(min(c, nthread)) if nthread else c for c in found]
    if nthread:
        return [float(nthread)] * number
    for each in range(max(node.cores for node in nodes), 0, -1):
        if sum(node.cores // each for node in nodes) >= number:
            return [float(each)] * number
    # with more workers than cores, workers share cores
    per_core = -(-number // sum(node.cores for node in nodes))
    return [1.0 / per_core] * number
