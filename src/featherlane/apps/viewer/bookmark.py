"""Saves states to files and restores them.

A file holds the vector of `fl.get_state` (`state`, bitwise exact), which `fl.set_state` accepts.  It also holds the
arrays of a recording with one frame, so that `featherlane view` can play it.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from featherlane import State, state_size
from featherlane.apps.viewer.history import FRAME
from featherlane.apps.viewer.session import Session
from featherlane.errors import ModelError
from featherlane.extension import read_arrays

BITS = int(State.INTEGRATION)
HEADER = 4096  # largest size of an array in a file without its values [bytes]
REFUSAL = "not a saved state"


def written(session: Session) -> bytes:
    """Returns the present state of a session as the content of a .npz file."""
    batch = session.batch
    held: dict[str, Any] = {name: getattr(batch, name)[:, None] for name in FRAME}
    held |= {"state": batch.get_state(BITS), "state_bits": BITS, "model": session.model.source}
    held |= {"status": np.stack(list(batch.status.values()), 1)[:, None], "status_names": list(batch.status)}
    held["timestep"] = session.timestep
    out = io.BytesIO()
    np.savez_compressed(out, **held)
    return out.getvalue()


def take_up(session: Session, content: bytes, source: str = "file") -> None:
    """Sets a session to the state in a file; the history keeps the state before.

    Args:
        content: content of the file; the state of one world is copied to all worlds.
        source: name of the file in error messages.

    Raises:
        ModelError: the file is not a bookmark, or it is of another model or number of worlds.
    """
    bits = read_arrays(io.BytesIO(content), source, REFUSAL, {"state_bits": HEADER})["state_bits"]
    if bits.shape != () or bits.dtype.kind not in "iu":
        raise ModelError(f"{source}: not a saved state: state_bits is {bits.dtype} {bits.shape}, allowed is an integer")
    bits = int(bits)
    size = state_size(session.model, bits)
    largest = HEADER + 8 * session.nworld * size
    state = read_arrays(io.BytesIO(content), source, REFUSAL, {"state": largest})["state"]
    shapes = dict.fromkeys(((session.nworld, size), (1, size)))
    if state.shape not in shapes:
        allowed = " and ".join(map(str, shapes))
        raise ModelError(f"{source}: got states of shape {state.shape}, allowed for this model: {allowed}")
    if state.dtype.kind != "f" or not np.isfinite(state).all():
        raise ModelError(f"{source}: got states that are not finite numbers")
    session.jump()
    session.batch.set_state(state, bits)
