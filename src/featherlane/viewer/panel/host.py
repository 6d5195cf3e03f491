"""`Host`: the interface of the page that a panel uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from featherlane.simulation.batch.batch import Batch
from featherlane.viewer.playback import Playback
from featherlane.viewer.session import Session
from featherlane.viewer.watch import Watch

Source = Session | Watch | Playback


class Host(Protocol):
    """Shown worlds, and the thread that runs jobs of visitors.

    Attributes:
        server, scene: viser's server, and the scene on it.
        source: the worlds.
        worlds: numbers of the drawn worlds.
        picked: last clicked (world, body).
    """

    server: Any
    scene: Any
    source: Source
    worlds: np.ndarray
    picked: tuple[int, int] | None

    @property
    def depth(self) -> int:
        """Returns the number of earlier sources that can be returned to."""
        ...

    def shows(self, controls) -> bool:
        """Returns whether these controls belong to the present page."""
        ...

    def do(self, job: Callable[[], Any]) -> None:
        """Runs a job in the page's thread."""
        ...

    def notify(self, message: str, title: str = ...) -> None:
        """Shows a notification to visitors."""
        ...

    def enter(self, source: Source) -> None:
        """Shows other worlds."""
        ...

    def leave(self) -> None:
        """Returns to the worlds that were shown before."""
        ...

    def switch(self, source: Source) -> None:
        """Shows other worlds in place of the present ones."""
        ...

    def draw_first(self, n: int) -> None:
        """Draws the first n worlds."""
        ...

    def draw_these(self, worlds) -> None:
        """Draws these worlds."""
        ...

    def pick(self, world: int, body: int) -> None:
        """Selects a body of a world."""
        ...

    def bad_worlds(self) -> list[int]:
        """Returns the bad worlds."""
        ...

    @property
    def batches(self) -> tuple[Batch, ...]:
        """Returns the batches that hold the worlds."""
        ...

    def locate(self, world: int) -> tuple[Batch, int]:
        """Returns the batch of a world and its row in the batch."""
        ...
