"""A question to worlds: what is asked of a batch in its present states, which it then leaves as they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from featherlane.lanes import Stage
from featherlane.simulation.tile.workspace import Workspace


class Question(ABC):
    """What is asked, checked, as rows that tiles take in, and rows of answers.

    Attributes:
        loop: the stage that works through tiles.
        reads: fields of a world that the answer depends on.
        number: how many things are asked of each world: steps of the loop.
        single: whether each world is asked one thing, and answers have no axis for it.
    """

    loop: Stage
    reads: tuple[str, ...] = ("qpos", "mocap_pos", "mocap_quat")
    number: int
    single: bool = False

    def brought(self) -> dict[str, np.ndarray]:
        """Field -> rows (n, number, ...) of what n worlds are asked."""
        return {}

    @abstractmethod
    def taken(self) -> dict[str, np.ndarray]:
        """Field -> rows (n, number, ...) of their answers."""

    @abstractmethod
    def answer(self) -> Any:
        """The answers, as a user gets them."""

    def enter(self, workspace: Workspace) -> None:  # noqa: B027
        """Tell a tile what all worlds are asked alike."""

    def shaped(self, rows: np.ndarray) -> Any:
        """Answers (n, number, ...) of n worlds as a user gets them; a number where there is no axis."""
        return rows[:, 0] if self.single else rows[()]
