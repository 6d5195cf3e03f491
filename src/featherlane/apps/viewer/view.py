"""`fl.view` opens a browser page for a model, worlds, an environment or recorded frames."""

from __future__ import annotations

import html
import os
import re
import time
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

import featherlane as fl
from featherlane import Batch, Data, MixedBatch, Model, load
from featherlane.apps.viewer.drawings import Drawings
from featherlane.apps.viewer.markup import Prose
from featherlane.apps.viewer.worker import Worker
from featherlane.errors import FeatherlaneError, ModelError, UnsupportedFeatureError
from featherlane.extension import whole_argument

PORT = 8080
WORLDS = (Batch, MixedBatch, Data)
HOST = "127.0.0.1"
WAIT = 0.1  # interval between checks whether the page has ended [s]
IDLE = 0.1  # interval between checks for visitors [s]
GRACE = 5.0  # time without browsers after which a page that had one is left: longer than a reload [s]
CLOSING = 10.0  # longest wait for the page's thread to end [s]
HEIGHT = 600  # of the page in a notebook [pixels]
FPS = 30.0  # of a recorded motion in an exported notebook [1/s]
TOKEN = re.compile(r"[A-Za-z0-9_-]{8,}")


class View:
    """A served page; as a context manager it closes the page on exit.

    A notebook displays the page.  The page is served while the program runs; `wait` blocks a program that has nothing
    else to do.

    Attributes:
        url: address of the page, with the token if there is one.
        host, port: address and port of the server.
        draw: draws arrows, points, lines and texts into the scene.
    """

    def __init__(self, host: str, port: int, token: str | Literal[False] | None):
        from featherlane.apps.viewer.lock import Lock

        self.host, self.lock = host, Lock(host, token)
        self.server: Any = None
        self.page: Any = None
        self.observed: Any = None  # the copies of worlds that the caller steps
        self.closed, self._visitors, self._left = False, 0, 0.0
        self.draw = Drawings()
        self.worker = Worker()
        try:
            self.worker.ask(lambda: self._start(port))
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        """Returns the address of the page on this machine, with its token."""
        return self._url(framed=False)

    def _url(self, framed: bool) -> str:
        name = "localhost" if self.host in ("0.0.0.0", "::", "") else self.host
        name = f"[{name}]" if ":" in name else name
        return f"http://{name}:{self.port}{self.lock.path(framed)}"

    @property
    def visitors(self) -> int:
        """Returns the number of browsers that have the page open."""
        return 0 if self.closed else self._visitors

    def show(self, source: Any, drawn: int | None = None) -> None:
        """Shows worlds; the arguments are the same as those of `Page`."""

        def make():
            from featherlane.apps.viewer.page import Page

            self.observed = source if hasattr(source, "copy_now") else None
            self.page = Page(self.worker, self.server, source, drawn)

        self.worker.ask(make)

    def close(self) -> None:
        """Closes the page and stops observing worlds that the caller steps."""
        self.closed = True
        self.worker.end(self._stop, CLOSING)

    def is_running(self) -> bool:
        """Returns whether the page is open: not closed, and not left by all browsers for GRACE seconds.

        A page that no browser has opened yet is running.
        """
        return not self.closed and not (self._left and time.monotonic() - self._left > GRACE)

    def sync(self) -> None:
        """Shows the present state of a `Data` or a batch that the caller steps; it copies at most 30 times a second.

            with fl.view(model, data) as page:
                while page.is_running():
                    data.step()
                    page.sync()

        The page shows the results of calls by itself; `sync` also shows states that the caller sets.

        Raises:
            ModelError: the page does not show worlds of the caller.
        """
        if self.observed is None:
            raise ModelError(
                "sync: the page runs a copy of the model or plays frames, allowed are pages of a Data, a batch or an "
                "environment, which the caller steps"
            )
        if self._visitors:
            self.observed.copy_now()

    def wait(self) -> None:
        """Blocks until the page is closed or until Ctrl-C, which raises KeyboardInterrupt."""
        while not self.closed:
            time.sleep(WAIT)

    # ---- in the page's thread ----------------------------------------------------------------------------------------
    def _start(self, port: int) -> None:
        from featherlane.apps.viewer.lock import start_server

        self.server = start_server(self.host, port, self.lock)
        self.port, self.worker.turn = int(self.server.get_port()), self._turn

    def _turn(self) -> float:
        before, self._visitors = self._visitors, len(self.server.get_clients())
        if before and not self._visitors:
            self._left = time.monotonic()
        elif self._visitors:
            self._left = 0.0
        if self.page is None:
            return IDLE
        self.draw.show(self.page)
        return self.page.turn(self._visitors)

    def _stop(self) -> None:
        from featherlane.apps.viewer.lock import stop_server

        if self.page is not None:
            self.page.source.detach()
        if self.server is not None:
            stop_server(self.server)

    # ---- address -----------------------------------------------------------------------------------------------------
    def open_browser(self) -> bool:
        """Opens the page in a browser of this machine and returns whether one was found."""
        import webbrowser  # slow to import

        return webbrowser.open(self.url)

    def __enter__(self) -> View:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"View({self.url!r}{', closed' * self.closed})"

    def _repr_html_(self) -> str:
        """Returns HTML that embeds the page in a notebook, by its second address, which permits embedding.

        If the page is not served any more, as in an exported notebook, the recorded motion or the state of now appears.
        """
        if self.closed:
            return f"<p>{html.escape(self.url)} is closed.</p>"
        url, size = html.escape(self._url(framed=True)), f'width="100%" height="{HEIGHT}"'
        offline = "" if self.page is None else html.escape(self.worker.ask(lambda: self.page.recorded(FPS)))
        inside = f'<iframe srcdoc="{offline}" {size} style="border:0"></iframe>'
        return f'<object data="{url}" type="text/html" {size}>{inside}</object>'


