"""Checks of arguments: each returns the value, or raises an error that names the argument and what is allowed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from featherlane.errors import ModelError, near

MOST = 2**31 - 1  # largest loop count of compiled kernels
LARGEST = float(np.finfo(np.float64).max)  # the largest finite number


def whole_argument(name: str, value: Any, least: int, most: int = MOST, error: type[Exception] = ModelError) -> int:
    """Returns a whole number from `least` to `most`."""
    if type(value) is int and least <= value <= most:
        return value
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not least <= value <= most:
        limited = most < MOST or (whole and value > most)
        allowed = f"from {least} to {most}" if limited else f">= {least}"
        given = value.item() if isinstance(value, np.generic) else value
        raise error(f"{name}: got {given!r}, allowed is a whole number {allowed}")
    return int(value)


def check_counts(owner: Any, least: dict[str, int]) -> None:
    """Checks attributes against their least values; allows None; prints `_` in a name as `-`, the command-line form."""
    for name, low in least.items():
        if (value := getattr(owner, name)) is not None:
            whole_argument(name.replace("_", "-"), value, low)


def is_real(value: Any) -> bool:
    """Returns whether a value is a single real number and not NaN."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool) and value == value


def range_text(low: float, high: float, above: bool = False) -> str:
    """Returns the text for numbers from `low` (excluded if `above`) to `high`."""
    if low <= -LARGEST:
        return "" if high >= LARGEST else f" <= {high:g}"
    if high >= LARGEST:
        return f" > {low:g}" if above else f" >= {low:g}"
    return f" above {low:g}, up to {high:g}" if above else f" from {low:g} to {high:g}"


def bounded(name: str, value: Any, low: float = -LARGEST, high: float = LARGEST, above: bool = False) -> float:
    """Returns a number from `low` (excluded if `above`) to `high`; by default a finite one."""
    if not is_real(value) or not low <= value <= high or (above and value == low):
        kind = "finite number" if high == LARGEST else "number"
        raise ModelError(f"{name}: got {value!r}, allowed is a {kind}{range_text(low, high, above)}")
    return float(value)


def interval(name: str, value: Any, low: float, high: float = np.inf) -> tuple[float, float]:
    """Returns two numbers within [low, high], the first at most the second."""
    pair = tuple(value) if isinstance(value, tuple | list | np.ndarray) else ()
    if len(pair) != 2 or not all(map(is_real, pair)) or not low <= pair[0] <= pair[1] <= high:
        raise ModelError(
            f"{name}: got {value!r}, allowed are two numbers{range_text(low, high)}, the smaller one first"
        )
    return float(pair[0]), float(pair[1])


def one_of(name: str, value: Any, allowed: Iterable[str], error: type[Exception] = ModelError) -> str:
    """Returns a value that is one of the allowed names."""
    allowed = tuple(allowed)
    if not isinstance(value, str) or value not in allowed:
        raise error(f"{name}: got {value!r}, allowed are {', '.join(map(str, allowed))}{near(str(value), allowed)}")
    return value


def method_options(name: str, given: Any, method: str, allowed: Iterable[str]) -> dict[str, Any]:
    """Returns the options of a dict with `method` and options, or none of a method alone."""
    values = dict(given) if isinstance(given, Mapping) else {"method": given}
    one_of(name, values.pop("method", method), (method,))
    for option in values:
        one_of(name, option, ("method", *allowed))
    return values


def several_of(name: str, value: Any, allowed: Iterable[str]) -> tuple[str, ...]:
    """Returns one or more of the allowed names, given as one name or as a sequence."""
    allowed = tuple(allowed)
    if isinstance(value, str):
        value = (value,)
    if not isinstance(value, list | tuple) or not value:
        given = "no name" if isinstance(value, list | tuple) else repr(value)
        raise ModelError(f"{name}: got {given}, allowed are {', '.join(allowed)}")
    return tuple(one_of(name, one, allowed) for one in value)


def instance(name: str, value: Any, kind: Any, allowed: str, error: type[Exception] = ModelError) -> Any:
    """Returns a value of the given type; `allowed` ends the error message."""
    if not isinstance(value, kind):
        raise error(f"{name}: got {type(value).__name__}, allowed is {allowed}")
    return value
