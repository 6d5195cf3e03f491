"""Runs the worlds of several batches in one call, in the threads of the first batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.batch.runner import Share, roll_shares, run_shares, stage_number
from featherlane.errors import ModelError


def step_together(nstep: int, parts: Sequence[tuple[Batch, np.ndarray]], stage: str | None = None) -> None:
    """Advances worlds of several batches, or computes their outputs, in one call.

    Args:
        nstep: time steps; 0 for `forward`.
        parts: batches with equal numbers of threads, and (n,) numbers of the worlds of each, without repetition.
        stage: as for `Batch.step`.

    Raises:
        ModelError: an unknown stage, other numbers of threads.
        RuntimeError: another call of one of the batches is running.
    """
    _share_threads([batch for batch, _ in parts])
    shares = [Share(batch.runner, worlds, stage=stage_number(stage)) for batch, worlds in parts if len(worlds)]
    if shares:
        run_shares(nstep, shares)


def roll_together(
    nstep: int,
    parts: Sequence[tuple[Batch, np.ndarray, Mapping[str, np.ndarray] | None, Mapping[str, np.ndarray]]],
) -> None:
    """Rolls out worlds of several batches in one call.

    Args:
        nstep: time steps, at least 1.
        parts: batches and worlds as for `step_together`; inputs of the steps by field, (n, nstep, ...), or None;
            arrays to record into, by field, (n, nstep, ...).

    Raises:
        ModelError: an unknown input, or one of another shape; other numbers of threads.
        RuntimeError: another call of one of the batches is running.
    """
    _share_threads([batch for batch, *_ in parts])
    roll_shares(nstep, [(batch.runner, worlds, inputs, records) for batch, worlds, inputs, records in parts])


def _share_threads(batches: Sequence[Batch]) -> None:
    """Lets all batches use the threads of the first one."""
    numbers = sorted({batch.nthread for batch in batches})
    if len(numbers) > 1:
        raise ModelError(f"parts: got batches with {numbers} threads, allowed are equal numbers")
    for batch in batches:
        batch.runner.plans.team = batches[0].runner.plans.team
