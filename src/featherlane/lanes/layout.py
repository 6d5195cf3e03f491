"""Declarations of records: what a model or a tile of worlds consists of, said once.

A `Layout` is an ordered list of `Field`s.  It gives the memory (`record.py`), the type that kernels are compiled for
(`compiler/types.py`), the layout hash that guards a prebuilt object, and the reference page.

A field of a tile has a role (`role.py`), which says what it is to the tile's worlds; no compiled code depends on it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np

from featherlane.errors import ArgumentError
from featherlane.lanes.role import NONE, ROLES, Role

KINDS = ("size", "int", "long", "real", "scalar")
SHARED_DTYPES = {"int": np.dtype(np.int32), "long": np.dtype(np.int64), "scalar": np.dtype(np.float64)}


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
        stage: the kernel that has it valid when it ends, or the function that computes it when a model is loaded; empty
            for fields that MuJoCo's models have, and for what is given by a caller.
        role: one of `ROLES`, what it is to the worlds of a tile; empty for sizes, and in other records.
        dtype: the public type, where it is not the kind's: `bool` for flags, of an `int` field; `int64` of a single
            `real` that is a whole number and differs by world; `float64` of a `real` that is float64 at every precision
            (times: float32 resolves 0.008 s at 70,000 s).
        asked: what has it kept or computed, where it is not always there, in words: names of sizes that are then not
            0, or what whoever keeps it knows.
    """

    name: str
    kind: str
    shape: tuple[str | int, ...] = ()
    unit: str = "1"
    doc: str = ""
    stage: str = ""
    role: str = ""
    dtype: str = ""
    asked: str = ""

    def __post_init__(self):
        if self.kind not in KINDS:
            raise ArgumentError(f"field {self.name}: kind is {self.kind!r}, allowed are {', '.join(KINDS)}")
        if self.role and self.role not in ROLES:
            raise ArgumentError(f"field {self.name}: role is {self.role!r}, allowed are {', '.join(ROLES)}")
        if self.role and self.kind == "size":
            raise ArgumentError(f"field {self.name}: a size has no role, got {self.role!r}")
        if self.role and ROLES[self.role].of_world and self.kind != "real":
            raise ArgumentError(
                f"field {self.name}: role {self.role} differs by world: kind is {self.kind!r}, allowed is real"
            )

    @property
    def is_number(self) -> bool:
        """Is it a single number, of each world or of all?"""
        return self.shape == (1,)

    @property
    def is_wide(self) -> bool:
        """Is it a `real` that is float64 at every precision?"""
        return self.kind == "real" and self.dtype == "float64"

    def stored_as(self, precision: np.dtype) -> np.dtype:
        """The dtype of its numbers in memory, in records of a precision."""
        if self.kind == "real":
            return np.dtype(np.float64) if self.is_wide else precision
        return SHARED_DTYPES[self.kind]

    @property
    def traits(self) -> Role:
        """What follows from its role."""
        return ROLES.get(self.role, NONE)

    def dims(self, sizes) -> tuple[int, ...]:
        """The shape as numbers; `sizes` maps a size's name to its value."""
        return tuple(n if isinstance(n, int) else int(sizes[n]) for n in self.shape)

    def public(self, rows):
        """Rows (..., 1) of a single number as (...), other rows as they are: what users see of worlds."""
        return rows[..., 0] if self.is_number else rows

    def count(self, sizes) -> int:
        """Rows of the field: the product of its shape."""
        rows = 1
        for n in self.shape:  # every field of every record comes by here
            rows *= n if isinstance(n, int) else int(sizes[n])
        return rows


