"""Worlds of one node, as a separate batch, and the requests that it executes.

A request is a list of orders, each a name and arguments; it returns a report and results.  The order `x` calls
`NodeWorlds.order_x`, or the batch's method `x`.
The same class runs in the user's process if there is only one node.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from featherlane.distributed.machine import Machine, free_memory, this_machine
from featherlane.distributed.serialization import serialize, unpacked
from featherlane.errors import ModelError
from featherlane.lanes import Kernel
from featherlane.model.model import Model, peek
from featherlane.model.status import CONTACTS_FULL, NON_FINITE, ROWS_FULL
from featherlane.simulation.batch.arrays import chosen_worlds
from featherlane.simulation.batch.batch import Batch
from featherlane.simulation.batch.reduction import reduced
from featherlane.simulation.batch.runner import NAMED
from featherlane.simulation.batch.sensing import SENSED
from featherlane.simulation.tile.workspace import Workspace

Order = tuple[str, tuple[Any, ...]]


class Place(NamedTuple):
    """Placeholder for an array that is sent along with a request."""

    index: int


NOBODY = (), 0  # worlds of a report


class Report(NamedTuple):
    """Report of a request.

    Attributes:
        seconds: duration [s].
        bad: worlds that failed since their last reset: numbers on this node of the first ones, and how many there are.
        full: likewise, those that lost contacts or rows.
        error: error that stopped the request; None if it was completed.
    """

    seconds: float
    bad: tuple[tuple[int, ...], int] = NOBODY
    full: tuple[tuple[int, ...], int] = NOBODY
    error: Exception | None = None


class Spec(NamedTuple):
    """Settings of the worlds of a node.

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


