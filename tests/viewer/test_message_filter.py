"""Changes that clients may make on a page: values of controls, and nothing else."""

import time

import pytest

viser = pytest.importorskip("viser")
msgspec = pytest.importorskip("msgspec")


@pytest.fixture
def server():
    from featherlane.apps.viewer.lock import Lock, start_server, stop_server

    lock = Lock("127.0.0.1")
    server = start_server("127.0.0.1", 0, lock)
    yield server, f"ws://127.0.0.1:{server.get_port()}{lock.path()}"
    stop_server(server)


def wait_for(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def test_a_client_changes_values_that_are_offered_and_nothing_else(server):
    from websockets.sync.client import connect

    server, url = server
    box = server.gui.add_checkbox("on", False)
    choice = server.gui.add_dropdown("one of", ("a", "b"), initial_value="a")
    last = server.gui.add_slider("last", 0, 9, 1, 0)
    with connect(url, subprotocols=[f"viser-v{viser.__version__}"]) as socket:

        def send(handle, **updates):
            # viser does not expose the uuid of a control
            message = {"type": "GuiUpdateMessage", "uuid": handle._impl.uuid, "updates": updates}
            socket.send(msgspec.msgpack.encode(message))

        for name, value in {"removed": True, "update_cb": "x", "uuid": "x", "props": None}.items():
            send(box, **{name: value})
            send(box, value=True, **{name: value})
        for other in (b"\xff", "text", msgspec.msgpack.encode({"type": "ShareUrlRequest"})):
            socket.send(other)
        send(choice, value="c")
        send(choice, value="b")
        send(last, value=3)
        assert wait_for(lambda: last.value == 3)
    assert box.value is False
    assert choice.value == "b"
    assert server.request_share_url() is None, "no address of an external server"
    box.value = True  # an error for a removed control
