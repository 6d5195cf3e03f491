"""`Scene`: draws worlds layer by layer on the page of a viser server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from featherlane import Data, Model, stages
from featherlane.apps.viewer.appearance import Looks
from featherlane.apps.viewer.frame import LAYERS, Frame
from featherlane.apps.viewer.ground import Ground
from featherlane.apps.viewer.instances import paint
from featherlane.apps.viewer.mark_layers import DISC_RADIUS, MARKS, tendon_looks
from featherlane.apps.viewer.marks import Marks
from featherlane.apps.viewer.node import Drag
from featherlane.apps.viewer.solids import GEOMS, HULLS, SITES, Solids
from featherlane.enums import NGROUP, PLANE
from featherlane.errors import ModelError
from featherlane.extension import one_of, whole_argument

SHOWN = (0, 1, 2)  # groups that are drawn initially, as in MuJoCo
AT_FIRST = ("geoms", "sites", "tendons", "sleep")  # layers that are drawn initially
SIZES = (*(f"{kind}_{name}" for kind in ("geom", "site") for name in ("pos", "quat", "size")), "hfield_data")
APART = 1.25  # distance of neighbours in a grid of worlds, relative to their width
ENDLESS = 20.0  # half side of an infinite tilted plane, in extents
SKY, EARTH, SUN = (225, 235, 255), (150, 145, 140), (255, 250, 240)  # colours of the lights
UP, SUNWARDS = (0.0, 0.0, 1.0), (-1.0, -2.0, 4.0)


class Scene:
    """Draws worlds of a model on a page.

    Args:
        held: called with the world's number, the body and a `Drag` while a visitor drags the body with Ctrl.

    Raises:
        ModelError: nworld below 1.
    """

    def __init__(self, server, model: Model, nworld: int = 1, held: Callable[[int, int, Drag], Any] | None = None):
        self.server, self.model, self.nworld = server, model, whole_argument("nworld", nworld, 1)
        self.held = held
        # centre of the model in qpos0, and side lengths of its bounding box (3,) [m]
        self.centre, self.extents = _bounds(model)
        self._middle, moving = _bounds(model, moving=True)
        self._frame: Frame | None = None
        self._sizes = {name: getattr(model, name).copy() for name in SIZES}
        extent, looks = float(moving.max()), Looks(model.mj_model)
        self._reach = float(np.linalg.norm(moving)) / 2
        size = float(np.clip(model.stat.meansize, 1e-3 * extent, 0.3 * extent))
        self._ground = Ground(server, model, looks, float(self.extents.max()))
        infinite = ENDLESS * float(self.extents.max())
        self._solids = {
            name: Solids(server, model, name, looks, infinite, self._held) for name in (GEOMS, HULLS, SITES)
        }
        self._marks = {name: Marks(server, name, paint, model, looks, size, extent) for name, paint in MARKS.items()}
        group, colours = tendon_looks(looks)
        grouped = {name: layer.groups for name, layer in self._solids.items()}
        grouped[GEOMS] = tuple(sorted({*grouped[GEOMS], *self._ground.planes}))
        grouped["tendons"] = tuple(np.unique(group[colours[:, 3] > 0]).tolist())
        # by name; empty for a layer without groups
        self.layers: dict[str, tuple[int, ...]] = {name: groups for name, groups in grouped.items() if groups}
        self.layers |= dict.fromkeys([*(MARKS.keys() - grouped.keys()), "islands", "sleep", "glass"], ())
        self.layers = {name: self.layers[name] for name in LAYERS if name in self.layers}
        self._on = {
            name: {g: name in AT_FIRST and g in (None, *SHOWN) for g in groups or (None,)}
            for name, groups in self.layers.items()
        }
        scene = server.scene
        scene.set_up_direction("+z")
        # a sky and a sun with shadows in place of viser's lights and panorama, which are external resources
        scene.configure_environment_map(hdri=None)
        scene.configure_default_lights(enabled=False)
        scene.add_light_hemisphere("/light/sky", sky_color=SKY, ground_color=EARTH, intensity=2.0, position=UP)
        scene.add_light_directional("/light/sun", color=SUN, intensity=2.6, cast_shadow=True, position=SUNWARDS)
        self.aim(np.zeros((1, 3)))

    # ---- layers ------------------------------------------------------------------------------------------------------
    @property
    def drawn_layers(self) -> frozenset[str]:
        """Returns the layers that are at least partly on, for `Frame.of`."""
        return frozenset(name for name in self._on if self._groups(name))

    @property
    def state(self) -> dict[str, dict[int | None, bool]]:
        """Returns which layers are on, by name and group, for `restore`."""
        return {name: dict(groups) for name, groups in self._on.items()}

    def restore(self, state: Mapping[str, Mapping[int | None, bool]]) -> None:
        """Turns layers on or off, as they were in another scene; groups that do not exist here have no effect."""
        for name, groups in self._on.items():
            groups |= {group: on for group, on in state.get(name, {}).items() if group in groups}
        self._redraw()

    def is_on(self, layer: str, group: int | None = None) -> bool:
        """Returns whether a layer, or one group of it, is drawn; without a group, whether any group is."""
        self._check(layer, group)
        return any(self._on[layer].values()) if group is None else self._on[layer][group]

    def switch(self, layer: str, group: int | None, on: bool) -> None:
        """Turns a layer, or one group of it, on or off; its data comes with the next frame."""
        self._check(layer, group)
        self._on[layer] |= dict.fromkeys(self._on[layer] if group is None else (group,), bool(on))
        self._redraw()

    def _groups(self, layer: str) -> tuple[int | None, ...]:
        """Returns the groups of a layer that are on; (None,) of a layer without groups."""
        return tuple(group for group, on in self._on.get(layer, {}).items() if on)

    def _check(self, layer: str, group: int | None) -> None:
        one_of("layer", layer, self.layers)
        if group is not None and group not in self.layers[layer]:
            allowed = ", ".join(map(str, self.layers[layer])) or "none"
            raise ModelError(f"group: got {group!r}, allowed for the layer {layer} are {allowed}")

    def show(self, frame: Frame) -> None:
        """Draws a frame; layers without data in it wait for the next one."""
        if not all(np.array_equal(self._sizes[name], getattr(self.model, name)) for name in SIZES):
            self._resize()
        self._frame, offsets = frame, self.spread(frame.worlds)
        colours = paint(self.model, frame, self.is_on("sleep"), self.is_on("islands"))
        with self.server.atomic():
            self._ground.show(offsets, self._groups(GEOMS))
            for name, layer in self._solids.items():
                painted = None if name == SITES else colours
                layer.show(frame, offsets, self._groups(name), painted, self.is_on("glass"))
            for name, marks in self._marks.items():
                marks.show(frame, offsets, self._groups(name))
        self.server.flush()

    def _resize(self) -> None:
        """Rebuilds everything after sizes, offsets or heights of the model have changed."""
        self._sizes = {name: getattr(self.model, name).copy() for name in SIZES}
        for layer in (*self._solids.values(), self._ground):
            layer.rebuild()

    def _redraw(self) -> None:
        if self._frame is not None:
            self.show(self._frame)

    def spread(self, worlds: ArrayLike) -> np.ndarray:
        """Computes the drawn origins (n, 3) [m] of worlds (n,): a grid about the origin, in the given order."""
        n = len(np.atleast_1d(worlds))
        columns = max(int(np.ceil(np.sqrt(n))), 1)
        rows = -(-n // columns)
        row, column = np.divmod(np.arange(n), columns)
        side = APART * float(self.extents.max())
        x, y = (column - (columns - 1) / 2) * side, (row - (rows - 1) / 2) * side
        return np.column_stack((x, y, np.zeros(n)))

    def aim(self, offsets: np.ndarray) -> None:
        """Points the initial view of a page at worlds that are drawn at these offsets (n, 3)."""
        reach = self._reach + float(np.abs(offsets).max(initial=0.0))
        middle = self._middle + offsets.mean(0)
        self.server.initial_camera.position = tuple(middle + reach * np.array((1.1, -1.6, 0.9)))
        self.server.initial_camera.look_at = tuple(middle)

    def contact_along(self, origin: np.ndarray, direction: np.ndarray, farthest: float):
        """Returns world, number and geoms of the drawn contact nearest to a ray, up to a distance [m], or None."""
        frame, reach = self._frame, DISC_RADIUS * self._marks["contacts"].size
        if frame is None or frame.touches is None or not len(frame.touches.world) or not self.is_on("contacts"):
            return None
        world = frame.touches.world
        at = frame.touches.pos + self.spread(frame.worlds)[world] - origin
        along = at @ direction
        aside = np.linalg.norm(at - along[:, None] * direction, axis=1)
        aside[(along < 0) | (along > farthest + 2 * reach)] = np.inf
        k = int(aside.argmin())
        first = int(np.argmax(world == world[k]))
        return (int(frame.worlds[world[k]]), k - first, frame.touches.geom[k]) if aside[k] < reach else None

    def _held(self, place: int, body: int, drag: Drag) -> None:
        if self.held is not None and self._frame is not None and place < len(self._frame.worlds):
            self.held(int(self._frame.worlds[place]), body, drag)


def _bounds(model: Model, moving: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Computes centre (3,) and side lengths (3,) [m] of the box around all shapes except planes in qpos0."""
    data = Data(model)
    stages.kinematics(model, data)
    stages.frames(model, data)
    shown = (model.geom_type != PLANE) & (np.clip(model.geom_group, 0, NGROUP - 1) <= max(SHOWN))
    if not shown.any():
        return np.zeros(3), np.ones(3)
    moves = shown & ((model.body_weldid > 0) | (model.body_mocapid >= 0))[model.geom_bodyid]
    if moving and moves.any():
        shown = moves
    pos, ball = data.geom_xpos[shown], model.geom_rbound[shown, None]
    low, high = (pos - ball).min(0), (pos + ball).max(0)
    return (low + high) / 2, np.maximum(high - low, 1e-3)
