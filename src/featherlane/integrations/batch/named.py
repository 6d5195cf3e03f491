"""Named access to the fields of many simulations: `batch.joint("hinge").qpos`, `batch.body("pole").mass = masses`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import mujoco
import numpy as np

from featherlane.integrations.batch.fields import DATA_FIELDS, MODEL_FIELDS, STATE, computed, near

KINDS = ("actuator", "body", "camera", "geom", "joint", "light", "sensor", "site", "tendon")
MODEL_KINDS = ("equality", "keyframe", "material", "numeric", "pair")  # MjData has no fields of these
COPIES = {("actuator", "moment")}  # attributes of MjData's named access that are not views of a field
STRUCTURE = ("adr", "num", "id", "type")  # endings of integer fields that are the same in every simulation

_places: dict[tuple[str, str, bool], str] = {}  # (kind, attribute, of MjModel) -> field


class Named:
    """One object's part of the fields of all simulations, with the attributes of MjData's and MjModel's named access.

    Fields of MjData are bound.  Fields of MjModel are read without expanding them; a write expands them.
    """

    __slots__ = ("_batch", "_data", "_kind", "_model", "id", "name")

    def __init__(self, batch: Any, kind: str, key: int | str):
        model = getattr(batch.model, kind)(key)
        data = getattr(batch.template, kind)(key) if kind in KINDS else None
        for slot, value in zip(self.__slots__, (batch, data, kind, model, model.id, model.name), strict=True):
            object.__setattr__(self, slot, value)

    def __getattr__(self, attribute: str) -> np.ndarray:
        return self._part(attribute, False)

    def __setattr__(self, attribute: str, value: Any) -> None:
        if attribute in self.__slots__:
            raise AttributeError(f"{attribute} cannot be set")
        self._part(attribute, True)[...] = value

    def __repr__(self) -> str:
        return f"<{self._kind} {self.name!r}, id {self.id}>"

    def _part(self, attribute: str, write: bool) -> np.ndarray:
        """Returns this object's (nsim, ...) part of a field; to write, expands a field of MjModel."""
        batch, what = self._batch, f"{self._kind} {attribute}"
        of_data = None if (self._kind, attribute) in COPIES else getattr(self._data, attribute, None)
        views = [(False, of_data), (True, getattr(self._model, attribute, None))]
        for is_model, view in views:
            if not isinstance(view, np.ndarray):
                continue
            if not view.size:
                return _fixed(np.empty((batch.nsim, *view.shape), view.dtype))
            owner, names = (batch.model, MODEL_FIELDS) if is_model else (batch.template, DATA_FIELDS)
            field = _field(owner, names, (self._kind, attribute, is_model), view)
            if field is None:
                continue
            if not is_model and write and field not in STATE:
                raise computed(what)
            rows = self._model_rows(field, attribute, view, write) if is_model else batch.bind(field)
            return rows if rows.shape[1:] == view.shape else _slice(rows, getattr(owner, field), view)
        if any(isinstance(view, np.ndarray) for _, view in views) or (self._kind, attribute) in COPIES:
            raise AttributeError(f"{what} is not a slice of a field that the batch binds or expands")
        names = {*dir(self._model), *dir(self._data)} if self._data is not None else dir(self._model)
        raise AttributeError(f"{attribute} is not a field of a {self._kind}{near(attribute, names)}")

    def _model_rows(self, field: str, attribute: str, view: np.ndarray, write: bool) -> np.ndarray:
        """Returns rows of a field of MjModel, or this object's part of them if they are not stored by simulation."""
        batch = self._batch
        if batch.models is not None:
            if write:
                raise ValueError(f"{field} is a field of the models given to set_models: set them again after an edit")
            models = [batch.models] * batch.nsim if isinstance(batch.models, mujoco.MjModel) else batch.models
            return _fixed(np.stack([getattr(getattr(model, self._kind)(self.id), attribute) for model in models]))
        rows = batch.rows_of(field, view, write)
        return np.broadcast_to(view, (batch.nsim, *view.shape)) if rows is None else rows


def structural(field: str, view: np.ndarray) -> bool:
    """Returns whether a field of MjModel is an address, count, id or type, which is the same in every simulation."""
    return view.dtype.kind in "iu" and field.endswith(STRUCTURE) and not field.endswith("contype")


def _fixed(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def _slice(rows: np.ndarray, field: np.ndarray, view: np.ndarray) -> np.ndarray:
    """Returns the part of rows (nsim, ...) that a view is of a field."""
    start, flat = (
        (_address(view) - _address(field)) // view.itemsize,
        rows.reshape(len(rows), math.prod(rows.shape[1:])),
    )
    if not np.may_share_memory(flat, rows):  # `eq_data` of an older MuJoCo
        return rows[:, start // view.size]
    return flat[:, start : start + view.size].reshape(len(rows), *view.shape)


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def _field(owner: Any, names: Iterable[str], key: tuple[str, str, bool], view: np.ndarray) -> str | None:
    """Returns the field of an MjData or MjModel whose memory contains a view; None if there is none."""
    if key not in _places:
        for name in names:
            array = getattr(owner, name, None)
            if not isinstance(array, np.ndarray) or array.dtype != view.dtype:
                continue
            if 0 <= _address(view) - _address(array) <= array.nbytes - view.nbytes:
                _places[key] = name
                break
    return _places.get(key)


def method(kind: str) -> Any:
    """Returns a method of a batch that returns the object of a kind with a name or an id."""

    def named(self: Any, key: int | str) -> Named:
        return Named(self, kind, key)

    named.__name__, named.__doc__ = kind, f"Returns the {kind} with this name or id."
    return named
