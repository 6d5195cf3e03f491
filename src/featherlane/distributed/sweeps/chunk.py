"""Computes a chunk of samples of a sweep as worlds of batches: creates, simulates and reduces them.

Results of a sample do not depend on the other samples: worlds are bitwise independent, and each sample's recordings
are reduced separately, as arrays of the same shape and memory order.
"""

from __future__ import annotations

import time
import warnings

import numpy as np

from featherlane import Batch, Model
from featherlane.distributed.sweeps.plan import Plan
from featherlane.distributed.sweeps.reduction import numbers_of
from featherlane.errors import CapacityWarning, ModelError, NonFiniteWarning
from featherlane.extension import world_shape
from featherlane.lanes import Kernel

CHUNK_BYTES = 64 << 20  # largest size of recordings and controls of a chunk [bytes]
SECONDS = 20.0  # longest duration of a chunk: limits the loss at Ctrl-C and the interval of progress updates
LARGEST = 1024  # most samples in a chunk; more are not faster
KEPT = 4  # batches that are kept for the next chunk; there may be many variants
FIRST = 64  # samples of the first chunk, which determines the size of the next
GROWTH = 8  # largest ratio of samples to the chunk before

Columns = dict[str, np.ndarray]


def run_chunk(plan: Plan, samples: np.ndarray, nthread: int = 0) -> Columns:
    """Computes all columns of some samples.

    Args:
        plan: the sweep.
        samples: (n,) numbers of the samples.
        nthread: number of threads; 0 for one per core.

    Returns:
        name -> (n, ...): `parameter:PATH`, `result:NAME`, `status:CAUSE`.

    Raises:
        ModelError: a reduction returned a non-number, or as `Batch.rollout`.
    """
    values = plan.values(samples)
    known = plan.names
    numbers: list[dict[str, float]] = [{}] * len(samples)
    status: Columns = {}
    variants = plan.variants(values) if values else [(plan.model, np.arange(len(samples)))]
    for model, members in variants:
        own = {path: value[members] for path, value in values.items()}
        batch, recorded = _rolled_out(plan, model, samples[members], own, nthread)
        for row, k in enumerate(members):
            numbers[k] = numbers_of(plan.reduce, _of_one(recorded, row), int(samples[k]), known)
            known = known or tuple(numbers[k])
        for name, counts in batch.status.items():
            status.setdefault(f"status:{name}", np.zeros(len(samples), np.int64))[members] = counts[: len(members)]
    columns = {f"parameter:{path}": value for path, value in values.items()}
    columns |= {f"result:{name}": np.array([row[name] for row in numbers]) for name in known or ()}
    return columns | status


def _rolled_out(plan: Plan, model: Model, samples: np.ndarray, values: Columns, nthread: int) -> tuple[Batch, Columns]:
    """Rolls out samples of one model and returns the batch, in which they are the first worlds, and the recordings."""
    run, n = plan.rollout, len(samples)
    batch, ids = _worlds(plan, model, n, nthread), np.arange(n)
    for name in plan.fields("model"):
        plan.enter(name, batch.expand(name)[:n], values)
    if plan.needs_constants():
        batch.set_const(ids)
    batch.reset(ids, keyframe=run.keyframe)
    for name in plan.fields("state"):
        rows = batch.row_memory(name)[:n]
        plan.enter(name, rows, values)
    with warnings.catch_warnings():
        for category in (CapacityWarning, NonFiniteWarning):  # the result lists the samples
            warnings.simplefilter("ignore", category)
        return batch, batch.rollout(run.nstep, plan.controls(model, samples), run.record, ids=ids)


def _worlds(plan: Plan, model: Model, n: int, nthread: int) -> Batch:
    """Returns at least n worlds with the model's values; reuses a batch of an earlier chunk if there is one."""
    control = plan.rollout.control
    exact = callable(control) and not isinstance(
        control, Kernel
    )  # a function receives the batch, which must have no other worlds
    batch = plan.batches.get((id(model), nthread))
    if batch is None or batch.nworld < n or (exact and batch.nworld != n):
        if len(plan.batches) >= KEPT:
            plan.batches.clear()
        nworld = n if exact else max(n, min(plan.nsample, most_samples(plan)))
        batch = plan.batches[id(model), nthread] = Batch(model, nworld, nthread=nthread, dtype=plan.rollout.dtype)
    for name, rows in batch.expanded_fields.items():
        rows[...] = getattr(model, name)
    return batch


def _of_one(recorded: Columns, row: int) -> Columns:
    """Returns the recordings of one sample, read-only for reductions."""
    own = {name: array[row] for name, array in recorded.items()}
    for array in own.values():
        array.flags.writeable = False
    return own


def try_one(plan: Plan, nthread: int = 1) -> Columns:
    """Computes sample 0 alone, before a long computation; it sets the plan's names of results.

    Raises:
        ModelError: as `run_chunk`, or a reduction returned NaN or infinity.
    """
    columns = run_chunk(plan, np.zeros(1, np.int64), nthread)
    for name, value in columns.items():
        if name.startswith("result:") and not np.isfinite(value[0]):
            raise ModelError(
                f"reduce: sample 0: {name.removeprefix('result:')}: got {value[0]}, allowed are finite numbers "
                "in the trial before the sweep (in later samples, non-finite numbers are kept and reported)"
            )
    plan.names = tuple(name.removeprefix("result:") for name in columns if name.startswith("result:"))
    return columns


def most_samples(plan: Plan) -> int:
    """Computes the largest number of samples in a chunk, by memory."""
    reals = sum(int(np.prod(world_shape(plan.model, name))) for name in plan.rollout.record)
    control = plan.rollout.control
    if isinstance(control, np.ndarray | str):
        reals += 2 * plan.model.nu
    each = max(1, reals * plan.rollout.nstep * np.dtype(plan.rollout.dtype).itemsize)
    return int(min(LARGEST, max(1, CHUNK_BYTES // each)))


class Pace:
    """Chooses the number of samples of the next chunk: first few, then as many as take some seconds.

    Attributes:
        size: number of samples of the next chunk.
        rate: measured samples per second in one place; 0 if not measured yet.

    Args:
        plan: the sweep.
        fixed: number of samples of every chunk, set by the user; 0 to choose by duration.
    """

    def __init__(self, plan: Plan, fixed: int = 0):
        self._most = fixed or most_samples(plan)
        self.size = fixed or min(FIRST, self._most)
        self.rate = 0.0
        self._fixed = bool(fixed)

    def saw(self, nsample: int, seconds: float) -> None:
        """Records the duration of a chunk of this many samples."""
        self.rate = nsample / max(seconds, 1e-9)
        if not self._fixed and nsample >= self.size:
            self.size = int(np.clip(int(self.rate * SECONDS), 1, min(GROWTH * self.size, self._most)))


def timed_chunk(plan: Plan, samples: np.ndarray, nthread: int = 0) -> tuple[Columns, float]:
    """Runs `run_chunk` and also returns its duration [s]."""
    start = time.perf_counter()
    return run_chunk(plan, samples, nthread), time.perf_counter() - start
