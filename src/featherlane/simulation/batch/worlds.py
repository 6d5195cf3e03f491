"""What lasts of a batch: a row per world for each state field, per-world model fields, and what is kept or reset."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from featherlane.errors import ArgumentTypeError, ModelError, UnknownAttributeError, near
from featherlane.lanes import processor
from featherlane.model.arguments import count, instance
from featherlane.model.assignment import assign, is_mixed, regular
from featherlane.model.enums import Enable
from featherlane.model.fields import MODEL
from featherlane.model.history import empty_history
from featherlane.model.limits import check_field
from featherlane.model.model import Model
from featherlane.model.names import NamedAccess
from featherlane.model.set_const import model_of_world
from featherlane.model.sleep import AWAKE
from featherlane.simulation.batch.expanded import Expanded, dependent
from featherlane.simulation.batch.room import Room
from featherlane.simulation.tile.fields import DATA, STATUS
from featherlane.simulation.tile.turn import Turn, hold
from featherlane.simulation.tile.uninterrupted import Assignment, set_all
from featherlane.simulation.tile.workspace import Workspace, mocap_defaults, plastic_defaults, sleep_defaults
from featherlane.simulation.world.contacts import Contacts, takes_contacts
from featherlane.simulation.world.given import given_fields, room_for

MOCAP = ("mocap_pos", "mocap_quat")
EVOLVING, INPUTS = DATA.of("state"), DATA.of("drive", "input")
STATE = EVOLVING + INPUTS
DROPPED = (*(name for name in INPUTS if name not in MOCAP), "given_present", "given_replace")  # at a reset
ON_DEMAND = DATA.asked("use")  # kept once somebody asks for them
GIVEN_ROWS = DATA.of("given")  # kept where room for given contacts was asked for
SLEEP_ROWS = DATA.of("memory")  # kept once the flag `sleep` was on
LASTING = DATA.that("lasts")
REPORTS, COUNTS = DATA.of("report", "count"), DATA.of("count")
SLEEPS = int(Enable.SLEEP)  # flags of Python's take a microsecond
BINDABLE = dict.fromkeys(DATA.that("shown"))  # fields that each world has


class WorldRows(NamedAccess):
    """The rows of nworld worlds of one model, `(nworld, ...)` in C order, with checks of what is written to them.

    Raises:
        TypeError: `model` is no Model.
        ModelError: nworld out of range, an unknown dtype.
    """

    layout = DATA
    world_axes = 1
    model: Model
    dtype: np.dtype
    nworld: int
    ngiven: int
    _arrays: dict[str, np.ndarray]
    _bound: dict[str, np.ndarray]
    _expanded: Expanded
    _room: Room | None
    _turn: Turn
    _computed = False  # a step, a forward pass or a reset has run: outputs that were not bound by then have no values

    def __init__(self, model: Model, nworld: int, dtype: DTypeLike, given_contacts: int = 0):
        instance("Batch", model, Model, "a Model (featherlane.load makes one)", ArgumentTypeError)
        own = self.__dict__
        own["model"], own["dtype"], own["nworld"] = model, precision(dtype), count("nworld", nworld, 1)
        own["ngiven"], own["_room"] = room_for(given_contacts), None
        own["_arrays"], own["_bound"], own["_expanded"] = {}, {}, Expanded(model, self.nworld, self.dtype)
        given = GIVEN_ROWS if self.ngiven else ()
        for name in (*(n for n in STATE if n not in ON_DEMAND), *REPORTS, *given):
            own["_arrays"][name] = self._rows(DATA[name])
        set_all(self._defaults(np.arange(nworld)))
        self._keep_sleep()

    def _rows(self, field) -> np.ndarray:
        if self._room is not None:
            return self._room.rows(field)
        return np.zeros((self.nworld, *field.dims(self._sizes)), field.stored_as(self.dtype))

    def _move_into(self, room: Room) -> None:
        """Keep rows, those that are made later, too, in a part of arrays that other batches have parts of."""
        self.__dict__["_room"] = room
        for arrays in (self._arrays, self._bound):
            for name, old in arrays.items():
                arrays[name] = room.rows(DATA[name])
                arrays[name][...] = old
                self.__dict__.pop(name, None)  # a view of what was there
        self._rows_changed()

    @property
    def _sizes(self):
        if "_size_table" not in self.__dict__:
            self.__dict__["_size_table"] = Workspace.sizes_of(self.model, self.ngiven)
        return self.__dict__["_size_table"]

    # ---- fields ------------------------------------------------------------------------------------------------------
    def __getattr__(self, name: str) -> Any:
        arrays = self.__dict__.get("_arrays", {})
        if name in arrays:
            # from now on an attribute like any other: asking for it is twenty times as fast
            self.__dict__[name] = shown = DATA[name].public(arrays[name])
            return shown
        if name in ON_DEMAND:
            arrays[name] = self._rows(DATA[name])
            self._rows_changed()
            return arrays[name]
        if name in SLEEP_ROWS:
            self._add_sleep()
            return arrays[name]
        if name in BINDABLE:
            return self._read(name)
        if name == "failures":
            return self._found_failures()
        raise UnknownAttributeError(f"batch has no {name!r}{near(name, BINDABLE)}")

    def __setattr__(self, name: str, value):
        if name in STATE:
            assign(name, getattr(self, name), value, mixed=is_mixed(name))
        elif name in DATA or name in self.__dict__:
            raise UnknownAttributeError(f"{name} is computed; it cannot be set (state fields are {', '.join(STATE)})")
        else:
            raise UnknownAttributeError(f"batch has no {name!r} to set{near(name, STATE)}")

    # ---- memory ------------------------------------------------------------------------------------------------------
    @property
    def rows(self) -> Mapping[str, np.ndarray]:
        """Memory of what lasts (state, inputs in use, reports) by field, (nworld, ...); writes to it are unchecked."""
        return MappingProxyType(self._arrays)

    @property
    def bound(self) -> Mapping[str, np.ndarray]:
        """Memory of the bound outputs by field, (nworld, ...)."""
        return MappingProxyType(self._bound)

    @property
    def expanded_fields(self) -> Mapping[str, np.ndarray]:
        """Memory of the model fields that differ by world, (nworld, ...); `expanded` gives arrays with checks."""
        return MappingProxyType(self._expanded)

    def row_memory(self, name: str) -> np.ndarray:
        """Returns the memory of a state field, allocated at the first use."""
        getattr(self, name)
        return self._arrays[name]

    # ---- outputs -----------------------------------------------------------------------------------------------------
    def bind(self, name: str) -> np.ndarray:
        """A live array over a field: state itself, or an output that each call refreshes.

        After `step` an output is that of the last step's old state, as in MuJoCo; after `forward` it is current.  An
        output is zero until the first `step`, `forward` or `reset`.  One that is bound later is NaN until the next call
        computes it, because no call kept its values; `batch.xpos` instead of `bind` raises an error then.

        Args:
            name: a state field or a derived field of `fl.Data` (`xpos`, `cvel`, `qfrc_constraint`, ...).

        Returns:
            (nworld, ...) array; outputs are read-only.

        Raises:
            ModelError: no such field, or one that belongs to a tile and not to a world.
            UnsupportedFeatureError: `sensordata`, with the sensors that are not computed.
        """
        check_bindable(self.model, "bind", name)
        if name in LASTING or name in self._arrays:
            return getattr(self, name)
        return self._bind(name)

    def _bind(self, name: str) -> np.ndarray:
        """A live array over an output."""
        if name not in self._bound:
            self._bound[name] = rows = self._rows(DATA[name])
            rows[...] = np.nan if self._computed else 0.0
            self._rows_changed()
        if name in self.__dict__:
            return self.__dict__[name]
        view = DATA[name].public(self._bound[name]).view()
        view.flags.writeable = False
        if name != "sensordata":  # whoever asks for all sensors is told of those that are not computed
            self.__dict__[name] = view
        return view

    def _read(self, name: str) -> np.ndarray:
        """An output of the last call, bound from now on."""
        check_bindable(self.model, "bind", name)
        self._check_kept(name)
        return self._bind(name)

    def _check_kept(self, name: str) -> None:
        """Refuse to read an output whose values the last call did not keep."""
        if self._computed and name not in self._bound:
            raise not_kept(name)

    def writable(self, name: str) -> np.ndarray:
        """An output of the last call, to be written; what is written lasts until the next call.

        Raises:
            ModelError: it was not bound before the last call.
        """
        self._read(name)
        return self._bound[name]

    def sensor_values(self, sensor: int) -> np.ndarray:
        """`sensordata`, to read one sensor.

        Raises:
            ModelError: it was not bound before the last call.
            UnsupportedFeatureError: the sensor is not computed.
        """
        from featherlane.model.features import refuse_sensors

        refuse_sensors(self.model, [sensor])
        self._check_kept("sensordata")
        return self._bind("sensordata")

    def expand(self, name: str) -> np.ndarray:
        """Give a real model field its own values in each world.

        After writing fields that others depend on (masses, inertias, ...), call `set_const`.  A field may be 0 in the
        model and not in a world, and the reverse: each call looks at the values of all worlds.

        Args:
            name: a real field of the model (`body_mass`), options as `opt.timestep` or `opt_timestep`.

        Returns:
            (nworld, ...) live array, at first the model's values.

        Raises:
            ModelError: no such real field.
            RuntimeError: another thread is in a call of this batch.
        """
        if isinstance(name, str):
            name = name.replace("opt.", "opt_")
        if not isinstance(name, str) or name not in MODEL or MODEL[name].kind != "real":
            allowed = [f.name for f in MODEL.fields if f.kind == "real"]
            raise ModelError(f"expand: {name!r} is no real field of a model{near(name, allowed)}")
        hold((self._turn,), self._expand, name)
        return self._expanded.lend(name)

    def _expand(self, name: str) -> np.ndarray:
        """The rows of a model field, for the engine."""
        if name not in self._expanded:
            self._expanded.add(name)
            self._expansion_changed()
        return self._expanded[name]

    def expanded(self, name: str) -> np.ndarray | None:
        """The per-world values of a model field, or None where all worlds share the model's."""
        if isinstance(name, str):
            name = name.replace("opt.", "opt_")
        return self._expanded.lend(name) if isinstance(name, str) and name in self._expanded else None

    def _check_edits(self) -> None:
        """Refuse numbers that fields of the model cannot hold, expanded or not; see `Model.check_edits`."""
        self.model.check_edits()
        self._expanded.check_edits()

    def set_const(self, ids=None) -> None:
        """Recompute, world by world, the model fields that depend on expanded ones; they become per-world.

        Raises:
            ModelError: ids out of range, numbers that fields cannot hold.
            RuntimeError: another thread is in a call of this batch.
        """
        hold((self._turn,), self._set_const, self._ids(ids))

    def _set_const(self, chosen: np.ndarray) -> None:
        inputs = self._expanded.inputs()
        self._check_edits()
        for name in dependent(self.model, self._expanded):
            self._expand(name)
        self._expanded.set_const(chosen, inputs)

    # ---- given contacts ----------------------------------------------------------------------------------------------
    @takes_contacts
    def give_contacts(self, contacts: Contacts, *, replace=False, count=None, ids=None) -> None:
        """Give each world contacts of its own, beside those that are detected or instead of them.

        As `Data.give_contacts`, with a leading axis of worlds: arrays broadcast to (nworld, n, ...), so that (n, ...)
        gives all worlds the same.  Contacts live in the rows of their world: a reset clears them, a checkpoint holds
        them, and worlds whose contacts join other bodies may share a tile.

        Args:
            contacts: a `featherlane.Contacts`; or what it is made of, with the same names.
            replace: () or (nworld,): no contacts are detected in this world.
            count: (nworld,) a world's contacts are its first `count`; None: all n.
            ids: the worlds, by number or as a mask, whose contacts are given; None for all.

        Raises:
            ModelError: as in `Data.give_contacts`; room is made by `Batch(..., given_contacts=n)`.
        """
        chosen = self._ids(ids)

        def values(name):
            rows = self._expanded.get(name)
            return self.model.__dict__[name][None] if rows is None else rows[chosen]

        adhesive = self._expanded.in_use().get("flg_adhesion", self.model.flg_adhesion)
        rows = given_fields(self.model, self.ngiven, len(chosen), values, adhesive, replace, count, contacts)
        for name, value in rows.items():
            self._arrays[name][chosen] = value

    def clear_given_contacts(self, ids=None) -> None:
        """No given contacts in these worlds, and contacts are detected."""
        if self.ngiven:
            for name in ("given_present", "given_replace"):
                self._arrays[name][self._ids(ids)] = 0

    @property
    def status(self) -> dict[str, np.ndarray]:
        """Counts since the last reset of each world, by name, each (nworld,) int64."""
        return {n: self._arrays["warning"][:, k].astype(np.int64) for k, n in enumerate(STATUS)}

    def count_of(self, *causes: str) -> np.ndarray:
        """How often since its last reset each world had one of these causes of `status`, (nworld,)."""
        counts, total = self._arrays["warning"], np.zeros(self.nworld)
        for cause in causes:
            total += counts[:, STATUS.index(cause)]
        return total

    def is_left_out(self, name: str) -> bool:
        """Is it an input that nobody has asked for yet, zero in all worlds?"""
        return isinstance(name, str) and name in ON_DEMAND and name not in self._arrays

    def _rows_changed(self) -> None:
        """Called when worlds get rows of another field."""
        self.__dict__.pop("_row_views", None)

    def _expansion_changed(self) -> None:
        """Called when a model field becomes per-world."""

    def _worlds_set(self, worlds) -> None:
        """Called when worlds are set anew: their state does not follow from their last step."""

    def _found_failures(self) -> list:
        """Steps that went wrong."""
        raise NotImplementedError

    # ---- worlds ------------------------------------------------------------------------------------------------------
    def _ids(self, ids) -> np.ndarray:
        """World numbers (n,) int64, checked."""
        return chosen_worlds(ids, self.nworld)

    def _world(self, world) -> int:
        """One world's number, checked."""
        return count("world", world, 0, self.nworld - 1)

    def _defaults(self, at: np.ndarray) -> list[Assignment]:
        """The model's default state and inputs, with what each world has for itself where fields are expanded."""
        self._worlds_set(at)
        q0 = self._expanded.get("qpos0")
        new = {"qpos": self.model.qpos0 if q0 is None else q0[at], "eq_active": self.model.eq_active0}
        new |= mocap_defaults(self.model, lambda name: self._expanded.own(name, at))
        if self.model.nhistory:
            step, interval = (self._expanded.own(name, at) for name in ("opt_timestep", "sensor_interval"))
            new["history"] = empty_history(self.model, step.ravel(), interval)
        if self.model.nplastic:
            rest = (self._expanded.own(name, at) for name in ("qpos_spring", "tendon_lengthspring"))
            new["plastic"] = plastic_defaults(self.model, *rest)
        values = [(rows, at, zero) for rows, zero in self._whole_rows((*EVOLVING, *REPORTS, *DROPPED))]
        values += [(self._arrays[name], at, value) for name, value in new.items() if self._arrays[name].size]
        return values + (self._sleep_defaults(at, new) if "tree_asleep" in self._arrays else [])

    def _whole_rows(self, names: tuple[str, ...]) -> list[tuple[np.ndarray, Any]]:
        """Of each field that worlds have numbers of: a view with one element for each world, and a zero of its kind.

        A row that is one element is set in a fifth of the time.
        """
        kept = self.__dict__.setdefault("_row_views", {})
        if names not in kept:
            kept[names] = [whole_rows(self._arrays[n]) for n in names if n in self._arrays and self._arrays[n].size]
        return kept[names]

    def _add_sleep(self) -> None:
        """Rows of what sleeps."""
        rows = {name: self._rows(DATA[name]) for name in SLEEP_ROWS}
        set_all(self._sleep_defaults(np.arange(self.nworld), self._arrays, rows))
        self._arrays.update(rows)
        self._rows_changed()

    def _sleep_defaults(self, at: np.ndarray, state: Mapping[str, np.ndarray], rows=None) -> list[Assignment]:
        """What sleeps as the model starts worlds, in a state; into the worlds' rows, or into new ones."""
        mocap = [np.broadcast_to(state[name], (len(at), *self._arrays[name].shape[1:])) for name in MOCAP]
        new = sleep_defaults(self.model) | {"sleep_qpos": state["qpos"], "sleep_mocap": np.concatenate(mocap, axis=-1)}
        return [((rows or self._arrays)[name], at, value) for name, value in new.items()]

    def _keep_sleep(self) -> None:
        """Rows of what sleeps where the flag `sleep` is on; all awake where it was switched off."""
        if self.model.opt_enableflags & SLEEPS:
            if "tree_asleep" not in self._arrays:
                self._add_sleep()
        elif "tree_asleep" in self._arrays:
            self._arrays["tree_asleep"][...] = AWAKE

    # ---- keeping -----------------------------------------------------------------------------------------------------
    def checkpoint(self) -> dict[str, np.ndarray]:
        """Copies of all that lasts: state rows, reports, expanded model fields; for `restore`, np.savez, pickle."""
        kept = {name: a.copy() for name, a in self._arrays.items()}
        return kept | {f"model.{name}": a.copy() for name, a in self._expanded.items()}

    def _kept_shape(self, key) -> tuple[int, ...] | None:
        """The shape that a checkpoint's array has; None where there is no such field."""
        name = key.removeprefix("model.") if isinstance(key, str) else ""
        if name != key:
            real = name in MODEL and MODEL[name].kind == "real"
            return (self.nworld, *self.model.__dict__[name].shape) if real else None
        if name in self._arrays or name in (*ON_DEMAND, *SLEEP_ROWS):
            return (self.nworld, *DATA[name].dims(self._sizes))
        return None

    def restore(self, kept) -> None:
        """Take over a checkpoint; the worlds go on bit for bit.

        Raises:
            ModelError: a field is missing, or of another shape or dtype; nothing is taken over then.
            RuntimeError: another thread is in a call of this batch; nothing is taken over then.
        """
        instance("restore", kept, Mapping, "what checkpoint() gave")
        for name in self._arrays:
            if name not in kept and name not in (*ON_DEMAND, *SLEEP_ROWS):
                raise ModelError(f"restore: the checkpoint lacks {name!r}")
        values = {key: regular(f"restore: {key}", kept[key]) for key in kept}
        for key, value in values.items():
            shape, dtype = self._kept_shape(key), self.dtype
            if shape is not None:
                dtype = (MODEL if key.startswith("model.") else DATA)[key.removeprefix("model.")].stored_as(dtype)
            if shape is None or value.shape != shape or value.dtype != dtype:
                allowed = "no such field" if shape is None else f"allowed is {dtype} {shape}"
                raise ModelError(f"restore: {key}: got {value.dtype} {value.shape}, {allowed}")
            if key.startswith("model."):
                check_field(self.model, key.removeprefix("model."), value, worlds=True)
        hold((self._turn,), self._take_over, values)

    def _take_over(self, values: Mapping[str, np.ndarray]) -> None:
        """Set all rows to the checked arrays of a checkpoint, or to defaults that it omits."""
        self._worlds_set(slice(None))
        new: list[Assignment] = []
        for key, value in values.items():
            name = key.removeprefix("model.")
            target = self._expand(name) if name != key else getattr(self, key)
            new.append((target, ..., value.reshape(target.shape)))
        new += [(self._arrays[name], ..., 0) for name in ON_DEMAND if name in self._arrays and name not in values]
        if "tree_asleep" in self._arrays and "tree_asleep" not in values:
            new.append((self._arrays["tree_asleep"], ..., AWAKE))
        shared = {name: rows for name, rows in self._expanded.items() if f"model.{name}" not in values}
        set_all(new + [(rows, ..., self.model.__dict__[name]) for name, rows in shared.items()])

    def get_model(self, world: int):
        """One world's model: a copy with its expanded fields."""
        w = self._world(world)
        return model_of_world(self.model, {name: rows[w] for name, rows in self._expanded.items()})


