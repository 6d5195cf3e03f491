"""Computes plotted quantities of a world by name: energy, contacts, solver effort, any sensor, any field.

A forward pass in a batch of one world computes them from a copy of the state; the observed worlds do not change.
Solver reports come from the world's last step if it took one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from featherlane import Batch, Data, Model
from featherlane.apps.viewer.frame import checkpoint_of
from featherlane.errors import ModelError, near
from featherlane.extension import selection

MOST_LINES = 8  # most lines per quantity and world
FIELD_OF = {"energy": "energy", "contacts": "ncon", "iterations": "solver_niter", "residual": "solver_residual"}
REPORTS = ("ncon", "nefc", "solver_niter", "solver_residual", "solver_gap")  # fields that the last step has set
FIRST = ("qpos", "qvel", "qacc", "ctrl", "actuator_force", "qfrc_constraint", "xpos")  # fields that are listed first


@dataclass
class Quantity:
    """A plotted quantity.

    Attributes:
        read: function from a batch of one world to the values; a call binds the output that it reads.
        report: field with the value of the last step, if there is one.
    """

    name: str
    unit: str
    labels: tuple[str, ...]
    read: Callable[[Batch], np.ndarray]
    report: str = ""


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
        return Quantity(name, "", (name,), lambda probe: probe.bind(FIELD_OF[name]), FIELD_OF[name])
    if name and name in model.names("sensor"):
        length = Data(model).sensor(name).data.size
        labels = tuple(f"{name}[{k}]" for k in range(length)) if length > 1 else (name,)
        return Quantity(name, "", labels[:MOST_LINES], lambda probe: probe.sensor(name).data[0, :MOST_LINES])
    return _field(model, name)


def names(model: Model) -> list[str]:
    """Returns valid names, the most common ones first."""
    fields = [name for name, shape in _shapes(model).items() if 0 not in shape]
    first = [name for name in FIRST if name in fields]
    return list(dict.fromkeys((*FIELD_OF, *filter(None, model.names("sensor")), *first, *fields)))


def _shapes(model: Model) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of all real fields of a world."""
    data, fields = Data(model), [f.name for f in Data.layout.fields if f.kind == "real" and f.traits.shown]
    shapes = {name: np.shape(getattr(data, name)) for name in fields if name != "sensordata"}
    return shapes | {"sensordata": (model.nsensordata,)}


def _energy(probe: Batch) -> np.ndarray:
    energy = probe.bind("energy")[0]
    return np.append(energy, energy.sum())


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

    def read(probe: Batch) -> np.ndarray:
        return np.ravel(probe.bind(name)[0][at])[:MOST_LINES]

    return Quantity(text, field.unit, labels, read, name if name in REPORTS else "")


class Sampler:
    """Reads quantities of worlds of a model.

    Args:
        batch: the worlds, or other worlds of the same model.
    """

    def __init__(self, batch: Batch):
        self.probe = Batch(batch.model, 1, nthread=1, dtype=batch.dtype, given_contacts=batch.ngiven)
        self.probe.mute()

    def values(self, batch: Batch, row: int, quantities: list[Quantity], reported: bool = True) -> list[np.ndarray]:
        """Returns the values of a world in its present state, an array for each quantity.

        Args:
            batch: the worlds, of the sampler's model.
            reported: whether the world's last step set solver reports; otherwise a forward pass computes them.
        """
        computed = [q for q in quantities if not (reported and q.report)]
        if computed:
            self.probe.restore(checkpoint_of(batch, [row]))
            for q in computed:
                q.read(self.probe)  # binds its output
            self.probe.forward()
        found = (q.read(self.probe) if q in computed else np.ravel(getattr(batch, q.report)[row]) for q in quantities)
        return [np.array(values, float) for values in found]
