"""Computes the images of a `Camera` part by part: arguments, memory, noise, and worlds without a finite pose."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from featherlane.engine.model.names import index_of
from featherlane.engine.simulation.query.appearance import Appearance
from featherlane.engine.simulation.query.camera import (
    Camera,
    CameraImages,
    Images,
    clip_distances,
    empty_images,
    free_camera,
)
from featherlane.engine.simulation.query.ray import check_geoms
from featherlane.errors import ModelError, NonFiniteWarning, few

PIXELS = 1 << 22  # of a call: images of more worlds are computed one part after the other
NAMED = 5  # worlds that a warning names


def camera_of(
    camera: int | str | Mapping[str, Any] | Camera, width: int | None, height: int | None, **options: Any
) -> Camera:
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
    """Returns images of worlds of a `Batch`, and the worlds whose `rgb` is black because a pose is not finite.

    Raises:
        ModelError, UnknownNameError, UnsupportedFeatureError, MemoryError: as `Batch.render` does.
    """
    model, size, noise = batch.model, camera.size, camera.noise
    free = free_camera(model, camera.camera) if isinstance(camera.camera, Mapping) else None
    index = -1 if isinstance(camera.camera, Mapping) else index_of(model, "camera", camera.camera)
    check_geoms(model, camera.geomgroup, True)
    clip = clip_distances(model, camera.near, camera.far)
    field = lambda name: batch.arrays.expanded.shared_or_own(name, chosen)  # noqa: E731
    look = Appearance(model, camera.geom_rgb, batch.nworld, chosen, field) if "rgb" in camera.names else None
    seeds = None if noise is None else noise.seeds(batch.nworld)[chosen]
    found, black = empty_images(camera.names, len(chosen), size), list[int]()
    each = max(1, PIXELS // int(np.prod(size)))
    for first in range(0, len(chosen), each):
        part, worlds = slice(first, first + each), chosen[first : first + each]
        view, tables = (camera.geomgroup, clip, free), look and look.sizes_of(first)
        query = CameraImages(model, len(worlds), batch.dtype, batch.width, index, size, camera.names, view, tables)
        for name, image in batch.query(query, worlds).items():
            if name == "rgb":
                nonfinite = np.isnan(image[:, 0, 0, 0])
                black += worlds[nonfinite].tolist()
                image = np.where(nonfinite[:, None, None, None], 0, np.rint(image))
            found[name][part] = image
            if name == "depth" and noise is not None and seeds is not None:
                noise.add(found[name][part], far=clip[1], seed=seeds[part], time=batch.time[worlds])
    return Images(*(found.get(name) for name in Images._fields)), black


def warn_of_black(camera: Camera, worlds: Sequence[int]) -> None:
    """Warns the caller's caller of worlds whose colours could not be computed."""
    if worlds:
        warnings.warn(
            f"camera {camera.label!r}: the images rgb of worlds {few(worlds, NAMED)} are black, "
            "since poses in them are not finite",
            NonFiniteWarning,
            stacklevel=3,
        )
