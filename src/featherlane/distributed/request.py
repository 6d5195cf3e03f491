"""Requests to workers, and the pieces of calls that contain them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from featherlane.distributed.node import Order, Place
from featherlane.distributed.world_assignment import Part

LARGE = 90_000  # bytes; smaller arrays are sent within the request, up to Ray's limit of 100 KB
Take = Callable[[Part, Any], None]


class Size(NamedTuple):
    """Size of a piece: steps, worlds that take them, and a worker's bytes of inputs and recordings."""

    nstep: int = 0
    number: int = 0
    nbytes: int = 0


class Piece:
    """Orders that are sent to several workers at once.

    Attributes:
        call: number of the call.
        size: size of the piece.
        take: function that receives each worker's result.
        requests: the request of each worker, and its part of the worlds.
        is_done: whether all workers have answered without an error; one assignment completes the piece for all.
    """

    __slots__ = ("call", "is_done", "requests", "size", "take")

    def __init__(self, call: int, size: Size, take: Take | None = None):
        self.call, self.size, self.take, self.is_done = call, size, take, False
        self.requests: list[tuple[Part, Any]] = []


class Checkpoints(Piece):
    """A piece in which workers make checkpoints of their worlds."""

    __slots__ = ()


class Request:
    """Orders that were sent to a worker together.

    Attributes:
        piece: its piece; None while its orders wait.
        orders, arrays: as in `NodeWorlds.do`; large arrays are references.
        calls: numbers of the calls that queued the first orders.
        changes: whether it must be repeated if the worker is lost.
        stays: whether its result may stay on the node.
        nbytes: size of the arrays.
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
        """Returns whether all requests of its piece have been answered."""
        return self.piece is not None and self.piece.is_done

    def is_from(self, call: int) -> bool:
        """Returns whether it is unanswered, and from this call or a later one."""
        return self.piece is not None and not self.piece.is_done and self.piece.call >= call

    def add(self, orders: Sequence[Order], ray: Any) -> None:
        """Adds orders, whose arguments can contain arrays."""
        for name, arguments in orders:
            given = []
            for a in arguments:
                if isinstance(a, np.ndarray):
                    self.nbytes += a.nbytes
                    # copies, because the caller may overwrite an array before a repetition
                    self.arrays.append(ray.put(a) if a.nbytes > LARGE else a.copy())
                    a = Place(len(self.arrays) - 1)
                given.append(a)
            self.orders.append((name, tuple(given)))

    def posted(self, before: int) -> Request:
        """Returns only the orders that were queued by calls before one, without a piece."""
        rest = Request()
        rest.calls = [call for call in self.calls if call < before]
        rest.orders = self.orders[: len(rest.calls)]
        places = [a.index for _, arguments in rest.orders for a in arguments if isinstance(a, Place)]
        rest.arrays = self.arrays[: max(places, default=-1) + 1]
        rest.nbytes = self.nbytes if places else 0  # at most
        return rest

    def posted_alone(self, before: int) -> list[Request]:
        """Returns a list with an answered request of the orders queued by calls before one; empty without any."""
        rest = self.posted(before)
        rest.changes, rest.piece = True, Piece(0, Size())
        rest.piece.is_done = True
        return [rest] if rest.orders else []
