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

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from featherlane.errors import ArgumentTypeError, ModelError, UnknownAttributeError, near
from featherlane.lanes import Kernel
from featherlane.model.arguments import instance, whole_argument
from featherlane.model.assignment import assign, broadcast_reals, described, flag, regular
from featherlane.model.enums import State
from featherlane.model.model import Model
from featherlane.model.variant import values_of
from featherlane.simulation.batch.arrays import REPORTS, STATE, keyframe_numbers
from featherlane.simulation.batch.batch import Batch
from featherlane.simulation.batch.failure import Failure, numbered
from featherlane.simulation.batch.filming import Filming, Record, split_cameras
from featherlane.simulation.batch.gather import Arrays, gather_rows
from featherlane.simulation.batch.padded import PaddedArrays, PaddedRows
from featherlane.simulation.batch.reduction import Reduction, check_rollout, over_worlds
from featherlane.simulation.batch.runner import Share, run_shares, stage_number
from featherlane.simulation.batch.sensing import Sensing
from featherlane.simulation.query.camera import Camera, Images
from featherlane.simulation.query.imaging import camera_of_worlds, images_of
from featherlane.simulation.query.scan import ScanRequest, scan_of
from featherlane.simulation.tile.fields import DATA, STATUS
from featherlane.simulation.world.data import Data
from featherlane.simulation.world.recordings import (
    BINDABLE,
    Control,
    check_field_name,
    control_of_step,
    inputs_of_rollout,
    recordings,
)
from featherlane.simulation.world.state import state_size

ARGUMENTS = "are one or more pairs (model, number of worlds)"


