"""Declarations of records: the fields of a model or of a tile of worlds.

A `Layout` is an ordered list of `Field`s.  It determines the memory (`record.py`), the types of compiled kernels
(`compiler/types.py`), the layout hash that is checked for a prebuilt object, and the reference page.

Each field of a tile has a role (`role.py`), its meaning for the tile's worlds; no compiled code depends on it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from featherlane.engine.lanes.role import NONE, ROLES, Role
from featherlane.engine.lanes.rows import TypedRow
from featherlane.errors import ArgumentError

KINDS = ("size", "int", "long", "real", "scalar")
SHARED_DTYPES = {"int": np.dtype(np.int32), "long": np.dtype(np.int64), "scalar": np.dtype(np.float64)}


@dataclass(frozen=True)
class Field:
    """One field of a record.

    Attributes:
        name: MuJoCo's name if the meaning is MuJoCo's.
        kind: `size`, one int64 in the record itself; `int` and `long`, int32 and int64 rows shared by all worlds of a
            tile; `real`, rows with one value per world; `scalar`, numbers that all worlds of a tile share, float64 at
            every precision (vertices, heights, and buffers for work that branches by world).
        shape: sizes by name or number, outermost first, without the lane axis; empty for a size.
        unit: SI unit, `1` if there is none.
        doc: meaning, in one line.
        stage: the kernel after which the field is valid, or the function that computes it when a model is loaded; empty
            for MuJoCo's model fields and for arguments of a caller.
        role: one of `ROLES`, the meaning for the worlds of a tile; empty for sizes and in other records.
        dtype: the public type, if it differs from the kind's: `bool` for flags of an `int` field; `int64` of a single
            `real` that is an integer and differs by world; `float64` of a `real` that is float64 at every precision
            (times: float32 resolves 0.008 s at 70,000 s).
        condition: when a field that is not always kept or computed exists: names of sizes that must be nonzero,
            or a name that the code which keeps the field uses.
        rows: the type of its rows in kernels, of which the last number of the shape is the number of parts; None: flat.
    """

    name: str
    kind: str
    shape: tuple[str | int, ...] = ()
    unit: str = "1"
    doc: str = ""
    stage: str = ""
    role: str = ""
    dtype: str = ""
    condition: str = ""
    rows: type[TypedRow] | None = None

    def __post_init__(self):
        if self.kind not in KINDS:
            raise ArgumentError(f"field {self.name}: kind is {self.kind!r}, allowed are {', '.join(KINDS)}")
        if self.rows and (self.kind not in ("real", "scalar") or self.shape[-1:] != (len(self.rows._fields),)):
            raise ArgumentError(
                f"field {self.name}: rows are {self.rows.__name__}: kind is {self.kind!r} and shape is {self.shape}, "
                f"allowed are real and scalar with {len(self.rows._fields)} as the last number"
            )
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
        """Whether it is a single number, of each world or of all."""
        return self.shape == (1,)

    @property
    def is_wide(self) -> bool:
        """Whether it is a `real` that is float64 at every precision."""
        return self.kind == "real" and self.dtype == "float64"

    def stored_as(self, precision: np.dtype) -> np.dtype:
        """Returns the dtype in memory, for records of a precision."""
        if self.kind == "real":
            return np.dtype(np.float64) if self.is_wide else precision
        return SHARED_DTYPES[self.kind]

    @property
    def traits(self) -> Role:
        """The traits of its role."""
        return ROLES.get(self.role, NONE)

    def dims(self, sizes) -> tuple[int, ...]:
        """Returns the shape as numbers; `sizes` maps a size's name to its value."""
        return tuple(n if isinstance(n, int) else int(sizes[n]) for n in self.shape)

    def public(self, rows):
        """Returns the public form of rows: (..., 1) of a single number as (...), other rows unchanged."""
        return rows[..., 0] if self.is_number else rows

    def count(self, sizes) -> int:
        """Returns the number of rows: the product of the shape."""
        rows = 1
        for n in self.shape:  # a loop, because this runs for every field of every record
            rows *= n if isinstance(n, int) else int(sizes[n])
        return rows


