"""Checks of a task's options when the task is created."""

from __future__ import annotations

from collections.abc import Mapping

from featherlane.extension import bounded, instance, one_of


def weights(name: str, given: Mapping[str, float] | None, defaults: Mapping[str, float]) -> dict[str, float]:
    """Returns the weights of the reward terms: the given ones, else the defaults.

    Raises:
        ModelError: an unknown term, or a weight that is not a finite number.
    """
    instance(name, given, Mapping | None, "a dict of weights by term")
    for term, value in (given or {}).items():
        one_of(f"{name}: term", term, defaults)
        bounded(f"{name}[{term!r}]", value)
    return {**defaults, **{term: float(value) for term, value in (given or {}).items()}}
