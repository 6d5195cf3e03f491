"""Checks the arguments of a rollout of any kind of batch; runs rollouts with images or functions step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from featherlane.engine.lanes import Kernel
from featherlane.engine.model.arguments import whole_argument
from featherlane.engine.simulation.batch.reduction import Reduction, check_rollout
from featherlane.engine.simulation.query.camera import Camera
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.engine.simulation.user.control import Controller
from featherlane.engine.simulation.world.recordings import (
    check_bindable,
    control_of_step,
    field_names,
    inputs_of_rollout,
    recordings,
    result_array,
)
from featherlane.errors import ModelError

Record = str | Camera | Sequence[str | Camera]


def split_cameras(record: Any, reduction: Any) -> tuple[list[str], list[Camera]]:
    """Returns the names of fields and the cameras that a rollout records.

    Raises:
        ModelError: neither names nor cameras; cameras and a reduction.
    """
    entries = [record] if isinstance(record, Camera) else record
    cameras = [entry for entry in entries if isinstance(entry, Camera)] if isinstance(entries, list | tuple) else []
    if not cameras:
        return field_names("record", record), []
    if reduction is not None:
        raise ModelError("reduce: got a reduction, allowed with cameras in record is None")
    fields = [entry for entry in entries if not isinstance(entry, Camera)]
    return field_names("record", fields) if fields else [], cameras


class RolloutRequest:
    """Holds the checked arguments of a rollout, and the arrays that it records into.

    Args:
        batch: the batch: a `Batch`, a `MixedBatch` or a distributed batch.
        nstep, control, record, out, reduce: as of `Worlds.rollout`.
        chosen: (n,) the worlds.

    Attributes:
        names, cameras: what is recorded.
        reduction: the checked reduction, or None.
        fields, images: name -> (n, nstep, ...) arrays to record into.

    Raises:
        ModelError, UnknownNameError, UnsupportedFeatureError: as `Worlds.rollout` and `Worlds.render` do.
    """

    def __init__(self, batch: Any, nstep: int, control: Any, record: Any, chosen: np.ndarray, out, reduce):
        self.batch, self.control, self.chosen = batch, control, chosen
        self.nstep = whole_argument("nstep", nstep, 1)
        self.reduction: Reduction | None = check_rollout(reduce, out, len(chosen))
        self.names, self.cameras = split_cameras(record, self.reduction)
        for name in self.names:
            for model in batch.models:
                check_bindable(model, "record", name)
        self.lead = (len(chosen), self.nstep) if batch.records_whole or self.reduction is None else (0, 0)
        self.images: dict[str, np.ndarray] = {}
        self._add_images(out or {})
        rest = out and {name: rows for name, rows in out.items() if name not in self.images}
        self.fields = recordings(self.names, self.lead, rest, batch.world_shape, batch.dtype)

    def _add_images(self, out: Mapping[str, np.ndarray]) -> None:
        for camera in self.cameras:
            empty = self.batch.render(camera, ids=[])  # checks the camera
            for output in camera.names:
                name, image = f"{camera.label}/{output}", getattr(empty, output)
                if name in self.images:
                    raise ModelError(f"record: got two images {name!r}, allowed is one of each camera and output")
                shape = (*self.lead, *image.shape[1:])
                self.images[name] = result_array(f"out[{name!r}]", out.get(name), shape, image.dtype)

    @property
    def result(self) -> dict[str, np.ndarray]:
        """Returns all arrays to record into, by name."""
        return self.fields | self.images

    @property
    def is_driven(self) -> bool:
        """Returns whether a function computes the controls between steps."""
        return callable(self.control) and not isinstance(self.control, Kernel)

    def inputs(self) -> dict[str, np.ndarray]:
        """Returns given inputs by field, (n, nstep, ...), checked."""
        inputs = inputs_of_rollout(self.control, (len(self.chosen), self.nstep), self.batch.world_shape)
        return {name: np.asarray(rows, DATA[name].stored_as(self.batch.dtype)) for name, rows in inputs.items()}

    def control_of(self, k: int) -> np.ndarray:
        """Returns the controls that the function computes for step k, (n, 1, nu), checked."""
        shape = len(self.chosen), *self.batch.world_shape("ctrl")
        return control_of_step(self.control(self.batch, k), k, shape, self.batch.dtype)[:, None]

    def run_step_by_step(self) -> None:
        """Runs the rollout, and records the fields and the images of each step."""
        control, names = self.control, [*self.names] or ["time"]
        inputs = {} if isinstance(control, Controller) or control is None or callable(control) else self.inputs()
        for k in range(self.nstep):
            if self.is_driven:
                control = self.control_of(k)
            elif inputs:
                control = {name: values[:, k : k + 1] for name, values in inputs.items()}
            found = self.batch.rollout(1, control, names, ids=self.chosen)
            for name, rows in self.fields.items():
                rows[:, k] = found[name][:, 0]
            for camera in self.cameras:
                images = self.batch.render(camera, ids=self.chosen)
                for output in camera.names:
                    self.images[f"{camera.label}/{output}"][:, k] = getattr(images, output)
