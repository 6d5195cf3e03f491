"""Writes the motion of one world as an MP4 file: `featherlane simulate --video`, and the viewer."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from featherlane import Batch, Camera
from featherlane.errors import InstallationError, ModelError, near
from featherlane.extension import mujoco_warnings, whole_file

LARGEST = 960, 720  # width and height [pixels]
ENCODER = ("imageio", "imageio_ffmpeg")
BLOCK = 16  # the video encoder requires sides that are multiples of this


def check_encoder() -> None:
    """Checks the modules that write videos.

    Raises:
        InstallationError: one is not installed.
    """
    if missing := [name for name in ENCODER if importlib.util.find_spec(name) is None]:
        install = "pip install 'featherlane[view]'"
        raise InstallationError(
            f"video requires {', '.join(missing)}, which is not installed; install it with: {install}"
        )


def camera_of(model, camera: str | None) -> int:
    """Returns the number of the camera: the named one, else the model's first, else -1 for the free camera.

    Raises:
        ModelError: the camera does not exist.
    """
    names = model.names("camera")
    if camera is None:
        return 0 if names else -1
    if camera not in names:
        known = ", ".join(map(repr, filter(None, names))) or "none"
        raise ModelError(f"camera: got {camera!r}, allowed are {known}{near(camera, names)}")
    return names.index(camera)


def write_video(
    path: Path,
    model,
    camera: int | Mapping[str, Any],
    frames: Sequence[Mapping[str, np.ndarray]],
    rate: float,
    progress: Callable[[], None] = lambda: None,
) -> None:
    """Renders states by casting rays, and writes them as an MP4 file of the model's offscreen size.

    Args:
        camera: number of the camera, -1 for MuJoCo's free one; or a free one as for `featherlane.Camera`.
        frames: fields of each state by name: `qpos`, and `mocap_pos` and `mocap_quat` if they differ from the defaults.
        rate: frames per second.
        progress: called after each frame, to report progress.
    """
    import imageio.v2 as imageio  # pyright: ignore[reportMissingImports]

    sides = model.mj_model.vis.global_.offwidth, model.mj_model.vis.global_.offheight
    width, height = (max(min(side, most) // BLOCK, 1) * BLOCK for side, most in zip(sides, LARGEST, strict=True))
    view = Camera({} if camera == -1 else camera, width=width, height=height, output="rgb")
    world = Batch(model, 1)
    with mujoco_warnings(), whole_file(path) as part:
        writer = imageio.get_writer(part, format="FFMPEG", fps=rate, codec="libx264", quality=8)
        with writer:
            for frame in frames:
                for name, value in frame.items():
                    getattr(world, name)[0] = value
                writer.append_data(np.asarray(world.render(view).rgb)[0])
                progress()
