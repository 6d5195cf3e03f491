"""Declarations of records: what a model or a tile of worlds consists of, said once.

A `Layout` is an ordered list of `Field`s.  It gives the memory (`record.py`), the type that kernels are compiled for
(`compiler/types.py`), the layout hash that guards a prebuilt object, and the reference page.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from math import prod

KINDS = ("size", "int", "long", "real", "scalar")


@dataclass(frozen=True)
class Field:
    """One field of a record.

    Attributes:
        name: MuJoCo's name where the meaning is MuJoCo's.
        kind: `size`, one int64 in the record itself; `int` and `long`, int32 and int64 rows shared by all worlds of a
            tile; `real`, rows with one value per world; `scalar`, numbers that all worlds of a tile share, float64 at
            every precision (vertices, heights, and the room in which one world's branching work is done).
        shape: sizes by name or number, outermost first, without the lane axis; empty for a size.
        unit: SI unit, `1` where there is none.
        doc: what it holds, one line.
        stage: the stage that writes it; empty for model fields.
        dtype: the public NumPy type of an `int` field (`int32`, or `bool` for flags).
    """

    name: str
    kind: str
    shape: tuple[str | int, ...] = ()
    unit: str = "1"
    doc: str = ""
    stage: str = ""
    dtype: str = ""

    def __post_init__(self):
        if self.kind not in KINDS:
            raise ValueError(f"field {self.name}: kind is {self.kind!r}, allowed are {', '.join(KINDS)}")

    def dims(self, sizes) -> tuple[int, ...]:
        """The shape as numbers; `sizes` maps a size's name to its value."""
        return tuple(n if isinstance(n, int) else int(sizes[n]) for n in self.shape)

    def count(self, sizes) -> int:
        """Rows of the field: the product of its shape."""
        return prod(self.dims(sizes))


@dataclass(frozen=True)
class Layout:
    """An ordered, named set of fields: the static type of a record."""

    name: str
    fields: tuple[Field, ...]
    index: dict[str, int] = field(init=False, compare=False, repr=False)

    def __post_init__(self):
        index = {f.name: k for k, f in enumerate(self.fields)}
        if len(index) != len(self.fields):
            names = [f.name for f in self.fields]
            raise ValueError(f"layout {self.name}: declared twice: {sorted({n for n in names if names.count(n) > 1})}")
        object.__setattr__(self, "index", index)

    def __getitem__(self, name: str) -> Field:
        return self.fields[self.index[name]]

    def __contains__(self, name: str) -> bool:
        return name in self.index

    def signature(self) -> str:
        """What compiled code depends on: the order, names and kinds of the fields."""
        return f"{self.name}({','.join(f'{f.name}:{f.kind}' for f in self.fields)})"


def layout_hash(*layouts: Layout) -> str:
    """Short hash of the layouts that a compiled object was made for."""
    return hashlib.sha256("\n".join(x.signature() for x in layouts).encode()).hexdigest()[:16]