def view(
    what: Model | Batch | MixedBatch | Data | fl.results.Failure | Any,
    data: Data | Batch | MixedBatch | None = None,
    *,
    frames: Mapping[str, np.ndarray] | None = None,
    nworld: int = 1,
    port: int | None = None,
    host: str = HOST,
    token: str | Literal[False] | None = None,
    worlds: int | None = None,
    paused: bool = False,
    browser: bool = False,
) -> View:
    """Opens a browser page that shows worlds, and returns immediately.

    A model: the page runs a copy of it in `nworld` worlds.  A bundled name, or a source that `featherlane.load` takes,
    may stand for the model.  The page loads a file again after each change of it.

    A batch, a `Data` or an environment: the page observes the worlds while the caller steps them.  Results stay bitwise
    identical, and the speed is unaffected if no browser shows the page.  The page can run a copy from any state.

    A failure or recorded frames: the page plays them back.

        fl.view(model)                                  the page runs the model
        fl.view(batch); ppo.learn(1_000_000)            the page observes the batch
        fl.view(model, frames=batch.rollout(100, record=("time", "qpos")))

    Args:
        data: worlds of the model `what`, which the page observes: `fl.view(model, data)` is `fl.view(data)`.
        what: a `Model`, a path, MJCF text or a name; a `Batch` or `Data`; an environment with a `batch`; a `Failure`;
            a `MixedBatch`, of which the page shows the worlds of one model at a time, at first of the first.
        frames: arrays (nworld, nframe, ...) by name to play back: `time` and `qpos`, optionally `qvel`, `act`,
            `ctrl`, `mocap_pos`, `mocap_quat` and `status`; `featherlane simulate --out` records them.
        nworld: number of worlds, if the page runs a model.
        port: port of the server; None for 8080, or a free port if that is in use; 0 for any free port.
        host: address to bind to.  The default is reachable from this machine only.  With any other (`0.0.0.0`) the page
            uses the same token, but the traffic is not encrypted; prefer a tunnel,
            `ssh -L 8080:localhost:8080 machine`.
        token: secret part of the address; requests without it are refused: at least 8 letters, digits, `-` and `_`.
            None for a random token; False for no token, on loopback only: every user of this machine can open the page.
        worlds: number of worlds drawn initially, of a model, a batch or frames; None for up to 64.
        paused: whether the simulation or playback waits for its button; otherwise it starts with the first visitor.
        browser: whether to open the page in a browser of this machine.

    Returns:
        The `View`, with `url` and `close()`; it is a context manager, and a notebook displays it.

    Raises:
        InstallationError: viser is not installed (`pip install 'featherlane[view]'`).
        UnsupportedFeatureError: the model has unsupported features.
        ModelError: the model cannot be loaded, the frames do not fit the model, a number is out of range, the port is
            in use, or the address does not belong to this machine.
    """
    if not (token is None or token is False or (isinstance(token, str) and TOKEN.fullmatch(token))):
        raise ModelError(
            "token: got an invalid text, allowed are at least 8 letters, digits, '-' and '_', or False for no token"
        )
    if worlds is not None:
        whole_argument("worlds", worlds, 1)
    if data is not None:
        if not isinstance(data, WORLDS):
            raise ModelError(f"data: got {type(data).__name__}, allowed are a Data and a batch")
        if not any(what is own for own in (data.models if isinstance(data, MixedBatch) else (data.model,))):
            raise ModelError("data: got worlds of another model, allowed are those of the model before them")
        what = data
    return open_page(shown_source(what, frames, nworld), port, host, token, worlds, paused, browser)


