"""What is asked for, checked before hours of work."""

from __future__ import annotations

from collections.abc import Iterable

from featherlane.errors import ModelError
from featherlane.model.arguments import one_of


def check_names(what: str, names: Iterable[str], allowed: Iterable[str]) -> None:
    """Raise ModelError where no name is given, one is not allowed, or one is given twice."""
    names, allowed = list(names), list(allowed)
    if not names:
        raise ModelError(f"{what}: none is named, allowed are {', '.join(allowed)}")
    for name in names:
        one_of(what, name, allowed)
    if len(set(names)) != len(names):
        raise ModelError(f"{what}: one is named twice")
