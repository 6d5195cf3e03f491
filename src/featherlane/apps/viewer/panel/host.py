"""`Host`: the interface of the page that a panel uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from featherlane.apps.viewer.cameras import Cameras
from featherlane.apps.viewer.source import Source


class Host(Protocol):
    """Shown worlds, and the thread that runs jobs of visitors; `Page` describes the methods.

    Attributes:
        server, scene, cameras: viser's server, the scene on it, and the visitors' cameras.
        source: the worlds.
        worlds: numbers of the drawn worlds.
        picked: last clicked (world, body).
    """

    server: Any
    scene: Any
    cameras: Cameras
    source: Source
    worlds: np.ndarray
    picked: tuple[int, int] | None

    @property
    def depth(self) -> int: ...
    def shows(self, controls) -> bool: ...
    def do(self, job: Callable[[], Any]) -> None: ...
    def notify(self, message: str, title: str = ...) -> None: ...
    def enter(self, source: Source) -> None: ...
    def leave(self) -> None: ...
    def switch(self, source: Source) -> None: ...
    def reload(self) -> None: ...
    def draw_first(self, n: int) -> None: ...
    def draw_these(self, worlds) -> None: ...
    def pick(self, world: int, body: int) -> None: ...
