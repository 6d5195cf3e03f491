"""A model of an MjModel that follows edits of its fields."""

from __future__ import annotations

import ctypes
from operator import attrgetter
from typing import Any

import numpy as np

from featherlane.model import Model, load
from featherlane.model.fields import MODEL, is_editable
from featherlane.model.mujoco_arrays import is_mujocos, read_field

GAP = 64  # bytes between arrays that are compared together


class FollowedModel:
    """Loads an MjModel, and loads its edits.

    An MjModel stores its arrays in one block of memory.  Comparing the parts of it that Featherlane reads takes some
    10 us; textures and meshes, which are most of the memory, are not compared.

    Args:
        mj_model: the MjModel.

    Attributes:
        model: the model; edits of real fields are written into it, all other edits replace it.

    Raises:
        ModelError, UnsupportedFeatureError: as `featherlane.load`.
    """

    model: Model

    def __init__(self, mj_model: Any):
        self._mj_model = mj_model
        values = {f.name: read_field(mj_model, f.name) for f in MODEL.fields if is_mujocos(f)}
        self._arrays = {name: a for name, a in values.items() if isinstance(a, np.ndarray) and a.size}
        numbers = [name for name in values if name.startswith("opt_") and name not in self._arrays]
        self._options = attrgetter(*[name.removeprefix("opt_") for name in numbers])
        self._memory = [_bytes(first, last) for first, last in _joined(self._arrays.values())]
        self._load()

    def follow(self) -> bool:
        """Takes edits over into `model`; returns whether `model` was replaced.

        Raises:
            ModelError, UnsupportedFeatureError: as `featherlane.load`.
        """
        same_options = self._seen_options == self._options(self._mj_model.opt)
        if same_options and [part.tobytes() for part in self._memory] == self._seen:
            return False
        if same_options:
            edited = [name for name, a in self._arrays.items() if not np.array_equal(a, self._values[name])]
            if all(is_editable(MODEL[name]) and not name.startswith("opt_") for name in edited):
                for name in edited:
                    setattr(self.model, name, self._arrays[name].reshape(getattr(self.model, name).shape))
                self._keep()
                return False
        self._load()
        return True

    def _load(self) -> None:
        self.model = load(self._mj_model)
        self._keep()

    def _keep(self) -> None:
        """Keeps the present values, with which `follow` compares."""
        self._seen = [part.tobytes() for part in self._memory]
        self._values = {name: a.copy() for name, a in self._arrays.items()}
        self._seen_options = self._options(self._mj_model.opt)


def _joined(arrays) -> list[tuple[int, int]]:
    """Returns ranges of addresses that contain the arrays."""
    ranges: list[tuple[int, int]] = []
    for first, last in sorted((a.ctypes.data, a.ctypes.data + a.nbytes) for a in arrays):
        if ranges and first - ranges[-1][1] <= GAP:
            ranges[-1] = ranges[-1][0], max(last, ranges[-1][1])
        else:
            ranges.append((first, last))
    return ranges


def _bytes(first: int, last: int) -> np.ndarray:
    """Returns the memory in a range of addresses as an array of bytes."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * (last - first)).from_address(first))
