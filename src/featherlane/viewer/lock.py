"""Who may look: a viser server that answers its own page alone, and beyond this machine only who has the token.

viser asks nobody.  Its web server goes through `websockets.asyncio.server.serve`, whose `process_request` sees every
request before it is answered, plain ones and those that open the socket: here ours comes first.  Where a release of
viser starts its server in another way, none is started.

* A request may come under a name of this machine, from the page that it serves: no other site that is open in the
  browser can reach the worlds (nor by a name that it has turned to this machine).
* With the token in its path, `/TOKEN/...`, a request may come from anywhere; beyond this machine it must have it.
* The page may load nothing from elsewhere: its security policy says so to the browser.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import hmac
import importlib
import ipaddress
import secrets
import socket
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from featherlane.errors import InstallationError, ModelError
from featherlane.viewer.incoming import keep_controls

INSTALL = "pip install 'featherlane[view]'"
LOCAL = ("localhost", "127.0.0.1", "::1")
POLICY = (
    "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; connect-src 'self' ws: wss: data: blob:; "
    "frame-src 'self' data: blob:; form-action 'none'; base-uri 'none'"
)
_STARTING = threading.Lock()


def viser_module():
    """viser.

    Raises:
        InstallationError: it is not installed.
    """
    try:
        return importlib.import_module("viser")
    except ImportError as error:
        raise InstallationError(f"the viewer needs viser ({error}); install with: {INSTALL}") from None


class PortInUse(ModelError):
    """Somebody else is served at this port."""


class Lock:
    """Who may look at a page.

    Args:
        host: the address that the page is bound to.
        token: the word that opens it; None for one that nobody can guess.

    Attributes:
        open: whether this machine's own browsers need no token: the address is this machine's alone.
    """

    def __init__(self, host: str, token: str | None = None):
        self.host, self.token = host, token or secrets.token_urlsafe(16)
        self.open = is_local(host)
        self.refused = 0

    def path(self) -> str:
        """The path of the page."""
        return "/" if self.open else f"/{self.token}/"

    def admitted(self, path: str, host: str, origin: str | None) -> str | None:
        """The path that a request means, None where it is refused.

        Args:
            path: of the request, with the token or without.
            host: its header `Host`.
            origin: its header `Origin`, which browsers send where a page opens a socket.
        """
        first, slash, rest = path.removeprefix("/").partition("/")
        word, question, query = first.partition("?")
        if hmac.compare_digest(word.encode(), self.token.encode()):
            return f"/{rest}" if slash else f"/{question}{query}"
        if not self.open or not is_local(_name(f"//{host}")):
            return None
        return path if origin is None or urlsplit(origin).netloc == host else None

    def check(self, connection, request):
        """Refuse a request, or say what it means; for `process_request`.

        Returns:
            The request as viser is to see it, or a response.
        """
        from websockets.http11 import Response

        headers = request.headers
        path = self.admitted(request.path, headers.get("Host", ""), headers.get("Origin"))
        if path is not None:
            return dataclasses.replace(request, path=path)
        self.refused += 1
        words = b"This page needs the whole address that was printed, with its token.\n"
        answer = type(headers)({"Content-Type": "text/plain; charset=utf-8", "Content-Length": str(len(words))})
        return Response(403, "Forbidden", answer, words)


def is_local(host: str) -> bool:
    """Is it a name or an address of this machine that no other machine can reach?"""
    name = host.strip("[]").lower()
    if name in LOCAL or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _name(url: str) -> str:
    """The host of an address, without its port."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def start(host: str, port: int, lock: Lock, label: str = "Featherlane"):
    """A viser server behind a lock, which prints nothing.

    Args:
        host, port: where it listens; port 0: any that is free.
        lock: who may look.
        label: of the page.

    Returns:
        The `viser.ViserServer`.

    Raises:
        InstallationError: viser is not installed, or a release that starts its server otherwise.
        PortInUse: the port is taken.
        ModelError: the address is none of this machine's.
    """
    viser = viser_module()
    _check_free(host, port)
    with _STARTING, _locked(lock, host) as seen, _quiet():
        server: Any = viser.ViserServer(host=host, port=port, label=label, verbose=False)
    if not seen:
        with _quiet():
            server.stop()
        raise InstallationError(
            f"viser {viser.__version__} starts its server in a way that is not known here, and nobody would be asked "
            f"for a token; install another with: {INSTALL}"
        )
    if port not in (0, server.get_port()):
        with _quiet():
            server.stop()
        raise PortInUse(_taken(host, port))
    _keep_at_home(viser, server)
    keep_controls(viser, server)
    return server


def stop(server) -> None:
    """Stop a server that `start` gave."""
    with _quiet():
        server.stop()


def _check_free(host: str, port: int) -> None:
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
        raise ModelError(f"port: got {port!r}, allowed are 0 (any that is free) to 65535")
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except socket.gaierror as error:
        raise ModelError(f"host: got {host!r}, allowed is an address of this machine ({error.strerror})") from None
    except PermissionError:
        raise ModelError(f"port: got {port}, which this user may not take; allowed are 0 and 1024 to 65535") from None
    except (OSError, UnicodeError) as error:
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            raise PortInUse(_taken(host, port)) from None
        raise ModelError(f"host: got {host!r}, allowed is an address of this machine ({error})") from None


def _taken(host: str, port: int) -> str:
    return f"port: {port} of {host} is in use; give another one, or 0 for any that is free"


@contextlib.contextmanager
def _locked(lock: Lock, host: str) -> Iterator[list[int]]:
    """While it holds, a web server that is started at `host` asks the lock first."""
    from websockets.asyncio import server as module

    plain, seen = module.serve, []

    def serve(handler, at, port, *arguments, process_request=None, **options):
        if at != host or process_request is None:
            return plain(handler, at, port, *arguments, process_request=process_request, **options)
        seen.append(port)

        def asked(connection, request):
            answer = lock.check(connection, request)
            if not isinstance(answer, type(request)):
                return answer
            given = process_request(connection, answer)
            if given is not None and hasattr(given, "headers"):
                given.headers["Content-Security-Policy"] = POLICY
                given.headers["Referrer-Policy"] = "no-referrer"
            return given

        return plain(handler, at, port, *arguments, process_request=asked, **options)

    module.serve = serve
    try:
        yield seen
    finally:
        module.serve = plain


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """viser prints addresses and farewells of its own."""
    import rich

    console = rich.get_console()
    before, console.quiet = console.quiet, True
    try:
        yield
    finally:
        console.quiet = before


def _keep_at_home(viser, server) -> None:
    """No button that asks a server elsewhere for a public address, and nothing that does where a page asks for it."""
    messages = viser._messages
    for message in (messages.ShareUrlRequest, messages.ShareUrlDisconnect):
        with contextlib.suppress(AssertionError):
            server._websock_server.unregister_handler(message)
    server.gui.configure_theme(show_logo=False, show_share_button=False, control_width="large")
