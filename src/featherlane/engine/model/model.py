"""The model on the host: owns all values that the engine reads.

All real fields are in one contiguous float64 buffer in layout order, all integer fields in one int32 buffer, and values
shared by all worlds (vertices, heights) in one float64 buffer.  Each field is a shaped view, so an edit takes effect at
the next step.  Sizes and integer options are Python ints.
"""

from __future__ import annotations

import copy
import functools
import sys
import warnings
from collections.abc import Mapping, Set
from typing import Any, NamedTuple

import numpy as np

from featherlane.engine.lanes.layout import Field, layout_hash
from featherlane.engine.lanes.record import aligned, shaping
from featherlane.engine.model.actuators import actuator_kinds, missing_functions
from featherlane.engine.model.arguments import bounded, instance
from featherlane.engine.model.assignment import assign, is_mixed, regular
from featherlane.engine.model.candidates import candidates
from featherlane.engine.model.enums import ABSENT_GEOM, SDF
from featherlane.engine.model.fields import MODEL, is_editable
from featherlane.engine.model.fixed import fixed, read_only
from featherlane.engine.model.in_use import DECIDING, in_use
from featherlane.engine.model.limits import ROWS, check_field, entry_label, holds_each
from featherlane.engine.model.mujoco_arrays import is_mujocos, read_field, with_missing_fields, write_field
from featherlane.engine.model.names import NamedAccess, NamedView, find_object, object_names
from featherlane.engine.model.option import Option
from featherlane.engine.model.shapes import visible_with
from featherlane.engine.model.signed_distance import NO_FIELD
from featherlane.engine.model.write_detection import TrackedArray, check_edited
from featherlane.errors import ArgumentTypeError, ModelError, UnknownAttributeError, near

LAYOUT = layout_hash(MODEL)  # identifies the field layout of a pickle
BUFFERS = {"real": np.float64, "int": np.int32, "scalar": np.float64}
# fields with value limits
LIVE = tuple(f.name for f in MODEL.fields if is_editable(f) and (f.kind != "int" or f.name in ROWS))
# attributes that a copy and a pickle contain, in addition to the buffers
KEPT = "mj_model source dropped fused repairs decompositions revision user_sensors user_actuators link_names".split()
KEPT += ["variants", "user_lcp_solver", "loaded_reals", "_sizes", "_layout"]
TAKEN = "mj_model user_sensors user_actuators user_lcp_solver loaded_reals".split()  # objects that `take_over` replaces
KEYFRAME_FIELDS = ("key_time", "key_qpos", "key_qvel", "key_act", "key_ctrl", "key_mpos", "key_mquat", "key_plastic")
FIXED = "{} is fixed when the model is loaded; change it in the XML or the MjSpec"
SHAPING = shaping(MODEL)
EDITABLE, CHECKED = frozenset(f.name for f in MODEL.fields if is_editable(f)), frozenset(LIVE)
# offset of the low byte of an int32 flag (0 or 1): its public view is bool and live
_LOW_BYTE = 0 if sys.byteorder == "little" else 3


class _Lent(NamedTuple):
    """Holds the MjModel of another model, and the keyframes that it had."""

    mj_model: Any
    keyframes: dict[str, np.ndarray]


@functools.lru_cache(maxsize=64)
def _places(values: tuple[int, ...]) -> list[tuple[Field, slice, tuple[int, ...]]]:
    """Returns each field's slice of its buffer and its shape, for the given values of the sizes in shapes."""
    sizes, place, found = dict(zip(SHAPING, values, strict=True)), dict.fromkeys(BUFFERS, 0), []
    for field in MODEL.stored:
        start = place[field.kind]
        place[field.kind] = start + field.count(sizes)
        found.append((field, slice(start, place[field.kind]), field.dims(sizes)))
    return found


class _Live:
    """Descriptor of a field that users may write: returns a live array and records the access.

    The model's own code reads `__dict__`, which does not count as an access.
    """

    def __init__(self, name: str):
        self.name = name

    def __get__(self, model, owner=None):
        if model is None:
            return self
        if "_tracked" not in model.__dict__:
            raise AttributeError(self.name)
        view = model._tracked[self.name].view
        model._note(self.name)
        return view

    def __set__(self, model, value):
        model.__setattr__(self.name, value)


