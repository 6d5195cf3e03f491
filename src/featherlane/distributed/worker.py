"""A worker: a Ray actor with some of the worlds, and the data to restore it after a loss.

Requests since the last checkpoint are kept with their inputs.  If a worker is lost, another actor is started, restores
the checkpoint and repeats the requests in order: its worlds reach a bitwise identical state.

The checkpoint, the requests since then and the queued orders determine everything else.  Each changes by one
assignment: an exception at any bytecode leaves a state from which `undo` recovers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from featherlane.distributed.cluster import last_line
from featherlane.distributed.node import NodeWorlds, Order, Place, Report, Spec
from featherlane.distributed.replay import Replay
from featherlane.distributed.request import Piece, Request
from featherlane.distributed.restarts import Restarts
from featherlane.errors import CallError, ModelError

Restart = Callable[[bool], tuple[Any, tuple[int, ...]]]


class Left(NamedTuple):
    """A result that stays on its node.

    Attributes:
        replay: recipe to recompute it after a loss.
    """

    reference: Any
    replay: Replay | None


class Past(NamedTuple):
    """History of a worker.

    Attributes:
        base: reference or name of the last checkpoint; None for the model's initial state.
        number: number of checkpoints so far.
        log: requests since the last checkpoint.
    """

    base: Any
    number: int
    log: list[Request]


class InProcess:
    """A worker without Ray, which executes requests immediately."""

    def __init__(self, spec: Spec, model):
        self.spec, self.worlds, self.losses = spec, NodeWorlds(False), 0
        self.worlds.do([("make", (model, spec))])

    def submit(self, piece: Piece, orders: Sequence[Order], changes: bool = True, stays: bool = False) -> Any:
        return self.worlds.do(orders)

    def post(self, orders: Sequence[Order], call: int) -> int:
        self.worlds.do(orders)
        return 0

    def collect(self, request) -> tuple[Report, Any]:
        report, result = request
        return Report(*report), result

    def answered(self, request) -> None:
        """Does nothing: no request is kept."""


class Worker:
    """Some of the worlds, in another process.

    Args:
        actor: actor with a new `NodeWorlds`, without worlds.
        restart: function that starts a replacement, in the worker's place or anywhere, and returns it with its cores.
        model: reference to the packed model.

    Attributes:
        losses: number of losses of its process.
        steps, nbytes: steps and bytes of inputs since the last checkpoint.
    """

    def __init__(self, ray: Any, actor: Any, restart: Restart, model: Any, spec: Spec):
        self.ray, self.actor, self._restart, self._model, self.spec = ray, actor, restart, model, spec
        self.losses, self.steps, self.nbytes, self._restarts = 0, 0, 0, Restarts()
        self._past = Past(None, 0, [])
        self._waiting = Request()  # queued orders, which the next request sends
        errors = ray.exceptions
        self._lost = (
            errors.RayActorError,
            errors.WorkerCrashedError,
            errors.NodeDiedError,
            errors.ObjectLostError,
            errors.OutOfMemoryError,
        )
        self._is_repeated = True  # whether the actor has received all logged requests
        # answers of which only errors matter: of a starting actor, and of repeated requests
        self._before: list[Any] = [self._begin()]

    # ---- requests ----------------------------------------------------------------------------------------------------
    def submit(self, piece: Piece, orders: Sequence[Order], changes: bool = True, stays: bool = False) -> Request:
        """Sends a request without waiting.

        Args:
            orders: as in `NodeWorlds.do`, with arrays among their arguments.
            changes: whether the orders change persistent state.
            stays: whether the result is returned as a reference.
        """
        request = self._waiting
        already = request.nbytes
        request.piece, request.changes, request.stays = piece, changes, stays
        self._past.log.append(request)  # before sending, so that a sent request can always be undone
        self._waiting = Request()
        request.add(orders, self.ray)
        self.nbytes += request.nbytes - already
        self._send(request)
        return request

    def post(self, orders: Sequence[Order], call: int) -> int:
        """Queues orders of a call for the next request and returns their total number."""
        waiting = self._waiting
        already = waiting.nbytes
        waiting.add(orders, self.ray)
        waiting.calls += [call] * len(orders)
        self.nbytes += waiting.nbytes - already
        return self.nposted

    @property
    def nposted(self) -> int:
        """Returns the number of queued orders."""
        return len(self._waiting.orders)

    @property
    def requests(self) -> int:
        """Returns the number of requests that a restart would repeat."""
        return len(self._past.log)

    def _send(self, request: Request) -> None:
        """Sends a request to the actor; an already answered request is repeated, and its result dropped."""
        if request.is_done:
            self._before.append(self.actor.do.remote([*request.orders, ("nothing", ())], *request.arrays))
        elif request.stays:
            call = self.actor.do.options(num_returns=2)
            request.report, request.result = call.remote(request.orders, *request.arrays)
        else:
            request.report = self.actor.do.remote(request.orders, *request.arrays)

    # ---- answers -----------------------------------------------------------------------------------------------------
    def begun(self) -> None:
        """Waits until its worlds exist.

        Raises:
            ModelError: as `NodeWorlds.order_make`.
            RuntimeError: the worker was lost too often.
        """
        self._got(lambda: None)

    def collect(self, request: Request) -> tuple[Report, Any]:
        """Waits for the answer; a second call returns the same answer.

        Returns:
            The report, and the result, or a `Left` if it may stay.

        Raises:
            ModelError: the result cannot be serialized.
            RuntimeError: the worker was lost too often.
        """

        def get():
            if request.stays:
                return self.ray.get(request.report), request.result
            return self.ray.get(request.report)

        fields, result = self._got(get)
        report = Report(*fields)
        self._restarts.answered()
        if report.error is not None:
            return report, None
        return report, Left(result, self._replay(request)) if request.stays else result

    def answered(self, request: Request) -> None:
        """Drops the answer of a request whose piece is done, and the request if it changed nothing."""
        request.report = request.result = None
        if not request.changes:
            log = self._past.log
            at = log.index(request)
            # orders that were sent with it must be repeated
            log[at : at + 1] = request.posted_alone(request.calls[-1] + 1) if request.calls else []

    def _replay(self, request: Request) -> Replay | None:
        """Returns the recipe to recompute a request's result; None if checkpoints are files, which get overwritten."""
        base, _, log = self._past
        if isinstance(base, str):
            return None
        sent = [(own.orders, own.arrays) for own in log[: log.index(request) + 1]]
        return Replay(self._model, base, self.spec, sent)

    def _got(self, get: Callable[[], Any]) -> Any:
        """Returns a result, from a replacement if this actor is lost."""
        while True:
            try:
                for fields, _ in self.ray.get(self._before) if self._before else ():
                    error = Report(*fields).error
                    if error is not None:
                        raise error
                self._before = []
                return get()
            except self._lost as error:
                self._replace(error)
            except self.ray.exceptions.RayTaskError as error:
                # errors of worlds are part of the report
                raise ModelError(
                    f"worker whose first world is {self.spec.first}: its arguments or results cannot be "
                    f"pickled ({last_line(error)}); allowed are objects that can be pickled"
                ) from None

    # ---- checkpoints -------------------------------------------------------------------------------------------------
    def keep(self, piece: Piece, folder: str | None, name: str) -> Request:
        """Requests a checkpoint; `kept` must follow."""
        # not over the last checkpoint, which is needed until this one exists
        return self.submit(piece, [("keep", (folder, f"{name}-{self.spec.first}-{self._past.number % 2}.batch"))])

    def kept(self, request: Request, packet: Any, in_folder: bool) -> None:
        """Stores the checkpoint of a request, and discards the requests before it."""
        past = self._past
        # a copy in this process's store, because the worker's copy is lost with its node
        base = packet if in_folder else self.ray.put(packet)
        self._past = Past(base, past.number + 1, past.log[past.log.index(request) + 1 :])
        self.steps, self.nbytes = 0, sum(other.nbytes for other in (*self._past.log, self._waiting))

    def undo(self, call: int) -> None:
        """Undoes unanswered requests and queued orders of a call and later ones; repeatable after an interrupt."""
        past = self._past
        for request in past.log:
            if request.is_done:
                request.report = request.result = None  # an interrupt came before `answered`
        at = next((k for k, request in enumerate(past.log) if request.is_from(call)), None)
        if at is None:
            self._waiting = self._waiting.posted(call)
        else:
            self._is_repeated = False
            self._waiting = Request()  # later than the first undone request
            self._past = past._replace(log=past.log[:at] + past.log[at].posted_alone(call))
        if not self._is_repeated:
            self._repeat()

    # ---- losses ------------------------------------------------------------------------------------------------------
    def _begin(self) -> Any:
        """Creates the worlds in the present actor, from the last checkpoint or the model's initial state."""
        if self._past.base is None:
            return self.actor.do.remote([("make", (Place(0), self.spec))], self._model)
        return self.actor.do.remote([("take", (self.spec, Place(0)))], self._past.base)

    def _repeat(self) -> None:
        """Restarts the actor's worlds and repeats the requests."""
        self._is_repeated = False
        self._before = [self._begin()]
        for request in self._past.log:
            self._send(request)
        self._is_repeated = True

    def _replace(self, error: Exception) -> None:
        """Starts a replacement for a lost actor, repeatedly if it is lost while it starts."""
        self._is_repeated = False
        while True:
            self._wait_after(error)
            self.ray.kill(self.actor, no_restart=True)
            try:
                actor, cores = self._restart(self._restarts.is_second_half)
                break
            except self.ray.exceptions.RayError as another:
                error = another
        self.spec, self.actor = self.spec._replace(cores=cores), actor
        self._repeat()

    def _wait_after(self, error: Exception) -> None:
        """Counts a loss, and waits until a restart is due."""
        self.losses += 1
        pause = self._restarts.lost()
        if pause is None:
            raise CallError(
                f"worker whose first world is {self.spec.first}: it was lost {self._restarts.limit}, "
                f"the last time: {_reason(error)}; its worlds keep their state from before this call"
            ) from None
        time.sleep(pause)

    def end(self) -> None:
        """Ends the actor's process."""
        if self.ray.is_initialized():
            self.ray.kill(self.actor, no_restart=True)


def _reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:2])
