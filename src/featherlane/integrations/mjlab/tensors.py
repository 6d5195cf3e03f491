"""Torch tensors over a batch's fields under mjlab's names: `DataTensors` and `ModelTensors`.

mjlab reads and writes float32 tensors with a leading axis of worlds.  A field that the batch stores in float32 is
shared: its tensor is a view of the batch's memory.  Any other field (all of a float64 batch, times, integers) has a
mirror: a tensor whose edits are copied to the batch before each call, and that is refreshed after each call.
"""

from __future__ import annotations

import dataclasses
import math
from operator import attrgetter
from typing import Any

import mujoco
import mujoco_warp  # pyright: ignore[reportMissingImports]
import numpy as np
import torch

from featherlane import Batch
from featherlane.errors import MissingMethodError, ModelError, UnknownAttributeError, UnsupportedFeatureError, near
from featherlane.extension import DATA, MODEL
from featherlane.integrations.mirrors import Mirror, Mirrors

# fields that have more axes in mjlab than in Featherlane
SHAPES: dict[str, tuple[int, int]] = dict.fromkeys(
    ("xmat", "ximat", "geom_xmat", "site_xmat", "cam_xmat", "cam_mat0"), (3, 3)
)
SHAPES |= {"geom_aabb": (2, 3)}
# fields that are integers in mjlab and reals in Featherlane
INTEGERS = frozenset("solver_niter nisland tree_asleep tree_awake body_awake tree_island dof_island".split())
WRITTEN = frozenset(DATA.of("state", "drive", "input"))  # fields that mjlab may write
version_of = attrgetter("_version")  # PyTorch's count of in-place edits of a tensor and of its views
ABSENT = "not available in a simulation by Featherlane"


def _per_world(layout: type) -> frozenset[str]:
    """Returns the fields of a class of mujoco_warp that may differ by world."""
    shapes = {field.name: getattr(field.type, "shape", ()) for field in dataclasses.fields(layout)}
    return frozenset(name for name, shape in shapes.items() if shape and shape[0] == "*")


PER_WORLD, OPTIONS = _per_world(mujoco_warp.Model), _per_world(mujoco_warp.Option)


def tensor_over(name: str, array: np.ndarray, written: bool) -> tuple[torch.Tensor, Mirror | None]:
    """Returns a tensor over memory of the batch, and its mirror if the types differ.

    Args:
        name: field.
        array: (nworld, ...) memory of the batch, contiguous.
        written: mjlab may write to it.
    """
    shape = (*array.shape[:2], *SHAPES[name]) if name in SHAPES else array.shape
    kind = np.int32 if name in INTEGERS else np.bool_ if name == "eq_active" else np.float32
    if array.dtype == kind:
        return torch.from_numpy(array.reshape(shape)), None
    mirror = Mirror(array, np.empty(shape, kind), written)
    return torch.from_numpy(mirror.shown), mirror


class Tensors:
    """Attributes that are tensors, created at the first access; they cannot be replaced, only edited in place."""

    def __init__(self, what: str, batch: Batch):
        self.__dict__.update(_what=what, batch=batch, nworld=batch.nworld, struct=self, mirrors=Mirrors())

    def _make(self, name: str) -> Any:
        """Returns the attribute, which is stored."""
        raise MissingMethodError("a subclass defines _make")

    def _over(self, name: str, array: np.ndarray, written: bool) -> torch.Tensor:
        """Returns a tensor over memory of the batch."""
        tensor, mirror = tensor_over(name, array, written)
        if mirror is not None:
            self.mirrors[name] = mirror
        return tensor

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "batch" not in self.__dict__:
            raise UnknownAttributeError(name)
        self.__dict__[name] = made = self._make(name)
        return made

    def __setattr__(self, name: str, value: Any) -> None:
        what = self.__dict__["_what"]
        raise UnknownAttributeError(f"{what}.{name} cannot be replaced; edit it in place: {what}.{name}[:] = value")

    def pull(self) -> None:
        """Refreshes the mirrors."""
        self.mirrors.pull()


class DataTensors(Tensors):
    """State, inputs and outputs of the worlds: mjlab's `sim.data`.

    `data.qpos` is (num_envs, nq), and so on.  Edits take effect at the next call of the simulation.  Outputs hold the
    values of the last `step` or `forward`.  An output that is read for the first time is computed from the present
    state.

    Args:
        batch: the worlds, after a `forward`.
    """

    def __init__(self, batch: Batch):
        super().__init__("data", batch)

    def _make(self, name: str) -> torch.Tensor:
        batch = self.batch
        shown = DATA.that("shown")
        if name not in shown:
            if any(field.name == name for field in dataclasses.fields(mujoco_warp.Data)):
                raise UnsupportedFeatureError([f"data.{name}"], what=ABSENT)
            raise UnknownAttributeError(f"data has no {name!r}{near(name, shown)}")
        lasts = DATA[name].traits.lasts or name in batch.rows
        array = batch.row_memory(name) if lasts else self._bind(name)
        return self._over(name, DATA[name].public(array), name in WRITTEN)

    def _bind(self, name: str) -> np.ndarray:
        """Binds an output and computes its values; the other outputs keep theirs."""
        batch = self.batch
        if name not in batch.bound:
            kept = {other: array.copy() for other, array in batch.bound.items()}
            batch.bind(name)
            self.push()
            batch.forward()
            for other, array in kept.items():
                np.copyto(batch.bound[other], array)
        return batch.bound[name]

    def push(self) -> None:
        """Copies edits of mirrors to the batch."""
        self.mirrors.push()

    def clear(self, worlds: np.ndarray) -> None:
        """Sets the outputs that mjlab's reset clears to zero."""
        for name in ("qacc", "act_dot", "sensordata", "energy"):
            if name in self.batch.bound:
                self.batch.bound[name][worlds] = 0.0
        self.pull()

    def mark(self, worlds: np.ndarray) -> None:
        """Sets the state of worlds to NaN, which mjlab's terminations detect."""
        for name in ("qpos", "qvel"):
            self.batch.row_memory(name)[worlds] = np.nan


