"""Requests that a page answers: those with the token; without a token, those of this machine to this page."""

import gzip
import urllib.error
import urllib.request

import pytest

import featherlane as fl
from featherlane.apps.viewer.lock import Lock, is_local_host


@pytest.mark.parametrize(
    "host, local",
    [("localhost", True), ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("[::1]", True),
     ("a.localhost", True), ("0.0.0.0", False), ("::", False), ("10.0.0.1", False), ("localhost.evil.com", False),
     ("", False)],
)  # fmt: skip
def test_local_hosts_are_recognized(host, local):
    assert is_local_host(host) == local


def test_without_a_token_other_sites_are_refused():
    lock = Lock("127.0.0.1", False)
    here = "localhost:8080"
    assert lock.path() == "/"
    assert lock.admitted("/", here, None) == "/"
    assert lock.admitted("/a?b", here, f"http://{here}") == "/a?b"
    assert lock.admitted("/", here, "http://evil.com") is None, "a site that is open in the browser"
    assert lock.admitted("/", here, "null") is None, "a page out of nowhere"
    assert lock.admitted("/", "evil.com", "http://evil.com") is None, "a name that was turned to this machine"
    assert lock.admitted("/", "", None) is None
    assert lock.admitted("/", "[", None) is None


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1"])
def test_the_token_opens_from_anywhere(host):
    lock = Lock(host, "abcdefgh")
    assert lock.admitted("/abcdefgh/", "elsewhere:1", "http://hub") == "/"
    assert lock.admitted("/abcdefgh", "elsewhere", None) == "/"
    assert lock.admitted("/abcdefgh/x/y?z=1", "elsewhere", None) == "/x/y?z=1"
    assert lock.admitted("/abcdefgh?z=1", "elsewhere", None) == "/?z=1"
    for wrong in ("/abcdefg/", "/abcdefghi/", "/x/abcdefgh/", "/?abcdefgh", "/ABCDEFGH/", "/\u00e9/"):
        assert lock.admitted(wrong, "elsewhere", None) is None


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1", "localhost", "::1"])
def test_every_address_requires_the_token(host):
    lock = Lock(host)
    assert len(lock.token) >= 16 and lock.path() == f"/{lock.token}/"
    for path in ("/", "/index.html", "/?websocket=ws://evil", f"/x{lock.token}/", f"/{lock.token[:-1]}/"):
        assert lock.admitted(path, "localhost:8080", None) is None
    assert Lock(host).token != lock.token


def test_only_loopback_servers_can_omit_the_token():
    for host in ("0.0.0.0", "::", "10.0.0.1", ""):
        with pytest.raises(fl.ModelError):
            Lock(host, False)


def test_the_policy_allows_no_eval_no_other_host_and_no_embedding():
    lock = Lock("127.0.0.1")
    rules = dict(rule.strip().split(" ", 1) for rule in policy_of(lock, lock.path(), "localhost:80").split(";"))
    assert rules["default-src"] == rules["frame-ancestors"] == rules["form-action"] == rules["base-uri"] == "'none'"
    assert rules["connect-src"] == "'self' ws://localhost:80 wss://localhost:80 data: blob:"
    assert not {"'unsafe-eval'", "ws:", "wss:", "*", "http:", "https:"} & set(" ".join(rules.values()).split())
    for wrong in ("a b", "a;script-src *", "a\n", "[::1]:80", ""):
        assert "connect-src 'self' data:" in policy_of(lock, "/", wrong)


def test_only_the_address_of_a_notebook_can_be_embedded():
    lock = Lock("127.0.0.1")
    framed = lock.path(framed=True)
    assert lock.admitted(framed, "elsewhere", None) == "/" and lock.frame_token != lock.token
    assert "frame-ancestors" not in policy_of(lock, framed, "h")
    assert "frame-ancestors 'none'" in policy_of(lock, f"{lock.path()}?{lock.frame_token}", "h")


def policy_of(lock, path, host):
    return lock.headers(path, host)["Content-Security-Policy"]


viser = pytest.importorskip("viser")


def get(port, path="/", **headers):
    """Returns status and headers of an answer."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, dict(answer.headers)
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers)


@pytest.fixture
def served():
    from featherlane.apps.viewer.lock import start_server, stop_server

    started = []

    def serve(host, token=None):
        lock = Lock(host, token)
        started.append(start_server(host, 0, lock))
        return started[-1].get_port(), lock

    yield serve
    for server in started:
        stop_server(server)


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1"])
def test_a_page_requires_the_token(served, host):
    port, lock = served(host)
    assert get(port)[0] == 403
    assert get(port, "/nonsense/")[0] == 403
    status, headers = get(port, lock.path())
    assert status == 200 and headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert get(port, lock.path() + "../../etc/passwd")[0] == 404


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_the_script_of_the_keys_ends_the_page(served, encoding):
    from featherlane.apps.viewer.lock import SCRIPT

    port, lock = served("127.0.0.1")
    request = urllib.request.Request(f"http://127.0.0.1:{port}{lock.path()}", headers={"Accept-Encoding": encoding})
    with urllib.request.urlopen(request, timeout=10) as answer:
        body = answer.read()
        assert len(body) == int(answer.headers.get("Content-Length", len(body)))
        assert (answer.headers.get("Content-Encoding") == "gzip") == (encoding == "gzip")
    page = gzip.decompress(body) if encoding == "gzip" else body
    assert page.endswith(SCRIPT) and page.count(b"</html>") == 1


def test_sockets_require_the_token(served):
    from websockets.exceptions import InvalidStatus
    from websockets.sync.client import connect

    port, lock = served("0.0.0.0")
    protocol = [f"viser-v{viser.__version__}"]
    for path in ("/", "/nonsense/"):
        with pytest.raises(InvalidStatus, match="403"):
            connect(f"ws://127.0.0.1:{port}{path}", subprotocols=protocol)
    with connect(f"ws://127.0.0.1:{port}{lock.path()}", subprotocols=protocol) as socket:
        assert socket.recv(timeout=10)
    port, _ = served("127.0.0.1", False)
    with pytest.raises(InvalidStatus, match="403"):
        connect(f"ws://127.0.0.1:{port}/", subprotocols=protocol, origin="http://evil.com")
    with connect(f"ws://127.0.0.1:{port}/", subprotocols=protocol, origin=f"http://127.0.0.1:{port}") as socket:
        assert socket.recv(timeout=10)


def test_addresses_that_cannot_be_served(served):
    from featherlane.apps.viewer.lock import start_server

    port, lock = served("127.0.0.1")
    with pytest.raises(fl.ModelError, match="in use"):
        start_server("127.0.0.1", port, lock)
    for host in ("8.8.8.8", "no.such.host.invalid", "a..b"):
        with pytest.raises(fl.ModelError):
            start_server(host, 0, lock)
    for wrong in (-1, 70000, "80", 1.5, True):
        with pytest.raises(fl.ModelError):
            start_server("127.0.0.1", wrong, lock)


def test_a_server_without_the_lock_is_refused(monkeypatch):
    """If viser does not call the lock, nothing is served."""
    from featherlane.apps.viewer import lock as module

    monkeypatch.setattr(module, "_locked", module.contextlib.contextmanager(lambda lock, host, admits: iter([[]])))
    with pytest.raises(fl.InstallationError):
        module.start_server("127.0.0.1", 0, Lock("127.0.0.1"))


def test_nothing_is_printed(served, capfd):
    served("127.0.0.1")
    assert capfd.readouterr() == ("", "")
