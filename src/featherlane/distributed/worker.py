"""The worlds of one worker: a batch in a separate process, and the orders that it executes.

A driver (the process of the user) sends each worker an order: a name and arguments.  The order `x` calls
`WorkerWorlds.order_x`, or the batch's method `x`.  Without Ray, the driver itself has one object of this class.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from featherlane import Batch, Model
from featherlane.distributed.machine import Machine, this_machine
from featherlane.distributed.serialization import serialize, unpacked
from featherlane.errors import ModelError, WorkerLostError
from featherlane.lanes import Kernel

NAMED = 8  # worlds that an answer lists
NOBODY = (), 0  # worlds of an answer


class Settings(NamedTuple):
    """Settings of a worker.

    Attributes:
        nworld, nthread, dtype, given_contacts, record_failures: as in `featherlane.Batch`.
        first: global number of the first world.
        cores: cores to run on; empty for all that the process may use.
    """

    nworld: int
    nthread: int
    dtype: str
    given_contacts: int
    record_failures: int
    first: int = 0
    cores: tuple[int, ...] = ()


class Answer(NamedTuple):
    """Answer to an order.

    Attributes:
        seconds: duration [s].
        result: result of the order.
        error: error that stopped it; None if it was completed.
        bad: worlds that failed since their last reset: the first ones, by number in the worker, and how many there are.
        full: likewise, those that lost contacts or rows.
    """

    seconds: float
    result: Any = None
    error: Exception | None = None
    bad: tuple[tuple[int, ...], int] = NOBODY
    full: tuple[tuple[int, ...], int] = NOBODY


class WorkerWorlds:
    """The worlds of a worker; it has none before the order `start`, which a process that Ray restarted lacks.

    Args:
        is_apart: whether they are in another process than the driver.
    """

    def __init__(self, is_apart: bool = True):
        self.is_apart = is_apart
        self.batch: Any = None
        self.settings: Any = None
        self._kernels: dict[str, Kernel] = {}

    def machine(self) -> tuple[Machine, bool]:
        """Returns the machine, and whether there are worlds."""
        return this_machine(), self.batch is not None

    def do(self, order: str, **given: Any) -> Answer:
        """Executes an order; in another process, an error is part of the answer."""
        start = time.perf_counter()
        try:
            if self.batch is None and order != "start":
                raise WorkerLostError("its process was restarted")
            called = getattr(self, f"order_{order}", None) or getattr(self.batch, order)
            result = called(**given)
        except Exception as error:
            if not self.is_apart:
                raise
            return Answer(time.perf_counter() - start, error=_portable(error))
        bad, full = self._counted("non_finite"), self._counted("contacts_full", "rows_full")
        return Answer(time.perf_counter() - start, result, None, bad, full)

    def _counted(self, *causes: str) -> tuple[tuple[int, ...], int]:
        """Returns the first worlds that have counted one of these causes since their reset, and their number."""
        found = np.flatnonzero(self.batch.count_of(*causes))
        return tuple(found[:NAMED].tolist()), len(found)

    def _worlds(self, ids: np.ndarray | None) -> np.ndarray:
        """Returns global world numbers."""
        return self.settings.first + (np.arange(self.batch.nworld) if ids is None else ids)

    # ---- orders ------------------------------------------------------------------------------------------------------
    def order_start(self, model: bytes | Model, settings: Settings) -> None:
        """Creates the worlds in the model's initial state, in memory close to the cores that step them."""
        self.settings = settings
        if settings.cores and hasattr(os, "sched_setaffinity"):
            # threads inherit the binding, and memory is placed where it is first written
            with contextlib.suppress(OSError):  # the cores were removed meanwhile
                os.sched_setaffinity(0, settings.cores)
        made = unpacked("model", model) if isinstance(model, bytes) else model
        self.batch = Batch(
            made,
            settings.nworld,
            settings.nthread,
            dtype=settings.dtype,
            given_contacts=settings.given_contacts,
            record_failures=settings.record_failures,
        )
        self.batch.mute()  # the driver warns for all workers

    def order_model(self, model: bytes) -> None:
        """Takes over an edited model."""
        self.batch.model.take_over(unpacked("model", model))

    def order_expand(self, name: str, rows: np.ndarray) -> None:
        """Sets the rows of a per-world field of the model."""
        self.batch.expand(name)[...] = rows

    def order_set_const(
        self, ids: np.ndarray, names: Sequence[str], variant: Mapping[str, Any] | None = None
    ) -> dict[str, np.ndarray]:
        """Recomputes dependent fields of the model, or sets a variant; returns per-world fields."""
        if variant is None:
            self.batch.set_const(ids)
        else:
            self.batch.set_variant(**variant, ids=ids)
        return {name: np.array(self.batch.expand(name)) for name in names}

    def order_get(self, name: str, ids: np.ndarray | None) -> np.ndarray:
        return np.array(getattr(self.batch, name)[... if ids is None else ids])

    def order_bind(self, name: str) -> np.ndarray:
        return np.array(self.batch.bind(name))

    def order_set(self, name: str, rows: np.ndarray, ids: np.ndarray | None) -> None:
        """Sets a state field."""
        getattr(self.batch, name)[... if ids is None else ids] = rows

    def order_given(self, rows: dict[str, np.ndarray], ids: np.ndarray | None) -> None:
        """Sets given contacts, which the driver has completed."""
        for name, own in rows.items():
            self.batch.rows[name][... if ids is None else ids] = own

    def order_rollout(self, nstep: int, control, record, ids, reduction=None) -> dict[str, Any]:
        """Runs a rollout; with a reduction, returns the reduced recording."""
        if isinstance(control, bytes):
            key = hashlib.sha256(control).hexdigest()
            # the same kernel for each copy of it: it is compiled once
            control = self._kernels.setdefault(key, self._kernels.get(key) or unpacked("control", control))
        result = self.batch.rollout(nstep, control, record, ids=ids)
        if reduction is None:
            return result
        return {name: reduction.partial(rows, self._worlds(ids)) for name, rows in result.items()}

    def order_reduce(self, reduction, name: str, ids: np.ndarray | None) -> Any:
        return reduction.partial(self.order_get(name, ids), self._worlds(ids))

    def order_sensed(self, kind: str, request: Any, ids: np.ndarray | None) -> Any:
        """Returns images or the results of a scan of worlds."""
        return self.batch.sense(kind, request, ids=ids)

    def order_call(self, function: bytes | Callable) -> Any:
        called = unpacked("function", function) if isinstance(function, bytes) else function
        return called(self.batch)

    def order_kept_names(self) -> list[str]:
        """Returns the names of the arrays in the batch's checkpoint."""
        return [*self.batch.rows, *(f"model.{name}" for name in self.batch.expanded_fields)]

    def order_checkpoint(self, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Returns these arrays of a checkpoint; creates fields that are not in use here."""
        for name in names:
            if not name.startswith("model."):
                getattr(self.batch, name, None)
        kept = self.batch.checkpoint()
        return {name: kept[name] for name in names}


def _portable(error: Exception) -> Exception:
    """Returns the error itself if it can be pickled; otherwise one with its text."""
    try:
        serialize("error", error)
        error.__traceback__ = None
        return error
    except ModelError:
        return RuntimeError(f"{type(error).__name__}: {error}")
