"""The page keeps the worlds, the scene and the control panel consistent in one thread.

Each action of a visitor is a job for that thread, so that no other thread accesses the worlds.  Without visitors the
thread waits: the page's own worlds are not stepped, and worlds of other owners are not read.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from featherlane import Batch
from featherlane.apps.video import write_video
from featherlane.apps.viewer.cameras import Cameras
from featherlane.apps.viewer.drawings import Drawings
from featherlane.apps.viewer.frame import Frame
from featherlane.apps.viewer.markup import plain
from featherlane.apps.viewer.node import Drag
from featherlane.apps.viewer.panel.panel import Panel
from featherlane.apps.viewer.panel.worlds import DRAWN
from featherlane.apps.viewer.playback import Playback
from featherlane.apps.viewer.scene import Scene
from featherlane.apps.viewer.source import Clock, Source
from featherlane.apps.viewer.worker import Worker, wait_for_browsers
from featherlane.enums import NGROUP
from featherlane.errors import FeatherlaneError, ModelError

RATE = 60.0  # most frames per second
PANEL_RATE = 8.0  # most updates of numbers and plots per second
IDLE = 0.1  # interval between checks for visitors [s]
NOTICE = 8.0  # time that a notification stays [s]
MARKS = 64  # most labels of bad worlds


class Page:
    """Shows worlds on a viser server.

    Args:
        worker: the page's thread, which creates the page and calls all of its methods except `do` and `ask`.
        source: the worlds: a session, a watch or a playback.
        drawn: number of drawn worlds, the first; None for up to 64.
    """

    panel: Any
    picked: tuple[int, int] | None  # the last clicked world and body
    worlds: np.ndarray  # numbers of the drawn worlds
    offsets: dict[int, np.ndarray]  # where the origin of each of them is drawn, (3,) [m]

    def __init__(self, worker: Worker, server, source: Source, drawn: int | None = None):
        self.worker, self.server = worker, server
        self.message = ""  # the last error message
        self.frames = 0
        self._stack: list[Source] = []
        self._dirty, self._panel_due, self._watched = True, 0.0, False
        self._marks, self._labels = Drawings("page"), {}
        self._open(source, drawn)
        server.scene.on_click()(lambda event: self.do(lambda: self.pick_along(event.ray_origin, event.ray_direction)))

    # ---- from any thread ---------------------------------------------------------------------------------------------
    def do(self, job: Callable[[], Any]) -> None:
        """Runs a job in the page's thread asynchronously; the page shows its error."""
        self.worker.do(lambda: self._guarded(lambda: self._run(job)))

    def ask(self, job: Callable[[], Any], timeout: float = 30.0) -> Any:
        """Runs a job in the page's thread and returns its result or raises its exception; as `Worker.ask`."""

        def marked():
            self._dirty = True
            return job()

        return self.worker.ask(marked, timeout)

    # ---- in the page's thread ----------------------------------------------------------------------------------------
    def notify(self, message: str, title: str = "Error", color: str = "red") -> None:
        """Shows a notification to all visitors."""
        self.message = message
        for client in list(self.server.get_clients().values()):
            client.add_notification(title, plain(message), auto_close_seconds=NOTICE, color=color)

    def turn(self, visitors: int) -> float:
        """Performs the updates that are due, and returns the time to wait for a job [s]."""
        start = time.perf_counter()
        if not self._guarded(lambda: self._turn(visitors)):
            return IDLE
        return max(0.0, 1.0 / RATE - (time.perf_counter() - start)) if visitors else IDLE

    def _guarded(self, job: Callable[[], Any]) -> bool:
        """Runs a job; on an error shows it and stops the clock; returns whether it succeeded."""
        try:
            job()
        except FeatherlaneError as error:
            self.source.pause()
            self.notify(str(error))
        except Exception:
            self.source.pause()
            traceback.print_exc()
            self.notify(traceback.format_exc(limit=-1), "Internal error of the viewer")
        else:
            return True
        return False

    def _run(self, job: Callable[[], Any]) -> None:
        self._dirty = True
        try:
            job()
        except FeatherlaneError as error:
            self.notify(str(error))
            self.panel.sync()

    def _turn(self, visitors: int) -> None:
        if bool(visitors) != self._watched:
            self._watched, self._dirty = bool(visitors), True
            self.source.attach() if visitors else self.source.detach()
        if not visitors:
            if self._dirty:
                self.draw()
            return
        if self.source.file is not None and self.source.file.changed():
            self._run(self.reload)
        if self.source.tick() or self._dirty:
            self.draw()
        now = time.perf_counter()
        if now >= self._panel_due:
            self._panel_due = now + 1.0 / PANEL_RATE
            self.panel.refresh()

    # ---- sources -----------------------------------------------------------------------------------------------------
    def enter(self, source: Source) -> None:
        """Shows other worlds; `leave` returns to the present ones."""
        self._stack.append(self.source)
        self.switch(source)

    def leave(self) -> None:
        """Returns to the worlds that were shown before; an error without earlier worlds."""
        if not self._stack:
            raise ModelError("there are no earlier worlds to return to")
        self.switch(self._stack.pop())

    def switch(self, source: Source) -> None:
        """Shows other worlds in place of the present ones."""
        self.source.pause()
        self.source.detach()
        self._open(source, None)
        if self.server.get_clients():
            self.source.attach()

    def reload(self) -> None:
        """Loads the model's file again; layers and plots stay.  If the file has an error, the worlds stay."""
        if self.source.file is None:
            raise ModelError("reload: these worlds were not loaded from a file")
        session, layers, plots = self.source.file.session(self.source), self.scene.state, self.panel.plots.names
        self.switch(session)
        self.scene.restore(layers)
        for name in plots:
            with contextlib.suppress(FeatherlaneError):  # the element does not exist any more
                self.panel.plots.add(name)
        self.panel.sync()

    @property
    def depth(self) -> int:
        """Returns the number of earlier sources."""
        return len(self._stack)

    def _open(self, source: Source, drawn: int | None) -> None:
        """Builds scene and panel for some worlds."""
        self.source, self.panel, self.picked = source, None, None
        wait_for_browsers(self.server)
        self.server.scene.reset()
        held = lambda *drag: self.do(lambda: self.drag(*drag))  # noqa: E731
        self.scene = Scene(self.server, source.model, source.nworld, held)
        self.cameras = Cameras(self.server, source.model)
        self.draw_first(min(source.nworld, DRAWN if drawn is None else drawn))
        self.panel = Panel(self)
        self.draw()

    # ---- drawing -----------------------------------------------------------------------------------------------------
    def draw_first(self, n: int) -> None:
        """Draws the first n worlds in a grid."""
        self.draw_these(np.arange(max(1, min(n, self.source.nworld))))

    def draw_these(self, worlds) -> None:
        """Draws worlds by number."""
        worlds = np.unique(np.asarray(worlds, int))
        wrong = worlds[(worlds < 0) | (worlds >= self.source.nworld)]
        if not len(worlds) or len(wrong):
            raise ModelError(
                f"worlds: got {wrong[0] if len(wrong) else 'none'}, allowed are 0 to {self.source.nworld - 1}"
            )
        self.worlds = self.source.drawn = worlds
        self.offsets = dict(zip(worlds.tolist(), self.scene.spread(worlds), strict=True))
        self.scene.aim(self.scene.spread(worlds))
        self._dirty = True
        if self.panel is not None:
            self.panel.sync()

    def draw(self) -> None:
        self._dirty = False
        frame, (world, body) = self.frame(), self.picked or (int(self.worlds[0]), min(1, self.source.model.nbody - 1))
        self.scene.show(frame)
        if world in self.offsets:
            self.cameras.move(frame, int(np.searchsorted(self.worlds, world)), body, self.offsets[world])
        self._mark()
        self.frames += 1

    def recorded(self, fps: float) -> str:
        """Returns the frames of a recording, or else the present state, as HTML that needs no server."""
        serializer = self.server.get_scene_serializer()
        for _ in self.source.visits(fps) if isinstance(self.source, Playback) else (0,):
            self.draw()
            serializer.insert_sleep(1.0 / fps)
        self._dirty = True
        return serializer.as_html()

    def video(self, fps: float) -> Callable[[], bytes]:
        """Returns a function that draws the selected world in the kept history, or the recording, as an MP4 file.

        The camera is the chosen one, or that of the first visitor.  Rays are cast, so that layers are not drawn.
        """
        source, world, frames = self.source, self.panel.world(), []
        assert isinstance(source, Clock)
        batch, row = source.locate(world)
        camera = self.cameras.described(self.offsets.get(world, np.zeros(3)), self.panel.body())
        for _ in source.visits(fps):
            frames.append({name: getattr(batch, name)[row].copy() for name in ("qpos", "mocap_pos", "mocap_quat")})
        model = batch.get_model(row)

        def written() -> bytes:
            with tempfile.TemporaryDirectory() as folder:
                write_video(path := Path(folder) / "video.mp4", model, camera, frames, fps)
                return path.read_bytes()

        return written

    def frame(self) -> Frame:
        """Computes the present frame."""
        layers, fields = self.scene.drawn_layers, self.cameras.fields
        frames = []
        for first, batch, rows in self._drawn_rows():
            frames.append(Frame.of(batch, rows, layers, fields))
            frames[-1].worlds = rows + first
        return Frame.join(frames) if len(frames) > 1 else frames[0]

    def _drawn_rows(self) -> Iterator[tuple[int, Batch, np.ndarray]]:
        """Yields batches with drawn worlds: the number of the first world, the batch, its rows."""
        for first, batch in zip(self.source.batch.starts.tolist(), self.source.batch.groups, strict=False):
            rows = self.worlds[(self.worlds >= first) & (self.worlds < first + batch.nworld)] - first
            if len(rows):
                yield first, batch, rows

    def _mark(self) -> None:
        """Draws labels of worlds, and the spring of the mouse."""
        height = float(self.scene.extents[2]) / 2 + float(self.scene.centre[2])
        bad = [w for w in self.source.bad_worlds if w in self.offsets][:MARKS]
        labels = {f"bad/{w}": (f"world {w}: non-finite values", (0, 0, height), w) for w in bad}
        labels |= {f"label/{w}": (text, (0, 0, 1.3 * height), w) for w, text in enumerate(self.source.labels)}
        if labels != self._labels:
            self._marks.clear()
            for name, (text, at, world) in labels.items():
                self._marks.text(name, text, at, world=world)
            self._labels = labels
        self._marks.clear("spring")
        if self.source.mouse and (spring := self.source.mouse.spring()) and np.isfinite(spring[1]).all():
            size = float(self.scene.extents.max()) / 300
            self._marks.line("spring", spring[1:], radius=size, world=spring[0])
        self._marks.show(self)

    # ---- mouse -------------------------------------------------------------------------------------------------------
    def pick(self, world: int, body: int) -> None:
        """Selects a body of a world for the panel, the plots and the camera."""
        self.picked = (world, body)
        self._dirty = True
        self.panel.sync()

    def pick_along(self, origin, direction) -> None:
        """Selects the drawn contact or first moving body along a ray (3,) [m] on the page; no effect without a hit."""
        direction = np.asarray(direction, float) / np.linalg.norm(direction)
        groups = [self.scene.is_on("geoms", g) if g in self.scene.layers["geoms"] else False for g in range(NGROUP)]
        nearest, found = np.inf, None
        for first, batch, rows in self._drawn_rows():
            starts = np.asarray(origin) - np.array([self.offsets[first + row] for row in rows.tolist()])
            hits = batch.ray(starts[:, None], direction, groups, ids=rows)
            distance = np.where(hits.geom[:, 0] >= 0, hits.distance[:, 0], np.inf)
            k = int(distance.argmin())
            if distance[k] < nearest:
                body = int(self.source.model.geom_bodyid[hits.geom[k, 0]])
                nearest, found = distance[k], (first + int(rows[k]), body)
        if contact := self.scene.contact_along(np.asarray(origin), direction, nearest):
            world, number, geoms = contact
            self.picked = world, int(self.source.model.geom_bodyid[geoms].max())
            self.panel.inspector.choose("contact", number)
            self.pick(*self.picked)
        elif found is not None and found[1] > 0:
            self.pick(*found)

    def drag(self, world: int, body: int, drag: Drag) -> None:
        """Applies a drag of the mouse; an error if the page does not own the worlds, or the body is fixed."""
        offset, mouse = self.offsets.get(world, np.zeros(3)), self.source.mouse
        if mouse is None:
            raise ModelError(
                "these worlds are simulated by another program and cannot be changed here; "
                "press Run a copy from here first"
            )
        if drag.phase == "start":
            mouse.grab(world, body, np.array(drag.start) - offset)
            self.pick(world, body)
        if drag.phase == "end":
            mouse.release()
        else:
            mouse.move(np.array(drag.end) - offset)
