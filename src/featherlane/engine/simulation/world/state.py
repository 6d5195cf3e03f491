"""Copies states to and from flat vectors: bits select the parts of a vector, and its layout is MuJoCo's.

A vector of MuJoCo's mj_getState can be set here, and the reverse.
Source: MuJoCo mjtState, mj_stateSize, mj_getState, mj_setState.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.model.assignment import broadcast_reals
from featherlane.engine.model.enums import State, whole_number
from featherlane.engine.model.model import Model, check_model
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.errors import ModelError

EVERYTHING = (1 << 15) - 1
# bit and field of each part; the field has the part's name, except for the warm start
PARTS = [
    (int(p), "qacc_warmstart" if p == State.WARMSTART else str(p.name).lower())
    for p in map(State, [1 << k for k in range(15)])
]


def state_size(model: Model, bits: int = State.INTEGRATION) -> int:
    """Returns the length of the state vector of some components.

    Args:
        model: the model.
        bits: `State` bits, or MuJoCo's; by default all that a step reads.

    Raises:
        ModelError: bits that select no part.

    Source: MuJoCo mj_stateSize.
    """
    check_model(model)
    return sum(size for _, size in _parts(model, bits))


def read_state(world, lead: tuple[int, ...], dtype: np.dtype, bits: int) -> np.ndarray:
    """Returns the parts of the state of a `Data` or a `Batch`, (*lead, state_size); a copy.

    Args:
        world: has the model and the fields.
        lead: (nworld,) for a batch, else ().
        dtype: dtype of reals of the state.
        bits: which parts.
    """
    parts = list(places(world.model, bits))
    kinds = [DATA[field].stored_as(dtype) for field, _ in parts]
    out = np.zeros((*lead, state_size(world.model, bits)), np.result_type(dtype, *kinds))
    for field, at in parts:
        if not world.is_left_out(field):
            out[..., at] = np.reshape(getattr(world, field), (*lead, -1))
    return out


def write_state(world, lead: tuple[int, ...], state: ArrayLike, bits: int) -> None:
    """Sets the parts of the state of a `Data` or a `Batch`; arguments as of `read_state`.

    Raises:
        ModelError: bits that select no part, a vector of another length; nothing is set then.
    """
    vector = broadcast_reals("state", state, (*lead, state_size(world.model, bits))).astype(np.float64, copy=False)
    for field, at in places(world.model, bits):
        if not (world.is_left_out(field) and not vector[..., at].any()):
            setattr(world, field, np.reshape(vector[..., at], np.shape(getattr(world, field))))


# ---- layout ----------------------------------------------------------------------------------------------------------
def _parts(model: Model, bits: int) -> Iterator[tuple[str, int]]:
    """Yields field and length of each part, in order."""
    import mujoco  # slow to import

    number = whole_number(bits)
    if number is None or not 0 <= number <= EVERYTHING:
        raise ModelError(f"bits: got {bits!r}, allowed are State bits, 0 to {EVERYTHING}")
    for bit, field in PARTS:
        if bit & number:
            # MuJoCo before 4.0 has no plastic part
            yield field, model.nplastic if bit == State.PLASTIC else mujoco.mj_stateSize(model.compiled, bit)


def places(model: Model, bits: int) -> Iterator[tuple[str, slice]]:
    """Yields field and slice in a state vector of each part that the engine stores."""
    start = 0
    for field, size in _parts(model, bits):
        if size and field in DATA:
            yield field, slice(start, start + size)
        start += size
