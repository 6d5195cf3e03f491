"""Computes the images of a `Camera` part by part: arguments, memory, noise, and worlds without a finite pose."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from featherlane.engine.model.model import Model
from featherlane.engine.model.names import index_of
from featherlane.engine.simulation.query.appearance import Appearance
from featherlane.engine.simulation.query.camera import Camera, CameraImages, Images, clip_distances, empty_images
from featherlane.engine.simulation.query.ray import check_geoms
from featherlane.errors import ModelError, NonFiniteWarning, few

PIXELS = 1 << 22  # of a call: images of more worlds are computed one part after the other
NAMED = 5  # worlds that a warning names


class Imaging:
    """Holds the images of a camera while they are computed.

    Args:
        model: the model.
        camera: the camera and its options.
        chosen: (n,) numbers of the worlds.
        nworld: worlds of the batch.

    Raises:
        ModelError, UnknownNameError, UnsupportedFeatureError, MemoryError: as `Batch.render` does.
    """

    def __init__(self, model: Model, camera: Camera, chosen: np.ndarray, nworld: int):
        self.model, self.camera, self.chosen = model, camera, chosen
        self.index, self.names = index_of(model, "camera", camera.camera), camera.names
        check_geoms(model, camera.geomgroup, True)
        self.clip = clip_distances(model, camera.near, camera.far)
        self.appearance = Appearance(model, camera.geom_rgb, nworld, chosen) if "rgb" in self.names else None
        self.seeds = None if camera.noise is None else camera.noise.seeds(nworld)[chosen]
        self.found, self.black = empty_images(self.names, len(chosen), camera.size), list[int]()

    def parts(self) -> Iterator[slice]:
        """Returns slices of the chosen worlds that are computed together."""
        each = max(1, PIXELS // int(np.prod(self.camera.size)))
        return (slice(first, first + each) for first in range(0, len(self.chosen), each))

    def query(self, some: slice, dtype, lanes: int) -> CameraImages:
        """Returns the query for some of the chosen worlds."""
        view = self.camera.geomgroup, self.clip
        tables = self.appearance.sizes_of(some.start) if self.appearance else None
        n = len(self.chosen[some])
        return CameraImages(self.model, n, dtype, lanes, self.index, self.camera.size, self.names, view, tables)

    def take(self, some: slice, images: dict[str, np.ndarray], time: np.ndarray) -> None:
        """Stores images of some of the chosen worlds; `time` (nworld,) is that of all worlds [s]."""
        worlds = self.chosen[some]
        for name, image in images.items():
            if name == "rgb":
                spoiled = np.isnan(image[:, 0, 0, 0])
                self.black += worlds[spoiled].tolist()
                image = np.where(spoiled[:, None, None, None], 0, np.rint(image))
            self.found[name][some] = image
            if name == "depth" and self.camera.noise is not None and self.seeds is not None:
                self.camera.noise.add(
                    self.found[name][some], far=self.clip[1], seed=self.seeds[some], time=time[worlds]
                )

    def result(self) -> Images:
        """Returns the images."""
        return Images(*(self.found.get(name) for name in Images._fields))


def camera_of(camera: int | str | Camera, width: int | None, height: int | None, **options: Any) -> Camera:
    """Returns the `Camera` of the arguments of `Batch.render`; `options` are output, geomgroup, near and far.

    Raises:
        ModelError: a size is missing, or given together with a `Camera`.
    """
    if not isinstance(camera, Camera):
        if width is None or height is None:
            raise ModelError(f"width, height: got {width} and {height}, allowed are integers >= 1")
        return Camera(camera, width=width, height=height, **options)
    if width is not None or height is not None:
        raise ModelError(f"width, height: got {width} and {height}, allowed is None, since the Camera has them")
    return camera


def images_of(batch: Any, camera: Camera, chosen: np.ndarray) -> tuple[Images, list[int]]:
    """Returns images of worlds of a `Batch`, and the worlds whose `rgb` is black because a pose is not finite."""
    images = Imaging(batch.model, camera, chosen, batch.nworld)
    for some in images.parts():
        query = images.query(some, batch.dtype, batch.width)
        images.take(some, batch.query(query, chosen[some]), batch.time)
    return images.result(), images.black


def warn_of_black(camera: Camera, worlds: Sequence[int]) -> None:
    """Warns the caller's caller of worlds whose colours could not be computed."""
    if worlds:
        warnings.warn(
            f"camera {camera.camera!r}: the images rgb of worlds {few(worlds, NAMED)} are black, "
            "since poses in them are not finite",
            NonFiniteWarning,
            stacklevel=3,
        )
