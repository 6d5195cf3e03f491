"""Accesses objects by name: `model.joint("knee").range`, `data.body("torso").xpos`, `batch.body("torso").xpos`.

The same code serves models, data and batches.  An object of a kind owns rows of every field whose leading axis counts
that kind: its own row of a `nbody` field, a joint's coordinates in a `nq` field, its dofs in a `nv` field.  The field's
prefix is dropped (`body_mass` is `.mass`).  The full name works too, and is required if two prefixes share a name.
A value that is one number has the shape (1,), as in MuJoCo, so it is a live array as well.

An owner has `layout` (its `Layout`), an array attribute per field, and `model` (unless it is a model).  If its arrays
begin with a world axis, it has `world_axes = 1`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from featherlane.engine.model.arguments import one_of
from featherlane.engine.model.assignment import assign, is_mixed
from featherlane.engine.model.joint import COORDINATES, DOFS
from featherlane.errors import UnknownAttributeError, UnknownNameError, near

Rows = int | slice
Index = tuple[Rows, ...]  # of an object's part of an array: all worlds, then its rows


class Axis(NamedTuple):
    """Fields of a kind: their leading size, the prefix to drop, and the rows that belong to an object."""

    size: str
    prefix: str
    rows: Callable[[Any, int], Rows]


class Kind(NamedTuple):
    """A kind of named object: MuJoCo's object type (none for a link), its count and its axes.

    in_mujoco: whether a model's object also has the fields that only MuJoCo's object has.
    """

    objtype: str
    count: str
    axes: tuple[Axis, ...] = ()
    in_mujoco: bool = False


def _own(model, i: int) -> Rows:
    return i


def _joint_dofs(model, i: int) -> Rows:
    start = int(model.jnt_dofadr[i])
    return slice(start, start + DOFS[model.jnt_type[i]])


def _joint_coordinates(model, i: int) -> Rows:
    start = int(model.jnt_qposadr[i])
    return slice(start, start + COORDINATES[model.jnt_type[i]])


def _mocap_row(model, i: int) -> Rows:
    row = int(model.body_mocapid[i])
    return row if row >= 0 else slice(0, 0)


def _of_actuator(part: str) -> Callable[[Any, int], Rows]:
    """Returns the row of one control, output or activation, as a number; rows of several, or none, as a slice."""

    def rows(model, i: int) -> Rows:
        start = int(getattr(model, f"actuator_{part}adr")[i])
        number = int(getattr(model, f"actuator_{part}num")[i])
        return start if number == 1 else slice(start, start + number)

    return rows


def _sensor_rows(model, i: int) -> Rows:
    start = int(model.compiled.sensor_adr[i])
    return slice(start, start + int(model.compiled.sensor_dim[i]))


def _both(size: str, prefix: str, rows: Callable[[Any, int], Rows] = _own) -> tuple[Axis, Axis]:
    """Returns the axis of fields with the prefix, and the same axis by full name."""
    return Axis(size, prefix, rows), Axis(size, "", rows)


KINDS = {
    "body": Kind("mjOBJ_BODY", "nbody", (*_both("nbody", "body_"), Axis("nmocap", "", _mocap_row))),
    "joint": Kind(
        "mjOBJ_JOINT",
        "njnt",
        (*_both("njnt", "jnt_"), *_both("nv", "dof_", _joint_dofs), Axis("nq", "", _joint_coordinates)),
    ),
    "geom": Kind("mjOBJ_GEOM", "ngeom", _both("ngeom", "geom_")),
    "site": Kind("mjOBJ_SITE", "nsite", _both("nsite", "site_")),
    "pair": Kind("mjOBJ_PAIR", "npair", _both("npair", "pair_")),
    "actuator": Kind(
        "mjOBJ_ACTUATOR",
        "nactuator",
        (
            *_both("nactuator", "actuator_"),
            *_both("nu", "actuator_", _of_actuator("ctrl")),
            *_both("nout", "actuator_", _of_actuator("out")),
            Axis("na", "", _of_actuator("act")),
        ),
    ),
    "tendon": Kind("mjOBJ_TENDON", "ntendon", (*_both("ntendon", "tendon_"), *_both("ntendon", "ten_"))),
    "sensor": Kind("mjOBJ_SENSOR", "nsensor", _both("nsensordata", "sensor", _sensor_rows), True),
    "camera": Kind("mjOBJ_CAMERA", "ncam", _both("ncam", "cam_"), True),
    "equality": Kind("mjOBJ_EQUALITY", "neq", _both("neq", "eq_"), True),
    "keyframe": Kind("mjOBJ_KEY", "nkey", (), True),
    "light": Kind("mjOBJ_LIGHT", "nlight", (), True),
    "mesh": Kind("mjOBJ_MESH", "nmesh", (), True),
    "material": Kind("mjOBJ_MATERIAL", "nmat", (), True),
    "exclude": Kind("mjOBJ_EXCLUDE", "nexclude", (), True),
    "numeric": Kind("mjOBJ_NUMERIC", "nnumeric", (), True),
    "link": Kind("", "nlink", _both("nlink", "link_")),
}


def object_names(model, kind: str) -> list[str]:
    """Returns names of all objects of a model's kind in id order, empty for those without one."""
    import mujoco

    sort = KINDS[one_of("kind", kind, KINDS, UnknownNameError)]
    count, objtype = (
        getattr(model.compiled if sort.in_mujoco else model, sort.count),
        getattr(mujoco.mjtObj, sort.objtype),
    )
    return [mujoco.mj_id2name(model.compiled, objtype, i) or "" for i in range(count)]


