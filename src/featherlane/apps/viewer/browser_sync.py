"""Waits for browsers before a control is removed from the page."""

from __future__ import annotations

import time

KEY = "featherlane"  # a key in the browser's storage; a read of it is answered after all earlier messages
SECONDS = 1.0  # longest wait for all browsers together; slower ones may log errors


def wait_for_browsers(server) -> None:
    """Waits until the browsers have applied all sent updates; not for use on the server's event loop.

    The page applies the updates of a frame after its removals, and logs an update of a removed control as an error.
    """
    end = time.monotonic() + SECONDS
    server.flush()
    for client in list(server.get_clients().values()):
        try:
            client.local_storage.get_item(KEY, timeout=max(end - time.monotonic(), 0.0))
        except (RuntimeError, TimeoutError):  # the browser left, blocks its storage, or is slow
            continue
