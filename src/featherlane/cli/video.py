"""`--video`: one world drawn by MuJoCo's renderer, on the screen's OpenGL or headless through EGL."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from featherlane.cli.output import whole_file
from featherlane.errors import InstallationError, ModelError, near
from featherlane.model.reader import heard

NEEDED = ("OpenGL", "imageio", "imageio_ffmpeg")
INSTALL = "pip install 'featherlane[view]'"
BACK_ENDS = {"linux": ("egl", "osmesa", "glfw", "glx"), "win32": ("glfw", "wgl"), "darwin": ("glfw", "cgl")}
LARGEST = 960, 720  # width and height; without a graphics card a picture takes 0.3 s
BLOCK = 16  # the encoder wants sides in multiples of this


def prepare() -> None:
    """Look for what video needs and choose how to draw; call it before MuJoCo is imported.

    Raises:
        InstallationError: something is not installed; names it and the command that installs it; or MUJOCO_GL names
            nothing that draws.
    """
    given = os.environ.get("MUJOCO_GL", "")
    if given.lower().strip() not in ("", *(back_ends := BACK_ENDS.get(sys.platform, ("glfw",)))):
        raise InstallationError(f"MUJOCO_GL is {given!r}; allowed are {', '.join(back_ends)}, or to leave it unset")
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise InstallationError(f"video needs {', '.join(missing)}, not installed here; install with: {INSTALL}")
    headless = sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    if headless:
        os.environ.setdefault("MUJOCO_GL", "egl")


def camera_of(model, camera: str | None) -> int:
    """Number of the camera: the named one, else the model's first, else -1, the free one.

    Raises:
        ModelError: no camera of this name.
    """
    names = model.names("camera")
    if camera is None:
        return 0 if names else -1
    if camera not in names:
        known = ", ".join(map(repr, filter(None, names))) or "none"
        raise ModelError(f"camera: got {camera!r}, allowed are {known}{near(camera, names)}")
    return names.index(camera)


class Painter:
    """Pictures of positions, (height, width, 3) uint8; a context that frees the graphics memory."""

    def __init__(self, model, camera: int):
        import mujoco

        self.mj_model = mj = model.to_mujoco()
        self.mj_data, self.camera = mujoco.MjData(mj), camera
        sides = mj.vis.global_.offwidth, mj.vis.global_.offheight
        width, height = (min(side, most) // BLOCK * BLOCK for side, most in zip(sides, LARGEST, strict=True))
        self.renderer: Any = self._renderer(height, width)

    def _renderer(self, height: int, width: int):
        """MuJoCo's renderer; one that fails half way complains on stderr when it is collected, which is kept quiet."""
        import mujoco

        hook, sys.unraisablehook = sys.unraisablehook, lambda unraisable: None
        try:
            try:
                return mujoco.Renderer(self.mj_model, height, width)
            except Exception as error:
                # the kind of error depends on the graphics library that is missing
                told = str(error)
        finally:
            sys.unraisablehook = hook
        raise InstallationError(
            f"video: no picture can be drawn with MUJOCO_GL={os.environ.get('MUJOCO_GL', '')}: {told}; "
            f"a headless machine needs EGL (libegl1 and a driver, or Mesa's libegl-mesa0) and {INSTALL}"
        )

    def picture(self, qpos: np.ndarray) -> np.ndarray:
        """The scene at a position."""
        import mujoco

        self.mj_data.qpos[:] = qpos
        mujoco.mj_forward(self.mj_model, self.mj_data)
        self.renderer.update_scene(self.mj_data, self.camera)
        return self.renderer.render()

    def __enter__(self) -> Painter:
        return self

    def __exit__(self, *error) -> None:
        self.renderer.close()


def write(path: Path, model, camera: int, frames: list[np.ndarray], rate: float, told: Callable[[], None]) -> None:
    """An MP4 file of positions.

    Args:
        path: the file.
        model: the model.
        camera: number of the camera, -1 for the free one.
        frames: positions, (nq,) each.
        rate: frames per second.
        told: called after each frame.
    """
    import imageio.v2 as imageio  # pyright: ignore[reportMissingImports]

    with heard(), whole_file(path) as part, Painter(model, camera) as painter:
        writer = imageio.get_writer(part, format="FFMPEG", fps=rate, codec="libx264", quality=8, macro_block_size=BLOCK)
        with writer:
            for qpos in frames:
                writer.append_data(painter.picture(qpos))
                told()
