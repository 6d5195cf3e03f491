"""Images of the worlds of an environment: `render_mode="rgb_array"`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from featherlane import Batch, Camera, MixedBatch, Model
from featherlane.environments.task import Task
from featherlane.errors import ModelError
from featherlane.extension import Painter, one_of, prepare_rendering, whole_argument

RENDER_MODES = ("rgb_array",)
SIZE = 480
FOLLOWING = "track"  # name of the default camera


class Painting:
    """Renders the worlds of an environment: by `Batch.render`, or by MuJoCo's renderer if the task sets visual flags.

    Args:
        task: may set `camera_id`, `camera_name`, `default_camera_config`, `width`, `height`, `visual_options`.
        mode: "rgb_array", or None for no pictures.
        drawn: number of worlds to render, from the first; the others stay black.

    Raises:
        ModelError: another mode, or a value out of range.
        InstallationError: the task sets `visual_options`, and MuJoCo's renderer is not available.
    """

    def __init__(self, task: Task, mode: str | None, drawn: int):
        if mode is not None:
            one_of("render_mode", mode, RENDER_MODES)
        self.task, self.mode, self.drawn = task, mode, whole_argument("render_worlds", drawn, 1)
        self._painters: dict[int, Painter] = {}
        self.size = (getattr(task, "width", SIZE), getattr(task, "height", SIZE))
        self.flags = getattr(task, "visual_options", None)
        if mode is not None and self.flags:
            prepare_rendering()

    def pictures(self, worlds: Batch | MixedBatch) -> tuple[np.ndarray, ...] | None:
        """Returns a picture (height, width, 3) uint8 of each world, under the model that the world has now."""
        if self.mode is None:
            return None
        pictures = []
        for k, group in enumerate(worlds.groups):
            drawn = min(self.drawn - len(pictures), group.nworld)
            if drawn > 0:
                pictures += self._by_flags(k, group, drawn) if self.flags else self._by_rays(group, drawn)
        black = [np.zeros_like(pictures[0])] if len(pictures) < worlds.nworld else []
        return (*pictures, *black * (worlds.nworld - len(pictures)))

    def _by_rays(self, worlds: Batch, drawn: int) -> list[np.ndarray]:
        """Returns pictures of the first worlds of a group by casting rays."""
        width, height = self.size
        camera = Camera(self._camera(worlds.model), width=width, height=height, output="rgb")
        images = worlds.render(camera, ids=range(drawn)).rgb
        return [] if images is None else list(images)

    def _by_flags(self, k: int, worlds: Batch, drawn: int) -> list[np.ndarray]:
        """Returns pictures of the first worlds of the group k by MuJoCo's renderer; each group has one of its model."""
        if k not in self._painters:
            most = getattr(self.task, "max_geom", 10000)
            self._painters[k] = Painter(worlds.model, self._camera(worlds.model), self.size, self.flags, most)
        painter, expanded = self._painters[k], worlds.expanded_fields
        worlds.model.write_to(painter.mj_model)  # it may have been edited since the last picture
        return [
            painter.picture(
                worlds.qpos[w],
                worlds.mocap_pos[w],
                worlds.mocap_quat[w],
                {name: rows[w] for name, rows in expanded.items()},
            )
            for w in range(drawn)
        ]

    def _camera(self, model: Model) -> int | Mapping[str, Any]:
        """Returns the task's camera, else the model's "track" as in Gymnasium, else a free camera."""
        number, name = getattr(self.task, "camera_id", None), getattr(self.task, "camera_name", None)
        if number is not None and name is not None:
            raise ModelError("camera_id, camera_name: got both, allowed is one of them")
        if name is not None:
            return model.camera(name).id
        if number is not None and number != -1:
            return whole_argument("camera_id", number, -1, model.ncam - 1)
        if number is None and FOLLOWING in model.names("camera"):
            return model.camera(FOLLOWING).id
        return getattr(self.task, "default_camera_config", None) or {}

    def close(self) -> None:
        """Frees the graphics memory."""
        for painter in self._painters.values():
            painter.close()
        self._painters.clear()
