"""Records images of cameras in a rollout: a step, then the images of the state after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from featherlane.errors import ModelError
from featherlane.lanes import Kernel
from featherlane.model.names import index_of
from featherlane.simulation.query.camera import OUTPUTS, Camera
from featherlane.simulation.world.recordings import control_of_step, inputs_of_rollout, result_array


def split_cameras(record: Any) -> tuple[Any, list[Camera]]:
    """Returns what a rollout records besides images, and the cameras."""
    entries = [record] if isinstance(record, Camera) else record
    if not isinstance(entries, list | tuple):
        return record, []
    cameras = [entry for entry in entries if isinstance(entry, Camera)]
    return ([entry for entry in entries if not isinstance(entry, Camera)] if cameras else record), cameras


class Filming:
    """Holds the images of a rollout of a batch.

    Args:
        batch: the batch.
        cameras: the cameras and their options.
        lead: (n, nstep) of the rollout.
        out: arrays to record into, by name; those of images are used.

    Attributes:
        result: "camera/output" -> (n, nstep, height, width, ...).

    Raises:
        ModelError: two images with one name; a wrong array in `out`.
        UnknownNameError: an unknown camera.
    """

    def __init__(self, batch: Any, cameras: list[Camera], lead: tuple[int, int], out: Mapping[str, np.ndarray] | None):
        self.batch, self.cameras, self.lead, self.result = batch, cameras, lead, dict[str, np.ndarray]()
        for camera in cameras:
            index_of(batch.model, "camera", camera.camera)
            for output in camera.names:
                name, (_, kind, rest) = f"{camera.camera}/{output}", OUTPUTS[output]
                if name in self.result:
                    raise ModelError(f"record: got two images {name!r}, allowed is one of each camera and output")
                shape, given = (*lead, *camera.size, *rest), (out or {}).get(name)
                self.result[name] = result_array(f"out[{name!r}]", given, shape, np.dtype(kind))

    def run(self, control: Any, chosen: np.ndarray, result: dict[str, np.ndarray]) -> None:
        """Runs the rollout step by step, with images after each.

        Args:
            control: as of `Batch.rollout`.
            chosen: (n,) the worlds.
            result: field -> (n, nstep, ...) array to record into.
        """
        control_of, names = self._controls(control), [*result] or ["time"]
        for k in range(self.lead[1]):
            found = self.batch.rollout(1, control_of(k), names, chosen)
            for name, rows in result.items():
                rows[:, k] = found[name][:, 0]
            for camera in self.cameras:
                images = self.batch.camera(camera, ids=chosen)
                for output in camera.names:
                    self.result[f"{camera.camera}/{output}"][:, k] = getattr(images, output)

    def _controls(self, control: Any) -> Callable[[int], Any]:
        """Returns a function from a step to its control as `Batch.rollout` takes it; checks the shapes of arrays."""
        batch, lead = self.batch, self.lead
        if control is None or isinstance(control, Kernel):
            return lambda k: control
        if callable(control):
            shape = lead[0], batch.model.nu
            return lambda k: control_of_step(control(batch, k), k, shape, batch.dtype)[:, None]
        inputs = inputs_of_rollout(control, lead, batch.arrays.dims)
        return lambda k: {name: values[:, k : k + 1] for name, values in inputs.items()}
