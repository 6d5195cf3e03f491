"""Reductions of a sample: a function of its recordings, or reductions by name, such as `"final qpos[2]"`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from featherlane import Model
from featherlane.errors import ModelError, near
from featherlane.extension import DATA, selection, split_path, world_shape

Recorded = Mapping[str, np.ndarray]
Function = Callable[[Recorded], Mapping[str, float]]

# of the selected entries of a recording, (nstep, ...)
REDUCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "first": lambda a: a[0],
    "final": lambda a: a[-1],
    "mean": lambda a: a.mean(),
    "std": lambda a: a.std(),
    "rms": lambda a: np.sqrt((a * a).mean()),
    "min": lambda a: a.min(),
    "max": lambda a: a.max(),
    "peak": lambda a: np.abs(a).max(),
    "sum": lambda a: a.sum(),
}
OF_ONE = ("first", "final")  # they use one step, the others all steps
NAME = re.compile(r"[^\W\d]\w*")


class Named:
    """Reductions by name; `record` lists the fields to record for them."""

    def __init__(self, model: Model, given: Mapping[str, str]):
        self.given = {_name(name): text for name, text in given.items()}
        self._parts = {name: _parsed(model, name, text) for name, text in self.given.items()}
        self.record = tuple(dict.fromkeys(field for _, field, _ in self._parts.values()))

    def __call__(self, recorded: Recorded) -> dict[str, float]:
        """Computes the results of one sample."""
        return {
            name: float(np.asarray(REDUCTIONS[kind](recorded[field][index].astype(np.float64))).reshape(()))
            for name, (kind, field, index) in self._parts.items()
        }


def _name(name: Any) -> str:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ModelError(f"reduce: got the name {name!r}, allowed are letters, digits and _")
    return name


def _parsed(model: Model, name: str, text: Any) -> tuple[str, str, tuple[Any, ...]]:
    """Parses `"final qpos[2]"` into kind, field and entries."""
    what = f"reduce: {name}"
    kind, _, path = text.partition(" ") if isinstance(text, str) else ("", "", "")
    parts = split_path(path)
    if kind not in REDUCTIONS or parts is None:
        allowed = f"allowed is one of {', '.join(REDUCTIONS)} and a field, for example 'final qpos[2]'"
        raise ModelError(f"{what}: got {text!r}, {allowed}{near(kind, REDUCTIONS)}")
    field, entries = parts
    if field not in DATA.that("shown"):
        raise ModelError(f"{what}: unknown field {field!r}{near(field, DATA.index)}")
    dims = DATA[field].public(np.zeros(world_shape(model, field))).shape
    index = () if entries is None else selection(model, what, DATA[field], dims, entries)
    size = int(np.prod(np.zeros(dims)[index].shape))
    if not size or (kind in OF_ONE and size != 1):
        raise ModelError(
            f"{what}: {kind} {path.strip()!r} selects {size} numbers of an array {dims}, allowed is "
            f"one, for example {field}[0]"
        )
    return kind, field, (slice(None), *index)


def numbers_of(reduce: Function, recorded: Recorded, sample: int, known: tuple[str, ...] | None) -> dict[str, float]:
    """Computes and checks the results of one sample.

    Args:
        recorded: recordings, (nstep, ...) each.
        sample: number of the sample, for messages.
        known: names of the first sample's results.

    Raises:
        ModelError: the function raised an error, or returned no mapping, other names, or a non-number.
    """
    try:
        given = reduce(recorded)
    except Exception as error:
        raise ModelError(f"reduce: sample {sample}: {type(error).__name__}: {error}") from error
    if not isinstance(given, Mapping) or not given:
        shown = f"an empty {type(given).__name__}" if isinstance(given, Mapping) else repr(given)[:80]
        raise ModelError(
            f"reduce: sample {sample}: got {shown}, allowed is a dict of numbers, for example {{'height': 0.3}}"
        )
    found: dict[str, float] = {}
    for name, value in given.items():
        array = np.asarray(value)
        if array.size != 1 or array.dtype.kind not in "biuf":
            shape = f"{array.dtype} {array.shape}" if isinstance(value, np.ndarray) else type(value).__name__
            raise ModelError(f"reduce: sample {sample}: {name}: got {shape}, allowed is one number")
        found[_name(name)] = float(array.reshape(()))
    if known is not None and tuple(sorted(found)) != tuple(sorted(known)):
        raise ModelError(
            f"reduce: sample {sample}: got {sorted(found)}, allowed are the names of sample 0: {sorted(known)}"
        )
    return found
