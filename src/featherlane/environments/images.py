"""Images of cameras as parts of observations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from featherlane import Camera
from featherlane.errors import ModelError


class ImageForm(NamedTuple):
    """How images of an output are observed, if the library that a task comes from does it otherwise.

    Attributes:
        name: of the observation, with a place for the camera: "{}_image".
        function: function of the images (n, height, width, ...).
    """

    name: str
    function: Callable[[np.ndarray], np.ndarray]


class ObservedImages:
    """Computes the images that a task observes, by name: "camera/output".

    Args:
        batch: the worlds, a `Batch` or a `MixedBatch`.
        cameras: the task's cameras.
        forms: of outputs that are observed otherwise.

    Raises:
        ModelError: no `Camera`, or two images with one name.
        UnknownNameError: a camera that a model lacks.
    """

    def __init__(self, batch: Any, cameras: Any, forms: Mapping[str, ImageForm] = MappingProxyType({})):
        self.batch, self.cameras, self.forms, names = batch, _checked(cameras), dict(forms), list[str]()
        for camera in self.cameras:
            for model in batch.models:
                if isinstance(camera.camera, int | str):
                    model.camera(camera.camera)  # raises an error for an unknown name
            names += [self._name(camera, output) for output in camera.names]
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
                shape = self._form(output, np.zeros((1, *shape))).shape[1:]
                spaces[self._name(camera, output)] = gym.spaces.Box(low, high, shape, dtype)
        return spaces

    def _name(self, camera: Camera, output: str) -> str:
        form = self.forms.get(output)
        return f"{camera.label}/{output}" if form is None else form.name.format(camera.label)

    def _form(self, output: str, images: np.ndarray) -> np.ndarray:
        form = self.forms.get(output)
        return images if form is None else form.function(images)

    def of(self, ids: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Returns the images of the worlds `ids` in their present states; None for all."""
        found = {}
        for camera in self.cameras:
            images = self.batch.render(camera, ids=ids)
            for output in camera.names:
                found[self._name(camera, output)] = self._form(output, getattr(images, output))
        return found


def _checked(cameras: Any) -> tuple[Camera, ...]:
    entries = (cameras,) if isinstance(cameras, Camera) else cameras
    if not isinstance(entries, list | tuple) or not all(isinstance(camera, Camera) for camera in entries):
        raise ModelError(f"cameras: got {cameras!r}, allowed are featherlane.Camera objects")
    return tuple(entries)
