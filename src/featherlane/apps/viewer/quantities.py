"""Computes plotted quantities of a world by name: energy, contacts, solver effort, any sensor, any field.

A forward pass in a batch of one world computes them from a copy of the state; the observed worlds do not change.
Solver reports come from the world's last step if it took one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from featherlane.engine.model.entries import PATH, selection
from featherlane.engine.model.features import refuse_sensors
from featherlane.engine.model.model import Model
from featherlane.engine.simulation.batch.arrays import LASTING, REPORTS
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.engine.simulation.tile.workspace import Workspace
from featherlane.engine.simulation.world.recordings import BINDABLE
from featherlane.errors import ModelError, near

MOST_LINES = 8  # most lines per quantity and world
FIELD_OF = {"energy": "energy", "contacts": "ncon", "iterations": "solver_niter", "residual": "solver_residual"}


@dataclass
class Quantity:
    """A plotted quantity.

    Attributes:
        read: function from a world's row of the field to the values.
    """

    name: str
    unit: str
    labels: tuple[str, ...]
    field: str
    read: Callable[[np.ndarray], np.ndarray]


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
        return Quantity(name, "J", ("potential", "kinetic", "total"), "energy", lambda row: np.append(row, row.sum()))
    if name in FIELD_OF:
        return Quantity(name, "", (name,), FIELD_OF[name], np.ravel)
    if name and name in model.names("sensor"):
        return _sensor(model, name)
    return _field(model, name)


def names(model: Model) -> list[str]:
    """Returns valid names, the most common ones first."""
    sizes = Workspace.sizes_of(model, 0)
    fields = [f.name for f in DATA.fields if f.kind == "real" and f.name in BINDABLE and 0 not in f.dims(sizes)]
    first = [n for n in ("qpos", "qvel", "qacc", "ctrl", "actuator_force", "qfrc_constraint", "xpos") if n in fields]
    return list(dict.fromkeys((*FIELD_OF, *filter(None, model.names("sensor")), *first, *fields)))


def _sensor(model: Model, name: str) -> Quantity:
    at = model.names("sensor").index(name)
    refuse_sensors(model, [at])
    start, length = int(model.sensor_adr[at]), int(model.sensor_dim[at])
    labels = tuple(f"{name}[{k}]" for k in range(length)) if length > 1 else (name,)
    return Quantity(name, "", labels[:MOST_LINES], "sensordata", lambda row: row[start : start + length][:MOST_LINES])


def _field(model: Model, text: str) -> Quantity:
    matched = PATH.fullmatch(text)
    field, index = matched.groups() if matched else ("", None)
    if field not in BINDABLE or DATA[field].kind != "real":
        raise ModelError(f"plot: unknown quantity {text!r}{near(text, names(model))}")
    if field == "sensordata":
        refuse_sensors(model)
    shape = DATA[field].dims(Workspace.sizes_of(model, 0))
    if 0 in shape:
        raise ModelError(f"plot: {field} is empty in this model, its shape is {shape}")
    at = () if index is None else selection(model, f"plot: {text!r}", DATA[field], shape, index)
    places = list(np.ndindex(np.zeros(shape)[at].shape))[:MOST_LINES]
    labels = tuple(f"{text}{list(place) if place else ''}" for place in places)
    return Quantity(text, DATA[field].unit or "", labels, field, lambda row: np.ravel(row[at])[:MOST_LINES])


class Sampler:
    """Reads quantities of worlds of a model.

    Args:
        batch: the worlds, or other worlds of the same model.
    """

    def __init__(self, batch: Batch):
        self.probe = Batch(batch.model, 1, nthread=1, dtype=batch.dtype, given_contacts=batch.ngiven)
        self.probe.mute()

    def values(self, batch: Batch, row: int, quantities: list[Quantity], reported: bool = True) -> list[np.ndarray]:
        """Returns the values of a world in its present state.

        Args:
            batch: the worlds, of the sampler's model.
            reported: whether the world's last step set solver reports; otherwise a forward pass computes them.

        Returns:
            An array for each quantity.
        """
        probe, reports = self.probe, {name: batch.rows[name][row] for name in REPORTS} if reported else {}
        if any(q.field not in reports for q in quantities):
            for name in LASTING:
                if name in batch.rows:
                    probe.row_memory(name)[0] = batch.rows[name][row]
            for name, rows in batch.expanded_fields.items():
                probe.expand(name)[0] = rows[row]
            for q in quantities:
                if q.field not in reports:
                    probe.bind(q.field)
            probe.forward()
        found = []
        for q in quantities:
            rows = reports.get(q.field)
            if rows is None:
                rows = (probe.rows if q.field in probe.rows else probe.bound)[q.field][0]
            found.append(np.array(q.read(rows), float))
        return found