def whole_rows(array: np.ndarray) -> tuple[np.ndarray, Any]:
    """A view with one element for each row of an array, and an element of zeros; the array itself where a row is no
    piece of memory, as in arrays that batches of different models share."""
    flat = array.reshape(len(array), -1)
    if not np.may_share_memory(flat, array):
        return array, 0
    row = np.dtype((np.void, flat[0].nbytes))
    return flat.view(row)[:, 0], np.zeros((), row)[()]


def check_bindable(model: Model, call: str, name: Any) -> None:
    """Refuses what is no field of a world, and sensors that are not computed; `call` is named in the error."""
    if isinstance(name, str) and name == "sensordata":
        from featherlane.model.features import refuse_sensors

        refuse_sensors(model)
    check_field_name(call, name)


def check_field_name(call: str, name: Any) -> None:
    """Refuses what is no name of a field of a world."""
    if not isinstance(name, str) or name not in BINDABLE:
        raise ModelError(f"{call}: {name!r} is no field of a world{near(name, BINDABLE)}")


def keyframe_numbers(model: Model, keyframe: Any, n: int) -> np.ndarray:
    """A keyframe's number for each of n worlds, checked; none for the defaults of all, the common case."""
    if type(keyframe) is int and keyframe == -1:
        return np.zeros(0, np.int64)
    if isinstance(keyframe, str):
        keyframe = model.keyframe(keyframe).id
    given = regular("keyframe", keyframe)
    try:
        keys = np.broadcast_to(given, (n,))
    except ValueError:
        raise ModelError(f"keyframe: got shape {given.shape}, allowed is () or ({n},)") from None
    if keys.dtype.kind not in "iu" or ((keys < -1) | (keys >= model.nkey)).any():
        raise ModelError(f"keyframe: got {keyframe!r}, allowed are -1 to {model.nkey - 1}, or a name")
    return keys


