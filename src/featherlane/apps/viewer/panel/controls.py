"""`Controls`: connects the server's handles to jobs of the page; shared by all folders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from featherlane.apps.viewer.markup import labels
from featherlane.apps.viewer.panel.host import Host
from featherlane.apps.viewer.session import Session

ALL, PICKED = "all worlds", "the selected world"


class Controls:
    """Creates the controls of a page and stores them by name.

    Attributes:
        page, server, gui, source, model: objects that the folders use.
        handles: name -> handle of the server.
    """

    def __init__(self, page: Host):
        self.page, self.server, self.source = page, page.server, page.source
        self.model, self.gui = page.source.model, page.server.gui
        self.handles: dict[str, Any] = {}
        self._shown: list[Callable[[], None]] = []

    # ---- from handles to jobs ----------------------------------------------------------------------------------------
    def folder(self, label: str, opened: bool = False):
        """Creates a folder for controls."""
        return self.gui.add_folder(label, expand_by_default=opened)

    def on(self, name: str, handle, job: Callable[[Any], Any], click: bool = False) -> Any:
        """Runs a job in the page's thread when a visitor changes a control; the job receives the new value.

        A job that waits while the page switches to other worlds is dropped, so that a second click does not act on the
        result of the first.
        """
        self.handles[name] = handle

        async def changed(event) -> None:  # on the server's event loop, which keeps the order
            if click or event.client is not None:
                value = event.target.value
                self.page.do(lambda: job(value) if self.page.shows(self) else None)

        (handle.on_click if click else handle.on_update)(changed)
        return handle

    def button(self, name: str, label: str, job: Callable[[], Any], hint: str | None = None) -> Any:
        """Creates a button that runs a job of the page."""
        return self.on(name, self.gui.add_button(label, hint=hint), lambda _: job(), click=True)

    def command(self, label: str, key: str, job: Callable[[], Any]) -> None:
        """Runs a job of the page when a visitor presses a key, or selects it in the command palette (Ctrl+K)."""
        self.handles[f"key {key}"] = command = self.gui.add_command(label, hotkey=key)

        async def triggered(event) -> None:
            self.page.do(lambda: job() if self.page.shows(self) else None)

        command.on_trigger(triggered)

    def shows(self, job: Callable[[], None]) -> None:
        """Registers a function that `sync` calls to update a control."""
        self._shown.append(job)

    def follows(self, handle, value: Callable[[], Any]) -> None:
        """Registers a control that `sync` sets to this value."""
        self._shown.append(lambda: setattr(handle, "value", value()))

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
        picked = self.page.picked
        return picked[0] if picked else int(self.page.worlds[0])

    def body(self) -> int:
        """Returns the selected body: the clicked one, else the first moving one."""
        if self.page.picked:
            return self.page.picked[1]
        return min(1, self.model.nbody - 1)

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
