"""Defines the exceptions.  A message is one line: the element's name, the given value and the allowed values.

Every error is a `FeatherlaneError` and also the built-in Python or NumPy error of that situation.  One `except` clause
catches all errors of the package.  Code that expects a `TypeError` or an `AttributeError` works as well.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

__all__ = [
    # errors and warnings
    "ArgumentError",
    "ArgumentTypeError",
    "CallError",
    "CapacityWarning",
    "FeatherlaneError",
    "InstallationError",
    "MissingMethodError",
    "ModelError",
    "NonFiniteWarning",
    "OutOfRangeError",
    "SingularMatrixError",
    "UnknownAttributeError",
    "UnknownNameError",
    "UnsupportedFeatureError",
    "WorkerLostError",
    # messages, for authors of front ends
    "few",
    "near",
    "page",
    "warn_of_full",
    "warn_of_non_finite",
]

LONGEST, KEPT = 200, 60  # characters that a message shows of an array or list: LONGEST in full, KEPT of a longer one

DOCUMENTATION = "https://featherlane.github.io/featherlane"


def page(name: str) -> str:
    """Returns the address of a page of the documentation, for messages: an installed package has no folder docs."""
    return f"{DOCUMENTATION}/{name}.html"


def shortened(message: str) -> str:
    """Returns the message with long bracketed values (arrays, lists, dicts) cut after their first entries."""
    depth = start = 0
    for k, character in enumerate(message):
        if character in "([{":
            start = k if depth == 0 else start
            depth += 1
        elif character in ")]}" and depth:
            depth -= 1
            if depth == 0 and k - start > LONGEST:
                first = " ".join(message[start : start + KEPT].split())
                return f"{message[:start]}{first} ...{shortened(message[k:])}"
    return message


class FeatherlaneError(Exception):
    """Base class of all errors of this package: docs/errors.md#featherlaneerror.

    If the given value is a long array or list, the message shows only its first entries.
    """

    def __init__(self, *args):
        super().__init__(*(shortened(given) if isinstance(given, str) else given for given in args))


class ModelError(FeatherlaneError, ValueError):
    """The model cannot be loaded, or a value is not allowed in a model or its options: docs/errors.md#modelerror."""


class ArgumentError(FeatherlaneError, ValueError):
    """A function argument has a value that is not allowed; no model is involved: docs/errors.md#argumenterror."""


class ArgumentTypeError(FeatherlaneError, TypeError):
    """A function argument has the wrong type: docs/errors.md#argumenttypeerror."""


class OutOfRangeError(FeatherlaneError, IndexError):
    """An index is out of range: docs/errors.md#outofrangeerror."""


class UnknownAttributeError(FeatherlaneError, AttributeError):
    """An attribute does not exist or cannot be set: docs/errors.md#unknownattributeerror."""


class SingularMatrixError(FeatherlaneError, np.linalg.LinAlgError):
    """A matrix is singular and cannot be factored: docs/errors.md#singularmatrixerror."""


class CallError(FeatherlaneError, RuntimeError):
    """A call is not possible in the present state, whatever its arguments: docs/errors.md#callerror."""


class WorkerLostError(CallError):
    """A worker of a distributed batch was lost with its worlds; `restore` continues from a checkpoint.

    See docs/errors.md#workerlosterror.
    """


class MissingMethodError(FeatherlaneError, NotImplementedError):
    """A subclass does not define a required method: docs/errors.md#missingmethoderror."""


class UnknownNameError(ModelError, KeyError):
    """The model has no body, joint, ... of this name or id: docs/errors.md#unknownnameerror."""

    __str__ = Exception.__str__  # KeyError would print the message's repr


class InstallationError(ModelError, ImportError):
    """A required package is missing or incompatible; the message contains the command that repairs the installation.

    See docs/errors.md#installationerror.
    """


