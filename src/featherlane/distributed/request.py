"""Requests to workers, and the pieces of calls that they belong to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from featherlane.distributed.node import Order, Place
from featherlane.distributed.spread import Part

LARGE = 90_000  # bytes; smaller arrays travel within the request, which Ray lets them up to 100 KB
Take = Callable[[Part, Any], None]


class Size(NamedTuple):
    """Of a piece: steps, worlds that take them, and bytes of inputs and recordings of a worker."""

    nstep: int = 0
    number: int = 0
    nbytes: int = 0


class Piece:
    """Orders that some workers get at once.

    Attributes:
        call: number of the call that they are from.
        size: how large it is.
        take: what to do with the result of each worker.
        requests: to each worker, and its part of the worlds.
        is_done: have all workers answered without an error?  One assignment completes the piece in all of them.
    """

    __slots__ = ("call", "is_done", "requests", "size", "take")

    def __init__(self, call: int, size: Size, take: Take | None = None):
        self.call, self.size, self.take, self.is_done = call, size, take, False
        self.requests: list[tuple[Part, Any]] = []


class Checkpoints(Piece):
    """A piece that makes workers keep checkpoints of their worlds."""

    __slots__ = ()


class Request:
    """Orders that were sent to a worker together.

    Attributes:
        piece: to which it belongs; None while its orders wait.
        orders, arrays: as of `NodeWorlds.do`; large arrays are references.
        calls: of the first orders, which were posted: the numbers of the calls that did.
        changes: has it to be repeated when the worker is lost?
        stays: may its result stay where it is?
        nbytes: of the arrays.
        report, result: references, until the piece is done.
    """

    __slots__ = ("arrays", "calls", "changes", "nbytes", "orders", "piece", "report", "result", "stays")

    def __init__(self, piece: Piece | None = None):
        self.piece = piece
        self.orders: list[Order] = []
        self.arrays: list = []
        self.calls: list[int] = []
        self.nbytes, self.changes, self.stays = 0, False, False
        self.report: Any = None
        self.result: Any = None

    @property
    def is_done(self) -> bool:
        """Was it answered, as were the other requests of its piece?"""
        return self.piece is not None and self.piece.is_done

    def is_from(self, call: int) -> bool:
        """Is it unanswered, and from a call of this number or a later one?"""
        return self.piece is not None and not self.piece.is_done and self.piece.call >= call

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
        """Only the orders that were posted by calls before one; of no piece yet."""
        rest = Request()
        rest.calls = [call for call in self.calls if call < before]
        rest.orders = self.orders[: len(rest.calls)]
        places = [a.index for _, arguments in rest.orders for a in arguments if isinstance(a, Place)]
        rest.arrays = self.arrays[: max(places, default=-1) + 1]
        rest.nbytes = self.nbytes if places else 0  # at most
        return rest

    def posted_alone(self, before: int) -> list[Request]:
        """The orders that were posted by calls before one, as a request that was answered; none if there are none."""
        rest = self.posted(before)
        rest.changes, rest.piece = True, Piece(0, Size())
        rest.piece.is_done = True
        return [rest] if rest.orders else []
