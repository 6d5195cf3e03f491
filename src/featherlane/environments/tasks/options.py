"""Checks of a task's options when the task is created."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from featherlane.engine.model.arguments import bounded, instance, is_real, one_of, range_text
from featherlane.errors import ModelError


def interval(name: str, value: Any, low: float, high: float = np.inf) -> tuple[float, float]:
    """Returns two values within [low, high], the first at most the second.

    Raises:
        ModelError: not such a pair.
    """
    pair = tuple(value) if isinstance(value, tuple | list | np.ndarray) else ()
    if len(pair) != 2 or not all(map(is_real, pair)) or not low <= pair[0] <= pair[1] <= high:
        raise ModelError(
            f"{name}: got {value!r}, allowed are two numbers{range_text(low, high)}, the smaller one first"
        )
    return float(pair[0]), float(pair[1])


def weights(name: str, given: Mapping[str, float] | None, defaults: Mapping[str, float]) -> dict[str, float]:
    """Returns the weights of the reward terms: the given ones, else the defaults.

    Raises:
        ModelError: an unknown term, or a weight that is not a number.
    """
    instance(name, given, Mapping | None, "a dict of weights by term")
    for term, value in (given or {}).items():
        one_of(f"{name}: term", term, defaults)
        bounded(f"{name}[{term!r}]", value, -np.inf)
    return {**defaults, **{term: float(value) for term, value in (given or {}).items()}}