class NonFiniteWarning(RuntimeWarning):
    """A value of a world became non-finite (NaN) or out of range (above 1e10).  Each `Data` and `Batch` warns once.

    A non-finite energy or sensor value counts too, but does not reset the world.

    `warnings.simplefilter("ignore", featherlane.NonFiniteWarning)` suppresses it; `"error"` turns it into an exception.
    The counts in `status` and `nreset` are kept in either case.  See docs/errors.md#nonfinitewarning.
    """


def warn_of_non_finite(who: str, reset: bool, *, owner: str, level: int) -> None:
    """Warns of non-finite or out-of-range values of a world; `level` is the number of frames above the caller."""
    after = "had to be reset to the model's defaults" if reset else "continued with them"
    warnings.warn(
        f"{who} had values that are NaN or larger than 1e10, and {after}: see {owner}.status, "
        f"{owner}.nreset; this warning appears once (warnings.simplefilter('ignore', "
        f"featherlane.NonFiniteWarning) disables it)",
        NonFiniteWarning,
        stacklevel=level + 2,
    )


class CapacityWarning(RuntimeWarning):
    """A world had more contacts or rows than fit, and lost the last ones.  Each `Data` and `Batch` warns once.

    `warnings.simplefilter("ignore", featherlane.CapacityWarning)` suppresses it; `"error"` turns it into an exception.
    The counts `contacts_full` and `rows_full` of `status` are kept in either case.  See docs/errors.md#capacitywarning.
    """


def warn_of_full(who: str, capacity: int, *, pair: str = "", owner: str, level: int) -> None:
    """Warns of contacts or rows beyond the capacity, or of a pair's contacts beyond the capacity of one pair.

    `level` is the number of frames above the caller.
    """
    if pair:
        warnings.warn(
            f"{who} had more contacts of {pair} than the {capacity} of one pair, and lost the others: see "
            f"{owner}.status; larger cells of a height field, fewer starting points (sdf_initpoints) of a signed "
            f"distance field, or several smaller geoms, need less; this warning appears once ("
            f"warnings.simplefilter('ignore', featherlane.CapacityWarning) disables it)",
            CapacityWarning,
            stacklevel=level + 2,
        )
        return
    warnings.warn(
        f"{who} had more contacts than the {capacity} that fit, or more rows, and lost the last: see {owner}.status; "
        f'<size nconmax="{2 * capacity}"/> in the model reserves more; this warning appears once '
        f"(warnings.simplefilter('ignore', featherlane.CapacityWarning) disables it)",
        CapacityWarning,
        stacklevel=level + 2,
    )


CHANGES_MOTION = "not supported, but needed for the motion"


class UnsupportedFeatureError(ModelError):
    """The model uses unsupported features that would change its motion, or a result of such a feature is read.

    See docs/errors.md#unsupportedfeatureerror.

    Attributes:
        features: all unsupported features, each with the name of its element.
    """

    def __init__(self, features: Iterable[str], source: str = "", what: str = CHANGES_MOTION):
        self.features = list(features)
        self.source, self.what = source, what
        head = f"{source}: " if source else ""
        lines = "\n".join(f"  {feature}" for feature in self.features)
        super().__init__(f"{head}{what}:\n{lines}")

    def __reduce__(self):
        return type(self), (self.features, self.source, self.what)


def near(name: str, allowed: Iterable[str]) -> str:
    """Returns `; did you mean ...?` with the names closest to `name`, or an empty string."""
    if not isinstance(name, str) or name.startswith("_"):  # Python protocols look up names like __deepcopy__
        return ""
    matches = get_close_matches(name, [a for a in allowed if a], n=3)
    return f"; did you mean {', '.join(map(repr, matches))}?" if matches else ""


def few(values: Sequence[Any] | np.ndarray, most: int) -> str:
    """Returns the first values, at most this many, and the number of the others."""
    more = f" and {len(values) - most} more" * (len(values) > most)
    return f"{', '.join(map(str, values[:most]))}{more}"
