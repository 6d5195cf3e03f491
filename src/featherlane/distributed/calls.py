"""Sends calls of a batch to its workers: short calls at once, long ones in pieces."""

from __future__ import annotations

import uuid
import weakref
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, Self

import numpy as np

from featherlane.distributed.cluster import Cluster, check_nodes, connect, ray_module
from featherlane.distributed.interrupt import Held
from featherlane.distributed.machine import Machine
from featherlane.distributed.node import Order, Spec, check_memory, memory_of
from featherlane.distributed.pieces import Pieces
from featherlane.distributed.pool import Pool
from featherlane.distributed.request import Size
from featherlane.distributed.serialization import serialize
from featherlane.distributed.worker import InProcess, Worker
from featherlane.distributed.world_assignment import Part, Spread
from featherlane.errors import ArgumentTypeError, ModelError
from featherlane.lanes.cores import cores
from featherlane.model.arguments import whole_argument
from featherlane.model.model import Model
from featherlane.simulation.batch.batch import Batch as Local
from featherlane.simulation.batch.worlds import Worlds

OrdersOf = Callable[[Part], list[Order]]
_open: weakref.WeakSet = weakref.WeakSet()  # batches with running workers


class Calls(Pieces, Worlds):
    """Sends calls to the workers of a batch; `one` is a local batch of one world, the rest is as in `Batch`."""

    threads: list[int]
    _one: Local
    _spread: Spread
    _cluster: Any
    _pool: Any

    def __init__(self, one: Local, nworld, nodes, nthread, record_failures, every, folder, timeout):
        own, model = self.__dict__, one.model
        own["_one"] = one
        own["model"], own["dtype"], own["nworld"] = model, one.dtype, whole_argument("nworld", nworld, 1)
        kept_in = None if folder is None else str(Path(folder).absolute())
        super().__init__(whole_argument("checkpoint_every", every, 1), kept_in, f"worlds-{uuid.uuid4().hex[:12]}")
        own["_pool"] = own["_cluster"] = own["_end"] = None
        own["is_remote"] = nodes is not None
        spec = Spec(self.nworld, one.nthread if nthread else 0, one.dtype.name, one.ngiven, record_failures)
        if nodes is None:
            self._place([nthread or cores()])
            own["_workers"] = [InProcess(spec, model)]
        else:
            self._start(spec, nodes, nthread, timeout)

    def _place(self, threads: list[int]) -> None:
        own = self.__dict__
        own["_spread"] = Spread(self.nworld, threads, self._one.width)
        own["threads"], own["starts"] = threads, self._spread.starts

    # ---- workers -----------------------------------------------------------------------------------------------------
    def _start(self, spec: Spec, nodes: Any, nthread: int, timeout: float) -> None:
        """Connects, reserves capacity, and lets the workers create their worlds."""
        check_nodes(nodes)
        ray_module()  # raises an error if Ray is missing
        packet = serialize("model", self.model)
        cluster, number = _cluster_of(nodes, nthread, timeout)
        own = self.__dict__
        own["_cluster"], own["_workers"] = cluster, []
        _open.add(self)
        try:
            own["_pool"] = pool = Pool(cluster, number, nthread, timeout, self.nworld)
            # also at the end of the program, without a call of `close`
            files = None if self._folder is None else (self._folder, self._name)
            own["_end"] = weakref.finalize(self, _end, self._workers, pool, files)
            self._place(pool.threads)
            model = cluster.ray.put(packet)
            everyone = pool.start_all()
            if self._folder is not None:
                self._check_folder(pool)
            specs = [
                spec._replace(
                    nworld=self._spread.number(k),
                    nthread=self.threads[k],
                    first=int(self.starts[k]),
                    cores=started.cores,
                )
                for k, started in enumerate(everyone)
            ]
            _check_memory(self.model, [started.machine for started in everyone], specs)
            for k, (started, here) in enumerate(zip(everyone, specs, strict=True)):
                restart = lambda anywhere, k=k: attrgetter("actor", "cores")(pool.start(k, anywhere))  # noqa: E731
                self._workers.append(Worker(cluster.ray, started.actor, restart, model, here))
            for worker in self._workers:
                worker.begun()
        except BaseException:
            self.close()
            raise

    def _check_folder(self, pool: Pool) -> None:
        """Raises an error if a worker does not see the shared folder."""
        folder = Path(str(self._folder))
        mark = folder / f".visible-{uuid.uuid4().hex}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            mark.write_text("")
        except OSError as error:
            raise ModelError(f"checkpoint_folder: {folder} is not writable ({error})") from None
        try:
            visible = self._cluster.ray.get([s.actor.sees.remote(str(mark)) for s in pool.where if s is not None])
        finally:
            mark.unlink(missing_ok=True)
        blind = [s.machine.name for s, one in zip(pool.where, visible, strict=True) if s is not None and not one]
        if blind:
            raise ModelError(
                f"checkpoint_folder: {folder} does not exist on {', '.join(sorted(set(blind)))}; "
                f"allowed is a folder that all nodes share, or None"
            )

    @property
    def losses(self) -> list[int]:
        """Returns the number of losses of each worker."""
        return [worker.losses for worker in self._workers]

    def close(self) -> None:
        """Ends the workers and the Ray that was started for them; has no effect on a local batch."""
        own = self.__dict__
        left = own["_end"] and own["_end"].peek()
        if left:
            _, end, given, _ = left
            end(*given)
            own["_end"].detach()  # last, so that an interrupted close can be repeated
        _open.discard(self)
        if own["_cluster"] is not None and not _open:
            own["_cluster"].close()
        own["_pool"] = own["_cluster"] = None

    def __reduce__(self):
        raise ArgumentTypeError("a distributed batch cannot be pickled or copied; use checkpoint() to save its state")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        try:
            if kind is None and self._workers:
                self.wait()
        finally:
            self.close()

    def __repr__(self) -> str:
        return (
            f"distributed.Batch({self.model!r}, nworld={self.nworld}, threads={self.threads}, dtype={self.dtype.name})"
        )

    # ---- short calls -------------------------------------------------------------------------------------------------
    def wait(self) -> None:
        """Waits until all requests are done, including those of `step`, `forward` and `reset`.

        Raises:
            RuntimeError: as `step`; also the error of a call that did not wait.
        """
        self._run(lambda held: self._settle())
        self._warn_of_failed()

    def _ask(
        self, parts: Iterable[Part], orders: OrdersOf, changes: bool = False, edits: bool = False
    ) -> list[tuple[Part, Any]]:
        """Runs a call that sends orders to workers and returns their results; if one fails, undoes it in all.

        Args:
            changes: whether the orders change persistent state.
            edits: whether to send edits of the model first.
        """

        def body(held) -> list[tuple[Part, Any]]:
            if edits:
                self._tell_edits()
            return self._answers(parts, orders, changes)

        found = self._run(body)
        self._warn_of_failed()
        return found

    def _answers(self, parts: Iterable[Part], orders: OrdersOf, changes: bool) -> list[tuple[Part, Any]]:
        """Sends orders to workers within a call, and returns their results."""
        found: list[tuple[Part, Any]] = []
        self._issue(((part, orders(part)) for part in parts), changes, lambda part, got: found.append((part, got)))
        self._collect_all()
        return found

    def _post_parts(self, chosen: np.ndarray, orders: OrdersOf) -> None:
        """Queues orders that cannot fail, for workers that have some of these worlds; the next request sends them."""

        def body(held) -> None:
            self._tell_edits()
            self._post((part, orders(part)) for part in self._spread.parts(chosen))

        self._run(body)

    def _tell_edits(self) -> None:
        """Sends the user's edits since the last call to all workers, within a call."""
        self._fields.renew(self._fetched)
        orders, fields = self._edits.orders(), self._fields.edited()
        if not orders and not fields:
            return
        if any(name == "model" for name, _ in orders):
            self._answers(self._everyone(), lambda part: orders, True)  # functions may be missing there
            orders = []
        expanded = {
            k: [("expand", (name, rows[self.starts[k] : self.starts[k + 1]])) for name, rows in fields.items()]
            for k in range(len(self._workers))
        }
        self._post((part, orders + expanded[part.worker]) for part in self._everyone())

    def _fetched(self, name: str) -> np.ndarray:
        """Returns rows of a model field from the workers, within a call."""
        answers = self._answers(self._everyone(), lambda part: [("expanded", ((name,),))], False)
        return np.concatenate([result[name] for _, result in answers])

    def _everyone(self) -> list[Part]:
        return [Part(k, None, slice(None)) for k in range(len(self._workers))]

    # ---- long calls --------------------------------------------------------------------------------------------------
    def _advance(
        self,
        nstep: int,
        chosen: np.ndarray,
        orders: Callable[[Part, int, int], list[Order]],
        take: Callable[[Part, int, int, Any], None] | None = None,
        nbytes: int = 0,
        stays: bool = False,
    ) -> None:
        """Steps the chosen worlds in pieces; without `take` it returns while the last pieces are running.

        Args:
            orders: function that returns a worker's orders for n steps from a given one.
            take: function that receives a worker's result of these steps.
            nbytes: size of inputs and recordings per world and step.
            stays: whether results are returned as references.
        """
        if not len(chosen):
            return
        parts = list(self._spread.parts(chosen))

        def body(held: Held) -> None:
            self._tell_edits()
            start = 0
            while start < nstep:
                n = self._steps_at_once(nstep - start, len(chosen), nbytes)
                size = Size(n, len(chosen), n * len(chosen) * nbytes // len(self._workers))
                self._await_capacity(size)
                if held.came:
                    break  # interrupted: all worlds are at the same step when the pieces under way have ended
                sent = [(part, orders(part, start, n)) for part in parts]
                taken = None
                if take is not None:
                    taken = lambda part, result, take=take, start=start, n=n: take(part, start, n, result)  # noqa: E731
                self._issue(sent, True, taken, size, stays)
                start += n
            if take is not None or held.came or not self.is_remote:
                self._collect_all()

        self._run(body)
        self._warn_of_failed()

    def _tell_posted(self, chosen: np.ndarray, orders: OrdersOf) -> None:
        """Sends orders without a result to workers that have some of these worlds."""

        def body(held) -> None:
            self._tell_edits()
            self._issue((part, orders(part)) for part in self._spread.parts(chosen))
            if not self.is_remote:
                self._collect_all()

        self._run(body)
        self._warn_of_failed()


def _check_memory(model: Model, machines: Sequence[Machine], specs: Sequence[Spec]) -> None:
    """Raises an error if the workers of a machine together need more memory than it has."""
    for boot in {machine.boot for machine in machines}:
        here = [k for k, machine in enumerate(machines) if machine.boot == boot]
        need, nworld = sum(memory_of(model, specs[k]) for k in here), sum(specs[k].nworld for k in here)
        check_memory(machines[here[0]].name, nworld, need, min(machines[k].memory for k in here))


def _end(workers: list[Worker], pool: Pool, files: tuple[str, str] | None) -> None:
    """Ends workers, frees their capacity, and removes checkpoint files."""
    for worker in workers:
        worker.end()
    workers.clear()
    pool.close()
    for file in Path(files[0]).glob(f"{files[1]}-*") if files else ():
        file.unlink(missing_ok=True)


def _cluster_of(nodes: Any, nthread: int, timeout: float) -> tuple[Cluster, int | None]:
    """Returns the cluster, and the number of workers; None for one per NUMA node."""
    if isinstance(nodes, Cluster):
        return nodes, None
    if isinstance(nodes, str):
        return connect(nodes, timeout=timeout), None
    return connect(cores=max(cores(), nodes * nthread), timeout=timeout), int(nodes)
