"""The panel beside the picture: time, worlds, layers, hands, options, bodies, plots.

Each control posts a job to the page; what the job leaves behind is shown again by `sync` (after a job was refused, or
something was picked) and by `refresh` (some times a second).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from featherlane.errors import ModelError
from featherlane.model.enums import Cone, ContactModel, LcpSolver
from featherlane.model.integrator import SCHEMES
from featherlane.model.solver import SOLVERS
from featherlane.viewer.bookmark import take_up, written
from featherlane.viewer.playback import Playback
from featherlane.viewer.plots import FIRST, Plots
from featherlane.viewer.sample import UNITS, names
from featherlane.viewer.session import Session
from featherlane.viewer.watch import Watch

if TYPE_CHECKING:
    from featherlane.viewer.page import Page

SPEEDS = ("0.05", "0.1", "0.25", "0.5", "1", "2", "4")
DRAWN = 64  # worlds, until somebody asks for more
MOST_SLIDERS = 60  # actuators with sliders of their own
NAMED = 12  # bad worlds that the status names
RESET, BACK, RUN, PAUSE, STEP = "Reset", "Back", "Run", "Pause", "Step"
ALL, PICKED = "all worlds", "the picked one"
DIRECTIONS = {"+x": (1, 0, 0), "-x": (-1, 0, 0), "+y": (0, 1, 0), "-y": (0, -1, 0), "+z": (0, 0, 1), "-z": (0, 0, -1)}
DEFAULTS = "the model's defaults"


class Panel:
    """Controls of a page, made for the worlds that it shows.

    Args:
        page: the page.
    """

    def __init__(self, page: Page):
        self.page, self.server, self.source = page, page.server, page.source
        self.model, self.gui = page.source.model, page.server.gui
        self.controls: dict[str, Any] = {}
        self._syncing: list[Callable[[], None]] = []
        self._scrubbed: tuple[int, int] | None = None
        self.gui.reset()
        self.status = self.gui.add_markdown("")
        self._time()
        self._worlds()
        self._plots()
        self._layers()
        if isinstance(self.source, Session):
            self._hands()
            self._actuators()
            self._options()
            self._bodies()
        self.sync()
        self.refresh()

    # ---- from handles to jobs ----------------------------------------------------------------------------------------
    def _folder(self, label: str, opened: bool = False):
        return self.gui.add_folder(label, expand_by_default=opened)

    def _on(self, name: str, handle, job: Callable[[Any], Any], click: bool = False) -> Any:
        """Have the page do a job when a visitor changes a control, with the value that he gave it."""
        self.controls[name] = handle

        async def told(event) -> None:  # on the server's event loop, which keeps the order
            if click or event.client is not None:
                value = event.target.value
                self.page.do(lambda: job(value))

        (handle.on_click if click else handle.on_update)(told)
        return handle

    def _button(self, name: str, label: str, job: Callable[[], Any], hint: str | None = None) -> Any:
        return self._on(name, self.gui.add_button(label, hint=hint), lambda _: job(), click=True)

    def sync(self) -> None:
        """Show what is so, where it may be other than what a visitor asked for."""
        for job in self._syncing:
            job()

    # ---- time --------------------------------------------------------------------------------------------------------
    def _time(self) -> None:
        source = self.source
        with self._folder("Time", True):
            if isinstance(source, Watch):
                self.gui.add_markdown("These worlds are run by somebody else; the page looks on.")
                self._button(
                    "branch", "Run a copy from here", self._branch, "The page's own worlds, from this state on"
                )
            else:
                group = self.gui.add_button_group("Clock", (RUN, PAUSE, BACK, STEP, RESET))
                self._on("clock", group, self._clock, click=True)
                group = self.gui.add_dropdown("Speed", SPEEDS, initial_value="1", hint="1: real time")
                self._on("speed", group, lambda value: source.set_speed(float(value)))
                group = self.gui.add_slider(
                    "Frame" if isinstance(source, Playback) else "History", 0, self._last(), 1, self._last(),
                    hint="Scrub through the frames, or the last seconds",
                )  # fmt: skip
                self._on("scrub", group, self._scrub)
            if isinstance(source, Playback):
                self._button("branch", "Run on from this frame", self._branch)
            if self.page.depth:
                self._button("leave", "Back to what was shown before", self.page.leave)
            if isinstance(source, Session):
                self._session_time(source)

    def _session_time(self, source: Session) -> None:
        """Keyframes, bookmarks, both contact models."""
        if self.model.nkey:
            names = _labels(self.model.names("keyframe"))
            self._keys = {DEFAULTS: -1} | {name: k for k, name in enumerate(names)}
            self.controls["keyframe"] = self.gui.add_dropdown("Reset to", tuple(self._keys), initial_value=DEFAULTS)
        with self._folder("Bookmarks"):
            self._button("bookmark", "Bookmark this state", self._bookmark)
            marks = self.gui.add_dropdown("Bookmarks", ("none",), initial_value="none")
            self.controls["bookmarks"] = marks
            self._button("recall", "Go to it", lambda: source.recall(marks.value))
            self._button("save", "Save this state to a file", self._save, "An .npz that fl.set_state takes")
            upload = self.gui.add_upload_button("Take up a saved state", mime_type=".npz")
            self.controls["upload"] = upload
            upload.on_upload(lambda event: self.page.do(lambda: self._upload(event.target.value)))
        if len(source.parts) == 1:
            self._button(
                "beside",
                "Both contact models, side by side",
                self._beside,
                "From the present state of the picked world",
            )

    def _last(self) -> int:
        """Largest value of the slider of time."""
        source = self.source
        if isinstance(source, Playback):
            return max(1, source.nframe - 1)
        return max(1, len(source.history)) if isinstance(source, Session) else 1

    def _clock(self, button: str) -> None:
        source = self.source
        assert not isinstance(source, Watch)
        if button == RUN:
            source.run()
        elif button == PAUSE:
            source.pause()
        elif button == STEP:
            source.pause()
            source.advance()
        elif button == BACK:
            source.pause()
            source.step_back()
        elif isinstance(source, Session):
            key = self.controls.get("keyframe")
            source.reset(self._keys[key.value] if key else -1)
        else:
            source.pause()
            source.seek(0)

    def _scrub(self, value: int) -> None:
        if isinstance(self.source, Playback):
            self.source.pause()
            self.source.seek(int(value))
        elif isinstance(self.source, Session) and len(self.source.history):
            last = len(self.source.history) - (self.source.position is not None)
            self.source.seek(min(int(value), last))

    def _branch(self) -> None:
        source = self.source
        if isinstance(source, Playback):
            self.page.enter(source.session())
        elif isinstance(source, Watch):
            source.whole()
            self.page.enter(Session.from_batch(source.batch))

    def _bookmark(self) -> None:
        assert isinstance(self.source, Session)
        name = f"t = {self.source.rows('time')[0]:.4g} s"
        while name in self.source.bookmarks:
            name += "'"
        self.source.bookmark(name)
        marks = self.controls["bookmarks"]
        marks.options = tuple(self.source.bookmarks)
        marks.value = name

    def _save(self) -> None:
        assert isinstance(self.source, Session)
        name = f"state-{self.source.rows('time')[0]:.3f}.npz"
        self.server.send_file_download(name, written(self.source), save_immediately=True)

    def _upload(self, file) -> None:
        assert isinstance(self.source, Session)
        take_up(self.source, file.content, file.name)

    def _beside(self) -> None:
        assert isinstance(self.source, Session)
        session, told = self.source.beside(self._world())
        self.page.enter(session)
        if told:
            self.page.tell(told, "Side by side")

    # ---- worlds ------------------------------------------------------------------------------------------------------
    def _world(self) -> int:
        """The world that is picked: the one that was clicked, else the first that is drawn."""
        picked = self.page.picked
        return picked[0] if picked else int(self.page.worlds[0])

    def _worlds(self) -> None:
        n = self.source.nworld
        with self._folder("Worlds", n > 1):
            if n > 1:
                group = self.gui.add_slider("Drawn", 1, n, 1, min(n, len(self.page.worlds)), hint="The first so many")
                drawn = self._on("drawn", group, lambda value: self.page.draw_first(int(value)))
                self._syncing.append(lambda: setattr(drawn, "value", len(self.page.worlds)))
                group = self.gui.add_text("Only", "", hint="Numbers of worlds with commas or ranges, 0, 7, 10-20")
                self._on("only", group, self._only)
                picked = self.gui.add_number("Picked", self._world(), min=0, max=n - 1, step=1)
                self._on("picked", picked, lambda value: self.page.pick(int(value), self._body()))
                self._syncing.append(lambda: setattr(picked, "value", self._world()))
            self.bad = self.gui.add_markdown("")
            if isinstance(self.source, Session):
                with self._folder("Worlds that turned bad"):
                    marks = self.gui.add_dropdown("World", ("none",), initial_value="none")
                    self.controls["incident"] = marks
                    self._button("replay", "Replay its last good second", self._replay)
                    self._button("save_incident", "Save it", self._save_incident, "A file that fl.load_failure reads")

    def _only(self, text: str) -> None:
        worlds: list[int] = []
        for part in filter(None, (part.strip() for part in text.split(","))):
            first, dash, last = part.partition("-")
            if not first.isdigit() or (dash and not last.isdigit()):
                raise ModelError(f"worlds: got {part!r}, allowed are numbers and ranges, as in 0, 7, 10-20")
            low, high = int(first), int(last or first)
            if high >= self.source.nworld:
                raise ModelError(f"worlds: got {high}, allowed are 0 to {self.source.nworld - 1}")
            worlds += range(low, high + 1)
        if worlds:
            self.page.draw_these(worlds)
        else:
            self.page.draw_first(DRAWN)
            self.sync()

    def _incident(self):
        assert isinstance(self.source, Session)
        chosen = self.controls["incident"].value
        for incident in self.source.incidents:
            if chosen == str(incident.world):
                return incident
        raise ModelError("no world has turned bad")

    def _replay(self) -> None:
        incident = self._incident()
        frames, failure = incident.replay()
        self.page.enter(Playback(incident.model, frames, f"world {incident.world}"))
        causes = f" ({', '.join(failure.causes)})" if failure else ""
        self.page.tell(f"The step after the last frame is the one that went wrong{causes}.", "Its last good second")

    def _save_incident(self) -> None:
        incident = self._incident()
        _, failure = incident.replay()
        if failure is None:
            raise ModelError("the world did not turn bad again")
        name = f"failure-{incident.world}.npz"
        self.server.send_file_download(name, _failure_bytes(failure, name), save_immediately=True)

    # ---- layers ------------------------------------------------------------------------------------------------------
    def _layers(self) -> None:
        scene = self.page.scene
        with self._folder("Layers"):
            for layer, groups in scene.layers.items():
                self._switch(layer, None, layer)
                for group in groups if len(groups) > 1 else ():
                    self._switch(layer, group, f"{layer}, group {group}")
            self._button("camera", "Look from the front", self._aim)

    def _switch(self, layer: str, group: int | None, label: str) -> None:
        scene = self.page.scene
        box = self.gui.add_checkbox(label, scene.is_on(layer, group))

        def switch(on: bool) -> None:
            scene.switch(layer, group, on)
            self.sync()

        self._on(f"layer {label}", box, switch)
        self._syncing.append(lambda: setattr(box, "value", scene.is_on(layer, group)))

    def _aim(self) -> None:
        camera = self.server.initial_camera
        for client in self.server.get_clients().values():
            client.camera.position, client.camera.look_at = camera.position, camera.look_at

    # ---- hands -------------------------------------------------------------------------------------------------------
    def _body(self) -> int:
        """The body that is picked: the one that was clicked, else the first that moves."""
        if self.page.picked:
            return self.page.picked[1]
        return min(1, self.model.nbody - 1)

    def _body_names(self) -> tuple[str, ...]:
        return _labels(self.model.names("body"))

    def _touched(self) -> tuple[int, ...] | None:
        """Worlds that an edit is for; None for all."""
        return (self._world(),) if self.controls["scope"].value == PICKED else None

    def _hands(self) -> None:
        source = self.source
        assert isinstance(source, Session)
        hand = source.parts[0].hand
        with self._folder("Hands"):
            self.gui.add_markdown("Ctrl and the mouse drag a body by a spring; a click picks it.")
            strength = self.gui.add_slider("Spring [rad/s]", 2.0, 64.0, 1.0, hand.frequency)
            self._on("spring", strength, self._set_spring)
            names = self._body_names()
            body = self.gui.add_dropdown("Body", names, initial_value=names[self._body()])
            self._on("body", body, lambda value: self.page.pick(self._world(), names.index(value)))
            self._syncing.append(lambda: setattr(body, "value", names[self._body()]))
            impulse = self.gui.add_number("Push [N s]", 10.0, min=0.0, step=1.0)
            self.controls["impulse"] = impulse
            group = self.gui.add_button_group("", tuple(DIRECTIONS))
            self._on("push", group, self._push, click=True)

    def _set_spring(self, frequency: float) -> None:
        assert isinstance(self.source, Session)
        for part in self.source.parts:
            part.hand.frequency = float(frequency)

    def _push(self, direction: str) -> None:
        assert isinstance(self.source, Session)
        impulse = float(self.controls["impulse"].value) * np.array(DIRECTIONS[direction], float)
        worlds = range(len(self.source.parts)) if len(self.source.parts) > 1 else (self._world(),)
        for world in worlds:
            self.source.push(world, self._body(), impulse)

    def _actuators(self) -> None:
        source, model = self.source, self.model
        assert isinstance(source, Session)
        if not model.nu:
            return
        limited = np.asarray(model.actuator_ctrllimited, bool)[:, None]
        ranges = np.where(limited, model.actuator_ctrlrange, (-1.0, 1.0))
        labels = _control_names(model)
        with self._folder("Actuators"):
            self._button("relax", "All to zero", self._relax)
            self._sliders = []
            for k in range(min(model.nu, MOST_SLIDERS)):
                low, high = map(float, ranges[k])
                start = float(np.clip(source.rows("ctrl")[0, k], low, high))
                slider = self.gui.add_slider(labels[k], low, high, (high - low) / 200, start)
                self._on(f"control {k}", slider, lambda value, k=k: source.set_control(k, value, self._driven()))
                self._sliders.append(slider)
            if model.nu > MOST_SLIDERS:
                self.gui.add_markdown(f"The first {MOST_SLIDERS} of {model.nu}.")
        self._syncing.append(self._show_controls)

    def _driven(self) -> tuple[int, ...] | None:
        """Worlds that a slider drives: all, or the picked one."""
        return self._touched()

    def _relax(self) -> None:
        assert isinstance(self.source, Session)
        for k in range(self.model.nu):
            self.source.set_control(k, 0.0, self._driven())
        self._show_controls()

    def _show_controls(self) -> None:
        assert isinstance(self.source, Session)
        control = self.source.rows("ctrl")[self._world()]
        for slider, value in zip(self._sliders, control.tolist(), strict=False):
            slider.value = float(np.clip(value, slider.min, slider.max))

    # ---- options -----------------------------------------------------------------------------------------------------
    def _options(self) -> None:
        with self._folder("Options"):
            choices = {
                "contact_model": _names_of(ContactModel),
                "solver": tuple(entry.name for entry in SOLVERS.values()),
                "lcp_solver": _names_of(LcpSolver),
                "integrator": tuple(scheme.name for scheme in SCHEMES.values()),
                "cone": _names_of(Cone),
            }
            if isinstance(self.source, Session) and len(self.source.parts) > 1:
                del choices["contact_model"]
            for name, options in choices.items():
                box = self.gui.add_dropdown(name.replace("_", " "), options, initial_value=self._option(name))
                self._optional(name, box)
            for name in ("timestep", "iterations", "tolerance"):
                value = self._option(name)
                step = 1 if name == "iterations" else None
                self._optional(
                    name, self.gui.add_number(f"{name} [s]" if name == "timestep" else name, value, step=step)
                )
            vector = self.gui.add_vector3("gravity [m/s^2]", self._option("gravity"), step=0.1)
            self._optional("gravity", vector)

    def _optional(self, name: str, handle) -> None:
        def set_option(value) -> None:
            assert isinstance(self.source, Session)
            self.source.set_option(name, value)
            self.sync()

        self._on(f"option {name}", handle, set_option)
        self._syncing.append(lambda: setattr(handle, "value", self._option(name)))

    def _option(self, name: str) -> Any:
        """An option's value as its control has it."""
        value = getattr(self.model.opt, name)
        if name == "gravity":
            return tuple(map(float, value))
        if name == "solver":
            return SOLVERS[int(value)].name
        if name == "integrator":
            return SCHEMES[int(value)].name
        if isinstance(value, IntEnum):
            return value.name.lower()
        return value

    # ---- bodies ------------------------------------------------------------------------------------------------------
    def _bodies(self) -> None:
        source = self.source
        assert isinstance(source, Session)
        with self._folder("Bodies"):
            scope = self.gui.add_dropdown("Edits are for", (ALL, PICKED), initial_value=ALL)
            self.controls["scope"] = scope
            about = self.gui.add_markdown("")
            mass = self.gui.add_number("mass [kg]", 0.0)
            friction = self.gui.add_number("friction", 0.0)
            self._on("mass", mass, lambda value: source.set_mass(self._body(), value, self._touched()))
            self._on("friction", friction, lambda value: source.set_friction(self._body(), value, self._touched()))

        def show() -> None:
            body, world = self._body(), self._world()
            slides = source.friction(body, world)
            about.content = f"**{self._body_names()[body]}** of world {world}"
            mass.value, friction.value = source.mass(body, world), slides or 0.0
            friction.disabled, mass.disabled = slides is None, not source.mass(body, world) > 0.0

        self._syncing.append(show)

    # ---- plots -------------------------------------------------------------------------------------------------------
    def _plots(self) -> None:
        model = self.model
        folder = self._folder("Plots")
        self.plots = Plots(
            self.server, folder, model, self.page.locate, self.page.batches, not isinstance(self.source, Playback)
        )
        known = tuple(names(model))
        with folder:
            for name in UNITS:
                box = self.gui.add_checkbox(name, name in FIRST)
                self._on(f"plot {name}", box, lambda on, name=name: self._plot(name, on))
            listed = self.gui.add_dropdown("Sensor or field", known, initial_value=known[0])
            self._on("field", listed, lambda value: setattr(text, "value", value))
            text = self.gui.add_text("What", "", hint="A sensor, or a field as in qpos[2], xpos[torso, 2]")
            self.controls["quantity"] = text
            self._button("plot", "Plot it", lambda: self.plots.add(text.value))
            self._button("unplot", "Remove all of these", self._unplot)
        for name in FIRST:
            self.plots.add(name)

    def _plot(self, name: str, on: bool) -> None:
        self.plots.add(name) if on else self.plots.remove(name)

    def _unplot(self) -> None:
        for name in self.plots.names:
            if name not in UNITS:
                self.plots.remove(name)

    def _plotted(self) -> list[int]:
        """Worlds whose numbers are plotted: the picked one, or all that stand side by side."""
        if isinstance(self.source, Session) and len(self.source.parts) > 1:
            return list(range(self.source.nworld))
        return [self._world()]

    # ---- some times a second -----------------------------------------------------------------------------------------
    def refresh(self) -> None:
        """Numbers, the slider of time, plots."""
        source, world = self.source, self._world()
        batch, row = self.page.locate(world)
        seconds = float(batch.time[row])
        lines = [f"**t = {seconds:.3f} s**, world {world} of {source.nworld}"]
        if isinstance(source, Watch):
            lines[0] += ", live"
        else:
            lines[0] += f", {'running' if source.running else 'paused'}" + f" at {source.pace:.2f} x" * source.running
        if not isinstance(source, Playback):
            lines.append(
                f"{int(batch.ncon[row])} contacts, {int(batch.solver_niter[row])} iterations, "
                f"residual {float(batch.solver_residual[row]):.1e}"
            )
        if self.page.picked:
            lines.append(f"picked: {self._body_names()[self.page.picked[1]]}")
        self._set(self.status, "content", "  \n".join(lines))
        self._set(self.bad, "content", self._told_of_bad())
        if "scrub" in self.controls:
            self._show_time()
        if "incident" in self.controls:
            assert isinstance(source, Session)
            options = tuple(str(incident.world) for incident in source.incidents) or ("none",)
            if self.controls["incident"].options != options:
                self.controls["incident"].options = options
        clock = source.clock if isinstance(source, Session) else seconds
        self.plots.take(clock, self._plotted())
        self.plots.draw()

    @staticmethod
    def _set(handle, name: str, value) -> None:
        """Change what a control shows, where it shows something else."""
        if getattr(handle, name) != value:
            setattr(handle, name, value)

    def _told_of_bad(self) -> str:
        bad = self.page.bad_worlds()
        more = f" and {len(bad) - NAMED} more" * (len(bad) > NAMED)
        return f"**Bad numbers** in {', '.join(map(str, bad[:NAMED]))}{more}" if bad else ""

    def _show_time(self) -> None:
        """The slider follows the clock, but not while a visitor holds it."""
        source, slider = self.source, self.controls["scrub"]
        if isinstance(source, Playback):
            self._set(slider, "value", source.position)
            return
        assert isinstance(source, Session)
        last = max(1, len(source.history) - (source.position is not None))
        self._set(slider, "max", last)
        self._set(slider, "value", source.position[0] if source.position else last)


def _names_of(kind: type[IntEnum]) -> tuple[str, ...]:
    return tuple(member.name.lower() for member in kind)


def _labels(given: list[str]) -> tuple[str, ...]:
    """Names, numbers for those without one; no two alike."""
    named = set(given)
    return tuple(name or (f"#{k}" if str(k) in named else str(k)) for k, name in enumerate(given))


def _control_names(model) -> list[str]:
    """A name for each control: of its actuator, with a number where that has several."""
    out = [""] * model.nu
    for k, name in enumerate(model.names("actuator")):
        first, number = int(model.actuator_ctrladr[k]), int(model.actuator_ctrlnum[k])
        for i in range(number):
            out[first + i] = f"{name or k}" + f" {i}" * (number > 1)
    return out


def _failure_bytes(failure, name: str) -> bytes:
    """A failure as the file that `Failure.save` writes."""
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        failure.save(path)
        return path.read_bytes()
