"""Draws level planes of the world, which all drawn worlds share, with their texture or a metre grid."""

from __future__ import annotations

import numpy as np

from featherlane import Model
from featherlane.apps.viewer.appearance import Looks
from featherlane.apps.viewer.instances import Solid
from featherlane.apps.viewer.shapes import Mesh, rectangle
from featherlane.apps.viewer.solids import GROUND, Kind, by_group, textured_file

LINES = 0.75  # brightness of grid lines relative to the plane
FAR = 40.0  # distance at which the ground ends, in extents
TILES = 400  # most repetitions of a texture on an infinite plane; beyond this it has one colour


class Ground:
    """The level planes of a model, whose size on the planes is `extent` [m]."""

    def __init__(self, server, model: Model, looks: Looks, extent: float):
        self.server, self.looks, self.extent = server, looks, extent
        self.model, self.planes = model, by_group(model, looks, GROUND)
        self._handles: list = []
        self._drawn: tuple = ()

    def show(self, offsets: np.ndarray, groups: tuple[int | None, ...]) -> None:
        """Draws the planes of these groups under all worlds."""
        reach = np.abs(offsets[:, :2]).max(0, initial=0.0)
        drawn = (*reach, *groups)
        if drawn == self._drawn:
            return
        self.remove()
        self._drawn = drawn
        planes = (plane for group in groups for plane in self.planes.get(-1 if group is None else group, ()))
        for k, plane in enumerate(planes):
            draw = self._grid if plane.look.texture < 0 else self._tiles
            self._handles.append(draw(f"/ground/{k}", plane, reach))

    def _half(self, plane: Solid, reach: np.ndarray) -> np.ndarray:
        """Computes the half sides of the drawn plane [m]."""
        size, endless = np.asarray(plane.size)[:2], FAR * self.extent + 2 * np.linalg.norm(reach)
        return np.where(size > 0, size + reach, endless)

    def _tiles(self, name: str, plane: Solid, reach: np.ndarray):
        """Draws a plane with its texture."""
        half, size, repeat = self._half(plane, reach), np.asarray(plane.size)[:2], np.array(plane.look.repeat)
        if not plane.look.per_metre:
            repeat = repeat / np.where(size > 0, size, 1.0)
        half, flat = np.where(repeat > 0, np.minimum(half, TILES / np.maximum(repeat, 1e-9)), half), rectangle()
        vertices = (flat.vertices * (*half, 1.0)).astype(np.float32)
        # per_metre repeats a picture over 2 m; the first one starts at the upper left corner of the plane in its file
        uv = (vertices[:, :2] * (1, -1) + size) * repeat / 2
        mesh = Mesh(vertices, flat.faces, uv.astype(np.float32))
        kind = Kind("rectangle", True, bool(plane.rgba[3] < 1), plane.look, tuple(map(float, plane.rgba)))
        return self.server.scene.add_glb(
            name, textured_file(self.looks, kind, mesh), position=tuple(plane.pos), wxyz=tuple(plane.quat)
        )

    def _grid(self, name: str, plane: Solid, reach: np.ndarray):
        """Draws a plane of one colour with a grid of ten by ten lines."""
        colour, half = 255 * np.clip(plane.rgba[:3], 0.0, 1.0), self._half(plane, reach)
        cell = 10.0 ** np.round(np.log10(max(self.extent, 1e-3) / 2))
        return self.server.scene.add_grid(
            name,
            width=2 * half[0],
            height=2 * half[1],
            infinite_grid=0.0 in plane.size[:2],
            cell_size=cell / 2,
            section_size=cell,
            cell_color=tuple(int(c) for c in LINES * colour),
            section_color=tuple(int(c) for c in LINES**2 * colour),
            plane_color=tuple(int(c) for c in colour),
            plane_opacity=float(plane.rgba[3]),
            fade_distance=FAR * self.extent + 4 * float(np.linalg.norm(reach)),
            shadow_opacity=0.3,
            position=tuple(plane.pos),
            wxyz=tuple(plane.quat),
        )

    def rebuild(self) -> None:
        """Rebuilds all planes at the next `show`, after a change of the model."""
        self.remove()
        self.planes = by_group(self.model, self.looks, GROUND)

    def remove(self) -> None:
        """Removes the planes from the page."""
        for handle in self._handles:
            handle.remove()
        self._handles, self._drawn = [], ()
