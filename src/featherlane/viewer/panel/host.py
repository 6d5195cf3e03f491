"""`Host`: what a panel asks of the page that it stands on."""

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
    """Worlds that are shown, and the thread that does what visitors ask for.

    Attributes:
        server, scene: viser's server, and what is drawn there.
        source: the worlds.
        worlds: those that are drawn, by number.
        picked: (world, body) that was clicked last.
    """

    server: Any
    scene: Any
    source: Source
    worlds: np.ndarray
    picked: tuple[int, int] | None

    @property
    def depth(self) -> int:
        """How many other worlds were shown before, and can be gone back to."""
        ...

    def shows(self, controls) -> bool:
        """Whether these controls are those of the page now."""
        ...

    def do(self, job: Callable[[], Any]) -> None:
        """Have a job done by the page's thread."""
        ...

    def tell(self, message: str, title: str = ...) -> None:
        """Tell visitors."""
        ...

    def enter(self, source: Source) -> None:
        """Show other worlds."""
        ...

    def leave(self) -> None:
        """Show what was shown before."""
        ...

    def draw_first(self, n: int) -> None:
        """Draw the first n worlds."""
        ...

    def draw_these(self, worlds) -> None:
        """Draw these worlds."""
        ...

    def pick(self, world: int, body: int) -> None:
        """Look at a body of a world."""
        ...

    def bad_worlds(self) -> list[int]:
        """Worlds that turned bad."""
        ...

    @property
    def batches(self) -> tuple[Batch, ...]:
        """Where the worlds' numbers are."""
        ...

    def locate(self, world: int) -> tuple[Batch, int]:
        """Where the numbers of a world are: a batch, and a row of it."""
        ...