class MixedBatch(Sensing):
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
    bound, as in a `Batch`.  `camera`, `scan` and `height_scan` require a camera or frame that all models have.  They
    test the geoms of each world's model.  An error names the group.  `colours` per world require models with equal
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

    groups: tuple[Batch, ...]
    nthread: int
    starts: np.ndarray
    group: np.ndarray

    def __init__(
        self,
        models: Sequence[tuple[Model, int]],
        nthread: int = 0,
        dtype: DTypeLike = "float64",
        given_contacts: int = 0,
        record_failures: int = 0,
        cpu_ids: Sequence[int] | None = None,
    ):
        pairs = _pairs(models)
        groups = [Batch(model, n, nthread, dtype, given_contacts, record_failures, cpu_ids) for model, n in pairs]
        self.__dict__["groups"] = tuple(groups)
        self._start()

    def _start(self) -> None:
        """Moves the groups' rows into common arrays, also after unpickling or copying."""
        own, groups = self.__dict__, self.groups
        own["nthread"], own["dtype"] = groups[0].nthread, groups[0].dtype
        padded = PaddedArrays([g.nworld for g in groups], [g.arrays.sizes for g in groups], self.dtype)
        for k, group in enumerate(groups):
            group.move_into(PaddedRows(padded, k))
        own["_padded"], own["starts"], own["nworld"] = padded, padded.starts, int(padded.starts[-1])
        own["group"] = np.repeat(np.arange(len(groups)), np.diff(padded.starts))
        for group in groups[1:]:
            group.runner.plans.team = groups[0].runner.plans.team  # all groups share one team of threads

    # ---- fields ------------------------------------------------------------------------------------------------------
    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise UnknownAttributeError(f"mixed batch has no attribute {name!r}")
        if name == "model":
            raise UnknownAttributeError("mixed batch has no attribute 'model': its models are batch.models")
        if name in STATE or name in REPORTS:
            return self._of_all(name)
        if name in BINDABLE:
            for group in self.groups:
                getattr(group, name)  # or raises its error
            return self.bind(name)
        raise UnknownAttributeError(
            f"mixed batch has no attribute {name!r}{near(name, BINDABLE)}; see also batch.groups"
        )

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in STATE:
            raise UnknownAttributeError(f"{name} cannot be set, allowed are the state fields {', '.join(STATE)}")
        rows = self._of_all(name)
        given = regular(name, value)
        try:
            given = np.broadcast_to(given, rows.shape)
        except ValueError:
            raise ModelError(
                f"{name}: got {described(value)}, allowed is what broadcasts to {rows.shape} of {rows.dtype}"
            ) from None
        kept = rows.copy()
        try:
            for k, group in enumerate(self.groups):
                part = given[self.starts[k] : self.starts[k + 1]]
                own = getattr(group, name)
                assign(name, own, part[(..., *(slice(n) for n in own.shape[1:]))])
        except ModelError:
            rows[...] = kept
            raise

    def _of_all(self, name: str) -> np.ndarray:
        """Returns the padded rows of a field that every group already has."""
        for group in self.groups:
            getattr(group, name)
        return DATA[name].public(self._padded.array(name))

    def bind(self, name: str) -> np.ndarray:
        """Returns a live array (nworld, n, ...) of a field, as `Batch.bind`, padded to the widest model."""
        arrays = [group.bind(name) for group in self.groups]
        view = DATA[name].public(self._padded.array(name)).view()
        view.flags.writeable = all(a.flags.writeable for a in arrays)
        return view

    def mask(self, name: str) -> np.ndarray:
        """Returns which entries of a field's padded array are used.

        Args:
            name: a state field or a derived field.

        Returns:
            (nworld, n, ...) bool, the shape of the field's array; False for entries that a world's model lacks.

        Raises:
            ModelError: an unknown field.
        """
        check_field_name("mask", name)
        return self._padded.mask(name)

    @property
    def status(self) -> dict[str, np.ndarray]:
        """Returns the counts since the last reset of each world, by name, each (nworld,) int64."""
        statuses = [group.status for group in self.groups]
        return {name: np.concatenate([one[name] for one in statuses]) for name in STATUS}

    def count_of(self, *causes: str) -> np.ndarray:
        """Returns how often each world had one of these causes of `status` since its last reset, (nworld,)."""
        return np.concatenate([group.count_of(*causes) for group in self.groups])

    @property
    def models(self) -> tuple[Model, ...]:
        """Returns the model of each group."""
        return tuple(group.model for group in self.groups)

    @property
    def rows(self) -> Mapping[str, np.ndarray]:
        """Returns padded arrays of state, inputs in use and reports by field, (nworld, n, ...)."""
        return {name: a for name, a in self._padded.arrays.items() if name not in self.groups[0].bound}

    @property
    def bound(self) -> Mapping[str, np.ndarray]:
        """Returns padded arrays of the bound outputs by field, (nworld, n, ...)."""
        return {name: a for name, a in self._padded.arrays.items() if name in self.groups[0].bound}

    @property
    def failures(self) -> list[Failure]:
        """Returns, with record_failures, copies of the groups' failures, ordered by step; see `Batch`."""
        return numbered([group.failures for group in self.groups], self.starts)

    def expand(self, name: str) -> tuple[np.ndarray, ...]:
        """Gives a real model field separate values in each world, as `Batch.expand`; a live array for each group."""
        return tuple(group.expand(name) for group in self.groups)

    def set_const(self, ids: ArrayLike | None = None) -> None:
        """Recomputes the model fields that depend on expanded fields, for each world; they become per-world fields."""
        for group, chosen in self._split(self._ids(ids)):
            self.groups[group].set_const(chosen)

    def set_variant(self, geom: str, ids: ArrayLike | None, variant: str, *, inertia: bool = True) -> None:
        """Gives worlds a variant of a geom, a body, or another group of their models; see `Batch.set_variant`."""
        shares = list(self._split(self._ids(ids)))
        for group, _ in shares:  # before any is set
            values_of(self.groups[group].model.variants, geom, variant, flag("inertia", inertia))
        for group, chosen in shares:
            self.groups[group].set_variant(geom, chosen, variant, inertia=inertia)

    # ---- running -----------------------------------------------------------------------------------------------------
    def step(self, nstep: int = 1, ids: ArrayLike | None = None, stage: str | None = None) -> None:
        """Advances worlds by nstep time steps of their models, as `Batch.step`.

        Raises:
            ModelError: as `Batch.step` does.
            RuntimeError: another thread is in a call of this batch, or of one of its groups.
        """
        last, shares = stage_number(stage), self._shares(self._ids(ids))
        self._run(whole_argument("nstep", nstep, 1), [share._replace(stage=last) for share in shares])

    def forward(self, ids: ArrayLike | None = None) -> None:
        """Computes all derived fields of the present state, without a step."""
        self._run(0, self._shares(self._ids(ids)))

    def reset(self, ids: ArrayLike | None = None, keyframe: int | str | np.ndarray = -1, forward: bool = True) -> None:
        """Sets worlds to their models' defaults or to keyframes, as `Batch.reset`.

        Raises:
            ModelError: a model lacks the keyframe, or `forward` is not a bool; no world is reset then.
        """
        chosen, forward = self._ids(ids), flag("forward", forward)
        each = isinstance(keyframe, list | tuple | np.ndarray) and np.shape(keyframe) == chosen.shape
        resets = [
            (self.groups[k], worlds, np.asarray(keyframe)[self.group[chosen] == k] if each else keyframe)
            for k, worlds in self._split(chosen)
        ]
        for group, worlds, key in resets:
            keyframe_numbers(group.model, key, len(worlds))
        for group, worlds, key in resets:
            group.reset(worlds, key, forward)

    def forward_bound(self, ids: ArrayLike | None = None) -> None:
        """Computes the bound outputs of worlds that were set, as `Batch.forward_bound`."""
        for group in self.groups:
            group.arrays.computed = True
        if self.groups[0].bound:
            self.forward(ids)

    def rollout(
        self,
        nstep: int,
        control: Control | None = None,
        record: Record = ("qpos",),
        ids: ArrayLike | None = None,
        out: Mapping[str, np.ndarray] | None = None,
        reduce: Reduction | None = None,
    ) -> dict[str, np.ndarray]:
        """Advances worlds and records fields and images after each step, as `Batch.rollout`.

        Args:
            nstep, out: as of `Batch.rollout`.
            control: as of `Batch.rollout`, with the width of `ctrl` in place of nu.
            record: as of `Batch.rollout`; all models need the cameras.
            ids: the worlds, ascending; None for all.
            reduce: as of `Batch.rollout`; entries that a world does not use count as zero.

        Returns:
            name -> (n, nstep, k, ...), padded as the fields themselves; of a scalar field (n, nstep).  Images, and
            results with `reduce`, are those of `Batch.rollout`.

        Raises:
            ModelError, InstallationError: as `Batch.rollout` does.
            UnknownNameError: a group's model lacks a camera; the message names the group.
        """
        nstep, chosen = whole_argument("nstep", nstep, 1), self._ids(ids)
        if (np.diff(chosen) < 0).any():
            raise ModelError("ids: got numbers that do not ascend, allowed are ascending world numbers")
        how = check_rollout(reduce, out, len(chosen))
        names, cameras = split_cameras(record, how)
        for name in names:
            check_field_name("record", name)
        film, dims = Filming(self, cameras, (len(chosen), nstep), out), self._padded.padded_shape
        result = recordings(names, (len(chosen), nstep), film.rest, dims, self.dtype)
        if cameras:
            return film.run(control, chosen, result, dims)
        padded = {name: rows[..., None] if DATA[name].is_number else rows for name, rows in result.items()}
        for rows in padded.values():
            rows[...] = 0
        if callable(control) and not isinstance(control, Kernel):
            self._driven(control, nstep, chosen, padded)
        else:
            if not isinstance(control, Kernel | None):
                control = inputs_of_rollout(control, (len(chosen), nstep), self._padded.padded_shape)
            self._roll(nstep, chosen, control, padded)
        return result if how is None else over_worlds(how, result, chosen)

    def _roll(self, nstep: int, chosen: np.ndarray, control, out: dict[str, np.ndarray]) -> None:
        """Runs steps with given padded controls or a kernel, and records into parts of padded arrays."""
        shares, after, first = [], [], 0
        for k, worlds in self._split(chosen):
            at, group = slice(first, first + len(worlds)), self.groups[k]
            result = {name: self._padded.cut(name, k, rows[at]) for name, rows in out.items()}
            own = control
            if isinstance(control, dict):
                own = {name: self._padded.cut(name, k, rows[at]) for name, rows in control.items()}
            share, reads = group.runner.share(nstep, worlds, own, result)
            shares.append(share)
            after.append((group, worlds, reads, result))
            first += len(worlds)
        self._run(nstep, shares)
        for group, worlds, reads, result in after:
            group.runner.measure_recorded(worlds, reads, result)

    def _driven(self, control, nstep: int, chosen: np.ndarray, out: dict[str, np.ndarray]) -> None:
        """Runs steps one after the other, with controls that a function computes between them."""
        shape = (len(chosen), *self._padded.padded_shape("ctrl"))
        for step in range(nstep):
            values = control_of_step(control(self, step), step, shape, self.dtype)
            self._roll(
                1, chosen, {"ctrl": values[:, None]}, {name: rows[:, step : step + 1] for name, rows in out.items()}
            )

    def _shares(self, chosen: np.ndarray) -> list[Share]:
        return [Share(self.groups[k].runner, worlds) for k, worlds in self._split(chosen)]

    def _run(self, nstep: int, shares: list[Share]) -> None:
        """Runs a call of all groups that have worlds in it."""
        if not shares:
            return
        run_shares(nstep, shares)
        for k, group in enumerate(self.groups):
            group.runner.warn_of_found(nstep, int(self.starts[k]))

    # ---- cameras and scans -------------------------------------------------------------------------------------------
    def _images(self, camera: Camera, chosen: np.ndarray) -> tuple[Images, list[int]]:
        black: list[int] = []

        def images(k: int, worlds: np.ndarray) -> Images:
            first = int(self.starts[k])
            own = camera_of_worlds(camera, self.nworld, first, int(self.starts[k + 1]))
            found, spoiled = images_of(self.groups[k], own, worlds)
            black.extend(first + world for world in spoiled)
            return found

        return Images(*self._gathered(chosen, images)), black

    def _scanned(self, request: ScanRequest, chosen: np.ndarray, out: np.ndarray | None = None) -> list[np.ndarray]:
        return self._gathered(chosen, lambda k, worlds: scan_of(self.groups[k], request, worlds))

    def _gathered(self, chosen: np.ndarray, of: Callable[[int, np.ndarray], Arrays]) -> list[Any]:
        """Returns the arrays of groups for their worlds among the chosen ones, in the order of these."""
        group = self.group[chosen]

        def named(k: int, worlds: np.ndarray) -> Arrays:
            try:
                return of(k, worlds)
            except ModelError as error:
                error.args = (f"group {k}: {error}",)
                raise

        parts = [(k, np.flatnonzero(group == k)) for k in np.unique(group).tolist() or range(len(self.groups))]
        empty, *_ = [named(k, at[:0]) for k, at in parts]  # checks the arguments before any group computes
        return gather_rows(empty, len(chosen), ((at, named(k, chosen[at] - self.starts[k])) for k, at in parts))

    # ---- worlds ------------------------------------------------------------------------------------------------------
    def _split(self, chosen: np.ndarray) -> list[tuple[int, np.ndarray]]:
        """Returns the groups that contain any of these worlds, with the worlds' numbers in the group."""
        group = self.group[chosen]
        return [(int(k), chosen[group == k] - self.starts[k]) for k in np.unique(group)]

    def _place(self, world) -> tuple[Batch, int]:
        """Returns the group of a world, and its number in the group."""
        whole_argument("world", world, 0, self.nworld - 1)
        k = int(self.group[world])
        return self.groups[k], int(world - self.starts[k])

    def get_data(self, world: int) -> Data:
        """Returns one world as an `fl.Data` in float64, forward computed."""
        group, own = self._place(world)
        return group.get_data(own)

    def get_model(self, world: int) -> Model:
        """Returns one world's model: a copy with its expanded fields."""
        group, own = self._place(world)
        return group.get_model(own)

    # ---- states ------------------------------------------------------------------------------------------------------
    def get_state(self, bits: int = State.INTEGRATION) -> np.ndarray:
        """Returns components of the state, (nworld, n), where n is the largest `state_size(model, bits)` of the models.

        A row has the state vector of that world's model (`Batch.get_state`), followed by zeros.
        """
        out = np.zeros((self.nworld, self._state_size(bits)), self.dtype)
        parts = [group.get_state(bits) for group in self.groups]
        out = out.astype(np.result_type(self.dtype, *parts), copy=False)
        for k, part in enumerate(parts):
            out[self.starts[k] : self.starts[k + 1], : part.shape[1]] = part
        return out

    def set_state(self, state: ArrayLike, bits: int = State.INTEGRATION) -> None:
        """Sets components of the state from an array that broadcasts to the shape of `get_state`; padding is not read.

        Raises:
            ModelError: bits that select no part, another shape; no world is set then.
        """
        rows = broadcast_reals("state", state, (self.nworld, self._state_size(bits)))
        for k, group in enumerate(self.groups):
            group.set_state(rows[self.starts[k] : self.starts[k + 1], : state_size(group.model, bits)], bits)

    def _state_size(self, bits: int) -> int:
        return max(state_size(group.model, bits) for group in self.groups)

    # ---- checkpoints and copies --------------------------------------------------------------------------------------
    def checkpoint(self) -> dict[str, np.ndarray]:
        """Returns copies of all persistent data, keyed by group (`0.qpos`); for `restore`, np.savez, pickle."""
        return {f"{k}.{name}": a for k, group in enumerate(self.groups) for name, a in group.checkpoint().items()}

    def restore(self, kept: Mapping[str, np.ndarray]) -> None:
        """Restores a checkpoint, as `Batch.restore`; the simulation continues bitwise identically."""
        instance("restore", kept, Mapping, "the result of checkpoint()")
        parts: list[dict[str, np.ndarray]] = [{} for _ in self.groups]
        for key in kept:
            number, _, name = str(key).partition(".")
            if not (number.isdigit() and int(number) < len(parts)):
                raise ModelError(f"restore: {key}: unknown group, allowed are 0. to {len(parts) - 1}.")
            parts[int(number)][name] = kept[key]
        before = [group.checkpoint() for group in self.groups]
        for k, group in enumerate(self.groups):
            try:
                group.restore(parts[k])
            except (ModelError, RuntimeError) as error:
                for other, old in zip(self.groups[:k], before, strict=False):
                    other.restore(old)
                raise type(error)(f"group {k}: {error}") from None

    def __getstate__(self):
        return {"groups": self.groups}

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
