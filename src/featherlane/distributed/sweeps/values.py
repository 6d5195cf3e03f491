"""What parameters of a sweep are: lists, grids and random numbers, each set, scaled or added.

A random number is drawn from a generator of the sweep's seed, the sample's number and the parameter's name, so that a
sample is what it is whatever else is swept, in whatever order, and wherever it runs.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from featherlane.errors import ModelError, near
from featherlane.model.arguments import LARGEST, bounded
from featherlane.model.assignment import described, number, regular

Apply = Literal["set", "scale", "add"]
APPLY = ("set", "scale", "add")
LISTED = ("values", "grid")
FARTHEST = 16.0  # deviations: the ziggurat's tail, r - log(1 - u) / r with r = 3.65 and u < 1 - 2^-53, ends at 13.8
ROUNDING = 1e-14  # of a few operations, relative


@dataclass(frozen=True, eq=False)
class Source:
    """Values of one parameter.

    Attributes:
        kind: `values`, `grid`, `uniform`, `log_uniform`, `normal`, `choice`, `drawn`.
        apply: what a value does to the model's own: `set`, `scale`, `add`.
        options: the listed values (n, ...) of `values`, `grid` and `choice`; the numbers of a distribution.
        each: a number of its own for each entry of what is swept.
        function: of `drawn`.
    """

    kind: str
    apply: str
    options: tuple[Any, ...] = ()
    each: bool = False
    function: Callable[[np.random.Generator], Any] | None = field(default=None)

    @property
    def listed(self) -> np.ndarray:
        """The values of a list, a grid or a choice, (n, ...)."""
        return self.options[0]

    def bounds(self, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray] | None:
        """Numbers that every value lies between; None where nobody knows, or values are names."""
        if self.kind == "drawn" or (self.options and np.asarray(self.options[0]).dtype.kind == "U"):
            return None
        if self.kind in (*LISTED, "choice"):
            low, high = self.listed.min(axis=0), self.listed.max(axis=0)
        elif self.kind == "normal":
            mean, deviation = self.options
            low, high = mean - FARTHEST * deviation, mean + FARTHEST * deviation
        elif self.kind == "log_uniform":
            low, high = np.exp(self.options[0]) * (1.0 - ROUNDING), np.exp(self.options[1]) * (1.0 + ROUNDING)
        else:
            # low + (high - low) u may round beyond high
            room = ROUNDING * max(abs(self.options[0]), abs(self.options[1]))
            low, high = self.options[0], self.options[1] + room
        size = shape if self.each else np.shape(low)
        return np.broadcast_to(low, size), np.broadcast_to(high, size)

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
        """A random value, of this shape where each entry has its own."""
        size = shape if self.each else ()
        if self.kind == "choice":
            return self.listed[rng.integers(len(self.listed), size=size)]
        if self.function is not None:
            return self.function(rng)
        first, second = self.options
        if self.kind == "normal":
            return first + second * rng.standard_normal(size)
        between = first + (second - first) * rng.random(size)
        return np.exp(between) if self.kind == "log_uniform" else between


def uniform(low: float, high: float, *, each: bool = False, apply: Apply = "set") -> Source:
    """Random numbers between two others, for a parameter of `sweep`.

    Args:
        low: the least; in the unit of what is swept.
        high: the greatest.
        each: a number of its own for each entry of what is swept; otherwise one for all of them.
        apply: "set", or "scale" or "add" to the model's own value.

    Raises:
        ModelError: numbers that are none or not in this order, an unknown `apply`.
    """
    low, high = _ordered("uniform", low, high)
    return Source("uniform", _apply(apply), (np.float64(low), np.float64(high)), _flag(each))


def log_uniform(low: float, high: float, *, each: bool = False, apply: Apply = "set") -> Source:
    """Random numbers whose logarithm is uniform, for a parameter of `sweep`: as many from 0.1 to 1 as from 1 to 10.

    Args:
        low: the least, above 0; in the unit of what is swept.
        high: the greatest.
        each, apply: as of `uniform`.

    Raises:
        ModelError: numbers that are none, not above 0 or not in this order, an unknown `apply`.
    """
    low, high = _ordered("log_uniform", low, high)
    bounded("log_uniform: low", low, 0.0, above=True)
    return Source("log_uniform", _apply(apply), (np.log(low), np.log(high)), _flag(each))


def normal(mean: float, deviation: float, *, each: bool = False, apply: Apply = "set") -> Source:
    """Random numbers of the normal distribution, for a parameter of `sweep`.

    Args:
        mean: the mean; in the unit of what is swept.
        deviation: the standard deviation, from 0.
        each, apply: as of `uniform`.

    Raises:
        ModelError: numbers that are none, a negative deviation, an unknown `apply`.
    """
    mean = _finite("normal: mean", mean)
    deviation = bounded("normal: deviation", _finite("normal: deviation", deviation), 0.0)
    return Source("normal", _apply(apply), (np.float64(mean), np.float64(deviation)), _flag(each))


def choice(values: ArrayLike | Sequence[str], *, each: bool = False, apply: Apply = "set") -> Source:
    """One of some values at random, all as probable, for a parameter of `sweep`.

    Args:
        values: (n, ...) numbers, or names of an option ("newton", "cg").
        each, apply: as of `uniform`; with `each`, the values are numbers (n,).

    Raises:
        ModelError: no values, or what is neither numbers nor names; an unknown `apply`.
    """
    listed = _listed("choice", values)
    if _flag(each) and listed.ndim > 1:
        raise ModelError(f"choice: got values {listed.shape} with each, allowed are numbers (n,)")
    return Source("choice", _named(_apply(apply), listed), (listed,), each)


def grid(values: ArrayLike | Sequence[str], *, apply: Apply = "set") -> Source:
    """Values that are combined with those of every other grid, for a parameter of `sweep`.

    Args:
        values: (n, ...) numbers in the unit of what is swept, or names of an option.
        apply: as of `uniform`.

    Raises:
        ModelError: as `choice`.
    """
    listed = _listed("grid", values)
    return Source("grid", _named(_apply(apply), listed), (listed,))


def values(values: ArrayLike | Sequence[str], *, apply: Apply = "set") -> Source:
    """A list with one value after the other, beside those of all other lists, for a parameter of `sweep`.

    Args:
        values: (n, ...) numbers in the unit of what is swept, or names of an option; all lists of a sweep have the
            same n.
        apply: as of `uniform`.

    Raises:
        ModelError: as `choice`.
    """
    listed = _listed("values", values)
    return Source("values", _named(_apply(apply), listed), (listed,))


def drawn(function: Callable[[np.random.Generator], Any], *, apply: Apply = "set") -> Source:
    """Values that a function draws, for a parameter of `sweep`.

    Args:
        function: `function(rng)`, with a generator of the sample's own, gives a number or an array of the shape of
            what is swept.
        apply: as of `uniform`.

    Raises:
        ModelError: what is no function, an unknown `apply`.
    """
    if not callable(function):
        raise ModelError(f"drawn: got {type(function).__name__}, allowed is a function of a random generator")
    return Source("drawn", _apply(apply), (), False, function)


def source_of(path: str, given: Any) -> Source:
    """What a parameter was given as: a source, or a list of values."""
    if isinstance(given, Source):
        return given
    if isinstance(given, str) or np.ndim(regular(path, given)) == 0:
        raise ModelError(
            f"parameter {path!r}: got {described(given)}, allowed is a list with a value for each sample, or grid, "
            "uniform, log_uniform, normal, choice, drawn"
        )
    try:
        return values(given)
    except ModelError as error:
        raise ModelError(f"parameter {path!r}: {error}") from None


class Streams:
    """The random numbers of one parameter: a stream for each sample, which depends on the seed and the name, too.

    Philox counts: the seed and the name are its key, the sample's number stands in its counter, so that a stream is
    found by setting two numbers, in a microsecond, where a generator of its own would take ten.
    Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011; numpy.random.Philox.
    """

    def __init__(self, seed: int, name: str):
        key = np.random.SeedSequence(seed, spawn_key=(zlib.crc32(name.encode()),)).generate_state(2, np.uint64)
        self._bits = np.random.Philox(key=key)
        self._start, self._generator = self._bits.state, np.random.Generator(self._bits)

    def of(self, sample: int) -> np.random.Generator:
        """The stream of a sample, from its beginning; good until the next is asked for."""
        self._start["state"]["counter"][2] = sample
        self._bits.state = self._start
        return self._generator


# ---- checks ----------------------------------------------------------------------------------------------------------
def _apply(given: Any) -> str:
    if given not in APPLY:
        known = near(given, APPLY) if isinstance(given, str) else ""
        raise ModelError(f"apply: got {given!r}, allowed are {', '.join(map(repr, APPLY))}{known}")
    return str(given)


def _flag(given: Any) -> bool:
    if not isinstance(given, bool | np.bool_):
        raise ModelError(f"each: got {given!r}, allowed are True and False")
    return bool(given)


def _named(apply: str, listed: np.ndarray) -> str:
    """Names can only be set."""
    if listed.dtype.kind == "U" and apply != "set":
        raise ModelError(f"apply: got {apply!r} for names, allowed is 'set'")
    return apply


def _finite(name: str, given: Any) -> float:
    return bounded(name, number(name, given, "is a finite number"), -LARGEST, LARGEST)


def _ordered(kind: str, low: Any, high: Any) -> tuple[float, float]:
    low, high = _finite(f"{kind}: low", low), _finite(f"{kind}: high", high)
    if low > high:
        raise ModelError(f"{kind}: got low {low:g} above high {high:g}, allowed is this order")
    return low, high


def _listed(kind: str, given: Any) -> np.ndarray:
    """Values with a leading axis: float64, or text."""
    if isinstance(given, np.ndarray | list | tuple | range):
        listed = regular(kind, given)
    elif hasattr(given, "__iter__") and not isinstance(given, str | bytes):
        listed = regular(kind, list(given))
    else:
        listed = np.zeros(())
    if listed.ndim == 0 or not len(listed) or listed.dtype.kind not in "biufU":
        raise ModelError(f"{kind}: got {described(given)}, allowed is a list of numbers or of names, at least one")
    if listed.dtype.kind == "U":
        if listed.ndim > 1:
            raise ModelError(f"{kind}: got names {listed.shape}, allowed is a list (n,)")
        return listed
    if np.isnan(listed).any():
        raise ModelError(f"{kind}: got NaN at {tuple(np.argwhere(np.isnan(listed))[0].tolist())}, allowed are numbers")
    return listed.astype(np.float64)
