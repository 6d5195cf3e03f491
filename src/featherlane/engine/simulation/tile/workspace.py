"""Defines a workspace: the model's record and one tile's record for W worlds, on which stages run.

`fl.Data` is a workspace of one world; each thread of a `Batch` has one of W worlds.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from featherlane.engine.collision.convex.result_cache import forget_all, remember_in_tile
from featherlane.engine.lanes import Record, Stage
from featherlane.engine.lanes.record import LARGE, Place, Placement, aligned, allocated
from featherlane.engine.model.enums import Enable
from featherlane.engine.model.fields import MODEL
from featherlane.engine.model.history import empty_history
from featherlane.engine.model.joint import is_ball
from featherlane.engine.model.limits import check_precision
from featherlane.engine.model.model import BUFFERS, SHAPING
from featherlane.engine.model.sleep import AWAKE
from featherlane.engine.simulation.tile.calls import UserCalls
from featherlane.engine.simulation.tile.capacity import capacities
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.engine.simulation.tile.library import library
from featherlane.engine.simulation.tile.uninterrupted import Assignment, set_all
from featherlane.engine.solver.hessian.equation import forget_pattern

Buffer = TypeVar("Buffer")
CLEARED = DATA.that("reset")
NONE: Mapping = MappingProxyType({})


@functools.lru_cache(maxsize=64)
def _in_buffers(values: tuple[int, ...], width: int, dtype: np.dtype) -> tuple[Placement, dict[str, tuple[int, int]]]:
    """Returns places of a model's fields in its buffers, empty fields in one row behind; (start, rows) of reals."""
    sizes, places, offsets, place = dict(zip(SHAPING, values, strict=True)), [], {}, dict.fromkeys(BUFFERS, 0)
    for f in MODEL.stored:
        start, count, block = place[f.kind], f.count(sizes), list(BUFFERS).index(f.kind)
        place[f.kind] = start + count
        kind, lanes = np.dtype(BUFFERS[f.kind]), ()
        if f.kind == "real":
            kind, lanes, offsets[f.name] = dtype, (width,), (start, count)
        at = start * kind.itemsize * int(np.prod(lanes)) if count else 0
        places.append(Place(f.name, block if count else block + len(BUFFERS), at, (max(count, 1), *lanes), kind))
    return Placement(MODEL, places, width, dtype), offsets


class ModelRows:
    """Holds the model's record for tiles of W worlds.

    At W = 1 in float64 it reads the model's memory directly.  For larger W, or in float32, each real is a row of W
    equal values, which `refresh` copies after edits of the model.  A field that differs by world has separate rows
    (`own`).
    """

    def __init__(self, model, width: int, dtype: DTypeLike):
        self.model, self.width, self.dtype, self._held = model, width, np.dtype(dtype), model.__dict__
        self.live = width == 1 and self.dtype == np.float64
        n = model.real_buffer.size
        self._seen = model.real_buffer.tobytes()
        self.rows = model.real_buffer.reshape(n, 1) if self.live else aligned((n + 1, width), dtype)[:n]
        sizes = model.size_values()
        buffers = [self.rows if kind == "real" else getattr(model, f"{kind}_buffer") for kind in BUFFERS]
        empty = [aligned((1, *buffer.shape[1:]), buffer.dtype) for buffer in buffers]
        placement, self.offsets = _in_buffers(tuple(sizes[n] for n in SHAPING), width, self.dtype)
        self.record = placement.record(sizes, buffers + empty)
        self.wide: dict[str, np.ndarray] = {}  # float64 rows, if others are float32
        for f in (f for f in MODEL.stored if f.is_wide and self.dtype != np.float64):
            self.wide[f.name] = aligned((max(self.offsets[f.name][1], 1), width))
            self.record.point(f.name, self.wide[f.name])
        self._revision = model.revision
        self._fill()

    def _fill(self):
        if not self.live:
            if self.dtype == np.float32:
                check_precision(self.model, self.dtype)
            with np.errstate(over="ignore"):  # some values may be infinite
                self.rows[...] = self.model.real_buffer[:, None]
            for name, rows in self.wide.items():
                start, count = self.offsets[name]
                rows[:count] = self.model.real_buffer[start : start + count, None]

    def refresh_sizes(self, in_use: Mapping[str, int | np.ndarray] = NONE) -> None:
        """Copies sizes and integer options that were edited since the last call.

        Args:
            in_use: sizes and ints that replace the model's, for worlds with separate rows.
        """
        if self._revision != self.model.revision:
            self._revision = self.model.revision
            for name, value in self.model.size_values().items():
                self.record.set_size(name, value)
        for name, value in in_use.items():
            if isinstance(value, int):
                self.record.set_size(name, value)
            else:
                self.record.arrays[name][: value.size] = value

    def refresh(self) -> None:
        """Copies edits of the model since the last call.

        Raises:
            ModelError: a field has a value that it cannot hold.
        """
        self.refresh_values()
        self.refresh_sizes()

    def refresh_values(self) -> None:
        """Copies edits of reals, see `refresh`."""
        own = self._held  # faster than attributes of a model
        if own["_stamp"] is None:
            self.model.check_edits()
        if not self.live:
            values = own["real_buffer"].tobytes()
            if values != self._seen:
                self._fill()
                self._seen = values

    def own(self, names, in_use: Mapping[str, int | np.ndarray] = NONE) -> ModelRows:
        """Returns the record for one thread, with separate rows for the named fields, and for `refresh_sizes`."""
        other = object.__new__(ModelRows)
        other.__dict__.update(self.__dict__)
        arrays = dict(self.record.arrays)
        for name in names:
            arrays[name] = aligned((self.offsets[name][1], self.width), MODEL[name].stored_as(self.dtype))
        for name in (name for name in in_use if MODEL[name].kind == "int"):
            arrays[name] = aligned(arrays[name].shape, np.int32)
        other.record = Record(MODEL, self.model.size_values(), arrays, width=self.width, dtype=self.dtype)
        return other


