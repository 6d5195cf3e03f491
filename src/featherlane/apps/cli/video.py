"""`--video`: writes one world as an MP4 file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from featherlane.errors import ModelError, near
from featherlane.extension import Painter, mujoco_warnings, whole_file


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
    path: Path, model, camera: int, frames: list[np.ndarray], rate: float, progress: Callable[[], None]
) -> None:
    """Writes positions as an MP4 file.

    Args:
        camera: number of the camera, -1 for the free one.
        frames: positions, (nq,) each.
        rate: frames per second.
        progress: called after each frame, to report progress.
    """
    import imageio.v2 as imageio  # pyright: ignore[reportMissingImports]

    with mujoco_warnings(), whole_file(path) as part, Painter(model, camera) as painter:
        writer = imageio.get_writer(part, format="FFMPEG", fps=rate, codec="libx264", quality=8)
        with writer:
            for qpos in frames:
                writer.append_data(painter.picture(qpos))
                progress()
