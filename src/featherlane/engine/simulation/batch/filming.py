"""Records images of cameras in a rollout: a step, then the images of the state after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from featherlane.engine.lanes import Kernel
from featherlane.engine.simulation.query.camera import Camera
from featherlane.engine.simulation.world.recordings import control_of_step, field_names, inputs_of_rollout, result_array
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


class Filming:
    """Holds the images of a rollout of a `Batch`, a `MixedBatch` or a distributed batch.

    Args:
        batch: the batch.
        cameras: the cameras and their options.
        lead: (n, nstep) of the rollout.
        out: arrays to record into, by name; those of images are used.

    Attributes:
        result: "camera/output" -> (n, nstep, height, width, ...).
        rest: the other arrays of `out`.

    Raises:
        ModelError, UnknownNameError, UnsupportedFeatureError: two images with one name; a wrong array in `out`; as
            `Batch.render` does.
    """

    def __init__(self, batch: Any, cameras: list[Camera], lead: tuple[int, int], out: Mapping[str, np.ndarray] | None):
        self.batch, self.cameras, self.lead, self.result = batch, cameras, lead, dict[str, np.ndarray]()
        for camera in cameras:
            empty = batch.render(camera, ids=[])  # checks the camera
            for output in camera.names:
                name, image = f"{camera.camera}/{output}", getattr(empty, output)
                if name in self.result:
                    raise ModelError(f"record: got two images {name!r}, allowed is one of each camera and output")
                shape, given = (*lead, *image.shape[1:]), (out or {}).get(name)
                self.result[name] = result_array(f"out[{name!r}]", given, shape, image.dtype)
        self.rest = out and {name: rows for name, rows in out.items() if name not in self.result}

    def run(
        self,
        control: Any,
        chosen: np.ndarray,
        result: dict[str, np.ndarray],
        dims: Callable[[str], tuple[int, ...]],
    ) -> dict[str, np.ndarray]:
        """Runs the rollout step by step, with images after each.

        Args:
            control: as of `Batch.rollout`.
            chosen: (n,) the worlds.
            result: field -> (n, nstep, ...) array to record into.
            dims: returns the shape of a field in a world.

        Returns:
            The recorded fields and images by name.
        """
        control_of, names = self._controls(control, dims), [*result] or ["time"]
        for k in range(self.lead[1]):
            found = self.batch.rollout(1, control_of(k), names, ids=chosen)
            for name, rows in result.items():
                rows[:, k] = found[name][:, 0]
            for camera in self.cameras:
                images = self.batch.render(camera, ids=chosen)
                for output in camera.names:
                    self.result[f"{camera.camera}/{output}"][:, k] = getattr(images, output)
        return result | self.result

    def _controls(self, control: Any, dims: Callable[[str], tuple[int, ...]]) -> Callable[[int], Any]:
        """Returns a function from a step to its control as `Batch.rollout` takes it; checks the shapes of arrays."""
        batch, lead = self.batch, self.lead
        if control is None or isinstance(control, Kernel):
            return lambda k: control
        if callable(control):
            shape = lead[0], *dims("ctrl")
            return lambda k: control_of_step(control(batch, k), k, shape, batch.dtype)[:, None]
        inputs = inputs_of_rollout(control, lead, dims)
        return lambda k: {name: values[:, k : k + 1] for name, values in inputs.items()}
