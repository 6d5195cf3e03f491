"""Entry point of the group `mjlab.tasks`, which mjlab imports: uses Featherlane if FEATHERLANE_MJLAB is set."""

from __future__ import annotations

import os

from featherlane.errors import FeatherlaneError
from featherlane.integrations.mjlab import VARIABLE, use

chosen = os.environ.get(VARIABLE, "")
if chosen not in ("", "0"):
    try:
        use("float32" if chosen == "1" else chosen)
    except FeatherlaneError as error:
        # mjlab ignores errors of entry points, and would run on another engine than the user chose
        raise SystemExit(f"{VARIABLE}={chosen}: {error}") from error
