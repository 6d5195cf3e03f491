"""Filters messages of clients: viser lets a client set every attribute of a control, not only its value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class MessageFilter:
    """Decides which messages of clients viser receives.

    Attributes:
        controls: viser's handles of controls.
    """

    def __init__(self) -> None:
        self.controls: Mapping[str, Any] = {}

    def admits(self, message: Any) -> bool:
        """Returns whether a message in viser's format is no update, or sets a control to a value that it offers.

        A browser sends no other update.  `{"removed": True}` from another client would remove a control for all.
        """
        try:
            found = msgspec.msgpack.decode(message)
            updates = found.get("updates")
            if updates is None:
                return True
            options = getattr(self.controls[found["uuid"]], "options", None)
            return updates.keys() == {"value"} and (options is None or updates["value"] in tuple(options))
        except (msgspec.DecodeError, AttributeError, KeyError, TypeError):
            return False
