"""What Featherlane raises: one line that names the element, what was given and what is allowed.

Every error is a `FeatherlaneError`, and also the error that Python or NumPy would raise.  One `except` serves for all
that the package refuses, and code that expects a `TypeError` or an `AttributeError` works as well.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from difflib import get_close_matches

import numpy as np

LONGEST, KEPT = 200, 60  # characters of a given array or list that a message shows whole, and of a longer one


def shortened(message: str) -> str:
    """The message with long values in brackets (arrays, lists, dicts) cut behind their first entries."""
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
    """Base of all errors of this package: docs/errors.md#featherlaneerror.

    The message shows of a long array or list that was given its first entries alone.
    """

    def __init__(self, *args):
        super().__init__(*(shortened(given) if isinstance(given, str) else given for given in args))


class ModelError(FeatherlaneError, ValueError):
    """A model that cannot be loaded, or a value that a model or its options do not take: docs/errors.md#modelerror."""


class ArgumentError(FeatherlaneError, ValueError):
    """A value that a function does not take, where no model is involved: docs/errors.md#argumenterror."""


class ArgumentTypeError(FeatherlaneError, TypeError):
    """An argument of another type than a function takes: docs/errors.md#argumenttypeerror."""


class OutOfRangeError(FeatherlaneError, IndexError):
    """A number of something that is not there: docs/errors.md#outofrangeerror."""


class UnknownAttributeError(FeatherlaneError, AttributeError):
    """An attribute that is not there, or that cannot be set: docs/errors.md#unknownattributeerror."""


class SingularMatrixError(FeatherlaneError, np.linalg.LinAlgError):
    """A matrix that cannot be factored: docs/errors.md#singularmatrixerror."""


class CallError(FeatherlaneError, RuntimeError):
    """A call that is not possible now, whatever its arguments are: docs/errors.md#callerror."""


class MissingMethodError(FeatherlaneError, NotImplementedError):
    """A method that a subclass has to define: docs/errors.md#missingmethoderror."""


class UnknownNameError(ModelError, KeyError):
    """A body, joint, ... of this name or id is not in the model: docs/errors.md#unknownnameerror."""

    __str__ = Exception.__str__  # KeyError would print the message's repr


class InstallationError(ModelError, ImportError):
    """An installed package breaks this one; the message holds the command that repairs it.

    See docs/errors.md#installationerror.
    """


class BadNumberWarning(RuntimeWarning):
    """Numbers of a world turned bad: NaN, or beyond 1e10.  Issued once by each `Data` and each `Batch`.

    An infinite or NaN energy or sensor value counts, too; such a world is not reset.

    `warnings.simplefilter("ignore", featherlane.BadNumberWarning)` silences it, `"error"` makes an exception of it; the
    counts are in `status` and `nbad` all the same.  See docs/errors.md#badnumberwarning.
    """


def warn_of_bad_numbers(who: str, reset: bool, owner: str, level: int) -> None:
    """Say that numbers of a world turned bad; `level` frames above the caller."""
    after = "was reset to the model's defaults" if reset else "goes on with them"
    warnings.warn(
        f"{who} had numbers that are NaN or beyond 1e10, and {after}: see {owner}.status, {owner}.nbad; told once "
        f"(warnings.simplefilter('ignore', featherlane.BadNumberWarning) silences it)",
        BadNumberWarning,
        stacklevel=level + 2,
    )


CHANGES_MOTION = "not supported, and it would change the motion"


class UnsupportedFeatureError(ModelError):
    """The model uses features that would change its motion and are not computed, or a result of such a feature is read.

    See docs/errors.md#unsupportedfeatureerror.

    Attributes:
        features: every one of them, each with the name of its element.
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
    """`; did you mean ...?` for the names closest to `name`, or nothing."""
    if not isinstance(name, str) or name.startswith("_"):  # protocols of Python ask for names like __deepcopy__
        return ""
    matches = get_close_matches(name, [a for a in allowed if a], n=3)
    return f"; did you mean {', '.join(map(repr, matches))}?" if matches else ""