class Workspace:
    """Holds arrays and records of one tile.

    Args:
        model: the model.
        width: worlds in the tile.
        dtype: float64 or float32.
        rows: the model's record, shared by several workspaces; None creates one.
        given: contacts that the caller may give to each world.

    Raises:
        ModelError: a field of the model has a value that it cannot hold.

    Attributes:
        arrays: field name -> (n, W) for reals, (n,) for ints; the memory that kernels work on.
        calls: the user callbacks that stages call.
        others: records for the further parameters of stages, by the name of the parameter.
        checked: whether stages check the bounds of every index; set before the first one is bound.
    """

    checked = False

    def __init__(self, model, width: int, dtype: DTypeLike = np.float64, rows: ModelRows | None = None, given: int = 0):
        model.check_edits()
        self.model, self.width, self.dtype = model, width, np.dtype(dtype)
        self.rows = rows or ModelRows(model, width, dtype)
        self.sizes = self.sizes_of(model, given, width)
        self.record = allocated(DATA, self.sizes, width, dtype)
        self.arrays = self.record.arrays
        remember_in_tile(self.arrays, self.sizes["nmemory"], width)
        self.others: dict[str, Record] = {}
        self._bound: dict[str, Callable[..., None]] = {}
        self._buffers: dict[Any, list[Any]] = {}
        self.calls = UserCalls(self)
        self.calls.connect()
        set_all(self._defaults({}))  # the rest is zero

    @staticmethod
    def sizes_of(model, given: int = 0, width: int = 1) -> dict[str, int]:
        """Returns all sizes that determine the layout of a tile of the model, by name."""
        return {**model.size_values(), **capacities(model, given, width)}

    def change_model(self, model) -> None:
        """Switches to another model of the same sizes."""
        self.model, self.rows = model, ModelRows(model, self.width, self.dtype)
        forget_pattern(self.arrays)
        forget_all(self.arrays)
        self.arrays["neighbours.count"][...] = 0
        self._bound.clear()
        self._buffers.clear()
        self.calls.forget()
        self.calls.connect()

    def unbind(self) -> None:
        """Discards bound stages, because the user callbacks have changed."""
        self._bound.clear()
        self._buffers.clear()

    def reset(self, given: dict[str, np.ndarray] | None = None) -> None:
        """Resets every world to the model's defaults: qpos0, zero velocities and forces, in one bytecode.

        Args:
            given: other values, by name of the field.
        """
        zeros: list[Assignment] = [(in_use(self.arrays[name]), ..., 0) for name in (*CLEARED, "tree_settled")]
        set_all(zeros + self._defaults(given or {}))

    def _defaults(self, given: dict[str, np.ndarray]) -> list[Assignment]:
        """Returns the nonzero values of the model's default state as assignments."""
        rest = plastic_defaults(self.model, self.model.qpos_spring, self.model.tendon_lengthspring)
        new = {"qpos": self.model.qpos0, "history": empty_history(self.model), "plastic": rest}
        new |= input_defaults(self.model) | self._sleep() | given
        values: list[Assignment] = [(self.arrays["active"], ..., 1)]
        for name, value in new.items():
            rows = self.arrays[name]
            values.append((rows, slice(value.size), value.reshape(-1, *[1] * (rows.ndim - 1))))
        return values

    def _sleep(self) -> dict[str, np.ndarray]:
        """Returns which trees sleep after a reset, and the masks that follow from it."""
        start = sleep_defaults(self.model)
        awake = start["tree_asleep"] < 0
        tree, mocap = self.model.body_treeid, self.model.body_mocapid[self.model.body_rootid] >= 0
        bodies = np.where(tree >= 0, np.append(awake, False)[tree], mocap)
        return start | {"tree_awake": awake, "body_awake": bodies, "body_any_awake": bodies}

    def bound(self, stage: Stage):
        """Returns the stage, bound to this workspace, as a function of its integer arguments."""
        if stage.name not in self._bound:
            self.calls.require(stage)
            others = (self.others[name] for name in stage.records)
            run = library().bind(stage, self.rows.record, self.record, *others, check=self.checked)
            self._bound[stage.name] = self.calls.raising(run)
        return self._bound[stage.name]

    def take_buffer(self, kind: Callable[[Workspace], Buffer]) -> Buffer:
        """Returns memory for a query on this workspace, exclusive to the calling thread until `put_back`."""
        try:
            return self._buffers[kind].pop()
        except (KeyError, IndexError):
            return kind(self)

    def put_back(self, buffer: object) -> None:
        """Returns memory of `take_buffer` to the workspace."""
        self._buffers.setdefault(type(buffer), []).append(buffer)

    def run(self, stage: Stage, *numbers: int) -> None:
        """Runs one stage here, with the present values of the model."""
        self.rows.refresh()
        self.calls.connect()
        self.bound(stage)(*numbers)

    def view(self, name: str) -> np.ndarray:
        """Returns a field shaped as declared, the lane axis last (omitted at W = 1)."""
        f = DATA[name]
        a = self.arrays[name][: f.count(self.sizes)]
        if f.kind == "real" and self.width > 1:
            return a.reshape(*f.dims(self.sizes), self.width)
        return a.reshape(f.dims(self.sizes))


