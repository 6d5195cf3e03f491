"""Options of a task, checked when it is made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from featherlane.errors import ModelError, near


def number(name: str, value: Any, low: float, high: float = np.inf) -> float:
    """A number from low to high.

    Raises:
        ModelError: it is none.
    """
    if not _is_number(value) or not low <= value <= high:
        raise ModelError(f"{name}: got {value!r}, allowed is a number {_between(low, high)}")
    return float(value)


def interval(name: str, value: Any, low: float, high: float = np.inf) -> tuple[float, float]:
    """Two numbers from low to high, the second no less than the first.

    Raises:
        ModelError: they are not.
    """
    pair = tuple(value) if isinstance(value, tuple | list | np.ndarray) else ()
    if len(pair) != 2 or not all(map(_is_number, pair)) or not low <= pair[0] <= pair[1] <= high:
        raise ModelError(f"{name}: got {value!r}, allowed are two numbers {_between(low, high)}, the least first")
    return float(pair[0]), float(pair[1])


def choice(name: str, value: Any, allowed: Iterable[str]) -> str:
    """One of what is allowed.

    Raises:
        ModelError: it is none of them.
    """
    allowed = tuple(allowed)
    if not isinstance(value, str) or value not in allowed:
        raise ModelError(
            f"{name}: got {value!r}, allowed are {', '.join(map(str, allowed))}{near(str(value), allowed)}"
        )
    return value


def weights(name: str, given: Mapping[str, float] | None, defaults: Mapping[str, float]) -> dict[str, float]:
    """Weights of the terms of a reward, those that were given in place of the defaults.

    Raises:
        ModelError: a term that there is not, a weight that is no number.
    """
    if not isinstance(given, Mapping | None):
        raise ModelError(f"{name}: got {type(given).__name__}, allowed is a dict of weights by term")
    for term, value in (given or {}).items():
        choice(f"{name}: term", term, defaults)
        number(f"{name}[{term!r}]", value, -np.inf)
    return {**defaults, **{term: float(value) for term, value in (given or {}).items()}}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool) and value == value


def _between(low: float, high: float) -> str:
    if np.isinf(high):
        return "" if np.isinf(low) else f"from {low:g}"
    return f"from {low:g} to {high:g}"
