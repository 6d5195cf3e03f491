"""Checks the arguments of a comparison before a long computation."""

from __future__ import annotations

from collections.abc import Iterable

from featherlane.errors import ModelError
from featherlane.extension import one_of


def check_names(what: str, names: Iterable[str], allowed: Iterable[str]) -> None:
    """Raises ModelError if no name is given, a name is unknown, or a name is repeated."""
    names, allowed = list(names), list(allowed)
    if not names:
        raise ModelError(f"{what}: got none, allowed are {', '.join(allowed)}")
    for name in names:
        one_of(what, name, allowed)
    if len(set(names)) != len(names):
        raise ModelError(f"{what}: got a name twice")
