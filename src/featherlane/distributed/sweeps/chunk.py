"""Some samples of a sweep, as worlds of batches: made, rolled out and reduced.

What comes of a sample is the same in whatever company: worlds have bits of their own, and each sample's recordings are
reduced by themselves, as arrays of the same shape and order in memory.
"""

from __future__ import annotations

import time
import warnings

import numpy as np

from featherlane.distributed.sweeps.plan import Plan
from featherlane.distributed.sweeps.reduction import numbers_of
from featherlane.errors import BadNumberWarning, ModelError
from featherlane.lanes import Kernel
from featherlane.model.model import Model
from featherlane.simulation.batch.batch import Batch
from featherlane.simulation.tile.fields import DATA, STATUS
from featherlane.simulation.tile.workspace import Workspace

ROOM = 64 << 20  # bytes of recordings and controls that a chunk may hold
SECONDS = 20.0  # that a chunk should take at most: what Ctrl-C loses, and how often progress is seen
LARGEST = 1024  # samples; more in a call are no quicker
KEPT = 4  # batches that wait for the next chunk; variants may be many
FIRST = 64  # samples of the first chunk, whose time says how many the next may have
GROWTH = 8  # times as many samples as the chunk before, at most

Columns = dict[str, np.ndarray]


def run_chunk(plan: Plan, samples: np.ndarray, nthread: int = 0) -> Columns:
    """All columns of some samples.

    Args:
        plan: the sweep.
        samples: their numbers (n,).
        nthread: threads, 0 for one for each core.

    Returns:
        name -> (n, ...): `parameter:PATH`, `result:NAME`, `status:CAUSE`.

    Raises:
        ModelError: a reduction gave what is no number; as `Batch.rollout` does.
    """
    values = plan.values(samples)
    known = plan.names
    numbers: list[dict[str, float]] = [{}] * len(samples)
    status = np.zeros((len(samples), len(STATUS)), np.int64)
    variants = plan.variants(values) if values else [(plan.model, np.arange(len(samples)))]
    for model, members in variants:
        own = {path: value[members] for path, value in values.items()}
        batch, recorded = _rolled_out(plan, model, samples[members], own, nthread)
        for row, k in enumerate(members):
            numbers[k] = numbers_of(plan.reduce, _of_one(recorded, row), int(samples[k]), known)
            known = known or tuple(numbers[k])
        counts = batch.status
        status[members] = np.stack([counts[name][: len(members)] for name in STATUS], axis=-1)
    columns = {f"parameter:{path}": value for path, value in values.items()}
    columns |= {f"result:{name}": np.array([row[name] for row in numbers]) for name in known or ()}
    return columns | {f"status:{name}": status[:, k] for k, name in enumerate(STATUS)}


def _rolled_out(plan: Plan, model: Model, samples: np.ndarray, values: Columns, nthread: int) -> tuple[Batch, Columns]:
    """Worlds after the rollout of samples of one model, which are the first of them, and what was recorded."""
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
        warnings.simplefilter("ignore", BadNumberWarning)  # the result says which samples
        return batch, batch.rollout(run.nstep, plan.controls(model, samples), run.record, ids)


def _worlds(plan: Plan, model: Model, n: int, nthread: int) -> Batch:
    """At least n worlds, with the model's own numbers: those of an earlier chunk, whose memory is there already."""
    control = plan.rollout.control
    exact = callable(control) and not isinstance(
        control, Kernel
    )  # a function sees the batch, and no other worlds in it
    batch = plan.batches.get((id(model), nthread))
    if batch is None or batch.nworld < n or (exact and batch.nworld != n):
        if len(plan.batches) >= KEPT:
            plan.batches.clear()
        nworld = n if exact else max(n, min(plan.nsample, most_samples(plan)))
        batch = plan.batches[id(model), nthread] = Batch(model, nworld, nthread=nthread, dtype=plan.rollout.dtype)
    for name, rows in batch.expanded_fields.items():
        rows[...] = model.__dict__[name]
    return batch


def _of_one(recorded: Columns, row: int) -> Columns:
    """The recordings of one sample, which a reduction may not write to."""
    own = {name: array[row] for name, array in recorded.items()}
    for array in own.values():
        array.flags.writeable = False
    return own


def try_one(plan: Plan, nthread: int = 1) -> Columns:
    """Sample 0 by itself, before hours of work; the plan knows the names of results from then on.

    Raises:
        ModelError: what `run_chunk` raises; a reduction gave NaN or infinity.
    """
    columns = run_chunk(plan, np.zeros(1, np.int64), nthread)
    for name, value in columns.items():
        if name.startswith("result:") and not np.isfinite(value[0]):
            raise ModelError(
                f"reduce: sample 0: {name.removeprefix('result:')}: got {value[0]}, allowed are finite numbers "
                "in the trial before the sweep (in later samples they are kept, and told of)"
            )
    plan.names = tuple(name.removeprefix("result:") for name in columns if name.startswith("result:"))
    return columns


def most_samples(plan: Plan) -> int:
    """How many samples a chunk may have at most, for its memory."""
    sizes = Workspace.sizes_of(plan.model, 0)
    reals = sum(int(np.prod(DATA[name].dims(sizes))) for name in plan.rollout.record)
    control = plan.rollout.control
    if isinstance(control, np.ndarray | str):
        reals += 2 * plan.model.nu
    each = max(1, reals * plan.rollout.nstep * np.dtype(plan.rollout.dtype).itemsize)
    return int(min(LARGEST, max(1, ROOM // each)))


class Pace:
    """How many samples the next chunk has: few at first, then as many as take some seconds.

    Attributes:
        size: samples of the next chunk.
        rate: samples per second where a chunk is computed; 0 as long as nobody knows.

    Args:
        plan: the sweep.
        fixed: samples of every chunk, where the user says; 0: by their time.
    """

    def __init__(self, plan: Plan, fixed: int = 0):
        self._most = fixed or most_samples(plan)
        self.size = fixed or min(FIRST, self._most)
        self.rate = 0.0
        self._fixed = bool(fixed)

    def saw(self, nsample: int, seconds: float) -> None:
        """A chunk of so many samples took so long."""
        self.rate = nsample / max(seconds, 1e-9)
        if not self._fixed and nsample >= self.size:
            self.size = int(np.clip(int(self.rate * SECONDS), 1, min(GROWTH * self.size, self._most)))


def timed_chunk(plan: Plan, samples: np.ndarray, nthread: int = 0) -> tuple[Columns, float]:
    """`run_chunk`, and the seconds that it took."""
    start = time.perf_counter()
    return run_chunk(plan, samples, nthread), time.perf_counter() - start
