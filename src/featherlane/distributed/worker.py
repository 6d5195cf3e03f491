"""A worker: an actor of Ray's with some of the worlds, and what it takes to make it anew.

What was asked since the last checkpoint is kept, with its inputs.  When a worker is lost, another is started, takes
over the checkpoint and is asked the same again, in the same order: its worlds come to the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from featherlane.distributed.node import Order, Place, Report, Spec, Worlds

LARGE = 1 << 15  # bytes; smaller arrays travel within the request
Restart = Callable[[], tuple[Any, tuple[int, ...]]]
POSTED = 100  # requests that nobody waited for, at most
ATTEMPTS = 8  # deaths one after the other, without anything done between them


class Request:
    """What was asked of a worker.

    Attributes:
        orders, arrays: as of `Worlds.do`; large arrays are references.
        changes: has to be repeated when the worker is lost?
        stays: may its result stay where it is?
        nbytes: of the arrays.
        report, result: references, while it is under way.
        done: was it answered?
    """

    __slots__ = ("arrays", "changes", "done", "nbytes", "orders", "report", "result", "stays")

    def __init__(self, orders: Sequence[Order], arrays: list, changes: bool, stays: bool, nbytes: int):
        self.orders, self.arrays, self.changes, self.stays, self.nbytes = orders, arrays, changes, stays, nbytes
        self.report: Any = None
        self.result: Any = None
        self.done = False


class InProcess:
    """The same without Ray: requests are carried out when they are made."""

    def __init__(self, spec: Spec, model):
        self.spec, self.worlds, self.losses = spec, Worlds(False), 0
        self.worlds.do([("make", (model, spec))])

    def submit(self, orders: Sequence[Order], changes: bool = True, stays: bool = False) -> Any:
        return self.worlds.do(orders)

    def post(self, orders: Sequence[Order]) -> None:
        self.submit(orders)

    def collect(self, request) -> tuple[Report, Any]:
        return request


class Worker:
    """Some of the worlds, in another process.

    Args:
        ray: the module.
        actor: with `Worlds`, that have not been made.
        restart: starts another such actor and says which cores it shall use.
        model: reference of the model, packed.
        spec: of the worlds.

    Attributes:
        losses: how often its process was lost.
        steps, nbytes: steps and bytes of inputs since the last checkpoint.
    """

    def __init__(self, ray: Any, actor: Any, restart: Restart, model: Any, spec: Spec):
        self.ray, self.actor, self._restart, self._model, self.spec = ray, actor, restart, model, spec
        self.losses, self.steps, self.nbytes, self._deaths = 0, 0, 0, 0
        self._log: list[Request] = []
        self._posted: list[Request] = []  # whose answers nobody waited for
        self._base: Any = None  # reference or name of the last checkpoint
        errors = ray.exceptions
        self._lost = (
            errors.RayActorError,
            errors.WorkerCrashedError,
            errors.NodeDiedError,
            errors.ObjectLostError,
            errors.OutOfMemoryError,
        )
        self._first: Any = self._begin()  # the answer of an actor that begins

    # ---- asking ------------------------------------------------------------------------------------------------------
    def submit(self, orders: Sequence[Order], changes: bool = True, stays: bool = False) -> Request:
        """Ask, and go on.

        Args:
            orders: as of `Worlds.do`, with arrays among their arguments.
            changes: does it change anything that lasts?
            stays: the result is wanted as a reference.
        """
        arrays: list = []
        nbytes = 0
        placed = []
        for name, arguments in orders:
            given = []
            for a in arguments:
                if isinstance(a, np.ndarray):
                    nbytes += a.nbytes
                    # copies: whoever gave it may write to it before it is needed again
                    arrays.append(self.ray.put(a) if a.nbytes > LARGE else a.copy())
                    a = Place(len(arrays) - 1)
                given.append(a)
            placed.append((name, tuple(given)))
        request = Request(placed, arrays, changes, stays, nbytes)
        self._log.append(request)
        self.nbytes += nbytes
        self._send(request)
        return request

    def post(self, orders: Sequence[Order]) -> None:
        """Ask, and wait for no answer: if something goes wrong, the next `collect` says so."""
        self._posted.append(self.submit(orders))
        if len(self._posted) >= POSTED:
            self._raise(self.collect(self.submit([("nothing", ())], changes=False))[0])

    def _send(self, request: Request, repeated: bool = False) -> None:
        """Hand a request to the actor; a repeated one whose answer is known gives nothing."""
        orders = [*request.orders, ("nothing", ())] if repeated else request.orders
        if request.stays and not repeated:
            call = self.actor.do.options(num_returns=2)
            request.report, request.result = call.remote(orders, *request.arrays)
        else:
            request.report, request.result = self.actor.do.remote(orders, *request.arrays), None

    def collect(self, request: Request) -> tuple[Report, Any]:
        """Wait for the answer.

        Returns:
            The report, and the result, or its reference where it may stay.

        Raises:
            RuntimeError: the worker was lost again and again.
        """
        while True:
            try:
                if self._first is not None:
                    self._raise(self.ray.get(self._first)[0])
                    self._first = None
                if request.stays:
                    report, result = self.ray.get(request.report), request.result
                else:
                    report, result = self.ray.get(request.report)
                posted = self.ray.get([other.report for other in self._posted]) if self._posted else []
                break
            except self._lost as error:
                self._replace(error)
        self._deaths = 0
        request.done, request.report, request.result = True, None, None
        if not request.changes:
            self._log.remove(request)
        for other, (told, _) in zip(self._posted, posted, strict=True):
            other.done, other.report = True, None
            report = report if told.error is None else told
        self._posted = []
        return report, result

    @staticmethod
    def _raise(report: Report) -> None:
        if report.error is not None:
            raise report.error

    # ---- keeping -----------------------------------------------------------------------------------------------------
    def keep(self, folder: str | None, name: str) -> Request:
        """Ask for a checkpoint; `kept` has to follow."""
        return self.submit([("keep", (folder, name))], stays=False)

    def kept(self, request: Request, in_folder: bool) -> None:
        """Take over a checkpoint, and forget what was asked before it."""
        report, packet = self.collect(request)
        self._raise(report)
        # a copy that lies where this process is: the worker's own goes with its node
        self._base = packet if in_folder else self.ray.put(packet)
        at = self._log.index(request)
        self._log = self._log[at + 1 :]
        self.steps, self.nbytes = 0, sum(other.nbytes for other in self._log)

    def drop(self, request: Request) -> None:
        """Undo a request and all that followed it: the worlds go back to where they were before."""
        if request in self._log:
            del self._log[self._log.index(request) :]
            self._posted = [other for other in self._posted if other in self._log]
        self._repeat()

    @property
    def requests(self) -> int:
        """How many requests would be asked again."""
        return len(self._log)

    def holds(self, request: Request) -> bool:
        """Was it neither undone nor forgotten?"""
        return request in self._log

    # ---- losing ------------------------------------------------------------------------------------------------------
    def _begin(self) -> Any:
        """The worlds as they were last kept, or as the model starts them, in the actor that is there."""
        if self._base is None:
            return self.actor.do.remote([("make", (Place(0), self.spec))], self._model)
        return self.actor.do.remote([("take", (self.spec, Place(0)))], self._base)

    def _repeat(self) -> None:
        """Let the actor begin anew, and ask again what was asked."""
        self._first = self._begin()
        for request in self._log:
            self._send(request, repeated=request.done)

    def _replace(self, error: Exception) -> None:
        """Start another actor in place of one that was lost."""
        self.losses += 1
        self._deaths += 1
        if self._deaths > ATTEMPTS:
            self._deaths = 0
            raise RuntimeError(
                f"the worker with the worlds from {self.spec.first} on was lost {ATTEMPTS + 1} times in a row, the "
                f"last time: {_reason(error)}; its worlds are kept as they were before this call"
            ) from None
        self.ray.kill(self.actor, no_restart=True)
        self.actor, cores = self._restart()
        self.spec = self.spec._replace(cores=cores)
        self._repeat()

    def end(self) -> None:
        """End the actor's process."""
        if self.ray.is_initialized():
            self.ray.kill(self.actor, no_restart=True)


def _reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:2])
