"""Images as robosuite observes them: "agentview_image" and "agentview_depth", by default with the last row first."""

from __future__ import annotations

from functools import partial
from importlib import import_module

import numpy as np

from featherlane import Model
from featherlane.environments.images import ImageForm

VISUAL = (0, 1, 1, 0, 0, 0)  # groups of geoms in images: without those that only collide
UPWARDS = {"opengl": True, "opencv": False}  # robosuite's macro: whether the first row is the lowest


def image_forms(model: Model) -> dict[str, ImageForm]:
    """Returns the forms of images, in the order of rows of the present setting of `robosuite.macros`."""
    upwards = UPWARDS[import_module("robosuite.macros").IMAGE_CONVENTION]  # 1.5, or LIBERO's 1.4
    view, extent = model.mj_model.vis.map, float(model.mj_model.stat.extent)
    near, far = float(view.znear) * extent, float(view.zfar) * extent
    return {
        "rgb": ImageForm("{}_image", partial(rows, upwards)),
        "depth": ImageForm("{}_depth", partial(depth_buffer, upwards, near, far)),
    }


def rows(upwards: bool, images: np.ndarray) -> np.ndarray:
    """Returns images (n, height, width, ...) with the lowest row first, if `upwards`."""
    return np.ascontiguousarray(images[:, ::-1]) if upwards else images


def depth_buffer(upwards: bool, near: float, far: float, depth: np.ndarray) -> np.ndarray:
    """Returns distances (n, height, width) [m] as OpenGL stores them, (n, height, width, 1) from 0 to 1.

    `robosuite.utils.camera_utils.get_real_depth_map` is the inverse.
    """
    with np.errstate(divide="ignore"):
        stored = (1.0 - near / np.clip(depth, near, far)) / (1.0 - near / far)
    return rows(upwards, stored.astype(np.float32)[..., None])
