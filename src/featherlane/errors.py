"""What Featherlane raises: one line that names the element, what was given and what is allowed."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from difflib import get_close_matches


class FeatherlaneError(Exception):
    """Base of all errors of this package: docs/errors.md#featherlaneerror."""


class ModelError(FeatherlaneError, ValueError):
    """A model that cannot be loaded, or a value that a model or its options do not take: docs/errors.md#modelerror."""


class UnknownNameError(ModelError, KeyError):
    """A body, joint, ... of this name or id is not in the model: docs/errors.md#unknownnameerror."""

    __str__ = Exception.__str__  # KeyError would print the message's repr


class InstallationError(ModelError, ImportError):
    """An installed package breaks this one; the message holds the command that repairs it.

    See docs/errors.md#installationerror.
    """


class BadNumberWarning(RuntimeWarning):
    """Numbers of a world turned bad: NaN, or beyond 1e10.  Told once by each `Data` and each `Batch`.

    `warnings.simplefilter("ignore", featherlane.BadNumberWarning)` silences it, `"error"` makes an exception of it; the
    counts are in `status` and `nbad` all the same.  See docs/errors.md#badnumberwarning.
    """


def warn_of_bad_numbers(who: str, reset: bool, owner: str, level: int) -> None:
    """Say that numbers of a world turned bad; `level` frames above the caller."""
    after = "was reset to the model's defaults" if reset else "goes on with them (the flag autoreset is off)"
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
