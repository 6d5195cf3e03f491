"""`Controls`: connects the server's handles to jobs of the page; shared by all folders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from featherlane.apps.viewer.markup import labels
from featherlane.apps.viewer.session import Session

ALL, PICKED = "all worlds", "the selected world"


class Controls:
    """Creates the controls of a page and stores them by name."""

    def __init__(self, page: Any):
        self.page, self.server, self.source = page, page.server, page.source
        self.model, self.gui = page.source.model, page.server.gui
        self.handles: dict[str, Any] = {}
        self._shown: list[Callable[[], None]] = []

    # ---- from handles to jobs ----------------------------------------------------------------------------------------
    def folder(self, label: str, opened: bool = False):
        """Creates a folder for controls."""
        return self.gui.add_folder(label, expand_by_default=opened)

    def on(self, name: str, handle, job: Callable[[Any], Any], click: bool = False) -> Any:
        """Runs a job in the page's thread when a visitor changes a control; the job receives the new value."""
        self.handles[name] = handle

        async def changed(event) -> None:  # on the server's event loop, which keeps the order
            if click or event.client is not None:
                value = event.target.value
                self.post(lambda: job(value))

        (handle.on_click if click else handle.on_update)(changed)
        return handle

    def post(self, job: Callable[[], Any]) -> None:
        """Runs a job in the page's thread.

        A job that waits while the page switches to other worlds is dropped, so that a second click does not act on the
        result of the first.
        """
        self.page.do(lambda: job() if self.page.panel is self else None)

    def button(self, name: str, label: str, job: Callable[[], Any], hint: str | None = None) -> Any:
        """Creates a button that runs a job of the page."""
        return self.on(name, self.gui.add_button(label, hint=hint), lambda _: job(), click=True)

    def dropdown(
        self, name: str, label: str, options, value, job: Callable[[Any], Any], hint: str | None = None
    ) -> Any:
        """Creates a choice."""
        return self.on(name, self.gui.add_dropdown(label, options, initial_value=value, hint=hint), job)

    def command(self, label: str, key: str, job: Callable[[], Any]) -> None:
        """Runs a job of the page when a visitor presses a key, or selects it in the command palette (Ctrl+K)."""
        self.handles[f"key {key}"] = command = self.gui.add_command(label, hotkey=key)

        async def triggered(event) -> None:
            self.post(job)

        command.on_trigger(triggered)

    def shows(self, job: Callable[[], None]) -> None:
        """Registers a function that `sync` calls to update a control."""
        self._shown.append(job)

    def follows(self, handle, value: Callable[[], Any]) -> None:
        """Registers a control that `sync` sets to this value."""
        self.shows(lambda: setattr(handle, "value", value()))

    def sync(self) -> None:
        """Sets all controls to the actual values, which can differ from the requested ones."""
        for job in self._shown:
            job()

    # ---- selection ---------------------------------------------------------------------------------------------------
    @property
    def session(self) -> Session:
        """Returns the source, in folders that only a session has."""
        assert isinstance(self.source, Session)
        return self.source

    def world(self) -> int:
        """Returns the selected world: the clicked one, else the first drawn one."""
        return self.page.picked[0] if self.page.picked else int(self.page.worlds[0])

    def body(self) -> int:
        """Returns the selected body: the clicked one, else the first moving one."""
        return self.page.picked[1] if self.page.picked else min(1, self.model.nbody - 1)

    def body_names(self) -> tuple[str, ...]:
        """Returns a name for each body."""
        return labels(self.model.names("body"))

    def edited(self) -> tuple[int, ...] | None:
        """Returns the worlds that an edit applies to; None for all."""
        return (self.world(),) if self.handles["scope"].value == PICKED else None


def change(handle, name: str, value) -> None:
    """Sets an attribute of a control if its value differs."""
    if getattr(handle, name) != value:
        setattr(handle, name, value)
