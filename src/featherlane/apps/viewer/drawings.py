"""`view.draw`: arrows, points, lines and texts that a program draws into the scene."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from featherlane.errors import ModelError
from featherlane.extension import as_real_array, bounded, whole_argument

ORANGE = (1.0, 0.6, 0.0)


class Drawing(NamedTuple):
    """What stands under a name: the world, and a function of (scene, path, origin of the world) that adds it."""

    world: int
    add: Callable[[Any, str, np.ndarray], Any]


class Drawings:
    """Draws into the scene of a page, live; positions are those of a world [m].

        view.draw.arrow("push", start, start + 0.01 * force)
        view.draw.text("state", "stance", [0.0, 0.0, 1.0])

    A drawing stays until another one of the same name replaces it, or `clear` removes it.  A call takes a few
    microseconds, because the page's thread draws, at most 60 times a second.
    """

    def __init__(self, folder: str = "drawing"):
        self._folder = folder  # name of the node above all drawings
        self._new: dict[str, Drawing | None] = {}
        self._kept: dict[str, Drawing] = {}
        self._handles: dict[str, Any] = {}
        self._scene = self._offsets = None  # of the page when the drawings were added

    def arrow(
        self, name: str, start: ArrayLike, end: ArrayLike, *, color: ArrayLike = ORANGE, radius: float = 0.01, world=0
    ) -> None:
        """Draws one or several arrows.

        Args:
            name: name of the drawing.
            start, end: (3,) or (n, 3) [m].
            color: red, green and blue from 0 to 1.
            radius: of the shaft [m].
            world: number of the world in which it is drawn.

        Raises:
            ModelError: wrong shapes, numbers that are not finite, a name that is no text.
        """
        ends = np.stack([_rows("start", start), _rows("end", end, len(_rows("start", start)))], 1)
        form = {"shaft_radius": _size(radius), "head_radius": 2.5 * radius, "head_length": 5.0 * radius}
        self._put(name, world, "add_arrows", ends, color, form)

    def line(self, name: str, points: ArrayLike, *, color: ArrayLike = ORANGE, radius: float = 0.005, world=0) -> None:
        """Draws a line through at least two points (n, 3) [m]; other arguments and errors as of `arrow`."""
        through = _rows("points", points)
        if len(through) < 2:
            raise ModelError(f"points: got {len(through)}, allowed are at least two")
        ends = np.stack([through[:-1], through[1:]], 1)
        self._put(name, world, "add_line_segments", ends, color, {"thickness": 2.0 * _size(radius)})

    def points(self, name: str, points: ArrayLike, *, color: ArrayLike = ORANGE, radius: float = 0.01, world=0) -> None:
        """Draws points (n, 3) [m]; other arguments and errors as of `arrow`."""
        form = {"point_size": _size(radius), "point_shape": "circle", "precision": "float32"}
        self._put(name, world, "add_point_cloud", _rows("points", points), color, form)

    def text(self, name: str, text: str, position: ArrayLike, *, world: int = 0) -> None:
        """Writes a text at a position (3,) [m]; errors as of `arrow`."""
        if not isinstance(text, str):
            raise ModelError(f"text: got {type(text).__name__}, allowed is a str")
        at = _rows("position", position, 1)[0]
        add = lambda scene, path, origin: scene.add_label(path, text, position=tuple(at + origin))  # noqa: E731
        self._new[_name(name)] = Drawing(whole_argument("world", world, 0), add)

    def clear(self, name: str | None = None) -> None:
        """Removes a drawing, or all; a name that is not drawn has no effect."""
        for each in [*self._kept, *self._new] if name is None else [_name(name)]:
            self._new[each] = None

    def _put(self, name: str, world: int, method: str, points: np.ndarray, color: ArrayLike, form: dict) -> None:
        shade = as_real_array("color", color, "are red, green and blue from 0 to 1")
        if shade.shape != (3,) or not ((shade >= 0) & (shade <= 1)).all():
            raise ModelError(f"color: got {color!r}, allowed are red, green and blue from 0 to 1")
        rgb = tuple(round(255 * x) for x in shade.tolist())

        def add(scene, path: str, origin: np.ndarray):
            return getattr(scene, method)(path, (points + origin).astype(np.float32), rgb, **form)

        self._new[_name(name)] = Drawing(whole_argument("world", world, 0), add)

    # ---- in the page's thread ----------------------------------------------------------------------------------------
    def show(self, page: Any) -> None:
        """Adds the new drawings to a page; all of them if it has another scene since, or draws other worlds."""
        scene, offsets = page.server.scene, page.offsets
        if page.scene is not self._scene:  # the server's scene was cleared
            self._scene, self._handles = page.scene, {}
        if offsets is not self._offsets:
            self._offsets, self._new = offsets, self._kept | self._new
        while self._new:
            name, drawing = self._new.popitem()
            handle = self._handles.pop(name, None)
            if handle is not None:
                handle.remove()
            self._kept.pop(name, None)
            if drawing is not None:
                self._kept[name] = drawing
                if drawing.world in offsets:
                    self._handles[name] = drawing.add(scene, f"/{self._folder}/{name}", offsets[drawing.world])


def _name(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise ModelError(f"name: got {name!r}, allowed is a text")
    return name


def _size(radius: Any) -> float:
    return bounded("radius", radius, 0.0, above=True)


def _rows(name: str, given: ArrayLike, n: int = 0) -> np.ndarray:
    """Returns points as (n, 3)."""
    points = np.atleast_2d(as_real_array(name, given, "are positions (3,) or (n, 3)")).astype(float)
    if points.ndim != 2 or points.shape[1] != 3 or (n and len(points) != n) or not np.isfinite(points).all():
        shape = f"({n}, 3)" if n > 1 else "(3,) or (n, 3)"
        raise ModelError(f"{name}: got {np.shape(given)}, allowed are finite numbers {shape}")
    return points
