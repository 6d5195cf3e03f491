"""What lives on a node: some of the worlds, as a batch of their own, and what is asked of them.

A request is a list of orders, each a name and arguments; it gives a report and results.  The order `x` calls
`NodeWorlds.order_x`, or the batch's method `x`.
The same class works in the process of the user, where there is one node.
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
from featherlane.distributed.ship import packed, unpacked
from featherlane.errors import ModelError
from featherlane.lanes import Kernel
from featherlane.model.model import Model
from featherlane.model.status import BAD_NUMBER
from featherlane.simulation.batch.batch import Batch
from featherlane.simulation.batch.reduction import reduced
from featherlane.simulation.batch.runner import NAMED
from featherlane.simulation.tile.workspace import Workspace

Order = tuple[str, tuple[Any, ...]]


class Place(NamedTuple):
    """Where an array stands among those that travel beside a request."""

    index: int


class Report(NamedTuple):
    """What every request gives back.

    Attributes:
        seconds: how long it took.
        bad: the first worlds that had bad numbers since their last reset, by their numbers here.
        nbad: how many such worlds there are.
        error: what went wrong; the request was not done, or not to its end.
    """

    seconds: float
    bad: tuple[int, ...] = ()
    nbad: int = 0
    error: Exception | None = None


class Spec(NamedTuple):
    """What worlds are made of.

    Attributes:
        nworld, nthread, dtype, given_contacts, record_bad: as of `featherlane.Batch`.
        first: the number of the first world among all.
        cores: those to run on; empty: all that the process may use.
    """

    nworld: int
    nthread: int
    dtype: str
    given_contacts: int
    record_bad: int
    first: int = 0
    cores: tuple[int, ...] = ()


class NodeWorlds:
    """Some worlds of a batch that is spread over nodes.

    Args:
        is_apart: are they in another process than who asks?
    """

    def __init__(self, is_apart: bool = True):
        self.is_apart = is_apart
        self.batch: Any = None
        self.spec: Any = None
        self._kernels: dict[str, Kernel] = {}

    # ---- as an actor -------------------------------------------------------------------------------------------------
    def machine(self) -> tuple[Machine, int]:
        """The machine, and the number of this process."""
        return this_machine(), os.getpid()

    def sees(self, file: str) -> bool:
        """Is there such a file, in a folder that can be written to?"""
        return Path(file).exists() and os.access(Path(file).parent, os.W_OK)

    def do(self, orders: Sequence[Order], *arrays: np.ndarray) -> tuple[tuple, Any]:
        """Carry out orders.

        Args:
            orders: one after the other.
            arrays: those that `Place`s in the orders' arguments stand for.

        Returns:
            A `Report` as a plain tuple, which is quicker to send, and what the last order gave.
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
            return (time.perf_counter() - start, (), 0, _portable(error)), None
        return (time.perf_counter() - start, *self._bad()), result

    def _bad(self) -> tuple[tuple[int, ...], int]:
        if self.batch is None:
            return (), 0
        bad = np.flatnonzero(self.batch.rows["warning"][:, BAD_NUMBER])
        return tuple(bad[:NAMED].tolist()), len(bad)

    # ---- making ------------------------------------------------------------------------------------------------------
    def order_make(self, model: bytes | Model, spec: Spec) -> None:
        """Worlds as the model starts them, in memory near the cores that step them."""
        made = unpacked("model", model) if isinstance(model, bytes) else model
        self._settle(spec)
        self._check_memory(made)
        self.batch = Batch(made, spec.nworld, spec.nthread, spec.dtype, spec.given_contacts, spec.record_bad)
        self.batch.mute()  # the process of the user warns, for all nodes

    def _settle(self, spec: Spec) -> None:
        """Run on the cores that are named."""
        self.spec = spec
        if spec.cores and hasattr(os, "sched_setaffinity"):
            # threads that are started from here on inherit it, and memory is where it is first written to
            with contextlib.suppress(OSError):  # cores that were taken away meanwhile
                os.sched_setaffinity(0, spec.cores)

    def _check_memory(self, model: Model) -> None:
        check_room(this_machine().name, self.spec.nworld, memory_of(model, self.spec), free_memory())

    # ---- what may be ordered -----------------------------------------------------------------------------------------
    def order_model_reals(self, reals: np.ndarray) -> None:
        """Real fields of the model, edited."""
        self.batch.model.take_reals(reals)

    def order_model(self, model: bytes) -> None:
        """The model, edited in other ways."""
        self.batch.model.take_over(unpacked("model", model))

    def order_set(self, name: str, rows: np.ndarray, ids: np.ndarray | None) -> None:
        """State fields."""
        target = getattr(self.batch, name)
        target[... if ids is None else ids] = rows

    def order_given(self, names: Sequence[str], ids: np.ndarray | None, *rows: np.ndarray) -> None:
        """Given contacts, complete."""
        for name, own in zip(names, rows, strict=True):
            self.batch.rows[name][... if ids is None else ids] = own

    def order_expand(self, name: str, rows: np.ndarray | None) -> None:
        """A field of the model for each world; rows of it, where they are given."""
        target = self.batch.expand(name)
        if rows is not None:
            target[...] = rows

    def order_rollout(self, nstep: int, control, record, ids, reduction=None, out=None) -> dict[str, Any]:
        """A rollout; with a reduction, what it leaves of the recording."""
        if isinstance(control, bytes):
            control = self._kernel(control)
        result = self.batch.rollout(nstep, control, record, ids, out)
        if reduction is None:
            return result
        worlds = self.spec.first + (np.arange(self.batch.nworld) if ids is None else ids)
        return {name: reduced(reduction, rows, worlds) for name, rows in result.items()}

    def _kernel(self, packet: bytes) -> Kernel:
        """A control kernel, the same object each time it is shipped."""
        key = hashlib.sha256(packet).hexdigest()
        if key not in self._kernels:
            self._kernels[key] = unpacked("control", packet)
        return self._kernels[key]

    def order_get(self, names: Sequence[str], ids) -> dict[str, np.ndarray]:
        """Fields, copied."""
        return {name: np.array(getattr(self.batch, name)[... if ids is None else ids]) for name in names}

    def order_expanded(self, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Fields of the model, with a row for each world."""
        model, own = self.batch.model.__dict__, self.batch.expanded_fields
        rows = {
            name: own.get(name, np.broadcast_to(model[name], (self.batch.nworld, *model[name].shape))) for name in names
        }
        return {name: np.array(values, self.batch.dtype) for name, values in rows.items()}

    def order_reduce(self, reduction, name: str, ids) -> Any:
        """What a reduction leaves of a field."""
        rows = getattr(self.batch, name)[... if ids is None else ids]
        worlds = self.spec.first + (np.arange(self.batch.nworld) if ids is None else ids)
        return reduced(reduction, rows, worlds)

    def order_call(self, function: bytes | Callable) -> Any:
        """What a function gives for this batch."""
        called = unpacked("function", function) if isinstance(function, bytes) else function
        return called(self.batch)

    # ---- keeping -----------------------------------------------------------------------------------------------------
    def order_keep(self, folder: str | None, name: str) -> bytes | str:
        """All that lasts, as bytes or as a file that all nodes see."""
        packet = packed("batch", self.batch)
        if folder is None:
            return packet
        path, part = Path(folder) / name, Path(folder) / f".{name}.{os.getpid()}"
        part.write_bytes(packet)
        part.replace(path)
        return str(path)

    def order_take(self, spec: Spec, packet: bytes | str) -> None:
        """What `order_keep` kept."""
        self._settle(spec)
        self.batch = unpacked("batch", Path(packet).read_bytes() if isinstance(packet, str) else packet)

    def order_kept_names(self) -> list[str]:
        """Names of what `checkpoint` of the batch holds."""
        return [*self.batch.rows, *(f"model.{name}" for name in self.batch.expanded_fields)]

    def order_checkpoint(self, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Fields by these names, made where nobody here has asked for them."""
        for name in names:
            if not name.startswith("model."):
                getattr(self.batch, name, None)
        kept = self.batch.checkpoint()
        return {name: kept[name] for name in names}

    def order_restore(self, names: Sequence[str], *arrays: np.ndarray) -> None:
        self.batch.restore(dict(zip(names, arrays, strict=True)))

    def order_nothing(self) -> None:
        """For a request whose result nobody waits for."""


def memory_of(model: Model, spec: Spec) -> int:
    """Bytes that worlds need on a node, about: rows of each world, and a tile for each thread."""
    one = Batch(model, 1, 1, spec.dtype, spec.given_contacts)
    memory = Workspace.sizes_of(model, one.ngiven, one.width)["nmemory"] * 8
    rows = sum(a.nbytes for a in one.rows.values()) + memory
    return spec.nworld * (rows + spec.record_bad * rows // 2)


def check_room(machine: str, nworld: int, need: int, free: int) -> None:
    """Refuse worlds that a machine has no memory for.

    Raises:
        ModelError: with bytes that they need, and that are free.
    """
    if need > free:
        raise ModelError(
            f"nworld: {nworld} worlds on {machine} need {need / 2**30:.3g} GiB, of which {free / 2**30:.3g} are free; "
            "allowed are fewer worlds, or more nodes"
        )


def _portable(error: Exception) -> Exception:
    """The error itself, where it can travel; else one with its text."""
    try:
        packed("error", error)
        error.__traceback__ = None
        return error
    except ModelError:
        return RuntimeError(f"{type(error).__name__}: {error}")
