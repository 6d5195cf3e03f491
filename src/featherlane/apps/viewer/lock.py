"""Access control of the page: a viser server that answers only requests with the token in their path.

viser has no access control, and passes no options to its web server, `websockets.asyncio.server.serve`.  While viser
starts, `serve` is replaced by a function that adds two documented options.  `process_request` receives every request
before the answer, both plain requests and those that open the socket; here it calls the lock first.
`create_connection` is the class of connections; here it drops messages that the page does not offer.  If a release of
viser starts its server by another function, no server is started.

* The path `/TOKEN/...` is answered, for any host and origin.  Other users of this machine, other machines and other
  sites that are open in the browser do not have the token.
* Without a token (`--no-token`, only on loopback) the host of a request must be this machine and its origin must be
  this page.
* No other page may embed this one, except by a second path that only a notebook's cell contains.
* The page can load no external resource: the content security policy makes the browser refuse it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import gzip
import hmac
import ipaddress
import re
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

from featherlane.errors import ModelError
from featherlane.extension import private, required, requiring, unsupported, whole_argument

LOCAL = ("localhost", "127.0.0.1", "::1")
HOST = re.compile(r"[A-Za-z0-9.-]+(:[0-9]+)?")  # hosts that a policy can name; 'self' covers all others
# viser's page is one inline script, which unpacks itself with WebAssembly, and workers made from blobs.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'wasm-unsafe-eval'; style-src 'unsafe-inline'; worker-src blob:; "
    "img-src 'self' data: blob:; font-src data:; form-action 'none'; base-uri 'none'"
)
# After a click the focus returns to the page: keys do not reach it from a checkbox, and the space key clicks a button.
SCRIPT = b"""<script>addEventListener("click", () => document.activeElement?.closest("button, [type=checkbox]")?.blur())
</script>"""
REFUSAL = "This page needs the whole address that was printed, with its token.\n"
_STARTING = threading.Lock()


def viser_module():
    """Imports and returns viser; raises InstallationError if it is not installed."""
    return required("viser", "the viewer")


class PortInUse(ModelError):
    """The port is in use."""


class Lock:
    """Decides which requests a page answers.

    Args:
        token: the token; None for a random one of 128 bits; False for none.

    Attributes:
        open: whether browsers of this machine can open the page without a token.
        frame_token: a second random token; a notebook may embed the page under it.

    Raises:
        ModelError: there is no token, and other machines can reach the address.
    """

    def __init__(self, host: str, token: str | Literal[False] | None = None):
        self.open = token is False
        if self.open and not is_local_host(host):
            raise ModelError(
                f"token: got none with host {host!r}, allowed only with a loopback address ({', '.join(LOCAL)})"
            )
        self.host, self.token = host, token or secrets.token_urlsafe(16)
        self.frame_token = secrets.token_urlsafe(16)

    def path(self, framed: bool = False) -> str:
        """Returns the path of the page, or of the page for embedding."""
        if framed:
            return f"/{self.frame_token}/"
        return "/" if self.open else f"/{self.token}/"

    def admitted(self, path: str, host: str, origin: str | None) -> str | None:
        """Returns the path without its token; None if the request is refused.

        Args:
            path: path of the request, with or without the token.
            host: header `Host` of the request.
            origin: header `Origin`, which browsers send when a page opens a socket.
        """
        first, slash, rest = path.removeprefix("/").partition("/")
        word, question, query = first.partition("?")
        if self.framed(path) or hmac.compare_digest(word.encode(), self.token.encode()):
            return f"/{rest}" if slash else f"/{question}{query}"
        if not self.open or not is_local_host(_name(f"//{host}")):
            return None
        return path if origin is None or urlsplit(origin).netloc == host else None

    def framed(self, path: str) -> bool:
        """Returns whether a request is for the page for embedding."""
        return hmac.compare_digest(re.split("[/?]", path.removeprefix("/"))[0].encode(), self.frame_token.encode())

    def headers(self, path: str, host: str) -> dict[str, str]:
        """Returns the security headers of an answer; path and host are those of the request."""
        sockets = f" ws://{host} wss://{host}" * bool(HOST.fullmatch(host))
        ancestors = "" if self.framed(path) else "; frame-ancestors 'none'"
        policy = f"{POLICY}; connect-src 'self'{sockets} data: blob:{ancestors}"
        return {
            "Content-Security-Policy": policy,
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
        }


class MessageFilter:
    """Decides which messages of clients viser receives.

    viser lets a client set every attribute of a control, not only its value.
    """

    controls: Mapping[str, Any] = {}  # viser's handles of controls

    def admits(self, message: Any) -> bool:
        """Returns whether a message in viser's format is no update, or sets a control to a value that it offers.

        A browser sends no other update.  `{"removed": True}` from another client would remove a control for all.
        """
        import msgspec  # a dependency of viser

        try:
            found = msgspec.msgpack.decode(message)
            updates = found.get("updates")
            if updates is None:
                return True
            options = getattr(self.controls[found["uuid"]], "options", None)
            return updates.keys() == {"value"} and (options is None or updates["value"] in tuple(options))
        except (msgspec.DecodeError, AttributeError, KeyError, TypeError):
            return False


def is_local_host(host: str) -> bool:
    """Returns whether the host is a name or address of this machine that no other machine can reach."""
    name = host.strip("[]").lower()
    if name in LOCAL or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _name(url: str) -> str:
    """Returns the host of an address, without its port."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def start_server(host: str, port: int, lock: Lock):
    """Starts a viser server behind a lock; it prints nothing.

    Args:
        host, port: address and port to listen on; port 0 for any free port.

    Returns:
        The `viser.ViserServer`.

    Raises:
        InstallationError: viser is not installed, or this release starts its server by another function.
        PortInUse: the port is in use.
        ModelError: the address does not belong to this machine.
    """
    viser = viser_module()
    _check_free(host, port)

    class Server(viser.ViserServer):
        """A server that requests no public address from an external server."""

        def request_share_url(self, verbose: bool = True) -> None:
            """Does nothing."""

        def disconnect_share_url(self) -> None:
            """Does nothing."""

    messages = MessageFilter()
    with _STARTING, _locked(lock, host, messages.admits) as patched, _quiet():
        server: Any = Server(host=host, port=port, label="Featherlane", verbose=False)
    if not patched:
        stop_server(server)
        raise unsupported("viser", "viser starts its server in another way, so that the token would not be required")
    if port not in (0, server.get_port()):
        stop_server(server)
        raise PortInUse(_taken(host, port))
    messages.controls = private("viser", server.gui, "_gui_input_handle_from_uuid")
    server.gui.configure_theme(show_logo=False, show_share_button=False, control_width="large")
    return server


