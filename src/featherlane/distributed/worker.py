"""A worker: an actor of Ray's with some of the worlds, and what it takes to make it anew.

What was asked since the last checkpoint is kept, with its inputs.  When a worker is lost, another is started, takes
over the checkpoint and is asked the same again, in the same order: its worlds come to the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from featherlane.distributed.cluster import last_line
from featherlane.distributed.node import Order, Place, Report, Spec, Worlds
from featherlane.distributed.replay import Replay
from featherlane.errors import CallError, ModelError

LARGE = 90_000  # bytes; smaller arrays travel within the request, which Ray lets them up to 100 KB
Restart = Callable[[], tuple[Any, tuple[int, ...]]]
ATTEMPTS = 8  # deaths one after the other, without anything done between them


class Request:
    """What was asked of a worker.

    Attributes:
        orders, arrays: as of `Worlds.do`; large arrays are references.
        calls: of the first orders, which were posted: the numbers of the calls that did.
        changes: has it to be repeated when the worker is lost?
        stays: may its result stay where it is?
        nbytes: of the arrays.
        report, result: references, while it is under way.
        done: was it answered, and went well?
    """

    __slots__ = ("arrays", "calls", "changes", "done", "nbytes", "orders", "report", "result", "stays")

    def __init__(self):
        self.orders: list[Order] = []
        self.arrays: list = []
        self.calls: list[int] = []
        self.nbytes, self.changes, self.stays, self.done = 0, False, False, False
        self.report: Any = None
        self.result: Any = None

    def add(self, orders: Sequence[Order], ray: Any) -> None:
        """More orders, with arrays among their arguments."""
        for name, arguments in orders:
            given = []
            for a in arguments:
                if isinstance(a, np.ndarray):
                    self.nbytes += a.nbytes
                    # copies: whoever gave it may write to it before it is needed again
                    self.arrays.append(ray.put(a) if a.nbytes > LARGE else a.copy())
                    a = Place(len(self.arrays) - 1)
                given.append(a)
            self.orders.append((name, tuple(given)))

    def posted(self, before: int) -> Request:
        """Only the orders that were posted by calls before one."""
        rest = Request()
        rest.calls = [call for call in self.calls if call < before]
        rest.orders = self.orders[: len(rest.calls)]
        places = [a.index for _, arguments in rest.orders for a in arguments if isinstance(a, Place)]
        rest.arrays = self.arrays[: max(places, default=-1) + 1]
        rest.nbytes = self.nbytes if places else 0  # at most
        return rest


class Left(NamedTuple):
    """A result that stays where it is.

    Attributes:
        reference: Ray's.
        replay: how to come to it again where it is lost.
    """

    reference: Any
    replay: Replay | None


class InProcess:
    """The same without Ray: requests are carried out when they are made."""

    def __init__(self, spec: Spec, model):
        self.spec, self.worlds, self.losses = spec, Worlds(False), 0
        self.worlds.do([("make", (model, spec))])

    def submit(self, orders: Sequence[Order], changes: bool = True, stays: bool = False) -> Any:
        return self.worlds.do(orders)

    def post(self, orders: Sequence[Order], call: int) -> int:
        self.submit(orders)
        return 0

    def collect(self, request) -> tuple[Report, Any]:
        report, result = request
        return Report(*report), result


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
        self._log: list[Request] = []  # what was asked since the last checkpoint
        self._waiting = Request()  # orders that go with the next request
        self._base: Any = None  # reference or name of the last checkpoint
        self._files = 0  # checkpoints in files
        errors = ray.exceptions
        self._lost = (
            errors.RayActorError,
            errors.WorkerCrashedError,
            errors.NodeDiedError,
            errors.ObjectLostError,
            errors.OutOfMemoryError,
        )
        # answers that nobody asked for, but to hear what went wrong: of an actor that begins, and is asked again
        self._before: list[Any] = [self._begin()]

    # ---- asking ------------------------------------------------------------------------------------------------------
    def submit(self, orders: Sequence[Order], changes: bool = True, stays: bool = False) -> Request:
        """Ask, and go on.

        Args:
            orders: as of `Worlds.do`, with arrays among their arguments.
            changes: do they change anything that lasts?
            stays: the result is wanted as a reference.
        """
        request, self._waiting = self._waiting, Request()
        already = request.nbytes
        request.changes, request.stays = changes, stays
        self._log.append(request)
        request.add(orders, self.ray)
        self.nbytes += request.nbytes - already
        self._send(request)
        return request

    def post(self, orders: Sequence[Order], call: int) -> int:
        """Orders of a call that go with the next request; how many there are by now."""
        waiting = self._waiting
        already = waiting.nbytes
        waiting.add(orders, self.ray)
        waiting.calls += [call] * len(orders)
        self.nbytes += waiting.nbytes - already
        return self.nposted

    @property
    def nposted(self) -> int:
        """Orders that wait for the next request."""
        return len(self._waiting.orders)

    def _send(self, request: Request) -> None:
        """Hand a request to the actor; one that was answered before is repeated, and gives nothing."""
        if request.done:
            self._before.append(self.actor.do.remote([*request.orders, ("nothing", ())], *request.arrays))
        elif request.stays:
            call = self.actor.do.options(num_returns=2)
            request.report, request.result = call.remote(request.orders, *request.arrays)
        else:
            request.report = self.actor.do.remote(request.orders, *request.arrays)

    def begun(self) -> None:
        """Wait until its worlds are there.

        Raises:
            ModelError: as `Worlds.order_make` does.
            RuntimeError: the worker was lost again and again.
        """
        self._got(lambda: None)

    def collect(self, request: Request) -> tuple[Report, Any]:
        """Wait for the answer.

        Returns:
            The report, and the result, or a `Left` where it may stay.

        Raises:
            ModelError: what it gives cannot be shipped.
            RuntimeError: the worker was lost again and again.
        """

        def get():
            if request.stays:
                return self.ray.get(request.report), request.result
            return self.ray.get(request.report)

        told, result = self._got(get)
        report = Report(*told)
        if request.stays:
            result = Left(result, self._replay(request))
        self._deaths = 0
        request.report = request.result = None
        if report.error is not None:
            return report, None
        request.done = True
        if not request.changes:
            self._forget(request)
        return report, result

    def _replay(self, request: Request) -> Replay | None:
        """How to come to a request's result again; None where checkpoints are files, which are written over."""
        if isinstance(self._base, str):
            return None
        asked = [(own.orders, own.arrays) for own in self._log[: self._log.index(request) + 1]]
        return Replay(self._model, self._base, self.spec, asked)

    def _got(self, get: Callable[[], Any]) -> Any:
        """What comes, from another actor where this one is lost."""
        while True:
            try:
                for told, _ in self.ray.get(self._before) if self._before else ():
                    error = Report(*told).error
                    if error is not None:
                        raise error
                self._before = []
                return get()
            except self._lost as error:
                self._replace(error)
            except self.ray.exceptions.RayTaskError as error:
                # what worlds raise comes as a report
                raise ModelError(
                    f"what the worker with the worlds from {self.spec.first} on was asked, or what it gives, cannot "
                    f"travel between processes ({last_line(error)}); allowed is what can be pickled"
                ) from None

    def _forget(self, request: Request) -> None:
        """A request that changed nothing has not to be repeated, but for what was posted with it."""
        at = self._log.index(request)
        self._log[at : at + 1] = self._posted(request, request.calls[-1] + 1) if request.calls else []

    @staticmethod
    def _posted(request: Request, before: int) -> list[Request]:
        """What was posted by calls before one, to be repeated."""
        rest = request.posted(before)
        rest.changes = rest.done = True
        return [rest] if rest.orders else []

    # ---- keeping -----------------------------------------------------------------------------------------------------
    def keep(self, folder: str | None, name: str) -> Request:
        """Ask for a checkpoint; `kept` has to follow."""
        # never over the last one, which is needed until this one is there
        return self.submit([("keep", (folder, f"{name}-{self.spec.first}-{self._files % 2}.batch"))])

    def kept(self, request: Request, packet: Any, in_folder: bool) -> None:
        """Take over the checkpoint that a request gave, and forget what was asked before it."""
        # a copy that lies where this process is: the worker's own goes with its node
        self._base = packet if in_folder else self.ray.put(packet)
        self._files += 1
        self._log = self._log[self._log.index(request) + 1 :]
        self.steps, self.nbytes = 0, sum(other.nbytes for other in (*self._log, self._waiting))

    def undo(self, requests: Sequence[Request], before: int) -> None:
        """Take requests back and all that followed them, but for what was posted by calls before one."""
        self._waiting = self._waiting.posted(before)
        first = next((k for k, own in enumerate(self._log) if not own.done or own in requests), None)
        if first is None:
            return
        self._log[first:] = self._posted(self._log[first], before)
        self._repeat()

    @property
    def requests(self) -> int:
        """How many requests would be asked again."""
        return len(self._log)

    # ---- losing ------------------------------------------------------------------------------------------------------
    def _begin(self) -> Any:
        """The worlds as they were last kept, or as the model starts them, in the actor that is there."""
        if self._base is None:
            return self.actor.do.remote([("make", (Place(0), self.spec))], self._model)
        return self.actor.do.remote([("take", (self.spec, Place(0)))], self._base)

    def _repeat(self) -> None:
        """Let the actor begin anew, and ask again what was asked."""
        self._before = [self._begin()]
        for request in self._log:
            self._send(request)

    def _replace(self, error: Exception) -> None:
        """Start another actor in place of one that was lost."""
        self.losses += 1
        self._deaths += 1
        if self._deaths > ATTEMPTS:
            self._deaths = 0
            raise CallError(
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
