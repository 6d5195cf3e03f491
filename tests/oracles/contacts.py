"""Reads the contacts of one world from a tile of any width."""

from __future__ import annotations

import numpy as np

from featherlane.engine.collision import contact


def contacts(model, arrays, lane: int = 0) -> np.recarray:
    """Returns the contacts of a lane in the form of `data.contact`, without rows."""
    slots = np.flatnonzero(arrays["con_present"][: int(arrays["ncon_slot"][0]), lane])
    one = {name: a[:, lane : lane + 1] if a.ndim == 2 else a for name, a in arrays.items()}
    return contact.contacts(one, slots, np.full(len(slots), -1), model.flg_adhesion)