class Declare:
    """Declares fields that the same stage has valid, in the same role: one line each.

    Args:
        stage, role, asked: as for `Field`.
        record: the record within the record that the fields belong to: `Declare("solve", "scratch", "primal")` declares
            `primal.grad`, which kernels read as `d.primal.grad`.

    A shape is written as its sizes, outermost first: `declare.real("geom_pos", "ngeom 3", "m", "where geoms are")`.
    """

    def __init__(self, stage: str = "", role: str = "", record: str = "", asked: str = ""):
        self._stage, self._role, self._asked = stage, role, asked
        self._prefix = f"{record}." if record else ""

    def _field(self, kind: str, name: str, shape: str, unit: str, doc: str, dtype: str) -> Field:
        dims = tuple(int(n) if n.isdigit() else n for n in shape.split())
        return Field(self._prefix + name, kind, dims, unit, doc, self._stage, self._role, dtype, self._asked)

    def real(self, name: str, shape: str, unit: str, doc: str, dtype: str = "") -> Field:
        """A value for each world."""
        return self._field("real", name, shape, unit, doc, dtype)

    def int(self, name: str, shape: str, unit: str, doc: str, dtype: str = "") -> Field:
        """Whole numbers of 32 bits that all worlds of a tile share."""
        return self._field("int", name, shape, unit, doc, dtype)

    def long(self, name: str, shape: str, unit: str, doc: str, dtype: str = "") -> Field:
        """The same with 64 bits."""
        return self._field("long", name, shape, unit, doc, dtype)

    def scalar(self, name: str, shape: str, unit: str, doc: str, dtype: str = "") -> Field:
        """Numbers of 64 bits that all worlds of a tile share."""
        return self._field("scalar", name, shape, unit, doc, dtype)


def size(name: str, doc: str) -> Field:
    """One whole number, in the record itself."""
    return Field(name, "size", doc=doc)


@dataclass(frozen=True)
class Layout:
    """An ordered, named set of fields: the static type of a record.

    A field `primal.grad` belongs to the record `primal` within the record.

    Attributes:
        name: of the record.
        fields: in order.
        index: the place of each field, by its name.
        stored: the fields that are arrays.
        records: names of the records within the record.
    """

    name: str
    fields: tuple[Field, ...]
    index: dict[str, int] = field(init=False, compare=False, repr=False)
    stored: tuple[Field, ...] = field(init=False, compare=False, repr=False)
    records: frozenset[str] = field(init=False, compare=False, repr=False)

    def __post_init__(self):
        index = {f.name: k for k, f in enumerate(self.fields)}
        if len(index) != len(self.fields):
            names = [f.name for f in self.fields]
            raise ArgumentError(
                f"layout {self.name}: declared twice: {sorted({n for n in names if names.count(n) > 1})}"
            )
        records = frozenset(name.split(".")[0] for name in index if "." in name)
        if records & index.keys():
            raise ArgumentError(
                f"layout {self.name}: fields and records have the names {sorted(records & index.keys())}"
            )
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "records", records)
        object.__setattr__(self, "stored", tuple(f for f in self.fields if f.kind != "size"))

    def __getitem__(self, name: str) -> Field:
        return self.fields[self.index[name]]

    def __contains__(self, name: str) -> bool:
        return name in self.index

    def serves(self, other: Layout) -> bool:
        """Does it begin with the fields of the other, so that its records serve where those are asked for?"""
        return self.fields[: len(other.fields)] == other.fields

    def of(self, *roles: str) -> tuple[str, ...]:
        """Names of the fields of some roles, in order."""
        return tuple(f.name for f in self.fields if f.role in roles)

    def that(self, what: str) -> tuple[str, ...]:
        """Names of the fields with a trait of their roles, `lasts`, `shown`, ...; in order."""
        return tuple(f.name for f in self.fields if getattr(f.traits, what))

    def asked(self, by: str) -> tuple[str, ...]:
        """Names of the fields that this asks for, in order."""
        return tuple(f.name for f in self.fields if by in f.asked.split())

    def signature(self) -> str:
        """What compiled code depends on: the order, names and kinds of the fields, and which are float64 always."""
        parts = (f"{f.name}:{f.kind}{'64' if f.is_wide else ''}" for f in self.fields)
        return f"{self.name}({','.join(parts)})"


def layout_hash(*layouts: Layout) -> str:
    """Short hash of the layouts that a compiled object was made for."""
    return hashlib.sha256("\n".join(x.signature() for x in layouts).encode()).hexdigest()[:16]
