"""Images of cameras as parts of observations."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from featherlane import Camera
from featherlane.errors import ModelError


class ObservedImages:
    """Computes the images that a task observes, by name: "camera/output".

    Args:
        batch: the worlds, a `Batch` or a `MixedBatch`.
        cameras: the task's cameras.

    Raises:
        ModelError: no `Camera`, or two images with one name.
        UnknownNameError: a camera that a model lacks.
    """

    def __init__(self, batch: Any, cameras: Any):
        self.batch, self.cameras, names = batch, _checked(cameras), list[str]()
        for camera in self.cameras:
            for model in batch.models:
                if isinstance(camera.camera, int | str):
                    model.camera(camera.camera)  # raises an error for an unknown name
            names += [f"{camera.label}/{output}" for output in camera.names]
        if len(set(names)) < len(names):
            raise ModelError(f"cameras: got the images {', '.join(names)}, allowed is one of each camera and output")

    def spaces(self) -> dict[str, gym.Space]:
        """Returns the space of each image of a world."""
        most = max(model.ngeom for model in self.batch.models)
        bounds = {
            "depth": (0.0, np.inf, np.float32),
            "segmentation": (-1, max(most - 1, 0), np.int32),
            "normal": (-1.0, 1.0, np.float32),
            "rgb": (0, 255, np.uint8),
        }
        spaces = {}
        for camera in self.cameras:
            for output in camera.names:
                low, high, dtype = bounds[output]
                shape = (*camera.size, *((3,) if output in ("normal", "rgb") else ()))
                spaces[f"{camera.label}/{output}"] = gym.spaces.Box(low, high, shape, dtype)
        return spaces

    def of(self, ids: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Returns the images of the worlds `ids` in their present states; None for all."""
        found = {}
        for camera in self.cameras:
            images = self.batch.render(camera, ids=ids)
            found |= {f"{camera.label}/{output}": getattr(images, output) for output in camera.names}
        return found


def _checked(cameras: Any) -> tuple[Camera, ...]:
    entries = (cameras,) if isinstance(cameras, Camera) else cameras
    if not isinstance(entries, list | tuple) or not all(isinstance(camera, Camera) for camera in entries):
        raise ModelError(f"cameras: got {cameras!r}, allowed are featherlane.Camera objects")
    return tuple(entries)
