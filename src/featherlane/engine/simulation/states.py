"""Copies states of worlds, with MuJoCo's signatures: `get_state`, `set_state` (flat vectors), `set_keyframe`."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.model.enums import State
from featherlane.engine.model.model import Model
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.batch.one_world import checked_worlds
from featherlane.engine.simulation.world.data import KEYFRAME, Data, ready


def get_state(model: Model, data: Data | Batch, bits: int = State.INTEGRATION) -> np.ndarray:
    """Returns components of a state, concatenated into a vector.

    Args:
        model: the model.
        data: the world, or a batch of the model.
        bits: `State` bits, or MuJoCo's, of the components; by default all that a step reads.

    Returns:
        (state_size,), for a batch (nworld, state_size): a copy in the batch's dtype, or in float64 if the components
        include the time or histories.

    Raises:
        ModelError: bits that select no part; the model is not that of the worlds.
        TypeError: `data` is neither a `Data` nor a `Batch`.

    Source: MuJoCo mj_getState.

    Note:
        Components that the engine does not store (user data, states of plugins) are zeros; no computed motion depends
        on them.
    """
    return checked_worlds(model, data).get_state(bits)


def set_state(model: Model, data: Data | Batch, state: ArrayLike, bits: int = State.INTEGRATION) -> None:
    """Sets components of a state from a vector of `get_state`, or of MuJoCo's mj_getState.

    Args:
        model: the model.
        data: the world, or a batch of the model.
        state: (state_size,), for a batch what broadcasts to (nworld, state_size).
        bits: which parts it holds.

    Raises:
        ModelError: bits that select no part, a vector of another length; nothing is set then.
        TypeError: `data` is neither a `Data` nor a `Batch`.

    Source: MuJoCo mj_setState (parts that the engine does not store are ignored, see `get_state`).
    """
    checked_worlds(model, data).set_state(state, bits)


def set_keyframe(model: Model, data: Data, key: str | int) -> None:
    """Stores the present state as a keyframe of the model.

    Args:
        model: the model, which is changed.
        data: the world.
        key: name or number of the keyframe.

    Raises:
        UnknownNameError: an unknown keyframe.

    Source: MuJoCo mj_setKeyframe.
    """
    world, k = ready(model, data), model.keyframe(key).id
    for name, source in KEYFRAME.items():
        target = getattr(model, f"key_{source}")
        target[k] = np.reshape(getattr(world, name), np.shape(target[k]))
