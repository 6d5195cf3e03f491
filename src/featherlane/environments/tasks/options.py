"""Options of a task, checked when it is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from featherlane.errors import ModelError
from featherlane.model.arguments import bounded, instance, is_real, one_of, span


def interval(name: str, value: Any, low: float, high: float = np.inf) -> tuple[float, float]:
    """Two numbers from low to high, the second no less than the first.

    Raises:
        ModelError: they are not.
    """
    pair = tuple(value) if isinstance(value, tuple | list | np.ndarray) else ()
    if len(pair) != 2 or not all(map(is_real, pair)) or not low <= pair[0] <= pair[1] <= high:
        raise ModelError(f"{name}: got {value!r}, allowed are two numbers{span(low, high)}, the least first")
    return float(pair[0]), float(pair[1])


def weights(name: str, given: Mapping[str, float] | None, defaults: Mapping[str, float]) -> dict[str, float]:
    """Weights of the terms of a reward, those that were given in place of the defaults.

    Raises:
        ModelError: a term that there is not, a weight that is no number.
    """
    instance(name, given, Mapping | None, "a dict of weights by term")
    for term, value in (given or {}).items():
        one_of(f"{name}: term", term, defaults)
        bounded(f"{name}[{term!r}]", value, -np.inf)
    return {**defaults, **{term: float(value) for term, value in (given or {}).items()}}