def element(mj, kind: str, ident: int | np.integer) -> str:
    """Returns an element of an MjModel as named in messages: `geom 'floor'` or `geom #3`."""
    import mujoco

    name = mujoco.mj_id2name(getattr(mj, "mj_model", mj), getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}"), int(ident))
    return f"{kind} {name!r}" if name else f"{kind} #{ident}"


def model_of(owner):
    """Returns the model of a `Data`, a batch or a model.  Avoids `getattr`, whose search for near names takes 3 ms."""
    return vars(owner).get("model", owner)


def _fields_of(view) -> list[str]:
    """Returns the names of the fields of MuJoCo's view of an object."""
    return [name for name in dir(view) if not name.startswith("_")]


def _live(array: np.ndarray, index: Index) -> Index:
    """Returns an index that yields an array: one number of each world has the shape (1,), as in MuJoCo."""
    *worlds, row = index
    if isinstance(row, slice) or array.ndim > len(index):
        return index
    return (*worlds, slice(row, row + 1))


class NamedView:
    """Holds one object of a model, `Data` or batch: its live fields without their prefix, `id` and `name`."""

    __slots__ = ("_kind", "_owner", "id", "name")

    def __init__(self, owner: Any, kind: str, index: int, name: str):
        for slot, value in zip(self.__slots__, (kind, owner, index, name), strict=True):
            object.__setattr__(self, slot, value)

    def _locate(self, attribute: str):
        """Returns the array that holds an attribute, the index of this object's rows in it, and the field's name."""
        owner, kind = self._owner, KINDS[self._kind]
        model = model_of(owner)
        if self._kind == "sensor" and attribute == "data" and owner is not model:
            worlds = (slice(None),) * owner.world_axes
            return owner.sensor_values(self.id), (*worlds, _sensor_rows(model, self.id)), attribute
        for axis in kind.axes:
            field = axis.prefix + attribute
            if field in owner.layout and owner.layout[field].shape[:1] == (axis.size,):
                worlds = (slice(None),) * owner.world_axes
                return getattr(owner, field), (*worlds, axis.rows(model, self.id)), field
        if owner is model and kind.in_mujoco and attribute in _fields_of(self._host(model.compiled)):
            return getattr(self._host(model.mj_model), attribute), (slice(None),), attribute
        raise UnknownAttributeError(
            f"{self._kind} {self.name or self.id!r} has no {attribute!r}{near(attribute, dir(self))}"
        )

    def _host(self, mj) -> Any:
        """Returns MuJoCo's view of this object."""
        return getattr(mj, self._kind)(self.id)

    def __getattr__(self, attribute: str) -> Any:
        array, index, _ = self._locate(attribute)
        return array[_live(array, index)]

    def __setattr__(self, attribute: str, value: Any) -> None:
        if attribute in ("id", "name"):
            raise UnknownAttributeError(f"{self._kind}.{attribute} cannot be set")
        array, index, field = self._locate(attribute)
        label = f"{self._kind} {self.name or self.id!r}: {attribute}"
        assign(label, array, value, _live(array, index), is_mixed(field))

    def __dir__(self):
        owner, kind = self._owner, KINDS[self._kind]
        names = ["id", "name"]
        for axis in kind.axes:
            fields = [f.name for f in owner.layout.fields if f.shape[:1] == (axis.size,)]
            names += [f.removeprefix(axis.prefix) for f in fields if f.startswith(axis.prefix)]
        if kind.in_mujoco and owner is model_of(owner):
            names += _fields_of(self._host(owner.compiled))
        return sorted(set(names))

    def __repr__(self) -> str:
        return f"<{self._kind} {self.name!r}, id {self.id}>"


