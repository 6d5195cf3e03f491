"""Filters messages of clients: viser lets a client set every attribute of a control, not only its value."""

from __future__ import annotations

import contextlib
from typing import Any

from featherlane.extension import private


def keep_controls(viser, server) -> None:
    """Drops messages that change more of a control than its value, or set a value that it does not offer.

    A browser sends no such message.  `{"removed": True}` from another client would remove a control for all visitors.
    """
    gui, messages = server.gui, private("viser", server, "_websock_server")
    kind = private("viser", viser, "_messages").GuiUpdateMessage
    handle_updates = private("viser", gui, "_handle_gui_updates")
    controls = private("viser", gui, "_gui_input_handle_from_uuid")
    messages.unregister_handler(kind, handle_updates)

    async def checked(client_id, message) -> None:
        handle = controls.get(message.uuid)
        if handle is not None and is_offered(handle, message.updates):
            with contextlib.suppress(TypeError, ValueError, OverflowError):  # a value of another type
                await handle_updates(client_id, message)

    messages.register_handler(kind, checked)


def is_offered(handle, updates: dict[str, Any]) -> bool:
    """Returns whether an update sets only the value, and whether the options, if any, contain it."""
    if updates.keys() != {"value"}:
        return False
    options = getattr(handle, "options", None)
    return options is None or updates["value"] in tuple(options)
