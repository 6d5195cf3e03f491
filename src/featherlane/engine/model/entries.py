"""Parses paths of field entries: `body_mass[torso]`, `geom_friction[:, 0]`, `opt.gravity[2]`.

The brackets hold one index per axis: a name or a number for the first axis; numbers, ranges `1:3` or `:` for the
others.
"""

from __future__ import annotations

import re
from typing import Any

from featherlane.engine.lanes.layout import Field
from featherlane.engine.model.model import Model
from featherlane.engine.model.names import KINDS, find_object
from featherlane.errors import ModelError

PATH = re.compile(r"\s*([A-Za-z_][\w.]*)\s*(?:\[(.*)\])?\s*", re.DOTALL)
FieldPath = tuple[str, str | None]
RANGE = re.compile(r"(-?\d+)?\s*:\s*(-?\d+)?")
WHOLE = re.compile(r"-?\d+")


def split_path(path: Any) -> FieldPath | None:
    """Returns the name of a path `FIELD` or `FIELD[INDEX, ...]` and the text in its brackets; None for another text."""
    match = PATH.fullmatch(path) if isinstance(path, str) else None
    return match and (match[1], match[2])


def selection(model: Model, what: str, field: Field, dims: tuple[int, ...], text: str) -> tuple[Any, ...]:
    """Parses the index in the brackets.

    Args:
        what: owner of the path, for messages.

    Raises:
        ModelError: too many indices, an index out of range, or an unknown name.
    """
    words = [word.strip() for word in text.split(",")]
    if len(words) > len(dims):
        raise ModelError(f"{what}: got {len(words)} indices, allowed are {len(dims)}: {field.name} has shape {dims}")
    index = tuple(_index(model, what, field, axis, dims[axis], word) for axis, word in enumerate(words))
    return index


def _index(model: Model, what: str, field: Field, axis: int, length: int, word: str) -> Any:
    bounds = RANGE.fullmatch(word)
    if bounds:
        chosen = slice(*(None if bound is None else int(bound) for bound in bounds.groups()))
        if not len(range(length)[chosen]):
            raise ModelError(f"{what}: got {word!r}, allowed are entries 0 to {length - 1}")
        return chosen
    if WHOLE.fullmatch(word):
        if not -length <= int(word) < length:
            raise ModelError(f"{what}: got {word}, allowed are entries 0 to {length - 1} of {field.name}")
        return int(word)
    if axis:
        raise ModelError(
            f"{what}: got {word!r}, allowed are numbers and ranges; names are allowed only for the first axis"
        )
    for kind, entry in KINDS.items():
        for own in entry.axes:
            if own.size == field.shape[0]:
                rows = own.rows(model, find_object(model, kind, word).id)
                if isinstance(rows, slice) and not len(range(length)[rows]):
                    raise ModelError(f"{what}: {kind} {word!r} has no {field.name}")
                return rows
    raise ModelError(
        f"{what}: got {word!r}, allowed are entries 0 to {length - 1}: the entries of {field.name} have no names"
    )