class Declare:
    """Declares fields with the same stage and role, one line each.

    Args:
        stage, role, condition: as for `Field`.
        record: the nested record that the fields belong to: `Declare("solve", "scratch", "primal")` declares
            `primal.grad`, which kernels read as `d.primal.grad`.

    Shapes list sizes, outermost first: `declare.real("geom_size", "ngeom 3", "m", "sizes of geoms")`.  The
    shape of a field of typed rows does not list the parts: `declare.rows(Vec3, "geom_pos", "ngeom", "m", "positions")`.
    """

    def __init__(self, stage: str = "", role: str = "", record: str = "", condition: str = ""):
        self._stage, self._role, self._condition = stage, role, condition
        self._prefix = f"{record}." if record else ""

    def _field(self, kind: str, name: str, shape: str, unit: str, doc: str, dtype: str) -> Field:
        dims = tuple(int(n) if n.isdigit() else n for n in shape.split())
        return Field(self._prefix + name, kind, dims, unit, doc, self._stage, self._role, dtype, self._condition)

    def real(self, name: str, shape: str, unit: str, doc: str, dtype: str = "") -> Field:
        """Declares a value for each world."""
        return self._field("real", name, shape, unit, doc, dtype)

    def rows(self, kind: type[TypedRow], name: str, shape: str, unit: str, doc: str, shared: bool = False) -> Field:
        """Declares rows of a type, whose parts are values of each world; `shared`: float64 that all worlds share."""
        made = self._field("scalar" if shared else "real", name, f"{shape} {len(kind._fields)}", unit, doc, "")
        return replace(made, rows=kind)

    def int(self, name: str, shape: str, unit: str, doc: str, dtype: str = "") -> Field:
        """Declares 32-bit integers that all worlds of a tile share."""
        return self._field("int", name, shape, unit, doc, dtype)

    def long(self, name: str, shape: str, unit: str, doc: str, dtype: str = "") -> Field:
        """Declares 64-bit integers that all worlds of a tile share."""
        return self._field("long", name, shape, unit, doc, dtype)

    def scalar(self, name: str, shape: str, unit: str, doc: str, dtype: str = "") -> Field:
        """Declares float64 numbers that all worlds of a tile share."""
        return self._field("scalar", name, shape, unit, doc, dtype)


def size(name: str, doc: str) -> Field:
    """Declares an integer in the record itself."""
    return Field(name, "size", doc=doc)


@dataclass(frozen=True)
class Layout:
    """An ordered, named set of fields: the static type of a record.

    A field `primal.grad` belongs to the nested record `primal`.

    Attributes:
        name: name of the record.
        fields: fields in order.
        index: position of each field, by its name.
        stored: the fields that are arrays.
        records: names of nested records.
        groups: prefix of the fields of each kind of object: with {"contact": "con_"}, `d.contact[k].dist` is
            `d.con_dist[k]`.
    """

    name: str
    fields: tuple[Field, ...]
    groups: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
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
        if taken := self.groups.keys() & (index.keys() | records):
            raise ArgumentError(f"layout {self.name}: groups have the names {sorted(taken)} of fields or records")
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "records", records)
        object.__setattr__(self, "stored", tuple(f for f in self.fields if f.kind != "size"))

    def __getitem__(self, name: str) -> Field:
        return self.fields[self.index[name]]

    def __contains__(self, name: str) -> bool:
        return name in self.index

    def serves(self, other: Layout) -> bool:
        """Returns whether the layout begins with the other's fields, so that its records can replace the other's."""
        return self.fields[: len(other.fields)] == other.fields

    def inner(self, f: Field) -> tuple[str | int, ...]:
        """Returns sizes of a field's indices after the first one, as in `d.con_basis[ANGULAR, k]`.

        The parts of a typed row are not among them.  A field has one index if the layout lacks one of the sizes.
        """
        sizes = f.shape[1:-1] if f.rows else f.shape[1:]
        return sizes if all(isinstance(n, int) or n in self.index for n in sizes) else ()

    def of(self, *roles: str) -> tuple[str, ...]:
        """Returns names of the fields with one of these roles, in order."""
        return tuple(f.name for f in self.fields if f.role in roles)

    def that(self, what: str) -> tuple[str, ...]:
        """Returns names of the fields whose role has a trait (`lasts`, `shown`, ...), in order."""
        return tuple(f.name for f in self.fields if getattr(f.traits, what))

    def conditional(self, by: str) -> tuple[str, ...]:
        """Returns names of the fields that are kept under this condition, in order."""
        return tuple(f.name for f in self.fields if by in f.condition.split())

    def signature(self) -> str:
        """Returns what compiled code depends on: order, names and kinds of the fields, and which are always float64."""
        parts = (
            f"{f.name}:{f.kind}{'64' if f.is_wide else ''}{f.rows.__name__ if f.rows else ''}" for f in self.fields
        )
        return f"{self.name}({','.join(parts)})"


def layout_hash(*layouts: Layout) -> str:
    """Returns a short hash of the layouts that a compiled object was made for."""
    return hashlib.sha256("\n".join(x.signature() for x in layouts).encode()).hexdigest()[:16]
