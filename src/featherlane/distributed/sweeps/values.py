"""Sources of sweep parameters: lists, grids and random numbers, which set, scale or offset the model's value.

A random number depends only on the sweep's seed, the sample's number and the parameter's name; it does not depend on
other parameters, on the order, or on the process.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from featherlane.errors import ModelError
from featherlane.extension import bounded, described, instance, one_of, real_number, regular

Apply = Literal["set", "scale", "add"]
APPLY = ("set", "scale", "add")
LISTED = ("values", "grid")
FARTHEST = 16.0  # deviations: the ziggurat's tail, r - log(1 - u) / r with r = 3.65 and u < 1 - 2^-53, ends at 13.8
ROUNDING = 1e-14  # relative rounding error of a few operations


@dataclass(frozen=True, eq=False)
class Source:
    """Values of one parameter.

    Attributes:
        kind: `values`, `grid`, `uniform`, `log_uniform`, `normal`, `choice`, `drawn`.
        apply: how a value changes the model's: `set`, `scale`, `add`.
        options: the listed values (n, ...) of `values`, `grid` and `choice`; the parameters of a distribution.
        each: whether each entry of the swept field gets a separate value.
        function: function of `drawn`.
    """

    kind: str
    apply: str
    options: tuple[Any, ...] = ()
    each: bool = False
    function: Callable[[np.random.Generator], Any] | None = field(default=None)

    @property
    def listed(self) -> np.ndarray:
        """Returns the values of a list, a grid or a choice, (n, ...)."""
        return self.options[0]

    def bounds(self, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray] | None:
        """Returns bounds of all values; None if they are unknown, or if values are names."""
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
            margin = ROUNDING * max(abs(self.options[0]), abs(self.options[1]))
            low, high = self.options[0], self.options[1] + margin
        size = shape if self.each else np.shape(low)
        return np.broadcast_to(low, size), np.broadcast_to(high, size)

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
        """Samples a value; with `each`, of this shape."""
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
    """Defines uniform random values between two numbers, for a parameter of `sweep`.

    Args:
        low: the minimum, in the unit of the swept field.
        high: the maximum.
        each: whether to sample a separate number for each entry of the swept field; otherwise one number for all
            entries.
        apply: "set", or "scale" or "add" for a change relative to the model's value.

    Raises:
        ModelError: an argument is not a number, the order is wrong, or `apply` is unknown.
    """
    low, high = _ordered("uniform", low, high)
    return Source("uniform", _apply(apply), (np.float64(low), np.float64(high)), _flag(each))


def log_uniform(low: float, high: float, *, each: bool = False, apply: Apply = "set") -> Source:
    """Defines log-uniform random values for a parameter of `sweep`: each decade is equally probable.

    Args:
        low: the minimum, above 0; in the unit of the swept field.
        high: the maximum.
        each, apply: as in `uniform`.

    Raises:
        ModelError: an argument is not a number or not above 0, the order is wrong, or `apply` is unknown.
    """
    low, high = _ordered("log_uniform", low, high)
    bounded("log_uniform: low", low, 0.0, above=True)
    return Source("log_uniform", _apply(apply), (np.log(low), np.log(high)), _flag(each))


def normal(mean: float, deviation: float, *, each: bool = False, apply: Apply = "set") -> Source:
    """Defines random values of the normal distribution, for a parameter of `sweep`.

    Args:
        mean: the mean, in the unit of the swept field.
        deviation: the standard deviation, at least 0.
        each, apply: as in `uniform`.

    Raises:
        ModelError: an argument is not a number, the deviation is negative, or `apply` is unknown.
    """
    mean = _finite("normal: mean", mean)
    deviation = bounded("normal: deviation", _finite("normal: deviation", deviation), 0.0)
    return Source("normal", _apply(apply), (np.float64(mean), np.float64(deviation)), _flag(each))


def choice(values: ArrayLike | Sequence[str], *, each: bool = False, apply: Apply = "set") -> Source:
    """Defines a random choice of several values with equal probability, for a parameter of `sweep`.

    Args:
        values: (n, ...) numbers, or names of an option ("newton", "cg").
        each, apply: as in `uniform`; with `each`, the values are numbers (n,).

    Raises:
        ModelError: there are no values, they are neither numbers nor names, or `apply` is unknown.
    """
    listed = _listed("choice", values)
    if _flag(each) and listed.ndim > 1:
        raise ModelError(f"choice: got values of shape {listed.shape} with each, allowed are numbers (n,)")
    return Source("choice", _named(_apply(apply), listed), (listed,), each)


def grid(values: ArrayLike | Sequence[str], *, apply: Apply = "set") -> Source:
    """Defines values that are combined with those of every other grid, for a parameter of `sweep`.

    Args:
        values: (n, ...) numbers in the unit of the swept field, or names of an option.
        apply: as in `uniform`.

    Raises:
        ModelError: as `choice`.
    """
    listed = _listed("grid", values)
    return Source("grid", _named(_apply(apply), listed), (listed,))


def values(values: ArrayLike | Sequence[str], *, apply: Apply = "set") -> Source:
    """Defines a list of values that varies together with all other lists, for a parameter of `sweep`.

    Args:
        values: (n, ...) numbers in the unit of the swept field, or names of an option; all lists of a sweep have the
            same n.
        apply: as in `uniform`.

    Raises:
        ModelError: as `choice`.
    """
    listed = _listed("values", values)
    return Source("values", _named(_apply(apply), listed), (listed,))


def drawn(function: Callable[[np.random.Generator], Any], *, apply: Apply = "set") -> Source:
    """Defines values that a function samples, for a parameter of `sweep`.

    Args:
        function: `function(rng)` receives the sample's random generator and returns a number or an array of the shape
            of the swept field.
        apply: as in `uniform`.

    Raises:
        ModelError: the argument is not a function, or `apply` is unknown.
    """
    if not callable(function):
        raise ModelError(f"drawn: got {type(function).__name__}, allowed is a function f(generator)")
    return Source("drawn", _apply(apply), (), False, function)


def parameter_source(path: str, given: Any) -> Source:
    """Converts the value of a parameter: a source, or a list of values."""
    if isinstance(given, Source):
        return given
    if isinstance(given, str) or np.ndim(regular(path, given)) == 0:
        raise ModelError(
            f"parameter {path!r}: got {described(given)}, allowed are a list with a value for each "
            f"sample, grid, uniform, log_uniform, normal, choice and drawn"
        )
    try:
        return values(given)
    except ModelError as error:
        raise ModelError(f"parameter {path!r}: {error}") from None


class Streams:
    """The random numbers of one parameter: a stream per sample, which depends on the seed and the name.

    Philox is counter-based: the key is the seed and the name, and the counter contains the sample's number.  Selecting
    a stream sets two numbers, in a microsecond; creating a generator would take ten.
    Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011; numpy.random.Philox.
    """

    def __init__(self, seed: int, name: str):
        key = np.random.SeedSequence(seed, spawn_key=(zlib.crc32(name.encode()),)).generate_state(2, np.uint64)
        self._bits = np.random.Philox(key=key)
        self._start, self._generator = self._bits.state, np.random.Generator(self._bits)

    def of(self, sample: int) -> np.random.Generator:
        """Returns the stream of a sample, from its start; valid until the next call."""
        self._start["state"]["counter"][2] = sample
        self._bits.state = self._start
        return self._generator


# ---- checks ----------------------------------------------------------------------------------------------------------
def _apply(given: Any) -> str:
    return one_of("apply", given, APPLY)


def _flag(given: Any) -> bool:
    return instance("each", given, bool | np.bool_, "True or False")


def _named(apply: str, listed: np.ndarray) -> str:
    """Raises an error unless names are set."""
    if listed.dtype.kind == "U" and apply != "set":
        raise ModelError(f"apply: got {apply!r} for names, allowed is 'set'")
    return apply


def _finite(name: str, given: Any) -> float:
    return bounded(name, real_number(name, given, "is a finite number"))


def _ordered(kind: str, low: Any, high: Any) -> tuple[float, float]:
    low, high = _finite(f"{kind}: low", low), _finite(f"{kind}: high", high)
    if low > high:
        raise ModelError(f"{kind}: got low {low:g} and high {high:g}, allowed is low <= high")
    return low, high


def _listed(kind: str, given: Any) -> np.ndarray:
    """Returns values with a leading axis: float64, or text."""
    if isinstance(given, np.ndarray | list | tuple | range):
        listed = regular(kind, given)
    elif hasattr(given, "__iter__") and not isinstance(given, str | bytes):
        listed = regular(kind, list(given))
    else:
        listed = np.zeros(())
    if listed.ndim == 0 or not len(listed) or listed.dtype.kind not in "biufU":
        raise ModelError(f"{kind}: got {described(given)}, allowed is a non-empty list of numbers or of names")
    if listed.dtype.kind == "U":
        if listed.ndim > 1:
            raise ModelError(f"{kind}: got names of shape {listed.shape}, allowed is a list (n,)")
        return listed
    if np.isnan(listed).any():
        raise ModelError(f"{kind}: got NaN at {tuple(np.argwhere(np.isnan(listed))[0].tolist())}, allowed are numbers")
    return listed.astype(np.float64)