class ModelTensors(Tensors):
    """The model's fields: mjlab's `sim.model`.

    A field that may differ by world is (num_envs, ...): read-only until `expand`, as in mjlab.  Fields that only the
    viewer reads (colors, lights, materials) are stored here.  All others have no axis of worlds.

    Args:
        batch: the worlds.
        mj_model: the compiled model.
    """

    def __init__(self, batch: Batch, mj_model: mujoco.MjModel):
        super().__init__("model", batch)
        self.__dict__.update(_mj=mj_model, _versions={})
        if batch.nworld == 1:  # mjlab's fields of one world are writable without `expand`
            self.expand(tuple(name for name in sorted(PER_WORLD) if name in MODEL and MODEL[name].kind == "real"))

    def _make(self, name: str) -> Any:
        if name == "opt":
            return OptionTensors(self.batch, self._mj)
        array = self.batch.expanded_fields.get(name) if name in MODEL else None
        if array is not None:
            tensor = self._over(name, array, written=True)
            self._versions[name] = version_of(tensor)
            return tensor
        if not hasattr(self._mj, name):
            if any(field.name == name for field in dataclasses.fields(mujoco_warp.Model)):
                raise UnsupportedFeatureError([f"model.{name}"], what=ABSENT)
            raise UnknownAttributeError(f"model has no {name!r}{near(name, PER_WORLD)}")
        return _constant(name, getattr(self._mj, name), self.nworld if name in PER_WORLD else 0)

    def expand(self, names: tuple[str, ...]) -> None:
        """Gives fields separate values in each world.

        Raises:
            UnsupportedFeatureError: a field that Featherlane shares between worlds.
        """
        shared = [name for name in names if name in MODEL and MODEL[name].kind != "real"]
        if shared:
            raise UnsupportedFeatureError([f"model.{name}" for name in shared], what="cannot differ by world")
        for name in names:
            if name in MODEL:
                self.batch.expand(name)
                self.__dict__.pop(name, None)
            elif name in PER_WORLD:  # for the viewer only
                self.__dict__[name] = getattr(self, name).clone()

    def push(self) -> None:
        """Copies edits of mirrors to the batch; edited fields are checked at the next call."""
        for name, seen in self._versions.items():
            tensor = self.__dict__.get(name)
            if tensor is not None and version_of(tensor) != seen:
                self._versions[name] = version_of(tensor)
                if name in self.mirrors:
                    self.mirrors[name].push()
                self.batch.expanded(name)

    def forget(self) -> None:
        """Discards tensors of fields that differ by world since the last call."""
        for name in self.batch.expanded_fields:
            if name not in self._versions:
                self.__dict__.pop(name, None)


class OptionTensors(Tensors):
    """The options: mjlab's `sim.model.opt`, read-only."""

    def __init__(self, batch: Batch, mj_model: mujoco.MjModel):
        super().__init__("model.opt", batch)
        self.__dict__["_opt"] = mj_model.opt

    def _make(self, name: str) -> Any:
        if not hasattr(self._opt, name):
            raise UnknownAttributeError(f"model.opt has no {name!r}{near(name, OPTIONS)}")
        value = getattr(self._opt, name)
        return _constant(name, value, self.nworld) if name in OPTIONS else value


def _constant(name: str, value: Any, nworld: int) -> Any:
    """Returns a tensor of a field that is equal in all worlds, (nworld, ...), or without this axis if nworld is 0."""
    if isinstance(value, int | str) or np.asarray(value).dtype.kind not in "biuf":
        return value
    array = np.asarray(value)
    kind = array.dtype if array.dtype == bool else np.int32 if array.dtype.kind in "iu" else np.float32
    shape = (*array.shape[:1], *SHAPES[name]) if name in SHAPES else array.shape
    tensor = torch.from_numpy(array.astype(kind).reshape(shape))
    return tensor.expand(nworld, *shape) if nworld else tensor


def worlds_that_differ(before: dict[str, np.ndarray], after: dict[str, np.ndarray], nworld: int) -> np.ndarray:
    """Returns the worlds in which some array (nworld, ...) differs from before; all, if a field is new."""
    if before.keys() != after.keys():
        return np.arange(nworld)
    changed = np.zeros(nworld, bool)
    for name, array in after.items():
        changed |= (array != before[name]).reshape(nworld, math.prod(array.shape[1:])).any(1)
    return np.flatnonzero(changed)


def check_device(device: str) -> None:
    """Raises an error unless the device is the CPU.

    Raises:
        ModelError: another device.
    """
    if torch.device(device).type != "cpu":
        raise ModelError(f"device: got {device!r}, allowed is 'cpu', where Featherlane runs")
