"""How calls reach workers: all at once, long ones in pieces, with checkpoints between them.

A piece in which something goes wrong, an error in one worker or a second Ctrl-C, is undone in all: their worlds are at
the same step when a call ends.
"""

from __future__ import annotations

import contextlib
import threading
import uuid
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from featherlane.distributed.cluster import Cluster, check_nodes, connect, ray_module
from featherlane.distributed.edits import Fields, ModelEdits
from featherlane.distributed.interrupt import Held
from featherlane.distributed.node import Order, Report, Spec
from featherlane.distributed.pool import Pool
from featherlane.distributed.ship import packed
from featherlane.distributed.spread import Part, Spread
from featherlane.distributed.worker import InProcess, Request, Worker
from featherlane.errors import ModelError, warn_of_bad_numbers
from featherlane.lanes.cores import cores
from featherlane.model.enums import Disable
from featherlane.model.model import Model
from featherlane.simulation.batch.batch import Batch as Local
from featherlane.simulation.batch.running import NAMED
from featherlane.simulation.batch.worlds import chosen_worlds, count

PIECE_SECONDS = 0.5  # how long a piece of a call takes, about
AT_ONCE = 20_000  # steps of worlds in a piece, as long as nobody knows how long they take
DEPTH = 2  # pieces under way: while one travels, the next one is computed
CHUNK = 64 << 20  # bytes of a piece's inputs and recordings, at most, of each worker
INPUTS = 256 << 20  # bytes of inputs that are kept to be asked again, at most, of each worker
REQUESTS = 20_000  # as many of them

OrdersOf = Callable[[Part], list[Order]]
_open: weakref.WeakSet = weakref.WeakSet()  # batches whose workers run


