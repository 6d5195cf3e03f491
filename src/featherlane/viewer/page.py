"""The page: worlds, what is drawn of them and the panel beside it, kept together by one thread.

Whatever a visitor does is a job for that thread, so that worlds are touched by it alone.  Where nobody visits it waits:
worlds of the page's own stand still, and those of others are not looked at.
"""

from __future__ import annotations

import dataclasses
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from featherlane.errors import FeatherlaneError, ModelError
from featherlane.model.enums import NGROUP
from featherlane.simulation.batch.batch import Batch
from featherlane.simulation.query.ray import Rays
from featherlane.viewer.frame import Frame
from featherlane.viewer.node import Drag
from featherlane.viewer.panel import DRAWN, Panel, Source
from featherlane.viewer.prose import plain
from featherlane.viewer.scene import Scene
from featherlane.viewer.session import Session
from featherlane.viewer.settle import settle
from featherlane.viewer.watch import Watch
from featherlane.viewer.worker import Worker

RATE = 60.0  # pictures in a second, at most
PANEL_RATE = 8.0  # numbers and plots
IDLE = 0.1  # between two looks for visitors [s]
MARKS = 64  # labels of bad worlds, at most
RED, ORANGE = (200, 40, 40), (255, 150, 0)


class Page:
    """What a viser server shows of some worlds.

    Args:
        worker: the page's thread, which makes the page and calls all of its methods but `do` and `ask`.
        server: the `viser.ViserServer`.
        source: the worlds: the page's own, somebody else's, or recorded ones.
        drawn: how many of them are drawn, the first; None: up to 64.

    Attributes:
        source: what is shown now.
        picked: the world, and the body in it, that was clicked last.
        worlds: numbers of the worlds that are drawn.
        message: the last complaint.
    """

    def __init__(self, worker: Worker, server, source: Source, drawn: int | None = None):
        self.worker, self.server = worker, server
        self.message = ""
        self.frames = 0
        self._stack: list[Source] = []
        self._dirty, self._panel_due, self._watched = True, 0.0, False
        self._marks: dict[str, Any] = {}
        self._open(source, drawn)
        server.scene.on_click()(lambda event: self.do(lambda: self.pick_along(event.ray_origin, event.ray_direction)))

    # ---- from any thread ---------------------------------------------------------------------------------------------
    def do(self, job: Callable[[], Any]) -> None:
        """Runs a job in the page's thread soon; its error is shown on the page."""
        self.worker.do(lambda: self._guarded(lambda: self._run(job)))

    def ask(self, job: Callable[[], Any], timeout: float = 30.0) -> Any:
        """Runs a job in the page's thread and returns its result.

        Raises:
            RuntimeError: the page is closed, or busy for longer than the timeout.
            Exception: what the job raised.
        """

        def marked():
            self._dirty = True
            return job()

        return self.worker.ask(marked, timeout)

    # ---- in the page's thread ----------------------------------------------------------------------------------------
    def shows(self, controls) -> bool:
        """Whether these controls are those of the present panel."""
        return self.panel is not None and self.panel.controls is controls

    def close(self) -> None:
        """Stops looking at the worlds of others."""
        if isinstance(self.source, Watch):
            self.source.detach()

    def tell(self, message: str, title: str = "Not done", seconds: float = 8.0) -> None:
        """A note to all visitors."""
        self.message = message
        for client in list(self.server.get_clients().values()):
            client.add_notification(title, plain(message), auto_close_seconds=seconds, color="red")

    def turn(self, visitors: int) -> float:
        """Does what is due now.

        Args:
            visitors: how many browsers look at the page.

        Returns:
            How long to wait for a job [s].
        """
        start = time.perf_counter()
        if not self._guarded(lambda: self._turn(visitors)):
            return IDLE
        return max(0.0, 1.0 / RATE - (time.perf_counter() - start)) if visitors else IDLE

    def _guarded(self, job: Callable[[], Any]) -> bool:
        """Runs a job, shows its error on the page and stops the clock; returns whether there was none."""
        try:
            job()
        except FeatherlaneError as error:
            self._stop_clock()
            self.tell(str(error))
        except Exception:
            self._stop_clock()
            traceback.print_exc()
            self.tell(traceback.format_exc(limit=-1), "An error of the viewer")
        else:
            return True
        return False

    def _run(self, job: Callable[[], Any]) -> None:
        self._dirty = True
        try:
            job()
        except FeatherlaneError as error:
            self.tell(str(error))
            self.panel.sync()

    def _turn(self, visitors: int) -> None:
        if bool(visitors) != self._watched:
            self._watched = bool(visitors)
            self._visited(self._watched)
        if not visitors:
            if self._dirty:
                self._draw()
            return
        moved = self.source.take() if isinstance(self.source, Watch) else bool(self.source.tick())
        if moved or self._dirty:
            self._draw()
        now = time.perf_counter()
        if now >= self._panel_due:
            self._panel_due = now + 1.0 / PANEL_RATE
            self.panel.refresh()

    def _visited(self, visitors: bool) -> None:
        """The first visitor came, or the last one left."""
        if isinstance(self.source, Watch):
            self.source.attach() if visitors else self.source.detach()
        elif not visitors and isinstance(self.source, Session):
            self.source.release()
        self._dirty = True

    def _stop_clock(self) -> None:
        if not isinstance(self.source, Watch):
            self.source.pause()

    # ---- sources -----------------------------------------------------------------------------------------------------
    @property
    def batches(self) -> tuple[Batch, ...]:
        """The batches that hold what is shown."""
        if isinstance(self.source, Session):
            return tuple(part.batch for part in self.source.parts)
        return (self.source.batch,)

    def locate(self, world: int) -> tuple[Batch, int]:
        """The batch of a world, and its row there."""
        if isinstance(self.source, Session):
            part, row = self.source.locate(world)
            return part.batch, row
        return self.source.batch, world

    def enter(self, source: Source) -> None:
        """Show other worlds; `leave` comes back to these."""
        self._pause_or_detach()
        self._stack.append(self.source)
        self._open(source, None)

    def leave(self) -> None:
        """Back to the worlds that were shown before.

        Raises:
            ModelError: there were none.
        """
        if not self._stack:
            raise ModelError("there is nothing to go back to")
        self._pause_or_detach()
        self._open(self._stack.pop(), None)
        if isinstance(self.source, Watch) and self.server.get_clients():
            self.source.attach()

    @property
    def depth(self) -> int:
        """How many sources can be gone back to."""
        return len(self._stack)

    def _pause_or_detach(self) -> None:
        if isinstance(self.source, Watch):
            self.source.detach()
        else:
            self.source.pause()

    def _open(self, source: Source, drawn: int | None) -> None:
        """Build scene and panel for some worlds."""
        self.source = source
        self.panel: Any = None
        self.picked: tuple[int, int] | None = None
        self._holding = False
        settle(self.server)
        self.server.scene.reset()
        self._marks = {}
        self.scene = Scene(self.server, source.model, source.nworld)
        self.scene.draggable.append(lambda *held: self.do(lambda: self.drag(*held)))
        self.draw_first(min(source.nworld, DRAWN if drawn is None else drawn))
        self.panel = Panel(self)
        self._draw()

    # ---- what is drawn -----------------------------------------------------------------------------------------------
    def draw_first(self, n: int) -> None:
        """Draw the first n worlds, in a grid."""
        self.draw_these(np.arange(max(1, min(n, self.source.nworld))))

    def draw_these(self, worlds) -> None:
        """Draw some worlds, by number.

        Raises:
            ModelError: a number that no world has.
        """
        worlds = np.unique(np.asarray(worlds, int))
        wrong = worlds[(worlds < 0) | (worlds >= self.source.nworld)]
        if not len(worlds) or len(wrong):
            raise ModelError(
                f"worlds: got {wrong[0] if len(wrong) else 'none'}, allowed are 0 to {self.source.nworld - 1}"
            )
        self.worlds = worlds
        if isinstance(self.source, Watch):
            self.source.drawn = worlds
        self._offsets = dict(zip(worlds.tolist(), self.scene.spread(worlds), strict=True))
        self.scene.aim(self.scene.spread(worlds))
        self._dirty = True
        if self.panel is not None:
            self.panel.sync()

    def _draw(self) -> None:
        self._dirty = False
        self.scene.show(self.frame())
        self._mark()
        self.frames += 1

    def frame(self) -> Frame:
        """What is drawn now."""
        wanted = self.scene.wanted
        frames = [(first, Frame.of(batch.model, batch, rows, wanted)) for first, batch, rows in self._drawn_rows()]
        return joined(frames)

    def _drawn_rows(self) -> Iterator[tuple[int, Batch, np.ndarray]]:
        """Batches with worlds that are drawn: the number of the first world, the batch, its rows."""
        first = 0
        for batch in self.batches:
            rows = self.worlds[(self.worlds >= first) & (self.worlds < first + batch.nworld)] - first
            if len(rows):
                yield first, batch, rows
            first += batch.nworld

    def _mark(self) -> None:
        """Labels of worlds, and the spring of the hand."""
        wanted: dict[str, tuple[str, np.ndarray]] = {}
        height = float(self.scene.extents[2]) / 2 + float(self.scene.centre[2])
        bad = [w for w in self.bad_worlds() if w in self._offsets][:MARKS]
        for world in bad:
            wanted[f"/bad/{world}"] = (f"world {world}: bad numbers", self._offsets[world] + (0, 0, height))
        if isinstance(self.source, Session) and len(self.source.parts) > 1:
            for world, part in enumerate(self.source.parts):
                if world in self._offsets:
                    wanted[f"/label/{world}"] = (part.label, self._offsets[world] + (0, 0, 1.3 * height))
        for name in self._marks.keys() - wanted.keys() - {"/hand"}:
            self._marks.pop(name)[1].remove()
        for name, (text, at) in wanted.items():
            if name not in self._marks or not np.array_equal(self._marks[name][0], at):
                self._marks[name] = (at, self.server.scene.add_label(name, text, position=tuple(at)))
        self._mark_spring()

    def _mark_spring(self) -> None:
        spring = self.source.spring() if isinstance(self.source, Session) else None
        if spring is None or spring[0] not in self._offsets:
            if "/hand" in self._marks:
                self._marks.pop("/hand")[1].remove()
            return
        world, held, target = spring
        points = (np.stack([held, target]) + self._offsets[world])[None].astype(np.float32)
        thickness = float(self.scene.extents.max()) / 150
        handle = self.server.scene.add_line_segments("/hand", points, ORANGE, thickness=thickness)
        self._marks["/hand"] = (None, handle)

    def bad_worlds(self) -> list[int]:
        """Numbers of the worlds whose numbers or controls were bad."""
        if isinstance(self.source, Watch):
            status = self.source.batch.status
            return np.flatnonzero(status["bad_number"] + status["bad_control"]).tolist()
        return self.source.bad_worlds

    # ---- hands -------------------------------------------------------------------------------------------------------
    def pick(self, world: int, body: int) -> None:
        """Look at a body of a world: the panel and the plots follow."""
        self.picked = (world, body)
        self.panel.sync()

    def pick_along(self, origin, direction) -> None:
        """Pick the first body that moves along a ray on the page; nothing where there is none.

        Args:
            origin: (3,) where it starts [m].
            direction: (3,) where it goes.
        """
        seen = [self.scene.is_on("geoms", g) if g in self.scene.layers["geoms"] else False for g in range(NGROUP)]
        nearest, found = np.inf, None
        for first, batch, rows in self._drawn_rows():
            starts = np.asarray(origin) - np.array([self._offsets[first + row] for row in rows.tolist()])
            arguments = starts[:, None], np.asarray(direction, float), seen, True, -1, np.inf
            # not `batch.ray`, which refuses signed distance fields: to pick one, its bounding box is near enough
            hits = batch.query(Rays(batch.model, len(rows), batch.dtype, *arguments), rows)
            distance = np.where(hits.geom[:, 0] >= 0, hits.distance[:, 0], np.inf)
            k = int(distance.argmin())
            if distance[k] < nearest:
                body = int(self.source.model.geom_bodyid[hits.geom[k, 0]])
                nearest, found = distance[k], (first + int(rows[k]), body)
        if found is not None and found[1] > 0:
            self.pick(*found)

    def drag(self, world: int, body: int, drag: Drag) -> None:
        """Follow the mouse.

        Args:
            world, body: what it holds.
            drag: where, in the axes of the page.

        Raises:
            ModelError: the worlds are not the page's own, or the body is fixed.
        """
        if not isinstance(self.source, Session):
            if drag.phase == "start":
                raise ModelError("these worlds are not the page's own: run a copy of them from here first")
            return
        offset = self._offsets.get(world, np.zeros(3))
        if drag.phase == "start":
            self.source.grab(world, body, np.array(drag.start) - offset)
            self._holding = True
            self.pick(world, body)
        if drag.phase == "end":
            self.source.release()
            self._holding = False
        elif self._holding:
            self.source.drag(np.array(drag.end) - offset)


def joined(frames: list[tuple[int, Frame]]) -> Frame:
    """One frame of several batches, each with the number of its first world."""
    if len(frames) == 1 and frames[0][0] == 0:
        return frames[0][1]
    values: dict[str, Any] = {}
    counts = np.cumsum([0, *(len(frame.worlds) for _, frame in frames)])
    for f in dataclasses.fields(Frame):
        parts = [getattr(frame, f.name) for _, frame in frames]
        if f.name == "worlds":
            parts = [part + first for part, (first, _) in zip(parts, frames, strict=True)]
        values[f.name] = _joined(parts, counts)
    return Frame(**values)


def _joined(parts: list[Any], counts: np.ndarray) -> Any:
    """Arrays one after the other; records of arrays, whose `world` counts places among the drawn ones, likewise."""
    if any(part is None for part in parts):
        return None
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    values = {}
    for f in dataclasses.fields(parts[0]):
        arrays = [getattr(part, f.name) for part in parts]
        if f.name == "world":
            arrays = [array + first for array, first in zip(arrays, counts, strict=False)]
        values[f.name] = _joined(arrays, counts)
    return type(parts[0])(**values)
