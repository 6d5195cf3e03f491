"""Defines `WorldArrays`, a batch's arrays with one row per world: state, bound outputs, per-world model fields."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from featherlane.engine.lanes import aligned, processor
from featherlane.engine.model.assignment import regular
from featherlane.engine.model.enums import Enable
from featherlane.engine.model.fields import MODEL
from featherlane.engine.model.history import empty_history
from featherlane.engine.model.limits import check_field
from featherlane.engine.model.model import Model
from featherlane.engine.model.sleep import AWAKE
from featherlane.engine.simulation.batch.expanded import Expanded, Lender, RowSource
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.engine.simulation.tile.uninterrupted import Assignment, set_all
from featherlane.engine.simulation.tile.workspace import Workspace, mocap_defaults, plastic_defaults, sleep_defaults
from featherlane.engine.simulation.world.data import KEYFRAME
from featherlane.engine.simulation.world.recordings import INPUTS
from featherlane.errors import ModelError

MOCAP = ("mocap_pos", "mocap_quat")
EVOLVING = DATA.of("state")
STATE = EVOLVING + INPUTS
DROPPED = (*(name for name in INPUTS if name not in MOCAP), "given_present", "given_replace")  # cleared by a reset
ON_DEMAND = DATA.conditional("use")  # allocated at the first use
GIVEN_ROWS = DATA.of("given")  # allocated if the batch has capacity for given contacts
SLEEP_ROWS = DATA.of("memory")  # allocated when the flag `sleep` is first on
LASTING = DATA.that("lasts")
REPORTS, COUNTS = DATA.of("report", "count"), DATA.of("count", "cause")
REPORTED = DATA.of("report", "count", "cause")  # stored by steps and forward passes, cleared by a reset
SLEEPS = int(Enable.SLEEP)  # an int, because testing a flag of Python's enum takes a microsecond


class WorldArrays:
    """Holds the arrays of nworld worlds of one model, `(nworld, ...)` in C order.

    Args:
        model: the model.
        nworld: number of worlds.
        dtype: dtype of reals, except fields that are float64 at every precision.
        ngiven: contacts that the caller may give to a world.
        place: function that writes zeros to a new array in the threads that step its rows; None: no one does.
        rows: provides the arrays, which have values already (`batch_of`); None: new arrays have the defaults.

    Attributes:
        rows: arrays that persist between calls, by field: state, inputs in use and reports.
        bound: outputs that each call stores, by field.
        expanded: model fields that differ by world.
        sizes: sizes of fields by name.
        revision: changes when an array is added or replaced.
    """

    def __init__(
        self,
        model: Model,
        nworld: int,
        dtype: np.dtype,
        ngiven: int,
        place: Callable[[np.ndarray], None] | None = None,
        rows: RowSource | None = None,
    ):
        self.model, self.nworld, self.dtype, self.ngiven, self.place = model, nworld, dtype, ngiven, place
        self.sizes = Workspace.sizes_of(model, ngiven)
        self.rows: dict[str, np.ndarray] = {}
        self.bound: dict[str, np.ndarray] = {}
        self.expanded = Expanded(model, nworld, dtype)
        self.revision = 0
        self._source, self._has_values = rows, rows is not None
        self._row_views: dict[tuple[str, ...], list[tuple[np.ndarray, Any]]] = {}
        given = GIVEN_ROWS if ngiven else ()
        for name in (*(n for n in STATE if self._has_values or n not in ON_DEMAND), *REPORTS, *given):
            self.rows[name] = self._new(name)
        if not self._has_values:
            set_all(self.defaults(np.arange(nworld)))
        self.keep_sleep()

    def _new(self, name: str) -> np.ndarray:
        """Returns a new array of a field, filled with zeros."""
        field = DATA[name]
        if self._source is not None:
            return self._source(field)
        rows = aligned((self.nworld, *field.dims(self.sizes)), field.stored_as(self.dtype))
        if self.place is not None:
            self.place(rows)
        return rows

    def _changed(self) -> None:
        self.revision += 1
        self._row_views.clear()

    def move_into(self, rows: RowSource, lender: Lender | None = None) -> None:
        """Moves all arrays, and those allocated later, into memory that others share; see `Expanded`."""
        self._source, self._has_values = rows, False
        for arrays in (self.rows, self.bound):
            for name, old in arrays.items():
                arrays[name] = self._new(name)
                arrays[name][...] = old
        self.expanded.move_into(rows, lender)
        self._changed()

    # ---- arrays ------------------------------------------------------------------------------------------------------
    def dims(self, name: str) -> tuple[int, ...]:
        """Returns the shape of a field of one world."""
        return DATA[name].dims(self.sizes)

    def lasting(self, name: str) -> np.ndarray:
        """Returns the array of a field that persists between calls, allocated at its first use."""
        if name not in self.rows:
            if name in SLEEP_ROWS:
                self._add_sleep()
            else:
                self.rows[name] = self._new(name)
                self._changed()
        return self.rows[name]

    def output(self, name: str) -> np.ndarray:
        """Returns the array of an output, which each call stores from now on; NaN until a call has computed it."""
        if name not in self.bound:
            self.bound[name] = rows = self._new(name)
            if not self._has_values:
                rows[...] = np.nan
            self._changed()
        return self.bound[name]

    @property
    def refreshed(self) -> dict[str, np.ndarray]:
        """Returns the bound outputs that steps and forward passes store; inverse dynamics stores the others."""
        return {name: rows for name, rows in self.bound.items() if DATA[name].stage != "inverse"}

    def expand(self, name: str) -> np.ndarray:
        """Returns the array of a model field, which differs by world from now on."""
        if name not in self.expanded:
            self.expanded.add(name)
            self._changed()
        return self.expanded[name]

    # ---- model fields ------------------------------------------------------------------------------------------------
    def check_edits(self) -> None:
        """Raises an error for values that fields of the model cannot hold, expanded or not; see `Model.check_edits`."""
        self.model.check_edits()
        self.expanded.check_edits()

    def share_expanded(self, other: WorldArrays) -> None:
        """Uses the per-world model fields of another batch, whose models have the same sizes."""
        for name, rows in other.expanded.items():
            if self.expanded.get(name) is not rows:
                self.expanded.tracked.pop(name, None)
                self.expanded[name] = rows
                self._changed()

    # ---- defaults ----------------------------------------------------------------------------------------------------
    def reset(self, chosen: np.ndarray, keys: np.ndarray) -> None:
        """Sets worlds to the defaults or to keyframes, within one bytecode."""
        values = self.defaults(chosen)
        for k in sorted(set(keys.tolist()) - {-1}) if len(keys) else ():
            at, model = chosen[keys == k], self.model
            for name, source in KEYFRAME.items():
                rows = self.rows[name]
                values.append((rows, at, np.reshape(getattr(model, f"key_{source}")[k], rows.shape[1:])))
        set_all(values)

    def defaults(self, at: np.ndarray) -> list[Assignment]:
        """Returns assignments of the default state and inputs to the worlds `at`, from their expanded fields."""
        q0, fields = self.expanded.get("qpos0"), self.model.__dict__  # attributes would count as possible edits
        new, sizes = {"qpos": fields["qpos0"] if q0 is None else q0[at], "eq_active": fields["eq_active0"]}, self.sizes
        if self.rows["mocap_pos"].size or "tree_asleep" in self.rows:
            new |= mocap_defaults(self.model, lambda name: self.expanded.own(name, at))
        if sizes["nhistory"]:
            step, interval = (self.expanded.own(name, at) for name in ("opt_timestep", "sensor_interval"))
            new["history"] = empty_history(self.model, step.ravel(), interval)
        if sizes["nplastic"]:
            rest = (self.expanded.own(name, at) for name in ("qpos_spring", "tendon_lengthspring"))
            new["plastic"] = plastic_defaults(self.model, *rest)
        values = [(rows, at, zero) for rows, zero in self._whole_rows((*EVOLVING, *REPORTED, *DROPPED))]
        values += [(self.rows[name], at, value) for name, value in new.items() if self.rows[name].size]
        return values + (self._sleep_defaults(at, new) if "tree_asleep" in self.rows else [])

    def _whole_rows(self, names: tuple[str, ...]) -> list[tuple[np.ndarray, Any]]:
        """Returns, for each non-empty field, a view with one element per world, and a zero of the element's type.

        Setting a row that is one element takes a fifth of the time.
        """
        if names not in self._row_views:
            arrays = (self.rows[n] for n in names if n in self.rows)
            self._row_views[names] = [whole_rows(a) for a in arrays if a.size]
        return self._row_views[names]

    # ---- sleep -------------------------------------------------------------------------------------------------------
    def _add_sleep(self) -> None:
        """Allocates the arrays of sleep."""
        rows = {name: self._new(name) for name in SLEEP_ROWS}
        if not self._has_values:
            set_all(self._sleep_defaults(np.arange(self.nworld), self.rows, rows))
        self.rows.update(rows)
        self._changed()

    def _sleep_defaults(self, at: np.ndarray, state: Mapping[str, np.ndarray], rows=None) -> list[Assignment]:
        """Returns assignments of the initially sleeping trees, into the worlds' arrays or into new ones."""
        mocap = [np.broadcast_to(state[name], (len(at), *self.rows[name].shape[1:])) for name in MOCAP]
        new = sleep_defaults(self.model) | {"sleep_qpos": state["qpos"], "sleep_mocap": np.concatenate(mocap, axis=-1)}
        return [((rows or self.rows)[name], at, value) for name, value in new.items()]

    def keep_sleep(self) -> None:
        """Allocates the arrays of sleep if the flag `sleep` is on; wakes all trees if it was switched off."""
        if self.model.opt_enableflags & SLEEPS:
            self.lasting("tree_asleep")
        elif "tree_asleep" in self.rows:
            self.rows["tree_asleep"][...] = AWAKE

    # ---- checkpoints -------------------------------------------------------------------------------------------------
    def checkpoint(self) -> dict[str, np.ndarray]:
        """Returns copies of all persistent arrays; a model field `name` is stored under `model.name`."""
        kept = {name: a.copy() for name, a in self.rows.items()}
        return kept | {f"model.{name}": a.copy() for name, a in self.expanded.items()}

    def checked_checkpoint(self, kept: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Returns the arrays of a checkpoint, checked.

        Raises:
            ModelError: a field is missing, or has another shape or dtype.
        """
        for name in self.rows:
            if name not in kept and name not in (*ON_DEMAND, *SLEEP_ROWS):
                raise ModelError(f"restore: the checkpoint does not contain {name!r}")
        values = {key: regular(f"restore: {key}", kept[key]) for key in kept}
        for key, value in values.items():
            name = str(key).removeprefix("model.")
            is_own, allowed = name != key, "which is not a field of a checkpoint"
            real = name in MODEL and MODEL[name].kind == "real"
            if real if is_own else name in (*self.rows, *ON_DEMAND, *SLEEP_ROWS):
                field = (MODEL if is_own else DATA)[name]
                shape, dtype = (self.nworld, *field.dims(self.sizes)), field.stored_as(self.dtype)
                allowed = "" if (value.shape, value.dtype) == (shape, dtype) else f"allowed is {dtype} {shape}"
            if allowed:
                raise ModelError(f"restore: {key}: got {value.dtype} {value.shape}, {allowed}")
            if is_own:
                check_field(self.model, name, value, worlds=True)
        return values

    def restore(self, values: Mapping[str, np.ndarray]) -> None:
        """Sets all arrays to those of a checked checkpoint; sets fields that it omits to their defaults."""
        new: list[Assignment] = []
        for key, value in values.items():
            name = key.removeprefix("model.")
            target = self.expand(name) if name != key else self.lasting(key)
            new.append((target, ..., value.reshape(target.shape)))
        new += [(self.rows[name], ..., 0) for name in ON_DEMAND if name in self.rows and name not in values]
        if "tree_asleep" in self.rows and "tree_asleep" not in values:
            new.append((self.rows["tree_asleep"], ..., AWAKE))
        shared = {name: rows for name, rows in self.expanded.items() if f"model.{name}" not in values}
        set_all(new + [(rows, ..., self.model.__dict__[name]) for name, rows in shared.items()])

    def __getstate__(self):
        return self.__dict__ | {"_source": None, "_has_values": False, "_row_views": {}, "place": None}


def whole_rows(array: np.ndarray) -> tuple[np.ndarray, Any]:
    """Returns a view with one element per row of an array, and a zero of that type; the array itself if its rows are
    not contiguous, as in arrays that batches of different models share."""
    flat = array.reshape(len(array), -1)
    if not np.may_share_memory(flat, array):
        return array, 0
    row = np.dtype((np.void, flat[0].nbytes))
    return flat.view(row)[:, 0], np.zeros((), row)[()]


def not_kept(name: str) -> ModelError:
    """Returns the error for reading an output that is not bound."""
    return ModelError(
        f"{name}: its values are not available, because no call has computed them since it was bound; "
        f"call batch.bind({name!r}), then batch.step() or batch.forward(); in an environment, add the name to `fields`"
    )


def precision(dtype) -> np.dtype:
    """Returns a dtype that kernels compute in, checked."""
    try:
        processor.base_of(dtype)
    except ValueError as error:
        raise ModelError(str(error)) from None
    given = np.dtype(dtype)
    if not given.isnative:
        raise ModelError(f"dtype: got {given.str!r}, allowed are float64 and float32 in this machine's byte order")
    return given


@functools.lru_cache(maxsize=8)
def _every_world(nworld: int) -> np.ndarray:
    """Returns the numbers of all worlds; read-only, so that calls recognize it and its order without a comparison."""
    every = np.arange(nworld)
    every.flags.writeable = False
    return every


def chosen_worlds(ids, nworld: int) -> np.ndarray:
    """Returns world numbers (n,) int64, checked; `ids` are numbers, a mask, or None for all."""
    if ids is None:
        return _every_world(nworld)
    a = regular("ids", ids)
    if a.dtype == bool:
        if a.shape != (nworld,):
            raise ModelError(f"ids: got a mask of shape {a.shape}, allowed is ({nworld},)")
        return np.flatnonzero(a)
    a = a if a.ndim else a[None]
    if a.size == 0:
        return np.zeros(0, np.int64)
    if a.ndim != 1 or a.dtype.kind not in "iu":
        raise ModelError(f"ids: got {a.dtype} of shape {a.shape}, allowed are world numbers (n,) or a mask")
    if a[0] >= 0 and a[-1] < nworld and not np.count_nonzero(a[1:] <= a[:-1]):  # faster than `all`
        return a.astype(np.int64, copy=False)  # the common case, which needs no sort
    wrong = a[(a < 0) | (a >= nworld)]
    if wrong.size:
        raise ModelError(f"ids: got {wrong[0]}, allowed are 0 to {nworld - 1}")
    if len(np.unique(a)) != len(a):
        raise ModelError("ids: got a world twice, allowed are different worlds")
    return a.astype(np.int64)
