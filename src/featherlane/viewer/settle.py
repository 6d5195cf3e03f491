"""Waiting for browsers before something is removed from the page."""

from __future__ import annotations

import time

KEY = "featherlane"  # a name in the browser's storage; a read of it is answered after all messages before it
SECONDS = 1.0


def settle(server, seconds: float = SECONDS) -> None:
    """Waits until the browsers have applied all updates that were sent; not on the server's event loop.

    The page applies the updates of a frame after its removals, and logs an update of a removed control as an error.

    Args:
        server: the `viser.ViserServer`.
        seconds: the longest wait for all browsers together; slower ones may log errors.
    """
    end = time.monotonic() + seconds
    server.flush()
    for client in list(server.get_clients().values()):
        try:
            client.local_storage.get_item(KEY, timeout=max(end - time.monotonic(), 0.0))
        except (RuntimeError, TimeoutError):  # it left, blocks its storage, or is slow
            continue
