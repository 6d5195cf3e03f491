"""What is asked for, checked before hours of work."""

from __future__ import annotations

from collections.abc import Iterable

from featherlane.errors import ModelError, near


def check_names(what: str, names: Iterable[str], allowed: Iterable[str]) -> None:
    """Raise ModelError where no name is given, one is not allowed, or one is given twice."""
    names, allowed = list(names), list(allowed)
    if not names:
        raise ModelError(f"{what}: none is named, allowed are {', '.join(allowed)}")
    for name in names:
        if name not in allowed:
            raise ModelError(f"{what}: got {name!r}, allowed are {', '.join(allowed)}{near(name, allowed)}")
    if len(set(names)) != len(names):
        raise ModelError(f"{what}: one is named twice")


def check_least(what: str, value: int | None, least: int) -> None:
    """Raise ModelError where a number is below the least one; None is no number."""
    if value is not None and value < least:
        raise ModelError(f"{what}: got {value}, allowed is a whole number from {least}")