class NodeWorlds:
    """The worlds of a distributed batch on one node.

    Args:
        is_apart: whether they are in another process than the caller.
    """

    def __init__(self, is_apart: bool = True):
        self.is_apart = is_apart
        self.batch: Any = None
        self.spec: Any = None
        self._kernels: dict[str, Kernel] = {}

    # ---- as an actor -------------------------------------------------------------------------------------------------
    def machine(self) -> tuple[Machine, int]:
        """Returns the machine, and the number of this process."""
        return this_machine(), os.getpid()

    def sees(self, file: str) -> bool:
        """Returns whether a file exists in a folder that is writable."""
        return Path(file).exists() and os.access(Path(file).parent, os.W_OK)

    def do(self, orders: Sequence[Order], *arrays: np.ndarray) -> tuple[tuple, Any]:
        """Executes orders.

        Args:
            orders: orders, executed in sequence.
            arrays: arrays for the `Place`s in the orders' arguments.

        Returns:
            A `Report` as a plain tuple, which is faster to send, and the result of the last order.
        """
        start, result = time.perf_counter(), None
        try:
            for name, arguments in orders:
                given = (arrays[a.index] if isinstance(a, Place) else a for a in arguments)
                called = getattr(self, f"order_{name}", None) or getattr(self.batch, name)
                result = called(*given)
        except Exception as error:
            if not self.is_apart:
                raise
            return (time.perf_counter() - start, NOBODY, NOBODY, _portable(error)), None
        return (
            time.perf_counter() - start,
            self._counted([NON_FINITE]),
            self._counted([CONTACTS_FULL, ROWS_FULL]),
        ), result

    def _counted(self, entries: list[int]) -> tuple[tuple[int, ...], int]:
        """Returns the first worlds that have counted one of these conditions since their reset, and their number."""
        if self.batch is None:
            return NOBODY
        found = np.flatnonzero(self.batch.rows["warning"][:, entries].any(axis=1))
        return tuple(found[:NAMED].tolist()), len(found)

    # ---- making ------------------------------------------------------------------------------------------------------
    def order_make(self, model: bytes | Model, spec: Spec) -> None:
        """Creates the worlds in the model's initial state, in memory close to the cores that step them."""
        made = unpacked("model", model) if isinstance(model, bytes) else model
        self._settle(spec)
        self._check_memory(made)
        self.batch = Batch(
            made,
            spec.nworld,
            spec.nthread,
            dtype=spec.dtype,
            given_contacts=spec.given_contacts,
            record_failures=spec.record_failures,
        )
        self.batch.mute()  # the user's process warns for all nodes

    def _settle(self, spec: Spec) -> None:
        """Binds the process to the given cores."""
        self.spec = spec
        if spec.cores and hasattr(os, "sched_setaffinity"):
            # threads inherit the binding, and memory is placed where it is first written
            with contextlib.suppress(OSError):  # the cores were removed meanwhile
                os.sched_setaffinity(0, spec.cores)

    def _check_memory(self, model: Model) -> None:
        check_memory(this_machine().name, self.spec.nworld, memory_of(model, self.spec), free_memory())

    # ---- orders ------------------------------------------------------------------------------------------------------
    def order_model_reals(self, reals: np.ndarray) -> None:
        """Sets edited real fields of the model."""
        self.batch.model.take_reals(reals)

    def order_model(self, model: bytes) -> None:
        """Replaces the model after other edits."""
        self.batch.model.take_over(unpacked("model", model))

    def order_set(self, name: str, rows: np.ndarray, ids: np.ndarray | None) -> None:
        """Sets state fields."""
        target = getattr(self.batch, name)
        target[... if ids is None else ids] = rows

    def order_given(self, names: Sequence[str], ids: np.ndarray | None, *rows: np.ndarray) -> None:
        """Sets complete given contacts."""
        for name, own in zip(names, rows, strict=True):
            self.batch.rows[name][... if ids is None else ids] = own

    def order_expand(self, name: str, rows: np.ndarray | None) -> None:
        """Makes a field of the model per-world, and sets its rows if given."""
        target = self.batch.expand(name)
        if rows is not None:
            target[...] = rows

    def order_step(self, nstep: int, ids: np.ndarray | None, stage: str | None = None) -> None:
        """Advances worlds."""
        self.batch.step(nstep, ids=ids, stage=stage)

    def order_reset(self, ids: np.ndarray | None, keyframe: np.ndarray, forward: bool) -> None:
        """Resets worlds."""
        self.batch.reset(ids, keyframe=keyframe, forward=forward)

    def order_rollout(self, nstep: int, control, record, ids, reduction=None, out=None) -> dict[str, Any]:
        """Runs a rollout; with a reduction, returns the reduced recording."""
        if isinstance(control, bytes):
            control = self._kernel(control)
        result = self.batch.rollout(nstep, control, record, ids=ids, out=out)
        if reduction is None:
            return result
        worlds = self.spec.first + (np.arange(self.batch.nworld) if ids is None else ids)
        return {name: reduced(reduction, rows, worlds) for name, rows in result.items()}

    def _kernel(self, packet: bytes) -> Kernel:
        """Returns a control kernel, the same object for each copy of it."""
        key = hashlib.sha256(packet).hexdigest()
        if key not in self._kernels:
            self._kernels[key] = unpacked("control", packet)
        return self._kernels[key]

    def order_get(self, names: Sequence[str], ids) -> dict[str, np.ndarray]:
        """Returns copies of fields."""
        return {name: np.array(getattr(self.batch, name)[... if ids is None else ids]) for name in names}

    def order_expanded(self, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Returns per-world fields of the model."""
        own, found = self.batch.expanded_fields, {}
        for name in names:
            value = peek(self.batch.model, name)
            rows = own.get(name, np.broadcast_to(value, (self.batch.nworld, *value.shape)))
            found[name] = np.array(rows, self.batch.dtype)
        return found

    def order_reduce(self, reduction, name: str, ids) -> Any:
        """Returns the reduction of a field."""
        rows = getattr(self.batch, name)[... if ids is None else ids]
        worlds = self.spec.first + (np.arange(self.batch.nworld) if ids is None else ids)
        return reduced(reduction, rows, worlds)

    def order_sensed(self, kind: str, request: Any, ids) -> Any:
        """Returns images or the results of a scan of worlds."""
        return SENSED[kind](self.batch, request, chosen_worlds(ids, self.batch.nworld))

    def order_call(self, function: bytes | Callable) -> Any:
        """Returns a function's result for this batch."""
        called = unpacked("function", function) if isinstance(function, bytes) else function
        return called(self.batch)

    # ---- keeping -----------------------------------------------------------------------------------------------------
    def order_keep(self, folder: str | None, name: str) -> bytes | str:
        """Returns a checkpoint, as bytes or as a file that all nodes can read."""
        packet = serialize("batch", self.batch)
        if folder is None:
            return packet
        path, part = Path(folder) / name, Path(folder) / f".{name}.{os.getpid()}"
        part.write_bytes(packet)
        part.replace(path)
        return str(path)

    def order_take(self, spec: Spec, packet: bytes | str) -> None:
        """Restores a checkpoint of `order_keep`."""
        self._settle(spec)
        self.batch = unpacked("batch", Path(packet).read_bytes() if isinstance(packet, str) else packet)

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

    def order_restore(self, names: Sequence[str], *arrays: np.ndarray) -> None:
        self.batch.restore(dict(zip(names, arrays, strict=True)))

    def order_nothing(self) -> None:
        """Does nothing; for a request without a result."""


def memory_of(model: Model, spec: Spec) -> int:
    """Estimates the memory of worlds on a node [bytes]: rows of each world, and a tile for each thread."""
    one = Batch(model, 1, 1, dtype=spec.dtype, given_contacts=spec.given_contacts)
    memory = Workspace.sizes_of(model, one.ngiven, one.width)["nmemory"] * 8
    rows = sum(a.nbytes for a in one.rows.values()) + memory
    return spec.nworld * (rows + spec.record_failures * rows // 2)


def check_memory(machine: str, nworld: int, need: int, free: int) -> None:
    """Raises an error if a machine has too little memory for the worlds.

    Raises:
        ModelError: with the required and the free memory.
    """
    if need > free:
        raise ModelError(
            f"nworld: {nworld} worlds on {machine} need {need / 2**30:.3g} GiB, but "
            f"{free / 2**30:.3g} GiB are free; use fewer worlds or more nodes"
        )


def _portable(error: Exception) -> Exception:
    """Returns the error itself if it can be pickled; otherwise one with its text."""
    try:
        serialize("error", error)
        error.__traceback__ = None
        return error
    except ModelError:
        return RuntimeError(f"{type(error).__name__}: {error}")
