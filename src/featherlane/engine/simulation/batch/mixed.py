"""Defines `MixedBatch`: worlds of different models in one batch.

    models = [(fl.load(name), 64) for name in ("quadruped", "humanoid", "hand")]
    batch = fl.MixedBatch(models)
    batch.qpos                   # (192, 36): every world's row, zero where its model has fewer coordinates
    batch.mask("qpos")           # which entries are used
    batch.groups[1].qpos         # (64, nq) of the humanoids, a view of the same memory
    batch.step(4)                # one call: threads take tiles of all models

Worlds are ordered by model, as the models are given.  A tile holds worlds of one model.  Threads take tiles of all
models, so no thread is idle after the worlds of one model.  Results are bitwise identical to a `Batch` of each model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from featherlane.engine.model.arguments import instance
from featherlane.engine.model.assignment import assign, broadcast_reals, described
from featherlane.engine.model.enums import State
from featherlane.engine.model.fields import MODEL
from featherlane.engine.model.model import Model
from featherlane.engine.simulation.batch.arrays import REPORTS, STATE
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.batch.failure import Failure
from featherlane.engine.simulation.batch.groups import GroupedWorlds
from featherlane.engine.simulation.batch.padded import PaddedArrays
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.engine.simulation.world.recordings import BINDABLE, WHOLE, check_field_name, integers
from featherlane.engine.simulation.world.state import state_size
from featherlane.errors import ArgumentTypeError, ModelError, UnknownAttributeError, near

ARGUMENTS = "are one or more pairs (model, number of worlds)"


class MixedBatch(GroupedWorlds):
    """Steps worlds of several models in one call.

    Args:
        models: pairs of a model and a number of worlds, at least 1.  A model may be given more than once.
        nthread: threads, 0 for one for each core.
        dtype: float64 or float32, of the state and of all arithmetic; times are float64 in both.
        given_contacts: the largest number of contacts that may be given to a world, see `Batch.give_contacts`.
        record_failures: steps to keep of each world, see `Batch`.
        cpu_ids: cores to which the threads are pinned, one for each thread (Linux); None: threads are not pinned.

    State fields are live arrays over all worlds, padded to the widest model: `batch.qpos` (nworld, n), `ctrl`,
    `xfrc_applied` (nworld, n, 6), ...  Entries that a world does not use are zero and are not read.  Derived fields are
    bound, as in a `Batch`.  `render`, `scan` and `height_scan` require a camera or frame that all models have.  They
    test the geoms of each world's model.  An error names the group.  `geom_rgb` per world require models with equal
    numbers of geoms.

    Attributes:
        groups: a `Batch` for each model, whose arrays are parts of these.  Use a group for the other features of a
            `Batch` (expanded fields, given contacts, single rays, inverse dynamics).
        models: the model of each group, a tuple.
        nworld: number of all worlds.
        starts: (ngroup + 1,) the first world of each group, and `nworld`.
        group: (nworld,) the group of each world.
        status, nreset, ncon, nefc, solver_niter, solver_residual, solver_gap: as of a `Batch`, for all worlds.
        failures: with record_failures, copies of the groups' failures, with world numbers of this batch.

    Raises:
        TypeError: an item is not a pair of a Model and a number.
        ModelError: no model, numbers out of range, an unknown dtype.
    """

    nthread: int
    starts: np.ndarray
    group: np.ndarray

    def __init__(
        self,
        models: Sequence[tuple[Model, int]],
        nthread: int = 0,
        *,
        dtype: DTypeLike = "float64",
        given_contacts: int = 0,
        record_failures: int = 0,
        cpu_ids: Sequence[int] | None = None,
    ):
        pairs = _pairs(models)
        options = {
            "dtype": dtype,
            "given_contacts": given_contacts,
            "record_failures": record_failures,
            "cpu_ids": cpu_ids,
        }
        groups = [Batch(model, n, nthread, **options) for model, n in pairs]
        self.__dict__["_groups"] = tuple(groups)
        self._start()

    def _start(self) -> None:
        """Moves the groups' rows into common arrays, also after unpickling or copying."""
        own, groups = self.__dict__, self.groups
        own["nthread"], own["dtype"] = groups[0].nthread, groups[0].dtype
        padded = PaddedArrays([g.nworld for g in groups], [g.arrays.sizes for g in groups], self.dtype)
        for k, group in enumerate(groups):
            group.move_into(lambda field, k=k: padded.rows_of(field, k), padded.tracked)
        own["_padded"] = padded
        own["starts"], own["group"], own["nworld"] = padded.starts, padded.group, int(padded.starts[-1])
        for group in groups[1:]:
            group.runner.plans.team = groups[0].runner.plans.team  # all groups share one team of threads

    @property
    def groups(self) -> tuple[Batch, ...]:
        return self._groups

    # ---- fields ------------------------------------------------------------------------------------------------------
    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise UnknownAttributeError(f"mixed batch has no attribute {name!r}")
        if name == "model":
            raise UnknownAttributeError("mixed batch has no attribute 'model': its models are batch.models")
        if name in STATE or name in REPORTS or name in BINDABLE:
            view = self._view(name, [getattr(group, name) for group in self.groups])  # or raises its error
            return integers(view) if name in WHOLE else view
        raise UnknownAttributeError(
            f"mixed batch has no attribute {name!r}{near(name, BINDABLE)}; see also batch.groups"
        )

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in STATE:
            raise UnknownAttributeError(f"{name} cannot be set, allowed are the state fields {', '.join(STATE)}")
        rows = getattr(self, name)
        given = np.empty_like(rows)
        assign(name, given, value)
        np.copyto(rows, given, where=DATA[name].public(self._padded.mask(name)))

    def _view(self, name: str, parts: Sequence[np.ndarray]) -> np.ndarray:
        """Returns the padded rows of a field, whose used parts are those of the groups."""
        view = DATA[name].public(self._padded.array(name)).view()
        view.flags.writeable = all(part.flags.writeable for part in parts)
        return view

    def bind(self, name: str) -> np.ndarray:
        return self._view(name, [group.bind(name) for group in self.groups])

    def mask(self, name: str) -> np.ndarray:
        """Returns which entries of a field's padded array are used.

        Args:
            name: a state field, a derived field, or a real field of the model.

        Returns:
            (nworld, n, ...) bool, the shape of the field's array; False for entries that a world's model lacks.

        Raises:
            ModelError: an unknown field.
        """
        key = str(name).replace("opt.", "opt_")
        if not (key in MODEL and MODEL[key].kind == "real"):
            check_field_name("mask", name)
        return self._padded.mask(key)

    @property
    def rows(self) -> Mapping[str, np.ndarray]:
        """Returns padded arrays of state, inputs in use and reports by field, (nworld, n, ...)."""
        return {name: self._padded.array(name) for name in self.groups[0].rows}

    @property
    def bound(self) -> Mapping[str, np.ndarray]:
        """Returns padded arrays of the bound outputs by field, (nworld, n, ...)."""
        return {name: self._padded.array(name) for name in self.groups[0].bound}

    @property
    def failures(self) -> list[Failure]:
        """Returns, with `record_failures`, copies of all failures with world numbers of this batch, by step."""
        return Failure.numbered([group.failures for group in self.groups], self.starts)

    def expand(self, name: str) -> np.ndarray:
        for group in self.groups:
            group.expand(name)  # checked for edits while a user holds the padded array
        return self._padded.tracked(MODEL[str(name).replace("opt.", "opt_")]).view

    # ---- cameras and scans -------------------------------------------------------------------------------------------
    def _shares(self, kind: str, request: Callable[[int, int], Any], chosen: np.ndarray) -> tuple[Any, Iterable[tuple]]:
        def share(k: int, worlds: np.ndarray) -> Any:
            try:
                return self.groups[k].sense(kind, request(*self.starts[k : k + 2].tolist()), ids=worlds)
            except ModelError as error:
                error.args = (f"group {k}: {error}",)
                raise

        parts = self._split(chosen)
        some = [k for k, *_ in parts] or range(len(self.groups))
        empty, *_ = [share(k, chosen[:0]) for k in some]  # checks the arguments before any group computes
        return empty, ((self.starts[k], at, share(k, worlds)) for k, worlds, at in parts)

    # ---- worlds ------------------------------------------------------------------------------------------------------
    def _split(self, chosen: np.ndarray) -> list[tuple[int, np.ndarray, Any]]:
        return self._padded.split(chosen)

    def world_shape(self, name: str) -> tuple[int, ...]:
        return self._padded.dims(name)

    def _cut(self, name: str, group: int, rows: np.ndarray) -> np.ndarray:
        return self._padded.cut(name, group, rows)

    # ---- states ------------------------------------------------------------------------------------------------------
    def get_state(self, bits: int = State.INTEGRATION) -> np.ndarray:
        out = np.zeros((self.nworld, self._state_size(bits)), self.dtype)
        parts = [group.get_state(bits) for group in self.groups]
        out = out.astype(np.result_type(self.dtype, *parts), copy=False)
        for k, part in enumerate(parts):
            out[self.starts[k] : self.starts[k + 1], : part.shape[1]] = part
        return out

    def set_state(self, state: ArrayLike, bits: int = State.INTEGRATION) -> None:
        rows = broadcast_reals("state", state, (self.nworld, self._state_size(bits)))
        for k, group in enumerate(self.groups):
            group.set_state(rows[self.starts[k] : self.starts[k + 1], : state_size(group.model, bits)], bits)

    def _state_size(self, bits: int) -> int:
        return max(state_size(group.model, bits) for group in self.groups)

    # ---- checkpoints and copies --------------------------------------------------------------------------------------
    def checkpoint(self) -> dict[str, np.ndarray]:
        return {f"{k}.{name}": a for k, group in enumerate(self.groups) for name, a in group.checkpoint().items()}

    def restore(self, kept: Mapping[str, np.ndarray]) -> None:
        instance("restore", kept, Mapping, "the result of checkpoint()")
        parts: list[dict[str, np.ndarray]] = [{} for _ in self.groups]
        for key in kept:
            number, _, name = str(key).partition(".")
            if not (number.isdigit() and int(number) < len(parts)):
                raise ModelError(f"restore: {key}: unknown group, allowed are 0. to {len(parts) - 1}.")
            parts[int(number)][name] = kept[key]
        values = []
        for k, group in enumerate(self.groups):
            try:
                values.append(group.arrays.checked_checkpoint(parts[k]))
            except ModelError as error:
                raise ModelError(f"group {k}: {error}") from None
        self._restore(values)

    def __getstate__(self):
        return {"_groups": self.groups}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._start()

    def __repr__(self) -> str:
        what = ", ".join(f"({group.model!r}, {group.nworld})" for group in self.groups)
        return f"MixedBatch([{what}], nthread={self.nthread}, dtype={self.dtype.name})"


def _pairs(models) -> list[tuple[Model, int]]:
    """Returns models and numbers of worlds, checked."""
    if isinstance(models, Model) or not hasattr(models, "__iter__"):
        raise ArgumentTypeError(f"MixedBatch: got {type(models).__name__}, allowed {ARGUMENTS}")
    pairs = list(models)
    if not pairs:
        raise ModelError(f"MixedBatch: got no model, allowed {ARGUMENTS}")
    for pair in pairs:
        if not (isinstance(pair, tuple | list) and len(pair) == 2 and isinstance(pair[0], Model)):
            raise ArgumentTypeError(f"MixedBatch: got {described(pair)}, allowed {ARGUMENTS}")
    return [(model, n) for model, n in pairs]
