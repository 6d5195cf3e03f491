"""`featherlane view`: a browser page that runs a model's worlds, or plays a recording."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from featherlane import load
from featherlane.apps.cli.exit import WRONG, complain
from featherlane.apps.cli.settings import set_options
from featherlane.apps.cli.simulate import keyframe_of
from featherlane.apps.viewer.lock import is_local_host, viser_module
from featherlane.apps.viewer.view import View, open_page
from featherlane.errors import ModelError, UnsupportedFeatureError
from featherlane.extension import check_counts

RECORDING = ".npz"


@dataclass
class Request:
    """Arguments of the command."""

    source: str
    model: str | None = None
    worlds: int | None = None
    drawn: int | None = None
    keyframe: str | None = None
    threads: int = 0
    dtype: str = "float64"
    settings: tuple[str, ...] = ()
    host: str = "127.0.0.1"
    port: int | None = None
    paused: bool = False
    browser: bool = True
    token: bool = True


def serve_page(request: Request) -> int:
    """Serves the page until Ctrl-C.

    Returns:
        The exit code: 0 after Ctrl-C, WRONG if the model cannot be shown; the page shows the reason.

    Raises:
        ModelError: another argument is invalid.
        InstallationError: viser is not installed.
    """
    _check(request)
    viser_module()
    browser, token = request.browser and _has_browser(), None if request.token else False
    try:
        source = _playback(request) if _is_recording(request.source) else _session(request)
    except UnsupportedFeatureError as error:
        complain(str(error))
        return _serve(open_page(error, request.port, request.host, token, browser=browser)) or WRONG
    page = open_page(source, request.port, request.host, token, request.drawn, request.paused, browser)
    return _serve(page)


def _serve(page: View) -> int:
    """Prints the address of the page, and waits."""
    try:
        with page:
            print(f"{page.url}  (stop with Ctrl-C)", flush=True)
            if os.environ.get("SSH_CONNECTION") and is_local_host(page.host):
                print(
                    f"to open it from another machine: ssh -L {page.port}:localhost:{page.port} THIS_MACHINE",
                    flush=True,
                )
            page.wait()
    except KeyboardInterrupt:
        print(file=sys.stderr)
    return 0


def _check(request: Request) -> None:
    """Checks what can be checked before anything is loaded."""
    check_counts(request, {"worlds": 1, "drawn": 1, "threads": 0})
    if _is_recording(request.source):
        for name in ("worlds", "keyframe"):
            if getattr(request, name) is not None:
                raise ModelError(f"{name}: not allowed with a recording; it applies to a model")
    elif request.model is not None:
        raise ModelError(
            f"model: allowed only with a recording, FILE{RECORDING}; got {request.source!r}, which is read as a model"
        )


def _is_recording(source: str) -> bool:
    return Path(source).suffix.lower() == RECORDING


def _session(request: Request) -> Any:
    """Returns the worlds that the page runs."""
    from featherlane.apps.viewer.reload import ModelFile
    from featherlane.apps.viewer.session import Session

    def loaded() -> Session:
        model = load(request.source)
        set_options(model, request.settings)
        session = Session.of(model, request.worlds or 1, request.threads or None, request.dtype)
        if request.keyframe is not None:
            session.reset(keyframe_of(model, request.keyframe))
        return session

    session = loaded()
    if os.path.isfile(session.model.source):
        session.file = ModelFile(session.model.source, loaded)
    return session


def _playback(request: Request) -> Any:
    """Returns the frames to play, with the named model, else with the recorded one."""
    from featherlane.apps.viewer.playback import Playback, read_recording

    held = read_recording(request.source)
    named = request.model
    if named is None:
        named = str(held["model"]) if "model" in held else ""
        try:
            model = load(named)
        except UnsupportedFeatureError:
            raise
        except (ModelError, OSError) as error:
            raise ModelError(
                f"{request.source}: its model {named!r} cannot be loaded; name the model with --model"
            ) from error
    else:
        model = load(named)
    set_options(model, request.settings)
    return Playback(model, held, request.source)


def _has_browser() -> bool:
    """Returns whether a browser can be opened: there is a display, and no SSH connection."""
    if os.environ.get("SSH_CONNECTION"):
        return False
    screen = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return bool(screen) or not sys.platform.startswith("linux")
