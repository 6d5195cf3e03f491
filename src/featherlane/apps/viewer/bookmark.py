"""Saves states to files and restores them.

A file holds the vector of `fl.get_state` (`state`, bitwise exact), which `fl.set_state` accepts.  It also holds the
arrays of a recording with one frame, so that `featherlane view` can play it.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from featherlane import get_state, set_state
from featherlane.apps.viewer.history import FRAME
from featherlane.apps.viewer.session import Session
from featherlane.enums import State
from featherlane.errors import ModelError
from featherlane.extension import read_member

BITS = int(State.INTEGRATION)
HEADER = 4096  # largest size of an array in a file without its values [bytes]
REFUSAL = "not a saved state"


def written(session: Session) -> bytes:
    """Returns the present state of a session as the content of a .npz file."""
    held: dict[str, Any] = {name: session.rows(name)[:, None] for name in FRAME}
    status = [part.batch.status for part in session.parts]
    counts = [np.concatenate([s[name] for s in status]) for name in status[0]]
    states = [get_state(part.batch.model, part.batch, BITS) for part in session.parts]
    held |= {"state": np.concatenate(states), "state_bits": BITS, "status": np.stack(counts, 1)[:, None]}
    held |= {"status_names": list(status[0]), "model": session.model.source, "timestep": session.timestep}
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
    bits = read_member(io.BytesIO(content), source, REFUSAL, "state_bits", HEADER)
    if bits.shape != () or bits.dtype.kind not in "iu":
        raise ModelError(f"{source}: not a saved state: state_bits is {bits.dtype} {bits.shape}, allowed is an integer")
    bits = int(bits)
    sizes = [get_state(part.batch.model, part.batch, bits).shape[1] for part in session.parts]
    most = HEADER + 8 * session.nworld * sizes[0]
    state = read_member(io.BytesIO(content), source, REFUSAL, "state", most)
    shapes = dict.fromkeys(((session.nworld, sizes[0]), (1, sizes[0])))
    if state.shape not in shapes:
        allowed = " and ".join(map(str, shapes))
        raise ModelError(f"{source}: got states of shape {state.shape}, allowed for this model: {allowed}")
    if state.dtype.kind != "f" or not np.isfinite(state).all():
        raise ModelError(f"{source}: got states that are not finite numbers")
    session.jump()
    rows = np.broadcast_to(state, (session.nworld, sizes[0]))
    for part in session.parts:
        set_state(part.batch.model, part.batch, rows[: part.batch.nworld], bits)
        rows = rows[part.batch.nworld :]
