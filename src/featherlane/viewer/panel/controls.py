"""`Controls`: from handles of the server to jobs of the page, and what several folders ask of both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from featherlane.viewer.panel.host import Host
from featherlane.viewer.session import Session

ALL, PICKED = "all worlds", "the picked one"


class Controls:
    """The controls of a page, by name, and how they are made.

    Args:
        page: the page, which does what visitors ask for.

    Attributes:
        page, server, gui, source, model: what folders are made of, and for.
        handles: name -> handle of the server.
    """

    def __init__(self, page: Host):
        self.page, self.server, self.source = page, page.server, page.source
        self.model, self.gui = page.source.model, page.server.gui
        self.handles: dict[str, Any] = {}
        self._shown: list[Callable[[], None]] = []

    # ---- from handles to jobs ----------------------------------------------------------------------------------------
    def folder(self, label: str, opened: bool = False):
        """A folder that controls are put into."""
        return self.gui.add_folder(label, expand_by_default=opened)

    def on(self, name: str, handle, job: Callable[[Any], Any], click: bool = False) -> Any:
        """Runs a job in the page's thread when a visitor changes a control, with the value that the visitor gave it.

        A job that waits while the page switches to other worlds is dropped: a second click must not act on the first's
        result.
        """
        self.handles[name] = handle

        async def changed(event) -> None:  # on the server's event loop, which keeps the order
            if click or event.client is not None:
                value = event.target.value
                self.page.do(lambda: job(value) if self.page.shows(self) else None)

        (handle.on_click if click else handle.on_update)(changed)
        return handle

    def button(self, name: str, label: str, job: Callable[[], Any], hint: str | None = None) -> Any:
        """A button that has the page do a job."""
        return self.on(name, self.gui.add_button(label, hint=hint), lambda _: job(), click=True)

    def shows(self, job: Callable[[], None]) -> None:
        """Have `sync` do this, which shows in a control what is so."""
        self._shown.append(job)

    def follows(self, handle, value: Callable[[], Any]) -> None:
        """Have `sync` show this value in a control."""
        self._shown.append(lambda: setattr(handle, "value", value()))

    def sync(self) -> None:
        """Show what is so, where it may be other than what a visitor asked for."""
        for job in self._shown:
            job()

    # ---- what is picked ----------------------------------------------------------------------------------------------
    @property
    def session(self) -> Session:
        """The source, in folders that only a session has."""
        assert isinstance(self.source, Session)
        return self.source

    def world(self) -> int:
        """The world that is picked: the one that was clicked, else the first that is drawn."""
        picked = self.page.picked
        return picked[0] if picked else int(self.page.worlds[0])

    def body(self) -> int:
        """The body that is picked: the one that was clicked, else the first that moves."""
        if self.page.picked:
            return self.page.picked[1]
        return min(1, self.model.nbody - 1)

    def body_names(self) -> tuple[str, ...]:
        """A name for each body."""
        return labels(self.model.names("body"))

    def edited(self) -> tuple[int, ...] | None:
        """Worlds that an edit is for; None for all."""
        return (self.world(),) if self.handles["scope"].value == PICKED else None


def labels(given: list[str]) -> tuple[str, ...]:
    """Names, numbers for those without one; no two alike."""
    named = set(given)
    return tuple(name or (f"#{k}" if str(k) in named else str(k)) for k, name in enumerate(given))


def change(handle, name: str, value) -> None:
    """Change what a control shows, where it shows something else."""
    if getattr(handle, name) != value:
        setattr(handle, name, value)