class Calls:
    """Workers of a batch, and how they are asked; arguments are those of `Batch`."""

    model: Model
    nworld: int
    dtype: np.dtype
    starts: np.ndarray
    threads: list[int]
    is_remote: bool
    _one: Local
    _spread: Spread
    _workers: list[Any]
    _edits: ModelEdits
    _fields: Fields
    _lock: threading.Lock
    _every: int  # steps from one checkpoint to the next
    _folder: str | None
    _keeping: dict[int, Request]  # checkpoints that were asked for, by worker
    _nkept: int
    _name: str  # of files in the folder
    _cluster: Any
    _pool: Any
    _at_once: int  # steps of worlds that take PIECE_SECONDS, about
    _told: bool  # of bad numbers
    _bad: dict[int, tuple[tuple[int, ...], int]]  # by worker, as its reports have them

    def __init__(
        self, model, nworld, nodes, nthread, dtype: DTypeLike, record_bad, every, folder: str | Path | None, timeout
    ):
        own = self.__dict__
        own["_one"] = one = Local(model, 1, nthread, dtype, 0, record_bad)  # says what is allowed
        own["model"], own["dtype"], own["nworld"] = model, one.dtype, count("nworld", nworld, 1)
        own["_every"] = count("checkpoint_every", every, 1)
        own["_folder"] = None if folder is None else str(Path(folder).absolute())
        own["_name"] = f"worlds-{uuid.uuid4().hex[:12]}"
        own["_lock"], own["_pool"], own["_cluster"] = threading.Lock(), None, None
        own["_end"] = None
        own["_told"], own["_bad"], own["_at_once"], own["_keeping"], own["_nkept"] = False, {}, AT_ONCE, {}, 0
        own["is_remote"] = nodes is not None
        spec = Spec(self.nworld, one.nthread if nthread else 0, one.dtype.name, 0, record_bad)
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
        """Connect, find room, and have workers make their worlds."""
        check_nodes(nodes)
        ray_module()  # or its error
        packet = packed("model", self.model)
        cluster, number = _cluster_of(nodes, nthread, timeout)
        own = self.__dict__
        own["_cluster"], own["_workers"] = cluster, []
        _open.add(self)
        try:
            own["_pool"] = pool = Pool(cluster, number, nthread, timeout, self.nworld)
            # at the end of the program, too, and where nobody closes it
            files = None if self._folder is None else (self._folder, self._name)
            own["_end"] = weakref.finalize(self, _end, self._workers, pool, files)
            self._place(pool.threads)
            model = cluster.ray.put(packet)
            everyone = pool.start_all()
            if self._folder is not None:
                self._check_folder(pool)
            for k, started in enumerate(everyone):
                here = spec._replace(
                    nworld=self._spread.number(k),
                    nthread=self.threads[k],
                    first=int(self.starts[k]),
                    cores=started.cores,
                )
                restart = lambda k=k: _actor_and_cores(pool.start(k))  # noqa: E731
                self._workers.append(Worker(cluster.ray, started.actor, restart, model, here))
            for worker in self._workers:
                worker.collect(worker.submit([("nothing", ())], changes=False))
        except BaseException:
            self.close()
            raise

    def _check_folder(self, pool: Pool) -> None:
        """Refuse a folder that workers do not see as we do."""
        folder = Path(str(self._folder))
        mark = folder / f".seen-{uuid.uuid4().hex}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            mark.write_text("")
        except OSError as error:
            raise ModelError(f"checkpoint_folder: {folder} cannot be written to ({error})") from None
        try:
            seen = self._cluster.ray.get([s.actor.sees.remote(str(mark)) for s in pool.where if s is not None])
        finally:
            mark.unlink(missing_ok=True)
        blind = [s.machine.name for s, one in zip(pool.where, seen, strict=True) if s is not None and not one]
        if blind:
            raise ModelError(
                f"checkpoint_folder: {folder} is not seen on {', '.join(sorted(set(blind)))}; allowed is a folder that "
                "all nodes can write to, or None"
            )

    @property
    def losses(self) -> list[int]:
        """How often each worker was lost."""
        return [worker.losses for worker in self._workers]

    def close(self) -> None:
        """End the workers, and the Ray that was started for them; a local batch has nothing to end."""
        own = self.__dict__
        if own["_end"] is not None:
            own["_end"]()
        _open.discard(self)
        if own["_cluster"] is not None and not _open:
            own["_cluster"].close()
        own["_pool"] = own["_cluster"] = None

    def __reduce__(self):
        raise TypeError("a batch that is spread over workers is not pickled or copied; checkpoint() gives what lasts")

    def __enter__(self):
        return self

    def __exit__(self, *error) -> None:
        self.close()

    def __repr__(self) -> str:
        return (
            f"distributed.Batch({self.model!r}, nworld={self.nworld}, threads={self.threads}, dtype={self.dtype.name})"
        )

    def _ids(self, ids) -> np.ndarray:
        return chosen_worlds(ids, self.nworld)

    @contextlib.contextmanager
    def _entered(self) -> Iterator[Held]:
        """One call at a time."""
        if not self._workers:
            raise RuntimeError("the batch is closed")
        if not self._lock.acquire(blocking=False):
            raise RuntimeError("another thread is in a call of this batch; give each thread a batch of its own")
        try:
            with Held() as held:
                yield held
        finally:
            self._lock.release()

    # ---- short calls -------------------------------------------------------------------------------------------------
    def _ask_parts(self, chosen: np.ndarray, orders: OrdersOf) -> list[tuple[Part, Any]]:
        """What workers say that have some of these worlds; it changes nothing."""
        parts = list(self._spread.parts(chosen))
        with self._entered():
            return self._piece([(part, orders(part)) for part in parts], changes=False)

    def _tell_parts(self, chosen: np.ndarray, orders: OrdersOf) -> None:
        """Orders for workers that have some of these worlds."""
        self._tell_edits()
        parts = list(self._spread.parts(chosen))
        with self._entered():
            self._piece([(part, orders(part)) for part in parts])
            self._keep_where_due()

    def _post_parts(self, chosen: np.ndarray, orders: OrdersOf) -> None:
        """Orders that cannot go wrong, for workers that have some of these worlds: nobody waits."""
        self._tell_edits()
        parts = list(self._spread.parts(chosen))
        with self._entered():
            for part in parts:
                self._workers[part.worker].post(orders(part))

    def _tell_all(self, orders: Sequence[Order]) -> None:
        """The same orders for all workers."""
        self._run_all(lambda k: list(orders))

    def _run_all(self, orders: Callable[[int], list[Order]], changes: bool = True) -> list[tuple[Part, Any]]:
        """What all workers say, in their order."""
        parts = [Part(k, None, slice(None)) for k in range(len(self._workers))]
        with self._entered():
            return self._piece([(part, orders(part.worker)) for part in parts], changes)

    def _tell_edits(self) -> None:
        """What the user edited since the last call, for all workers."""
        orders = self._edits.orders()
        if orders:
            try:
                self._tell_all(orders)
            except BaseException:
                self._edits.forget()  # it is told anew by the next call
                raise
        fields = self._fields.edited()
        if fields:
            with self._entered():
                for k, worker in enumerate(self._workers):
                    here = slice(self.starts[k], self.starts[k + 1])
                    worker.post([("expand", (name, rows[here])) for name, rows in fields.items()])

    def _piece(self, asked: list[tuple[Part, list[Order]]], changes: bool = True) -> list[tuple[Part, Any]]:
        """Orders to workers, and what they answer; undone in all of them where one fails."""
        requests: list[tuple[Part, Any]] = []
        try:
            for part, orders in asked:
                requests.append((part, self._workers[part.worker].submit(orders, changes)))
            return [(part, result) for part, (_, result) in self._collected(requests)]
        except BaseException:
            self._undo(requests)
            raise

    def _collected(self, requests: list[tuple[Part, Any]]) -> list[tuple[Part, tuple[Report, Any]]]:
        """Answers of workers, each of which went well."""
        answers = [(part, self._workers[part.worker].collect(request)) for part, request in requests]
        for part, (report, _) in answers:
            if report.error is not None:
                where = f"in the worker with the worlds from {self.starts[part.worker]} on"
                report.error.add_note(where)
                raise report.error
        self._note_bad(answers)
        return answers

    def _undo(self, requests: list[tuple[Part, Any]]) -> None:
        """Take requests back, and all that followed them."""
        for part, request in requests:
            if isinstance(request, Request):
                self._workers[part.worker].drop(request)
        self.__dict__["_keeping"] = {k: r for k, r in self._keeping.items() if self._workers[k].holds(r)}

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
        """Steps of the chosen worlds, in pieces.

        Args:
            nstep: steps.
            chosen: the worlds.
            orders: of a worker, for n steps from one on.
            take: what to do with a worker's result of these steps.
            nbytes: inputs and recordings of a world's step.
            stays: results are wanted as references.
        """
        if not len(chosen):
            return
        self._tell_edits()
        parts = list(self._spread.parts(chosen))
        under: deque[tuple[int, int, list[tuple[Part, Any]]]] = deque()
        done = issued = 0
        with self._entered() as held:
            try:
                while done < nstep:
                    while issued < nstep and len(under) < DEPTH and not held.came:
                        n = self._steps_at_once(nstep - issued, len(chosen), nbytes)
                        requests: list[tuple[Part, Any]] = []
                        under.append((issued, n, requests))
                        for part in parts:
                            own = orders(part, issued, n)
                            requests.append((part, self._workers[part.worker].submit(own, True, stays)))
                        issued += n
                    if not under:
                        break  # interrupted: all are at the same step
                    start, n, requests = under[0]
                    answers = self._collected(requests)
                    for part, (_, result) in answers:
                        if take is not None:
                            take(part, start, n, result)
                    under.popleft()
                    done += n
                    self._learn(n, len(chosen), [report.seconds for _, (report, _) in answers])
                    self._keep_where_due([part.worker for part in parts], n)
            except BaseException:
                self._undo([request for _, _, requests in under for request in requests])
                raise
        self._tell_of_bad()

    def _steps_at_once(self, nstep: int, number: int, nbytes: int) -> int:
        """Steps of a piece."""
        if not self.is_remote:
            return nstep  # a local batch has pieces of its own
        share = max(1, number // len(self._workers))
        room = nstep if not nbytes else CHUNK // (nbytes * share)
        return max(1, min(nstep, self._at_once // number, room))

    def _learn(self, n: int, number: int, seconds: list[float]) -> None:
        """How many steps of worlds take PIECE_SECONDS."""
        # a piece that is far below what could be tells of the overhead alone
        if 2 * n * number >= self._at_once or max(seconds) > PIECE_SECONDS:
            self.__dict__["_at_once"] = max(1, int(n * number * PIECE_SECONDS / max(*seconds, 1e-9)))

    # ---- keeping -----------------------------------------------------------------------------------------------------
    def _keep_where_due(self, workers: Sequence[int] = (), nstep: int = 0) -> None:
        """Ask workers for checkpoints that are due, and take over those that were asked for before."""
        if not self.is_remote:
            return
        for k, request in [*self._keeping.items()]:
            self._workers[k].kept(request, self._folder is not None)
            del self._keeping[k]
        for k in workers:
            self._workers[k].steps += nstep
        for k, worker in enumerate(self._workers):
            if worker.steps >= self._every or worker.nbytes > INPUTS or worker.requests > REQUESTS:
                self.__dict__["_nkept"] += 1
                self._keeping[k] = worker.keep(self._folder, f"{self._name}-{self.starts[k]}-{self._nkept % 2}.batch")

    # ---- bad numbers -------------------------------------------------------------------------------------------------
    def _note_bad(self, answers: list[tuple[Part, tuple[Report, Any]]]) -> None:
        for part, (report, _) in answers:
            if report.nbad:
                self._bad[part.worker] = report.bad, report.nbad

    def _tell_of_bad(self) -> None:
        """Warn of worlds whose numbers turned bad, once."""
        found = self._bad
        if self._told or not found:
            return
        self.__dict__["_told"] = True
        number = sum(n for _, n in found.values())
        first = [int(self.starts[k]) + world for k, (worlds, _) in sorted(found.items()) for world in worlds][:NAMED]
        more = f" and {number - len(first)} more" * (number > len(first))
        who = f"world {first[0]}" if number == 1 else f"worlds {', '.join(map(str, first))}{more} each"
        warn_of_bad_numbers(who, not self.model.opt_disableflags & Disable.AUTORESET, "batch", 3)


def _end(workers: list[Worker], pool: Pool, files: tuple[str, str] | None) -> None:
    """End workers, give their places back, and remove what was kept for losses."""
    for worker in workers:
        worker.end()
    workers.clear()
    pool.close()
    for file in Path(files[0]).glob(f"{files[1]}-*") if files else ():
        file.unlink(missing_ok=True)


def _actor_and_cores(started) -> tuple[Any, tuple[int, ...]]:
    return started.actor, started.cores


def _cluster_of(nodes: Any, nthread: int, timeout: float) -> tuple[Cluster, int | None]:
    """The cluster that is meant, and how many workers; None for one for each NUMA node."""
    if isinstance(nodes, Cluster):
        return nodes, None
    if isinstance(nodes, str):
        return connect(nodes, timeout=timeout), None
    return connect(cores=max(cores(), nodes * nthread), timeout=timeout), int(nodes)