def not_kept(name: str) -> ModelError:
    """The error of reading an output that was not bound before the last call."""
    return ModelError(
        f"{name}: it was not bound before the last call, which did not keep its values; call batch.bind({name!r}), "
        "then batch.step() or batch.forward(); an environment takes the name in `fields`"
    )


def precision(dtype) -> np.dtype:
    """A dtype that kernels compute in, checked."""
    try:
        processor.base_of(dtype)
    except ValueError as error:
        raise ModelError(str(error)) from None
    given = np.dtype(dtype)
    if not given.isnative:
        raise ModelError(f"dtype is {given.str!r}; allowed are float64 and float32 in this machine's byte order")
    return given


def chosen_worlds(ids, nworld: int) -> np.ndarray:
    """World numbers (n,) int64, checked: `ids` are numbers, a mask, or None for all."""
    if ids is None:
        return np.arange(nworld)
    a = regular("ids", ids)
    if a.dtype == bool:
        if a.shape != (nworld,):
            raise ModelError(f"ids: got a mask of shape {a.shape}, allowed is ({nworld},)")
        return np.flatnonzero(a)
    a = a if a.ndim else a[None]
    if a.size == 0:
        return np.zeros(0, np.int64)
    if a.ndim != 1 or a.dtype.kind not in "iu":
        raise ModelError(f"ids: got {a.dtype} of shape {a.shape}, allowed are whole numbers (n,) or a mask")
    if a[0] >= 0 and a[-1] < nworld and (a[1:] > a[:-1]).all():
        return a.astype(np.int64, copy=False)  # the common case, without a sort
    wrong = a[(a < 0) | (a >= nworld)]
    if wrong.size:
        raise ModelError(f"ids: got {wrong[0]}, allowed are 0 to {nworld - 1}")
    if len(np.unique(a)) != len(a):
        raise ModelError("ids: a world is named twice")
    return a.astype(np.int64)
