"""Options of a task, checked when it is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from featherlane.errors import ModelError
from featherlane.model.arguments import bounded, instance, one_of


def interval(name: str, value: Any, low: float, high: float = np.inf) -> tuple[float, float]:
    """Two numbers from low to high, the second no less than the first.

    Raises:
        ModelError: they are not.
    """
    pair = tuple(value) if isinstance(value, tuple | list | np.ndarray) else ()
    if len(pair) != 2:
        raise ModelError(f"{name}: got {value!r}, allowed are two numbers, the least first")
    return bounded(name, pair[0], low, high), bounded(name, pair[1], max(low, pair[0]), high)


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