def open_page(
    source,
    port: int | None = None,
    host: str = HOST,
    token: str | Literal[False] | None = None,
    worlds: int | None = None,
    paused: bool = False,
    browser: bool = False,
) -> View:
    """Opens a page for a session, a watch or a playback; arguments and errors are those of `view`.

    The page of a `FeatherlaneError` explains why a model cannot be shown: its unsupported features and their elements.
    """
    opened = _served(host, port, token)
    try:
        if isinstance(source, FeatherlaneError):
            opened.worker.ask(lambda: Prose(opened.server.gui, *explanation(source)))
        else:
            if not paused:
                source.run()
            opened.show(source, worlds)
    except BaseException:
        opened.close()
        raise
    if browser:
        opened.open_browser()
    return opened


def explanation(error: FeatherlaneError) -> tuple[str, ...]:
    """Returns the template of a page that explains an error, and its values, as in `prose.markup`."""
    if isinstance(error, UnsupportedFeatureError):
        items = "<ul>" + "<li><code>{}</code></li>" * len(error.features) + "</ul>"
        template = f"<h3>{{}} cannot be shown</h3><p>It has features that are {{}}:</p>{items}"
        return template, error.source or "This model", error.what, *error.features
    return '<h3>This model cannot be shown</h3><pre style="white-space:pre-wrap">{}</pre>', str(error)


def _served(host: str, port: int | None, token: str | Literal[False] | None) -> View:
    """Starts a server without a page."""
    if not isinstance(host, str) or not host:
        raise ModelError(f"host: got {host!r}, allowed is an address of this machine, for example {HOST!r}")
    from featherlane.apps.viewer.lock import PortInUse

    try:
        return View(host, PORT if port is None else port, token)
    except PortInUse:
        if port is None:
            return View(host, 0, token)
        raise


def shown_source(what, frames, nworld: int):
    """Returns the source to show: a session, a watch or a playback."""
    from featherlane.apps.viewer.failure_replay import frames_of
    from featherlane.apps.viewer.playback import Playback
    from featherlane.apps.viewer.reload import ModelFile
    from featherlane.apps.viewer.session import Session
    from featherlane.apps.viewer.watch import Watch

    if isinstance(what, fl.results.Failure):
        if frames is not None:
            raise ModelError("frames: not allowed with a failure, which has its own states")
        return Playback(what.model, frames_of(what), "failure")
    worlds = what if isinstance(what, WORLDS) else getattr(getattr(what, "unwrapped", what), "batch", None)
    if frames is None and isinstance(worlds, WORLDS):
        return Watch(worlds)
    if isinstance(worlds, MixedBatch):
        raise ModelError("frames: got a MixedBatch with frames, allowed is one of its groups (batch.groups[k])")
    own = worlds.model if isinstance(worlds, WORLDS) else what
    model = own if isinstance(own, Model) else load(own)
    if frames is not None:
        return Playback(model, frames, "frames")
    session = Session.of(model, nworld)
    if own is not model and os.path.isfile(model.source):
        session.file = ModelFile(model.source, lambda: Session.of(load(own), nworld))
    return session
