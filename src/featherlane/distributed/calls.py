"""Sends the calls of a batch to its workers, and waits for their answers.

A call sends an order to each worker and waits for all answers, so that all worlds are at the same step between two
calls.  Long calls run in pieces of about half a second, after each of which a Ctrl-C takes effect.

A worker that is lost loses its worlds, and a call that fails in one worker is not undone in the others.  Afterwards
the worlds are no longer at the same step.  Then every call raises `WorkerLostError` until `restore` sets all worlds.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterable
from typing import Any, Self, TypeVar

import numpy as np

from featherlane import Batch as Local
from featherlane import Data, Worlds
from featherlane.distributed.cluster import Cluster, check_nodes, connect, last_line, ray_module
from featherlane.distributed.fields import ModelEdits, SentFields
from featherlane.distributed.pool import Pool
from featherlane.distributed.serialization import serialize
from featherlane.distributed.worker import NAMED, Answer, Settings, WorkerWorlds
from featherlane.distributed.world_assignment import Part, Spread
from featherlane.enums import Disable
from featherlane.errors import (
    ArgumentTypeError,
    CallError,
    ModelError,
    WorkerLostError,
    warn_of_full,
    warn_of_non_finite,
)
from featherlane.extension import Turn, cores, whole_argument

PIECE_SECONDS = 0.5  # approximate duration of a piece
AT_ONCE = 20_000  # steps of worlds in a piece until their duration is measured
CHUNK = 64 << 20  # largest size of a piece's inputs and recordings per worker [bytes]
AGAIN = "batch.restore(kept), with kept from batch.checkpoint(), continues from a checkpoint"

Order = tuple[str, dict[str, Any]]  # a name and arguments
T = TypeVar("T")
_open: weakref.WeakSet = weakref.WeakSet()  # batches with running workers


class Calls(Worlds):
    """Sends calls to the workers of a batch; `one` is a local batch of one world, the rest is as in `Batch`."""

    threads: list[int]
    starts: np.ndarray
    _one: Local
    _spread: Spread
    _send: list[Callable[..., Any]]  # sends an order to a worker and returns a reference to its answer
    _failure: str | None  # why the worlds are not at the same step
    _seconds: float  # longest duration of an answer of the present piece
    _bound: set[str]  # outputs that the workers keep

    def __init__(self, one: Local, nworld: int, nodes: Any, nthread: int, record_failures: int, timeout: float):
        own, model = self.__dict__, one.model
        own["_one"], own["model"], own["dtype"] = one, model, one.dtype
        own["nworld"], own["is_remote"] = whole_argument("nworld", nworld, 1), nodes is not None
        own["_turn"], own["_failure"], own["_bound"] = Turn("batch"), None, set()
        own["_at_once"], own["_seconds"] = AT_ONCE, 0.0
        own["_warned"], own["_counted"] = set(), {"bad": {}, "full": {}}
        own["_edits"], own["_fields"] = ModelEdits(model), SentFields(model, self.nworld, self.dtype)
        own["_pool"] = own["_cluster"] = own["_end"] = None
        own["_settings"] = Settings(self.nworld, nthread, one.dtype.name, one.ngiven, record_failures)
        if nodes is None:
            self._place([nthread or cores()])
            own["_send"] = [WorkerWorlds(is_apart=False).do]
            self._send[0]("start", model=model, settings=self._settings)
        else:
            self._start(nodes, nthread, timeout)

    def _place(self, threads: list[int]) -> None:
        own = self.__dict__
        own["_spread"] = Spread(self.nworld, threads, self._one.width)
        own["threads"], own["starts"] = threads, self._spread.starts

    # ---- workers -----------------------------------------------------------------------------------------------------
    def _start(self, nodes: Any, nthread: int, timeout: float) -> None:
        """Connects, reserves cores, and lets the workers create their worlds."""
        check_nodes(nodes)
        ray_module()  # raises an error if Ray is missing
        packet = serialize("model", self.model)
        cluster, number = _cluster_of(nodes, nthread, timeout)
        own = self.__dict__
        own["_cluster"], own["_send"] = cluster, []
        _open.add(self)
        try:
            own["_pool"] = pool = Pool(cluster, number, nthread, timeout, self.nworld)
            own["_end"] = weakref.finalize(self, pool.close)  # also at the end of the program, without `close`
            self._place(pool.threads)
            own["_send"] = [actor.do.remote for actor in pool.actors]
            self._create(range(len(self._send)), packet)
        except BaseException:
            self.close()
            raise

    def _create(self, workers: Iterable[int], packet: bytes) -> None:
        """Creates the worlds of workers, in the initial state of a packed model.

        Raises:
            ModelError: a worker does not start.
        """
        sent, model = [], self._cluster.ray.put(packet)
        for k in workers:
            settings = self._settings._replace(
                nworld=self._spread.number(k),
                nthread=self.threads[k],
                first=int(self.starts[k]),
                cores=self._pool.cores(k, self._pool.machine(k)[0]),
            )
            sent.append((Part(k, None, slice(None)), ("start", {"model": model, "settings": settings})))
        self._exchange(sent)
        for name in self._bound:
            self._exchange([(part, ("bind", {"name": name})) for part, _ in sent])

    def _revive(self) -> None:
        """Creates the worlds of workers that Ray has restarted, and marks edits of the model as missing there."""
        lost = [k for k in range(len(self._send)) if not self._pool.machine(k)[1]]
        if lost or self._failure:  # a call that failed may have been one that sends edits
            packet = serialize("model", self.model)
            self._fields.forget()
            self._edits.take()
            self._create(lost, packet)
            order = "model", {"model": self._cluster.ray.put(packet)}
            self._exchange([(part, order) for part in self._everyone() if part.worker not in lost])

    def close(self) -> None:
        """Ends the workers and the Ray that was started for them; has no effect on a local batch."""
        own = self.__dict__
        if own["_end"] is not None:
            own["_end"]()
            own["_send"] = []
        _open.discard(self)
        if own["_cluster"] is not None and not _open:
            own["_cluster"].close()
        own["_pool"] = own["_cluster"] = None

    def __reduce__(self):
        raise ArgumentTypeError("a distributed batch cannot be pickled or copied; use checkpoint() to save its state")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return (
            f"distributed.Batch({self.model!r}, nworld={self.nworld}, threads={self.threads}, dtype={self.dtype.name})"
        )

    # ---- calls -------------------------------------------------------------------------------------------------------
    def _run(self, body: Callable[[], T], repairs: bool = False) -> T:
        """Runs a call; only one call can run at a time.

        Args:
            body: function of the call.
            repairs: whether the call sets all worlds, after a loss too.

        Raises:
            CallError: the batch is closed, or another call is running.
            WorkerLostError: the worlds are not at the same step.
        """
        if not self._send:
            raise CallError("the batch is closed")
        found = self._turn.hold(self._in_turn, body, repairs)
        self._warn_of_failed()
        return found

    def _in_turn(self, body: Callable[[], Any], repairs: bool) -> Any:
        if self._failure and not repairs:
            raise WorkerLostError(self._failure)
        if repairs and self.is_remote:
            self._revive()
        return body()

    def _ask(self, parts: Iterable[Part], order: Callable[[Part], Order], changes: bool = False) -> list[tuple]:
        """Runs a call that sends an order to the workers of these parts; returns the parts and their results.

        Args:
            changes: whether the order changes the worlds.
        """

        def body() -> list[tuple[Part, Any]]:
            self._send_edits()
            return self._exchange([(part, order(part)) for part in parts], changes)

        return self._run(body)

    def _everyone(self) -> list[Part]:
        return [Part(k, None, slice(None)) for k in range(len(self._send))]

    def _send_edits(self) -> None:
        """Sends the user's edits since the last call to all workers."""
        found = self._fields.unsent()
        if self._edits.take() and self.is_remote:
            order = "model", {"model": self._cluster.ray.put(serialize("model", self.model))}
            self._exchange([(part, order) for part in self._everyone()])
        for name, rows in found.items():
            own = [rows[first:last] for first, last in itertools.pairwise(self.starts.tolist())]
            self._exchange([(part, ("expand", {"name": name, "rows": own[part.worker]})) for part in self._everyone()])
        self._fields.sent(found)

    def _exchange(self, sent: list[tuple[Part, Order]], changes: bool = True) -> list[tuple[Part, Any]]:
        """Sends an order to each worker and waits for the results.

        Raises:
            WorkerLostError: a worker was lost.
            Exception: the first error of a worker.
        """
        own = self.__dict__
        if changes and self.is_remote:  # until all workers have answered; a local batch handles its errors itself
            own["_failure"] = f"a call was interrupted before all workers had completed it; {AGAIN}"
        references, interrupt = [self._send[part.worker](name, **given) for part, (name, given) in sent], None
        try:
            answers = self._answers(sent, references)
        except KeyboardInterrupt as first:  # a second one is raised at once
            answers, interrupt = self._answers(sent, references), first
        failed = [(part, answer.error) for (part, _), answer in zip(sent, answers, strict=True) if answer.error]
        for part, error in failed:
            if isinstance(error, WorkerLostError):
                raise self._lost(part, error) from None
        if changes:
            # an error in all workers is one that they found before they began
            why = f"a call failed in one worker ({last_line(failed[0][1])}); {AGAIN}" if failed else None
            own["_failure"] = why if len(failed) < len(sent) else None
        for part, error in failed:
            error.add_note(f"in the worker whose first world is {self.starts[part.worker]}")
            raise error
        for (part, _), answer in zip(sent, answers, strict=True):
            for name, worlds in self._counted.items():
                worlds[part.worker] = getattr(answer, name)
            own["_seconds"] = max(self._seconds, answer.seconds)
        if interrupt is not None:
            raise interrupt
        return [(part, answer.result) for (part, _), answer in zip(sent, answers, strict=True)]

    def _answers(self, sent: list[tuple[Part, Order]], references: list[Any]) -> list[Answer]:
        """Waits for the answers of all workers."""
        if not self.is_remote:
            return references
        ray, found = self._cluster.ray, []
        for (part, _), reference in zip(sent, references, strict=True):
            try:
                found.append(ray.get(reference))
            except ray.exceptions.RayTaskError as error:
                raise ModelError(
                    f"worker whose first world is {self.starts[part.worker]}: its arguments or results cannot be "
                    f"pickled ({last_line(error)}); allowed are objects that can be pickled"
                ) from None
            except ray.exceptions.RayError as error:
                raise self._lost(part, error) from None
        return found

    def _lost(self, part: Part, error: Exception) -> WorkerLostError:
        """Marks the worlds as lost, and returns the error."""
        first, last = self.starts[part.worker : part.worker + 2].tolist()
        why = f"the worker with worlds {first} to {last - 1} was lost ({last_line(error)}); {AGAIN}"
        self.__dict__["_failure"] = why
        return WorkerLostError(why)

    # ---- long calls --------------------------------------------------------------------------------------------------
    def _advance(
        self,
        nstep: int,
        chosen: np.ndarray,
        order: Callable[[Part, int, int], Order],
        take: Callable[[int, int, list[tuple[Part, Any]]], None] | None = None,
        nbytes: int = 0,
    ) -> None:
        """Steps the chosen worlds in pieces.

        Args:
            order: function that returns a worker's order for n steps from a given one.
            take: function that receives the first step of a piece, its number of steps, and the workers' results.
            nbytes: size of inputs and recordings per world and step.
        """
        parts = list(self._spread.parts(chosen))

        def body() -> None:
            self._send_edits()
            own, start = self.__dict__, 0
            while start < nstep and parts:
                n, own["_seconds"] = min(nstep - start, self._steps_at_once(len(chosen), nbytes)), 0.0
                answers = self._exchange([(part, order(part, start, n)) for part in parts])
                if take is not None:
                    take(start, n, answers)
                start += n
                # the duration of a much smaller piece is mostly overhead
                if 2 * n * len(chosen) >= self._at_once or self._seconds > PIECE_SECONDS:
                    own["_at_once"] = max(1, int(n * len(chosen) * PIECE_SECONDS / max(self._seconds, 1e-9)))

        self._run(body)

    def _steps_at_once(self, number: int, nbytes: int) -> int:
        """Computes the number of steps in a piece for this number of worlds."""
        if not self.is_remote:
            return 1 << 62  # a local batch divides the call itself
        limit = CHUNK // (nbytes * max(1, number // len(self._send))) if nbytes else self._at_once
        return max(1, min(self._at_once // number, limit))

    # ---- failures ----------------------------------------------------------------------------------------------------
    def _warn_of_failed(self) -> None:
        """Warns once of worlds with non-finite values, and once of worlds that lost contacts or rows."""
        for name, found in self._counted.items():
            number = sum(n for _, n in found.values())
            if name in self._warned or not number:
                continue
            self._warned.add(name)
            all_first = [int(self.starts[k]) + world for k, (worlds, _) in sorted(found.items()) for world in worlds]
            first = all_first[:NAMED]
            more = f" and {number - len(first)} more" * (number > len(first))
            who = f"world {first[0]}" if number == 1 else f"worlds {', '.join(map(str, first))}{more} each"
            if name == "bad":
                warn_of_non_finite(who, not self.model.opt_disableflags & Disable.AUTORESET, owner="batch", level=4)
            else:
                warn_of_full(who, Data(self.model).nconmax, owner="batch", level=4)


def _cluster_of(nodes: Any, nthread: int, timeout: float) -> tuple[Cluster, int | None]:
    """Returns the cluster, and the number of workers; None for one per NUMA node."""
    if isinstance(nodes, Cluster):
        return nodes, None
    if isinstance(nodes, str):
        return connect(nodes, timeout=timeout), None
    return connect(cores=max(cores(), nodes * nthread), timeout=timeout), int(nodes)
