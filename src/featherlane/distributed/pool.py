"""Reserves cores for workers in a Ray placement group, one worker per NUMA node by default."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from featherlane.distributed.cluster import Cluster, Node, last_line
from featherlane.distributed.machine import Machine
from featherlane.distributed.node import NodeWorlds
from featherlane.errors import CallError, ModelError

PATIENCE = 20.0  # time [s] for a reserved place to return after the loss of a node


class Started(NamedTuple):
    """A running actor.

    Attributes:
        pid: number of its process there.
        cores: cores of the NUMA node that it should use.
    """

    actor: Any
    machine: Machine
    pid: int
    cores: tuple[int, ...]


class Pool:
    """Reserved places for workers, and the actors in them.

    Args:
        number: number of workers; None for one per NUMA node.
        nthread: threads per worker; 0 for one per core.
        timeout: longest wait for free places [s].
        most: largest useful number of workers.

    Attributes:
        threads: number of threads of each worker.
        where: the last started actor of each place.

    Raises:
        ModelError: the cluster has too few free cores.
    """

    def __init__(self, cluster: Cluster, number: int | None, nthread: int, timeout: float, most: int):
        self.ray, self.timeout = cluster.ray, timeout
        cores = shares(cluster.nodes, number, nthread)[:most]
        self.threads = [nthread or max(1, int(c)) for c in cores]
        self.where: list[Started | None] = [None] * len(cores)
        group = importlib.import_module("ray.util.placement_group")
        self._bundles = [{"CPU": c} for c in cores]
        self._group: Any = group.placement_group(self._bundles, strategy="PACK")
        self._remove = group.remove_placement_group
        if not self._group.wait(timeout):
            free = self.ray.available_resources().get("CPU", 0.0)
            self.close()
            raise ModelError(
                f"nodes: got {len(cores)} workers with {' + '.join(f'{c:g}' for c in cores)} cores, but "
                f"{free:g} of the cluster's {cluster.cores} cores are free (waited {timeout:g} s); use fewer workers"
            )

    def start_all(self) -> list[Started]:
        """Starts an actor in each place.

        Raises:
            ModelError: an actor does not start.
        """
        actors = [self._actor(k, True) for k in range(len(self.threads))]
        machines = [actor.machine.remote() for actor in actors]
        for k, (actor, ref) in enumerate(zip(actors, machines, strict=True)):
            try:
                self._settle(k, actor, self.ray.get(ref, timeout=self.timeout))
            except self.ray.exceptions.RayError as error:
                raise ModelError(f"nodes: worker {k} does not start: {last_line(error)}") from None
        return [started for started in self.where if started is not None]

    def start(self, k: int, is_anywhere: bool = False) -> Started:
        """Starts a replacement for a lost actor.

        Args:
            k: number of the worker.
            is_anywhere: whether to use any node; otherwise the worker's place, and any node only if it does not return.

        Raises:
            RuntimeError: no node has capacity for it.
            ray.exceptions.RayError: the actor was lost while it started.
        """
        errors = self.ray.exceptions
        no_capacity = errors.GetTimeoutError, errors.ActorUnschedulableError, errors.ActorPlacementGroupRemoved
        wrong: Exception = RuntimeError("no actor starts")
        for is_reserved in (False,) if is_anywhere else (True, False):
            actor = self._actor(k, is_reserved)
            try:
                patience = PATIENCE if is_reserved else self.timeout
                return self._settle(k, actor, self.ray.get(actor.machine.remote(), timeout=patience))
            except no_capacity as error:
                self.ray.kill(actor, no_restart=True)
                wrong = error
        raise CallError(f"worker {k} was lost, and no other node has capacity for its worlds: {last_line(wrong)}")

    def _actor(self, k: int, reserved: bool) -> Any:
        strategies = importlib.import_module("ray.util.scheduling_strategies")
        options: dict[str, Any] = {"num_cpus": 0, "scheduling_strategy": "SPREAD"}
        if reserved:
            place = strategies.PlacementGroupSchedulingStrategy(self._group, placement_group_bundle_index=k)
            options = {"num_cpus": self._bundles[k]["CPU"], "scheduling_strategy": place}
        return self.ray.remote(NodeWorlds).options(max_restarts=0, max_task_retries=0, **options).remote()

    def _settle(self, k: int, actor: Any, answer: tuple[Machine, int]) -> Started:
        """Selects the NUMA node with the most free cores."""
        machine, pid = answer
        used: Counter = Counter()  # threads of the other workers, by machine and NUMA node
        for j, other in enumerate(self.where):
            if other is not None and j != k:
                used[other.machine.boot, other.cores] += self.threads[j]
        cores = max(machine.cores, key=lambda group: len(group) - used[machine.boot, group])
        self.where[k] = started = Started(actor, machine, pid, cores)
        return started

    def close(self) -> None:
        """Frees the places."""
        if self._group is not None and self.ray.is_initialized():
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
