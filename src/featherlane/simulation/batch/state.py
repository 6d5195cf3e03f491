"""States as flat vectors: which parts a vector holds is said by bits, its layout is MuJoCo's.

So a vector that MuJoCo's mj_getState gave can be set here, and one from here there.
Source: MuJoCo mjtState, mj_stateSize, mj_getState, mj_setState.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from featherlane.errors import ModelError
from featherlane.model.assignment import is_numbers, numbers
from featherlane.model.enums import State, whole_number
from featherlane.model.model import Model, check_model
from featherlane.simulation.batch.batch import Batch
from featherlane.simulation.tile.fields import DATA
from featherlane.simulation.world.data import KEYFRAME, Data, ready

# the field of each part, where it is not the part's name
FIELDS = {State.WARMSTART: "qacc_warmstart"}
EVERYTHING = (1 << 15) - 1


def state_size(model: Model, bits: int) -> int:
    """Length of the vector that holds the parts of a state.

    Args:
        model: the model.
        bits: `State` bits, or MuJoCo's.

    Raises:
        ModelError: bits that name no part.

    Source: MuJoCo mj_stateSize.
    """
    check_model(model)
    return sum(size for _, size in _parts(model, bits))


def get_state(model: Model, data: Data | Batch, bits: int) -> np.ndarray:
    """Parts of a state, one after the other.

    Args:
        model: the model.
        data: the world, or a batch of the model.
        bits: `State` bits, or MuJoCo's: `State.INTEGRATION` is all that a step reads.

    Returns:
        (state_size,), for a batch (nworld, state_size) in the batch's dtype, or in float64 if the time or histories
        are among the parts; a copy.

    Raises:
        ModelError: bits that name no part; the model's sizes are not those of the data.
        TypeError: `data` is neither a Data nor a Batch.

    Source: MuJoCo mj_getState.

    Note:
        Parts that the engine does not keep, because no motion that it computes depends on them (user data, states of
        plugins), are there as zeros.
    """
    lead, dtype = _frame(model, data, bits)
    out = np.zeros((*lead, state_size(model, bits)), dtype)
    for field, at in _places(model, bits):
        if not (isinstance(data, Batch) and data.is_left_out(field)):
            out[..., at] = np.reshape(getattr(data, field), (*lead, -1))
    return out


def set_state(model: Model, data: Data | Batch, state: ArrayLike, bits: int) -> None:
    """Set parts of a state from a vector that `get_state`, or MuJoCo's mj_getState, gave.

    Args:
        model: the model.
        data: the world, or a batch of the model.
        state: (state_size,), for a batch what broadcasts to (nworld, state_size).
        bits: which parts it holds.

    Raises:
        ModelError: bits that name no part, a vector of another length; nothing is set then.
        TypeError: `data` is neither a Data nor a Batch.

    Source: MuJoCo mj_setState (parts that the engine does not keep are not looked at, see `get_state`).
    """
    lead, dtype = _frame(model, data, bits)
    shape = (*lead, state_size(model, bits))
    try:
        vector = np.broadcast_to(numbers("state", state, "").astype(dtype, copy=False), shape)
    except ValueError:
        given = f"shape {np.shape(state)}" if is_numbers(state) else type(state).__name__
        raise ModelError(f"state: got {given}, allowed is {shape}") from None
    for field, at in _places(model, bits):
        if not (isinstance(data, Batch) and data.is_left_out(field) and not vector[..., at].any()):
            target = getattr(data, field)
            setattr(data, field, np.reshape(vector[..., at], np.shape(target)))


def set_keyframe(model: Model, data: Data, key: str | int) -> None:
    """Make the present state a keyframe of the model.

    Args:
        model: the model, which is changed.
        data: the world.
        key: name or number of the keyframe.

    Raises:
        UnknownNameError: no such keyframe.

    Source: MuJoCo mj_setKeyframe.
    """
    world, k = ready(model, data), model.keyframe(key).id
    for name, source in KEYFRAME.items():
        target = getattr(model, f"key_{source}")
        target[k] = np.reshape(getattr(world, name), np.shape(target[k]))


# ---- layout ----------------------------------------------------------------------------------------------------------
def _parts(model: Model, bits: int) -> Iterator[tuple[str, int]]:
    """Field and length of each part, in order."""
    import mujoco  # slow to import

    number = whole_number(bits)
    if number is None or not 0 <= number <= EVERYTHING:
        raise ModelError(f"bits: got {bits!r}, allowed are State bits, 0 to {EVERYTHING}")
    for k in range(EVERYTHING.bit_length()):
        part = State(1 << k)
        if part & number:
            # MuJoCo before 4.0 has no such part
            size = model.nplastic if part == State.PLASTIC else mujoco.mj_stateSize(model.mj_model, int(part))
            yield FIELDS.get(part, str(part.name).lower()), size


def _places(model: Model, bits: int) -> Iterator[tuple[str, slice]]:
    """Field and place in a vector of each part that the engine keeps."""
    start = 0
    for field, size in _parts(model, bits):
        if size and field in Data.layout:
            yield field, slice(start, start + size)
        start += size


def _frame(model: Model, data: Data | Batch, bits: int) -> tuple[tuple[int, ...], np.dtype]:
    """Leading axes and dtype of the vectors of a world or a batch, which hold each part without rounding."""
    if isinstance(data, Batch):
        if data.model is not model:
            raise ModelError("model: it is not the batch's")
        held = [DATA[field].stored_as(data.dtype) for field, _ in _places(model, bits)]
        return (data.nworld,), np.result_type(data.dtype, *held)
    ready(model, data)
    return (), np.dtype(np.float64)
