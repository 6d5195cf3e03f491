"""Renders images of worlds with MuJoCo's renderer, through the screen's OpenGL or headless through EGL."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from featherlane.engine.model.fields import MODEL
from featherlane.engine.model.model import Model
from featherlane.engine.model.mujoco_arrays import is_mujocos, write_field
from featherlane.errors import InstallationError

PICTURES = ("OpenGL",)
INSTALL = "pip install 'featherlane[view]'"
BACK_ENDS = {"linux": ("egl", "osmesa", "glfw", "glx"), "win32": ("glfw", "wgl"), "darwin": ("glfw", "cgl")}
LARGEST = 960, 720  # width and height; without a graphics card an image takes 0.3 s
CHOOSERS = {"mujoco.gl_context", "mujoco.rendering.classic.gl_context"}  # modules that select the backend at import
BLOCK = 16  # the video encoder requires sides that are multiples of this


def prepare_rendering(needed: tuple[str, ...] = PICTURES) -> None:
    """Checks the modules that rendering needs and selects the OpenGL backend.

    Args:
        needed: modules that must be installed.

    Raises:
        InstallationError: a module is not installed (the message names it and the command that installs it), or
            MUJOCO_GL names no available backend.
    """
    given = os.environ.get("MUJOCO_GL", "")
    if given.lower().strip() not in ("", *(back_ends := BACK_ENDS.get(sys.platform, ("glfw",)))):
        raise InstallationError(f"MUJOCO_GL: got {given!r}, allowed are {', '.join(back_ends)} and unset")
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise InstallationError(
            f"drawing requires {', '.join(missing)}, which is not installed; install it with: {INSTALL}"
        )
    headless = sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    if headless and not given:
        os.environ["MUJOCO_GL"] = "egl"
        for name in CHOOSERS & sys.modules.keys():
            importlib.reload(sys.modules[name])


class Painter:
    """Renders states to images (height, width, 3) uint8; a context manager that frees the graphics memory.

    Args:
        model: the model.
        camera: id of a camera, -1 for the free camera, or attributes of the free camera by name (`distance`, `lookat`,
            `azimuth`, `elevation`, `trackbodyid`).
        size: width and height; None: the model's offscreen size, at most 960 x 720.
        flags: visualization flags by number (`mujoco.mjtVisFlag`).
        max_geom: maximum number of rendered shapes.

    Attributes:
        mj_model: MuJoCo's copy of the model, which the images show; `model.write_to(mj_model)` follows edits.

    Raises:
        InstallationError: rendering fails; the message names the packages to install.
    """

    def __init__(
        self,
        model: Model,
        camera: int | Mapping[str, Any],
        size: tuple[int, int] | None = None,
        flags: Mapping[int, bool] | None = None,
        max_geom: int = 10000,
    ):
        import mujoco

        self.mj_model = mj = model.to_mujoco()
        self.mj_data, self.camera = mujoco.MjData(mj), camera if isinstance(camera, int) else _free(mj, camera)
        sides = mj.vis.global_.offwidth, mj.vis.global_.offheight
        width, height = (min(side, most) // BLOCK * BLOCK for side, most in zip(sides, LARGEST, strict=True))
        if size is not None:
            width, height = size
            mj.vis.global_.offwidth, mj.vis.global_.offheight = max(sides[0], width), max(sides[1], height)
        self.option = mujoco.MjvOption()
        for flag, value in (flags or {}).items():
            self.option.flags[flag] = value
        self.renderer: Any = self._renderer(height, width, max_geom)

    def _renderer(self, height: int, width: int, max_geom: int) -> Any:
        """Returns MuJoCo's renderer; suppresses the stderr message of a partly constructed one."""
        import mujoco

        hook, sys.unraisablehook = sys.unraisablehook, lambda unraisable: None
        try:
            try:
                return mujoco.Renderer(self.mj_model, height, width, max_geom)
            except Exception as error:
                # the error type depends on the missing graphics library
                reason = str(error)
        finally:
            sys.unraisablehook = hook
        raise InstallationError(
            f"video: rendering failed with MUJOCO_GL={os.environ.get('MUJOCO_GL', '')}: {reason}; a "
            f"headless machine requires EGL (libegl1 and a driver, or Mesa's libegl-mesa0) and {INSTALL}"
        )

    def picture(
        self,
        qpos: np.ndarray,
        mocap_pos: np.ndarray | None = None,
        mocap_quat: np.ndarray | None = None,
        fields: Mapping[str, np.ndarray] | None = None,
    ) -> np.ndarray:
        """Renders a state.

        Args:
            qpos: (nq,) position.
            mocap_pos, mocap_quat: (nmocap, 3) [m] and (nmocap, 4) of the mocap bodies; None: unchanged.
            fields: real fields of the model by name; they stay set for later images.

        Returns:
            (height, width, 3) uint8.
        """
        import mujoco

        for name, value in (fields or {}).items():
            if is_mujocos(MODEL[name]):
                write_field(self.mj_model, name, value)
        self.mj_data.qpos[:] = qpos
        if mocap_pos is not None:
            self.mj_data.mocap_pos[:], self.mj_data.mocap_quat[:] = mocap_pos, mocap_quat
        mujoco.mj_forward(self.mj_model, self.mj_data)
        self.renderer.update_scene(self.mj_data, self.camera, self.option)
        return self.renderer.render()

    def __enter__(self) -> Painter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Frees the graphics memory."""
        self.renderer.close()


def _free(mj_model: Any, attributes: Mapping[str, Any]) -> Any:
    """Returns a free camera, or one that follows a body."""
    import mujoco

    camera = mujoco.MjvCamera()
    mujoco.mjv_defaultFreeCamera(mj_model, camera)
    for name, value in attributes.items():
        if np.ndim(value):
            getattr(camera, name)[:] = value
        else:
            setattr(camera, name, value)
    if attributes.get("trackbodyid", -1) >= 0:
        camera.type = mujoco.mjtCamera.mjCAMERA_TRACKING
    return camera