def stop_server(server) -> None:
    """Stops a server that `start_server` returned."""
    with _quiet():
        server.stop()


def _check_free(host: str, port: int) -> None:
    whole_argument("port", port, 0, 65535)  # 0: any free port
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except socket.gaierror as error:
        raise ModelError(f"host: got {host!r}, allowed is an address of this machine ({error.strerror})") from None
    except PermissionError:
        raise ModelError(f"port: got {port}, which requires privileges; allowed are 0 and 1024 to 65535") from None
    except (OSError, UnicodeError) as error:
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            raise PortInUse(_taken(host, port)) from None
        raise ModelError(f"host: got {host!r}, allowed is an address of this machine ({error})") from None


def _taken(host: str, port: int) -> str:
    return f"port: {port} of {host} is in use; use another one, or 0 for any free port"


@contextlib.contextmanager
def _locked(lock: Lock, host: str, admits: Callable[[Any], bool]) -> Iterator[list[int]]:
    """Makes a web server that is started at `host` meanwhile call the lock before it answers."""
    with requiring("websockets", "the viewer"):
        from websockets.asyncio import server as module

    class Connection(module.ServerConnection):
        async def recv(self, decode: bool | None = None):
            while not admits(message := await super().recv(decode)):
                pass
            return message

    plain, ports = private("websockets", module, "serve"), []

    def serve(handler, at, port, *arguments, process_request=None, **options):
        if at != host or process_request is None:
            return plain(handler, at, port, *arguments, process_request=process_request, **options)
        ports.append(port)

        def checked(connection, request):
            here = request.headers.get("Host", "")
            path = lock.admitted(request.path, here, request.headers.get("Origin"))
            if path is None:
                return connection.respond(403, REFUSAL)
            answer = process_request(connection, dataclasses.replace(request, path=path))
            if answer is not None:
                answer.headers.update(lock.headers(request.path, here))
                _add_script(answer)
            return answer

        options |= {"process_request": checked, "create_connection": Connection}
        return plain(handler, at, port, *arguments, **options)

    module.serve = serve
    try:
        yield ports
    finally:
        module.serve = plain


def _add_script(answer) -> None:
    """Adds SCRIPT to an HTML page."""
    headers, zipped = answer.headers, answer.headers.get("Content-Encoding") == "gzip"
    if headers.get("Content-Type", "").startswith("text/html"):
        body = (gzip.decompress(answer.body) if zipped else answer.body) + SCRIPT
        answer.body = gzip.compress(body, 1) if zipped else body
        if headers.pop("Content-Length", None) is not None:
            headers["Content-Length"] = str(len(answer.body))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppresses the addresses and messages that viser prints."""
    import rich

    console = rich.get_console()
    before, console.quiet = console.quiet, True
    try:
        yield
    finally:
        console.quiet = before