def in_use(rows: np.ndarray) -> np.ndarray:
    """Returns the rows of a field up to the last nonzero one, or all of a small field.

    A write to a row that was never written would allocate its page of memory.
    """
    if rows.nbytes < LARGE:
        return rows
    n, step = len(rows), max(LARGE * len(rows) // rows.nbytes, 1)
    while n > 0 and not rows[max(n - step, 0) : n].any():
        n -= step
    return rows[: max(n, 0)]


def sleep_defaults(model) -> dict[str, np.ndarray]:
    """Returns the trees that sleep after a reset: none without the flag `sleep`."""
    sleeps, inputs = model.opt_enableflags & Enable.SLEEP, input_defaults(model)
    return {
        "tree_asleep": model.tree_asleep0.astype(float) if sleeps else np.full(model.ntree, float(AWAKE)),
        "sleep_qpos": model.qpos0,
        "sleep_mocap": np.hstack([inputs["mocap_pos"], inputs["mocap_quat"]]),
    }


def plastic_defaults(model, qpos_spring: np.ndarray, tendon_lengthspring: np.ndarray) -> np.ndarray:
    """Returns references of plastic springs before any yielding.

    Args:
        model: the model.
        qpos_spring: (..., nq) the model's, or those of several worlds.
        tendon_lengthspring: (..., ntendon, 2) likewise.

    Returns:
        (..., nplastic) [m, rad, quaternion].
    """
    lead = np.broadcast_shapes(qpos_spring.shape[:-1], tendon_lengthspring.shape[:-2])
    out = np.zeros((*lead, model.nplastic))
    for j in np.flatnonzero(model.jnt_plasticadr >= 0):
        a, p, n = model.jnt_qposadr[j], model.jnt_plasticadr[j], 4 if is_ball(model.jnt_type[j]) else 1
        out[..., p : p + n] = qpos_spring[..., a : a + n]
    for t in np.flatnonzero(model.tendon_plasticadr >= 0):
        p = model.tendon_plasticadr[t]
        out[..., p : p + 2] = tendon_lengthspring[..., t, :]
    return out


def input_defaults(model) -> dict[str, np.ndarray]:
    """Returns inputs with nonzero initial values: mocap poses and switches of equalities, as the model defines them."""
    return mocap_defaults(model, model.__dict__.__getitem__) | {"eq_active": model.eq_active0.astype(float)}


def mocap_defaults(model, values: Callable[[str], np.ndarray]) -> dict[str, np.ndarray]:
    """Returns the model's poses of mocap bodies.

    Args:
        model: the model.
        values: a real model field by name: the model's (nbody, n), or those of several worlds, (..., nbody, n).

    Returns:
        `mocap_pos` (..., nmocap, 3) [m] and `mocap_quat` (..., nmocap, 4); without mocap bodies (0, 3) and (0, 4).
    """
    if not model.nmocap:
        return {"mocap_pos": np.zeros((0, 3)), "mocap_quat": np.zeros((0, 4))}
    bodies = np.flatnonzero(model.body_mocapid >= 0)
    bodies = bodies[np.argsort(model.body_mocapid[bodies])]
    quat = values("body_quat")[..., bodies, :]
    norm = np.linalg.norm(quat, axis=-1, keepdims=True)
    return {"mocap_pos": values("body_pos")[..., bodies, :], "mocap_quat": quat / np.where(norm > 0, norm, 1.0)}
