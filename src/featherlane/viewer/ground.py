"""Level planes of the world: all drawn worlds stand on the same ones, with a grid of metres."""

from __future__ import annotations

import numpy as np

from featherlane.model.enums import NGROUP
from featherlane.model.model import Model
from featherlane.viewer.look import colours
from featherlane.viewer.pieces import Solid, geoms
from featherlane.viewer.solids import is_ground

LINES = 0.75  # brightness of a grid's lines to that of its plane


class Ground:
    """The level planes of a model.

    Args:
        server: where they are drawn.
        model: the model.
        extent: size of what stands on them [m].
    """

    def __init__(self, server, model: Model, extent: float):
        self.server, self.extent = server, extent
        seen = zip(np.clip(model.geom_group, 0, NGROUP - 1), geoms(model, colours(model.mj_model, "geom")), strict=True)
        self.planes: list[tuple[int, Solid]] = [
            (int(g), s) for g, s in seen if s.rgba[3] > 0 and is_ground(model, s)
        ]  # fmt: skip
        self.groups = tuple(sorted({group for group, _ in self.planes}))
        self.on = dict.fromkeys(self.groups, False)
        self._handles: list = []
        self._drawn: tuple = ()

    def show(self, offsets: np.ndarray) -> None:
        """Draw the planes under all worlds."""
        reach = np.abs(offsets[:, :2]).max(0) if len(offsets) else np.zeros(2)
        drawn = (*reach, *(group for group in self.groups if self.on[group]))
        if drawn == self._drawn:
            return
        self.remove()
        self._drawn = drawn
        for k, (group, plane) in enumerate(self.planes):
            if self.on[group]:
                self._handles.append(self._grid(f"/ground/{k}", plane, reach))

    def _grid(self, name: str, plane: Solid, reach: np.ndarray):
        colour = 255 * np.clip(plane.rgba[:3], 0.0, 1.0)
        half = plane.size[:2] + reach
        endless = bool((plane.size[:2] == 0).any())
        cell = 10.0 ** np.round(np.log10(max(self.extent, 1e-3) / 2))
        far = 40 * self.extent + 4 * float(np.linalg.norm(reach))
        return self.server.scene.add_grid(
            name,
            width=2 * half[0],
            height=2 * half[1],
            infinite_grid=endless,
            cell_size=cell / 2,
            section_size=cell,
            cell_color=tuple(int(c) for c in LINES * colour),
            section_color=tuple(int(c) for c in LINES**2 * colour),
            plane_color=tuple(int(c) for c in colour),
            plane_opacity=float(plane.rgba[3]),
            fade_distance=far,
            shadow_opacity=0.3,
            position=tuple(plane.pos),
            wxyz=tuple(plane.quat),
        )

    def remove(self) -> None:
        """Take the planes off the page."""
        for handle in self._handles:
            handle.remove()
        self._handles, self._drawn = [], ()
