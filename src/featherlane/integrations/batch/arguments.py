"""Checks of the arguments of `mujoco_batch.Batch`, with the errors of `mujoco.batch`."""

from __future__ import annotations

import operator
from typing import Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike

NONE, ACC = int(mujoco.mjtStage.mjSTAGE_NONE), int(mujoco.mjtStage.mjSTAGE_ACC)
CALLBACKS = [name for name in dir(mujoco) if name.startswith("get_mjcb_") and name != "get_mjcb_time"]


def check_callbacks() -> None:
    """Raises an error if a callback of MuJoCo is installed, which Featherlane does not call."""
    for name in CALLBACKS:
        if getattr(mujoco, name)() is not None:
            raise ValueError(f"{name.removeprefix('get_')} is installed; Featherlane does not call MuJoCo's callbacks")


def checked_number(value: Any, name: str) -> int:
    """Returns an integer, checked."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {value!r}") from None


def checked_stage(stage: Any) -> int:
    """Returns a number of mjtStage, checked."""
    if not NONE <= int(stage) <= ACC:
        raise mujoco.FatalError(f"stage must be in [mjSTAGE_NONE, mjSTAGE_ACC] = [{NONE}, {ACC}], got {int(stage)}")
    return int(stage)


def checked_sim(sim: int, nsim: int) -> int:
    """Returns the number of a simulation, checked."""
    if not 0 <= operator.index(sim) < nsim:
        raise IndexError(f"sim must be in [0, {nsim}), got {sim}")
    return operator.index(sim)


def checked_ids(ids: ArrayLike | None, nsim: int) -> np.ndarray | None:
    """Returns ascending numbers of simulations (n,) int32, checked; None for all."""
    if ids is None:
        return None
    given = np.asarray(ids)
    if given.dtype == bool:
        if given.shape != (nsim,):
            raise ValueError(f"a mask must have shape ({nsim},), got {given.shape}")
        return None if given.all() else np.flatnonzero(given).astype(np.int32)
    if given.ndim != 1:
        raise ValueError("ids must be one-dimensional")
    if not given.size:
        return np.zeros(0, np.int32)
    if given.dtype.kind not in "iu":
        raise ValueError(f"ids must be integers, got {given.dtype}")
    falls = np.flatnonzero(given[1:] <= given[:-1])
    if falls.size:
        raise ValueError(f"ids must be sorted and unique, got {given[falls[0]]} before {given[falls[0] + 1]}")
    for sim in (given[0], given[-1]):
        if not 0 <= sim < nsim:
            raise ValueError(f"ids must be in [0, {nsim}), got {sim}")
    return given.astype(np.int32)


def checked_whole(value: ArrayLike, shape: tuple[int, ...], low: int, high: int, name: str) -> np.ndarray:
    """Returns integers in [low, high) that broadcast to a shape, checked."""
    given = np.asarray(value)
    if given.dtype.kind not in "iu":
        raise ValueError(f"{name} must be integers, got {given.dtype}")
    wrong = given[(given < low) | (given >= high)]
    if wrong.size:
        raise ValueError(f"{name} must be in [{low}, {high}), got {wrong.flat[0]}")
    return np.broadcast_to(given, shape).astype(np.int64)
