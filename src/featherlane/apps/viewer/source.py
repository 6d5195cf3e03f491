"""Defines `Source`, the worlds that a page shows, and `Clock`, a source whose time the page controls."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from featherlane import Batch, MixedBatch, Model
from featherlane.extension import bounded, whole_argument

BAD = ("non_finite", "bad_control")  # counts of `status` that mark a bad world
MOST_LAG = 0.1  # longest delay behind the wall clock that is made up for [s]
SPEEDS = (0.01, 10.0)


class Source(ABC):
    """The worlds that a page shows."""

    batch: Batch | MixedBatch  # the worlds to draw; models of a `MixedBatch` differ in options only
    labels: tuple[str, ...] = ()  # one for each world, or none
    choices: tuple[str, ...] = ()  # labels of the groups of worlds that can be shown, if there are several
    choice = 0  # the shown group
    reported = True  # whether steps of these worlds set solver reports
    drawn: np.ndarray  # numbers of the drawn worlds
    file: Any = None  # the `ModelFile` that the page loads again after a change, if there is one
    mouse: Any = None  # the `MouseForces` on worlds that the page owns

    @property
    def model(self) -> Model:
        """Returns the model of the first world."""
        return self.batch.models[0]

    @property
    def nworld(self) -> int:
        """Returns the number of worlds."""
        return self.batch.nworld

    @property
    def bad_worlds(self) -> list[int]:
        """Returns the worlds with non-finite or out-of-range state or controls since their last reset."""
        return np.flatnonzero(self.batch.count_of(*BAD)).tolist()

    def locate(self, world: int) -> tuple[Batch, int]:
        """Returns the batch of a world and its row in the batch."""
        whole_argument("world", world, 0, self.nworld - 1)
        k = int(np.searchsorted(self.batch.starts, world, "right")) - 1
        return self.batch.groups[k], int(world - self.batch.starts[k])

    def seconds(self, world: int) -> float:
        """Returns the time that plots show [s]."""
        return float(self.batch.time[world])

    def description(self, world: int) -> str:
        """Returns a line of text about a world."""
        return f"world {world} of {self.nworld}"

    @abstractmethod
    def tick(self, now: float | None = None) -> Any:
        """Advances the worlds to the present time, and returns whether they have changed."""

    def choose(self, choice: int) -> Source:
        """Returns another group of the worlds."""
        return self

    def session(self) -> Source:
        """Returns worlds that the page runs, from a copy of the present state."""
        return self

    def attach(self) -> None:  # noqa: B027
        """Called when the first visitor arrives."""

    def detach(self) -> None:  # noqa: B027
        """Called when the last visitor leaves, or other worlds are shown."""

    def run(self) -> None:  # noqa: B027
        """Starts the clock, if there is one."""

    def pause(self) -> None:  # noqa: B027
        """Stops the clock, if there is one."""


class Clock(Source):
    """Worlds that run in proportion to the wall-clock time."""

    def __init__(self) -> None:
        self.running, self.speed = False, 1.0  # whether the clock runs, and how fast (1: real time)
        self.pace = 0.0  # measured: simulated time per wall-clock time
        self._last: float | None = None

    def elapsed(self, now: float | None) -> float | None:
        """Returns the time until `now` since the last call, at most MOST_LAG [s]; None if the clock did not run."""
        now = time.perf_counter() if now is None else now
        last, self._last = self._last, now
        return min(max(now - last, 0.0), MOST_LAG) if self.running and last is not None else None

    def run(self) -> None:
        """Starts the clock."""
        if not self.running:
            self.running, self._last = True, None

    def pause(self) -> None:
        """Stops the clock."""
        self.running = False

    def set_speed(self, speed: float) -> None:
        """Sets the speed of the clock, from 0.01 to 10; 1 is real time."""
        self.speed = bounded("speed", speed, *SPEEDS)

    def description(self, world: int) -> str:
        state = f"running at {self.pace:.2f} x" if self.running else "paused"
        return f"{super().description(world)}, {state}"

    @abstractmethod
    def advance(self, steps: int = 1) -> None:
        """Advances by some steps or frames."""

    @abstractmethod
    def step_back(self) -> bool:
        """Goes back one step or frame, and returns whether there was an earlier one."""

    @abstractmethod
    def reset(self, keyframe: int | str = -1) -> None:
        """Goes to the defaults or a keyframe; frames start again."""

    @property
    @abstractmethod
    def place(self) -> tuple[float, float, float]:
        """Returns the first position on the time slider, the present one, and the last one."""

    @property
    @abstractmethod
    def pitch(self) -> float:
        """Returns the distance of two positions on the time slider."""

    @abstractmethod
    def pictures(self, fps: float) -> list[float]:
        """Returns the positions of the pictures of a video with this rate, from the first to the last position."""

    def visits(self, fps: float) -> Iterator[None]:
        """Goes to the positions of all pictures of a video, and then back to the present one."""
        shown, running = self.place[1], self.running
        for place in self.pictures(fps):
            self.go_to(place)
            yield
        self.go_to(shown)
        if running:
            self.run()

    @abstractmethod
    def go_to(self, place: float) -> None:
        """Goes to a position on the time slider; the clock stops."""