def find_object(owner, kind: str, key: str | int) -> NamedView:
    """Returns the object of a kind with this name or id; raises as `index_of` does."""
    model = model_of(owner)
    index = index_of(model, kind, key)
    return NamedView(owner, kind, index, model._known_names(kind)[index])


def index_of(model, kind: str, key: str | int) -> int:
    """Returns the id of the object of a kind with this name or id.

    Raises:
        UnknownNameError: no object has this name or id; the message contains similar names.
    """
    names = model._names.get(kind) or model._known_names(kind)
    if type(key) is int and 0 <= key < len(names):
        return key
    if isinstance(key, str):
        index = model._name_index(kind).get(key)
        if index is None:
            known = ", ".join(map(repr, filter(None, names[:20]))) or "ids only, because none has a name"
            raise UnknownNameError(f"unknown {kind} {key!r}{near(key, names) or f'; allowed are {known}'}")
        return index
    try:
        index = operator.index(key)
    except TypeError:
        raise UnknownNameError(f"{kind}: got {key!r}, allowed are a name and an id") from None
    if not 0 <= index < len(names):
        raise UnknownNameError(f"{kind} id: got {index}, allowed are 0 to {len(names) - 1}")
    return index


class NamedAccess:
    """Methods `body(key)`, `joint(key)`, ... of all classes with fields of named objects."""

    world_axes = 0

    def body(self, key: str | int) -> NamedView:
        """Returns the body with this name or id."""
        return find_object(self, "body", key)

    def joint(self, key: str | int) -> NamedView:
        """Returns the joint with this name or id."""
        return find_object(self, "joint", key)

    def geom(self, key: str | int) -> NamedView:
        """Returns the geom with this name or id."""
        return find_object(self, "geom", key)

    def site(self, key: str | int) -> NamedView:
        """Returns the site with this name or id."""
        return find_object(self, "site", key)

    def actuator(self, key: str | int) -> NamedView:
        """Returns the actuator with this name or id."""
        return find_object(self, "actuator", key)

    def tendon(self, key: str | int) -> NamedView:
        """Returns the tendon with this name or id."""
        return find_object(self, "tendon", key)

    def link(self, key: str | int) -> NamedView:
        """Returns the link with this name or id."""
        return find_object(self, "link", key)

    def sensor(self, key: str | int) -> NamedView:
        """Returns the sensor with this name or id."""
        return find_object(self, "sensor", key)

    def camera(self, key: str | int) -> NamedView:
        """Returns the camera with this name or id."""
        return find_object(self, "camera", key)

    def equality(self, key: str | int) -> NamedView:
        """Returns the equality constraint with this name or id."""
        return find_object(self, "equality", key)
