"""Computes quantities of a world from a copy of its state: energy, contacts, solver effort, any sensor, any field."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from featherlane import Batch, Data, Model, stages
from featherlane.errors import ModelError, near
from featherlane.extension import batch_of, selection

MOST_LINES = 8  # most lines per quantity and world
FIELD_OF = {"energy": "energy", "contacts": "ncon", "iterations": "solver_niter", "residual": "solver_residual"}
REPORTS = ("ncon", "nefc", "solver_niter", "solver_residual", "solver_gap")  # fields that the last step has set
FIRST = ("qpos", "qvel", "qacc", "ctrl", "actuator_force", "qfrc_constraint", "xpos")  # fields that are listed first
_COPIES: WeakKeyDictionary[Batch, Data] = WeakKeyDictionary()  # a copy of one world, kept as long as its batch


def world_data(batch: Batch, row: int) -> Data:
    """Returns a copy of a world after `forward`, until the next call; as `batch.get_data`, in a tenth of the time."""
    if batch.expanded_fields:
        return batch.get_data(row)
    data = _COPIES.get(batch)
    if data is None:
        data = _COPIES[batch] = Data(batch.model, batch.ngiven)
    copied = batch_of(data)
    for name, rows in batch.rows.items():
        copied.row_memory(name)[0] = rows[row]
    data.forward()
    return data


@dataclass
class Quantity:
    """A plotted quantity."""

    name: str
    unit: str
    labels: tuple[str, ...]
    read: Callable[[Data], np.ndarray]  # from a world after `forward` to the values
    report: str = ""  # field with the value of the last step, if there is one


def quantity(model: Model, name: str) -> Quantity:
    """Parses the name of a quantity.

    Args:
        name: `energy`, `contacts`, `iterations`, `residual`; a sensor; or a field of `fl.Data`, with an index for a
            part of it: `qpos[2]`, `xpos[torso]`, `xpos[torso, 2]`.

    Raises:
        UnsupportedFeatureError: the sensor is not computed.
        ModelError: the name is unknown, an index is invalid, or the quantity has no numbers.
    """
    name = name.strip()
    if name == "energy":
        return Quantity(name, "J", ("potential", "kinetic", "total"), _energy)
    if name in FIELD_OF:
        return Quantity(name, "", (name,), lambda data: getattr(data, FIELD_OF[name]), FIELD_OF[name])
    if name and name in model.names("sensor"):
        length = Data(model).sensor(name).data.size
        labels = tuple(f"{name}[{k}]" for k in range(length)) if length > 1 else (name,)
        return Quantity(name, "", labels[:MOST_LINES], lambda data: data.sensor(name).data[:MOST_LINES])
    return _field(model, name)


def names(model: Model) -> list[str]:
    """Returns valid names, the most common ones first."""
    fields = [name for name, shape in _shapes(model).items() if 0 not in shape]
    first = [name for name in FIRST if name in fields]
    return list(dict.fromkeys((*FIELD_OF, *filter(None, model.names("sensor")), *first, *fields)))


def values(batch: Batch, row: int, quantities: list[Quantity], reported: bool = True) -> list[np.ndarray]:
    """Returns the values of a world, an array each; reports are those of its last step, if it was `reported`."""
    kept = [bool(reported and q.report) for q in quantities]
    data: Any = None if all(kept) else world_data(batch, row)
    found = (getattr(batch, q.report)[row] if old else q.read(data) for q, old in zip(quantities, kept, strict=True))
    return [np.array(np.ravel(value), float) for value in found]


def _shapes(model: Model) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of all real fields of a world."""
    data, fields = Data(model), [f.name for f in Data.layout.fields if f.kind == "real" and f.traits.shown]
    shapes = {name: np.shape(getattr(data, name)) for name in fields if name != "sensordata"}
    return shapes | {"sensordata": (model.nsensordata,)}


def _energy(data: Data) -> np.ndarray:
    stages.energy(data.model, data)
    return np.append(data.energy, data.energy.sum())


def _field(model: Model, text: str) -> Quantity:
    (name, bracket, index), shapes = (part.strip() for part in text.partition("[")), _shapes(model)
    if name not in shapes or (bracket and not index.endswith("]")):
        raise ModelError(f"plot: unknown quantity {text!r}{near(text, names(model))}")
    shape, field = shapes[name], Data.layout[name]
    if 0 in shape:
        raise ModelError(f"plot: {name} is empty in this model, its shape is {shape}")
    at = selection(model, f"plot: {text!r}", field, shape, index[:-1]) if bracket else ()
    getattr(Data(model), name)  # raises an error for sensors that are not computed
    places = list(np.ndindex(np.zeros(shape)[at].shape))[:MOST_LINES]
    labels = tuple(f"{text}{list(place) if place else ''}" for place in places)
    read = lambda data: np.ravel(np.asarray(getattr(data, name))[at])[:MOST_LINES]  # noqa: E731
    return Quantity(text, field.unit, labels, read, name if name in REPORTS else "")
