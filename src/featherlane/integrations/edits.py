"""A model of an MjModel that follows edits of its fields."""

from __future__ import annotations

import ctypes
import functools
from operator import attrgetter
from typing import Any

import mujoco
import numpy as np

from featherlane import Model, load
from featherlane.errors import InstallationError
from featherlane.extension import read_fields

GAP = 64  # bytes between arrays that are compared together
NEAR = 512  # bytes before and behind the option gravity that contain all other options


class Memory:
    """Reads the fields of an MjModel that Featherlane reads, to find edits.

    An MjModel stores its arrays in one block of memory.  Textures and vertices of meshes, which are most of it, are not
    read.  No reference to the MjModel is kept.

    Args:
        mj_model: the MjModel.
    """

    def __init__(self, mj_model: Any):
        arrays, numbers = fields_read(mj_model)
        arrays["eq_data"] = mj_model.eq_data  # before MuJoCo 3.17 `arrays` has a wider copy
        views = [a for a in arrays.values() if a.size and not a.flags.owndata]
        options = tuple(name.removeprefix("opt_") for name in numbers if name.startswith("opt_"))
        first, last = _option_range(options)
        at = mj_model.opt.gravity.ctypes.data
        self._parts = [_bytes(first, last) for first, last in _joined([*views, _bytes(at + first, at + last)])]
        self.options = attrgetter(*options)  # of `mj_model.opt`: the options that are numbers

    def values(self) -> list[bytes]:
        """Returns the present bytes of the arrays and options."""
        return [part.tobytes() for part in self._parts]


@functools.cache
def _option_range(names: tuple[str, ...]) -> tuple[int, int]:
    """Returns the range of addresses of options that are numbers, relative to that of gravity, found by setting them.

    Reading this memory takes less time than reading the attributes.

    Raises:
        InstallationError: this version of MuJoCo stores an option elsewhere.
    """
    mj_model = mujoco.MjModel.from_xml_string("<mujoco/>")  # its sizes are before the options, visual settings behind
    at, option = mj_model.opt.gravity.ctypes.data, mj_model.opt
    memory, found = _bytes(at - NEAR, at + NEAR), []
    for name in names:
        before = memory.copy()
        setattr(option, name, getattr(option, name) + 1)
        changed = np.flatnonzero(memory != before) - NEAR
        if not len(changed):
            raise InstallationError(f"MuJoCo {mujoco.__version__}: option {name} is not within {NEAR} bytes of gravity")
        found += [int(changed[0]), int(changed[-1])]
    return min(found) // 8 * 8, max(found) // 8 * 8 + 8


def fields_read(mj_model: Any) -> tuple[dict[str, np.ndarray], list[str]]:
    """Returns the arrays of an MjModel that Featherlane reads, views by field, and the names of other fields."""
    values = read_fields(mj_model)
    arrays = {name: a for name, a in values.items() if isinstance(a, np.ndarray) and a.size}
    return arrays, [name for name in values if name not in arrays]


class FollowedModel:
    """Loads an MjModel, and then its edits.

    Args:
        mj_model: the MjModel.

    Attributes:
        model: the model; edits of real fields are written into it, all other edits replace it.

    Raises:
        ModelError, UnsupportedFeatureError: as `featherlane.load`.
    """

    model: Model

    def __init__(self, mj_model: Any):
        self._mj_model, self._memory = mj_model, Memory(mj_model)
        self._arrays, _ = fields_read(mj_model)
        self._load()

    def follow(self) -> bool:
        """Applies the edits to `model`; returns whether `model` was replaced.

        Raises:
            ModelError, UnsupportedFeatureError: as `featherlane.load`.
        """
        if self._memory.values() == self._seen:
            return False
        self._seen = None  # after an interrupt or an error the next call begins here again
        if self._memory.options(self._mj_model.opt) == self._options:
            edited = [name for name, a in self._arrays.items() if not np.array_equal(a, self._values[name])]
            ours = {name: getattr(self.model, name) for name in edited if not name.startswith("opt_")}
            if edited and len(ours) == len(edited) and all(array.flags.writeable for array in ours.values()):
                for name, array in ours.items():
                    array[...] = self._arrays[name].reshape(array.shape)
                self._keep()
                return False
        self._load()
        return True

    def _load(self) -> None:
        self.model = load(self._mj_model)
        self._keep()

    def _keep(self) -> None:
        """Keeps the present values, with which `follow` compares."""
        self._seen, self._options = self._memory.values(), self._memory.options(self._mj_model.opt)
        self._values = {name: a.copy() for name, a in self._arrays.items()}


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