class Statistics:
    """`model.stat`: scales of the model in qpos0, computed by MuJoCo's compiler; `meaninertia` can be set."""

    __slots__ = ("_model",)

    def __init__(self, model: Model):
        self._model = model

    @property
    def meaninertia(self) -> float:
        """Returns the mean diagonal of M in qpos0."""
        return float(self._model.__dict__["stat_meaninertia"][0])

    @meaninertia.setter
    def meaninertia(self, value: float):
        self._model.__dict__["stat_meaninertia"][0] = bounded("stat meaninertia", value, 0.0, above=True)

    @property
    def meanmass(self) -> float:
        """Returns the mean mass of the bodies [kg]."""
        return self._model.mj_model.stat.meanmass

    @property
    def meansize(self) -> float:
        """Returns the mean size of the bodies [m]."""
        return self._model.mj_model.stat.meansize

    @property
    def extent(self) -> float:
        """Returns the spatial extent of the model [m]."""
        return self._model.mj_model.stat.extent

    @property
    def center(self) -> np.ndarray:
        """Returns the centre of the model (3,) [m]."""
        return self._model.mj_model.stat.center


class Model(NamedAccess):
    """Holds a compiled model: live arrays under MuJoCo's names; created by `featherlane.load`.

    A value that a field cannot hold (a negative mass, a radius of 0, NaN) raises a ModelError that names the element.
    The next call that computes with the model raises it, however the value was written to the live array.

    Attributes:
        mj_model: the underlying MjModel, as loaded or as `set_const` last left it; see `to_mujoco` for all edits.
        source: what was loaded: the path of a file (also of a bundled model), "XML text", "MjModel" or "MjSpec".
        dropped: elements of the source that MuJoCo ignored without a warning.
        fused: links of a URDF that fixed joints merge into the bodies that carry them: the model has no such bodies.
        repairs: changes of the source that `load(..., repair=True)` made, each with its element, value and rule.
        decompositions: descriptions of the meshes that `convex_decomposition` divided into convex parts.
        real_buffer: all real fields, float64, in layout order.
        int_buffer: all integer fields, int32, in layout order; read-only.
        scalar_buffer: all values shared by worlds, float64, in layout order; read-only.
        rows: the flat rows of each field in these buffers, in a record's format; flags are int32 here; read-only.
        revision: incremented when a size, an integer option or a user callback changes.
        user_sensors: the callbacks of `set_user_sensor`, by sensor id.
        link_names: names of the links, empty for those without one.
        user_actuators: the callbacks of `set_user_actuator`, by actuator id and `activation`, `gain`, `bias`.
        user_lcp_solver: the solver of `featherlane.lcp.register` that `opt.lcp_solver` names; None: a built-in one.
        variants: the groups of `load(..., variants=...)` by name; iterating over a group yields its variants' names.
    """

    layout = MODEL

    def __init__(self, mj_model: Any, sizes: dict[str, int], derived: dict[str, np.ndarray], source: str = ""):
        state = {
            "mj_model": mj_model,
            "source": source,
            "dropped": [],
            "fused": [],
            "repairs": [],
            "decompositions": [],
            "revision": 0,
            "user_sensors": {},
            "user_actuators": {},
            "user_lcp_solver": None,
            "link_names": [],
            "variants": {},
            "loaded_reals": np.zeros(0),
            "_sizes": dict(sizes),
            "_layout": LAYOUT,
        }
        for kind, dtype in BUFFERS.items():
            count = sum(f.count(sizes) for f in MODEL.fields if f.kind == kind)
            state[f"{kind}_buffer"] = np.zeros(count, dtype)
        self.__setstate__(state)
        for field in MODEL.fields:
            if field.kind != "size":
                value = derived[field.name] if field.name in derived else read_field(mj_model, field.name)
                self._memory[field.name][...] = np.ravel(value)
        self.keep_loaded()

    def keep_loaded(self) -> None:
        """Keeps the present values of the real fields as those of the loaded model."""
        self.__dict__["loaded_reals"] = read_only(self.real_buffer.copy())

    def loaded(self) -> dict[str, np.ndarray]:
        """Returns the real fields as loaded, before all edits, by name."""
        places = _places(tuple(self._sizes[name] for name in SHAPING))
        return {f.name: self.loaded_reals[rows].reshape(shape) for f, rows, shape in places if f.kind == "real"}

    def __setstate__(self, state: dict[str, Any]):
        """Copies the buffers to memory that kernels may read, and rebuilds the views.

        Raises:
            ModelError: the state is from another version of Featherlane, with other fields.
        """
        if state.get("_layout") != LAYOUT:
            raise ModelError(
                "model: it was pickled by a version of Featherlane whose models have other fields; "
                "load it again from its source (fl.load)"
            )
        self.__dict__.update(state, rows={}, _memory={}, _tracked={}, _edited=set(), _stamp=None, _own_stamp=object())
        self.__dict__.update(_names={}, _ids={})
        held: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        for kind in BUFFERS:
            name = f"{kind}_buffer"
            buffer = aligned(state[name].shape, state[name].dtype)
            buffer[...] = state[name]
            shown = read_only(buffer)
            self.__dict__[name] = buffer if kind == "real" else shown
            held[kind] = buffer, shown
        for field, rows, shape in _places(tuple(self._sizes[name] for name in SHAPING)):
            buffer, shown = held[field.kind]
            self._attach(field, buffer[rows], shown[rows], shape)

    # rebuilt at each access: a stored one would form a reference cycle with the model
    @property
    def opt(self) -> Option:
        """Returns the physics options: live, and checked when they are set."""
        return Option(self)

    @property
    def stat(self) -> Statistics:
        """Returns statistics of the model in qpos0."""
        return Statistics(self)

    def _attach(self, field: Field, memory: np.ndarray, shown: np.ndarray, shape: tuple[int, ...]) -> None:
        """Adds the views of one field: flat for the engine and for records, shaped for users."""
        name = field.name
        self._memory[name], self.rows[name] = memory, shown
        flat = memory if name in EDITABLE else shown
        if field.dtype == "bool":
            flat = flat.view(np.bool_)[_LOW_BYTE::4]
        view = flat.reshape(shape)
        self.__dict__[name] = view if name in EDITABLE else fixed(view, FIXED.format(name))
        if name in CHECKED:
            self._tracked[name] = TrackedArray(view)
            self._edited.add(name)

    @property
    def compiled(self) -> Any:
        """Returns the MjModel to read: `mj_model`, or the lender's as long as this model did not need its own."""
        return self.__dict__["mj_model"] if "mj_model" in self.__dict__ else self.__dict__["_lent"].mj_model

    def world_copy(self) -> Model:
        """Returns a copy that copies the MjModel when `mj_model` is first accessed: large textures take 60 ms."""
        mj = self.mj_model
        other = copy.deepcopy(self, {id(mj): mj})
        del other.__dict__["mj_model"]
        frames = {name: np.array(getattr(mj, name)) for name in KEYFRAME_FIELDS if hasattr(mj, name)}
        other.__dict__["_lent"] = _Lent(mj, frames)
        return other

    def _take_mujoco(self) -> Any:
        """Copies the lent MjModel, with the keyframes of the time of `world_copy`."""
        lent: _Lent = self.__dict__.pop("_lent")
        own = self.__dict__["mj_model"] = copy.copy(lent.mj_model)
        for name, frames in lent.keyframes.items():
            getattr(own, name)[...] = frames
        return own

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in (*KEPT, *(f"{kind}_buffer" for kind in BUFFERS))}

    def __deepcopy__(self, memo: dict[int, Any]) -> Model:
        """Returns a copy; fields that passed the check here are not checked again there."""
        other = memo[id(self)] = object.__new__(type(self))
        state = self.__getstate__()
        for name, value in state.items():
            if not isinstance(value, np.ndarray):  # buffers are copied below
                state[name] = dict(value) if name == "_sizes" else copy.deepcopy(value, memo)
        other.__setstate__(state)
        for name in CHECKED - self._edited:
            other._tracked[name].keep()
        return other

    def __copy__(self) -> Model:
        """Returns a deep copy: two models never share a buffer."""
        return copy.deepcopy(self)

    def __getattr__(self, name: str) -> Any:
        if name == "mj_model" and "_lent" in self.__dict__:
            return self._take_mujoco()
        sizes = self.__dict__.get("_sizes", {})
        if name in sizes:
            return sizes[name]
        if name == "key_plastic" and not hasattr(self.mj_model, name):
            return np.zeros((self.mj_model.nkey, 0))  # MuJoCo before 4.0
        if name in KEYFRAME_FIELDS or name == "nkey":
            return getattr(self.mj_model, name)
        if not name.startswith("_") and hasattr(self.__dict__.get("mj_model"), name):
            raise UnknownAttributeError(f"model has no attribute {name!r}; MuJoCo's field is model.mj_model.{name}")
        raise UnknownAttributeError(f"model has no attribute {name!r}{near(name, MODEL.index)}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in MODEL:
            if name in ("dropped", "fused", "repairs", "decompositions"):
                self.__dict__[name] = list(value)
                return
            if name in KEYFRAME_FIELDS:
                assign(name, getattr(self, name), value)
                return
            raise UnknownAttributeError(f"model has no field {name!r} to set{near(name, MODEL.index)}")
        field = MODEL[name]
        self._note(name)
        if name.startswith("opt_") and hasattr(Option, name.removeprefix("opt_")):
            setattr(self.opt, name.removeprefix("opt_"), value)
        elif not is_editable(field):
            raise ModelError(FIXED.format(name))
        else:
            assign(name, self.__dict__[name], value, mixed=is_mixed(name))

    # ---- edits -------------------------------------------------------------------------------------------------------
    def _note(self, name: str) -> None:
        """Records that a user may write to this field from now on."""
        if name in self._tracked:
            self._edited.add(name)
            self.__dict__["_stamp"] = None

    def check_edits(self) -> None:
        """Raises an error for values that fields cannot hold, if users accessed a live array since the last check.

        Every call that computes something calls this first.  A field without a live reference is checked once after it
        was read or set.  A field with one is compared at each call, and checked if it has changed.  Ints that state
        which features are in use (`in_use`) follow the edits.

        Raises:
            ModelError: with the field, the element, the given value and the allowed values.
        """
        own, edited = self.__dict__, self._edited
        if own["_stamp"] is not None:
            return
        own["_stamp"] = self._own_stamp
        try:
            changed = check_edited(self._tracked, edited, functools.partial(check_field, self))
        except ModelError:
            own["_stamp"] = None
            raise
        if changed:
            self._follow(changed)
            own["_own_stamp"] = own["_stamp"] = object()  # all data of the model notice the edit
        if edited:
            own["_stamp"] = None

    def check_values(self, name: str, values: np.ndarray, worlds: bool = False) -> None:
        """Raises an error for values that a real field cannot hold.

        Args:
            name: the field.
            values: array of the field's shape, with a leading axis of worlds if `worlds` is set.

        Raises:
            ModelError: with the field, the element, the given value and the allowed values.
        """
        check_field(self, name, values, worlds)

    def holds_between(self, name: str, values: np.ndarray) -> bool:
        """Returns whether a real field can hold these rows (n, ...), and surely all values between them."""
        return holds_each(self, name, values)

    def is_editable(self, name: str) -> bool:
        """Returns whether users may write a field between steps: all reals, heights of height fields, some integers."""
        return is_editable(MODEL[name])

    def contents(self) -> list[np.ndarray]:
        """Returns all values that differ between models of equal sizes: the three buffers, and the keyframes."""
        return [*(self.__dict__[f"{kind}_buffer"] for kind in BUFFERS), *(getattr(self, n) for n in KEYFRAME_FIELDS)]

    def _follow(self, changed: Set[str]) -> None:
        """Updates the ints and sizes that depend on edited reals: which features are in use, which geoms rays hit."""
        own, values = {**self.__dict__, **self._sizes}, {}
        if not changed.isdisjoint(DECIDING):
            values |= in_use(self)
        if "geom_rgba" in changed and not self._sizes["nvariant"]:
            known = (own["geom_type"] != SDF) | (own["geom_field"] != NO_FIELD)  # rays that hit others are refused
            values["geom_visible"] = np.where(known, visible_with(self.mj_model, own["geom_rgba"]), own["geom_visible"])
        self.take_constants({name: new for name, new in values.items() if not np.array_equal(own[name], new)})

    def __dir__(self):
        return sorted({*super().__dir__(), *self._sizes, *KEYFRAME_FIELDS, "nkey"})

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}={self._sizes[name]}" for name in ("nq", "nv", "nu", "nbody", "ngeom", "ncand"))
        return f"Model({self.source!r}, {sizes})"

    def size_values(self) -> dict[str, int]:
        """Returns the current sizes and integer options by field name; must not be modified."""
        return self._sizes

    def _set_size(self, name: str, value: int) -> None:
        self._sizes[name] = value
        self.renew()

    def renew(self) -> None:
        """Lets all data and batches of the model prepare their next call: a size or a user callback has changed."""
        self.__dict__["revision"] += 1
        self.__dict__["_own_stamp"] = object()
        self.__dict__["_stamp"] = None if self._edited else self._own_stamp

    def names(self, kind: str) -> list[str]:
        """Returns names of all objects of a kind (`body`, `joint`, `geom`, ...) in id order, empty for unnamed ones."""
        return list(self._known_names(kind))

    def _known_names(self, kind: str) -> list[str]:
        """Returns the names of `names`, the same list at each call."""
        if not isinstance(kind, str) or kind not in self._names:
            is_link = isinstance(kind, str) and kind == "link"
            self._names[kind] = list(self.link_names) if is_link else object_names(self, kind)
        return self._names[kind]

    def _name_index(self, kind: str) -> dict[str, int]:
        """Returns a mapping from names to ids."""
        if kind not in self._ids:
            self._ids[kind] = {name: i for i, name in enumerate(self.names(kind)) if name}
        return self._ids[kind]

    def candidate_pairs(self) -> np.ndarray:
        """Returns the pairs of geoms that may collide, (n, 2), whatever the flags that disable contacts.

        A pair is listed if an explicit `<pair>` names it, or if the masks, the exclusions and the tree of bodies allow
        it to collide.  The pairs that a bounding volume tree finds are included.
        """
        found = candidates(self.mj_model) if self.ncrowd else self.__dict__
        return np.stack([found["cand_geom1"], found["cand_geom2"]], axis=1)

    @property
    def unsupported_sensors(self) -> dict[int, str]:
        """Returns the sensors whose values are not computed, by id, each with the reason."""
        from featherlane.engine.model.features import unsupported_sensors  # imports mujoco

        return unsupported_sensors(self)

    def missing_functions(self) -> list[str]:
        """Returns a line for each actuator of the type `user` that lacks a function, such as `actuator 'a': gain`."""
        return missing_functions(self)

    def keyframe(self, key: str | int) -> NamedView:
        """Returns the keyframe with this name or id."""
        return find_object(self, "keyframe", key)

    def keyframe_numbers(self, keyframe: Any, n: int) -> np.ndarray:
        """Returns a keyframe's number for each of n worlds, checked; an empty array for the defaults."""
        if keyframe is None or (type(keyframe) is int and keyframe == -1):
            return np.zeros(0, np.int64)
        if isinstance(keyframe, str):
            keyframe = self.keyframe(keyframe).id
        given = regular("keyframe", keyframe)
        try:
            keys = np.broadcast_to(given, (n,))
        except ValueError:
            raise ModelError(f"keyframe: got shape {given.shape}, allowed is () or ({n},)") from None
        if keys.dtype.kind not in "iu" or ((keys < -1) | (keys >= self.nkey)).any():
            raise ModelError(f"keyframe: got {keyframe!r}, allowed are -1 to {self.nkey - 1} and names")
        return keys

    def pair(self, key: str | int) -> NamedView:
        """Returns the explicit geom pair with this name or id."""
        return find_object(self, "pair", key)

    def exclude(self, key: str | int) -> NamedView:
        """Returns the exclusion of contacts with this name or id: `.signature`, as MuJoCo stores its two bodies."""
        return find_object(self, "exclude", key)

    def light(self, key: str | int) -> NamedView:
        """Returns the light with this name or id: MuJoCo's fields."""
        return find_object(self, "light", key)

    def mesh(self, key: str | int) -> NamedView:
        """Returns the mesh with this name or id: MuJoCo's fields."""
        return find_object(self, "mesh", key)

    def material(self, key: str | int) -> NamedView:
        """Returns the material with this name or id: MuJoCo's fields."""
        return find_object(self, "material", key)

    def numeric(self, key: str | int) -> NamedView:
        """Returns the numbers of the model's `<custom>` section with this name or id: `.data`."""
        return find_object(self, "numeric", key)

    def write_to(self, mj_model: Any) -> None:
        """Writes every editable field that MuJoCo has into an MjModel of the same sizes."""
        for field in filter(is_mujocos, MODEL.fields):
            if is_editable(field):
                write_field(mj_model, field.name, self.__dict__[field.name])
            elif field.name.startswith("opt_"):
                write_field(mj_model, field.name, self._sizes[field.name])
        absent = self.__dict__["geom_variant"] == ABSENT_GEOM
        for name in ("geom_contype", "geom_conaffinity"):
            getattr(mj_model, name)[:] = np.where(absent, 0, self.__dict__[name])

    def take_constants(self, values: Mapping[str, Any]) -> None:
        """Sets fields without a check, because they are derived or already checked: reals, ints and sizes."""
        for name, value in values.items():
            if MODEL[name].kind == "size":
                self._set_size(name, int(value))
            else:
                self._memory[name][...] = np.ravel(value)

    def take_over(self, other: Model) -> None:
        """Copies another model of the same sizes into this one in place, so that batches of this model change too."""
        own = self.__dict__
        own.update({name: getattr(other, name) for name in TAKEN})
        for name, memory in self._memory.items():
            memory[...] = other._memory[name]
        self._sizes.update(other._sizes)
        self._edited.update(self._tracked)
        own["_stamp"], own["_own_stamp"] = None, object()
        own["revision"] = max(self.revision + 1, other.revision)

    def to_mujoco(self) -> Any:
        """Returns a new `mujoco.MjModel` with all current edits.

        Warns:
            UserWarning: edits of `actuator_pidprm`, which an MjModel stores as the text of a plugin's configuration.
        """
        mj_model = self.edited_mujoco()
        stored = actuator_kinds(with_missing_fields(mj_model))["actuator_pidprm"]
        changed = np.flatnonzero((self.actuator_pidprm != stored).any(1))
        if changed.size:
            labels = ", ".join(entry_label(self, "actuator_pidprm", (int(i),)) for i in changed)
            warnings.warn(f"to_mujoco: edits are not in the MjModel: {labels}", stacklevel=2)
        return mj_model

    def edited_mujoco(self) -> Any:
        """Returns a new `mujoco.MjModel` with all current edits of MuJoCo's fields."""
        mj_model = copy.copy(self.mj_model)
        self.write_to(mj_model)
        if not all(np.array_equal(read_field(mj_model, name), new) for name, new in in_use(self).items()):
            import mujoco

            mujoco.mj_setConst(mj_model, mujoco.MjData(mj_model))  # only mj_setConst can set them
            self.write_to(mj_model)
        return mj_model


def peek(model: Model, name: str) -> np.ndarray:
    """Returns a read-only view of a field; unlike `model.name`, it does not count as a possible edit of the model.

    Args:
        model: the model.
        name: name of an array of the model (`body_mass`, `opt_gravity`).
    """
    view = model.__dict__[name].view()
    view.flags.writeable = False
    return view


def check_model(model: Any) -> None:
    """Raises an error if the argument is not a model.

    Raises:
        TypeError: it is not a Model.
    """
    instance("model", model, Model, "a Model (created by featherlane.load)", ArgumentTypeError)


for _name in LIVE:
    setattr(Model, _name, _Live(_name))
