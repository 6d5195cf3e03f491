"""The native batches behind `mujoco_batch.Batch`: one for all simulations whose models have the same structure.

Masses, sizes, friction and all other real fields of a model differ by simulation within a native batch.  Integers,
meshes and height fields select how a model is stepped, so each set of their values has a separate native batch.  All of
them share the state, the outputs and the expanded fields, and one call steps all of them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import mujoco
import numpy as np

from featherlane import Batch, load
from featherlane.errors import ModelError
from featherlane.extension import DATA, MODEL, read_fields, step_together
from featherlane.integrations.batch.fields import is_physics, is_real, native_name, set_values, values
from featherlane.integrations.batch.rows import StateRows

ON_DEMAND = frozenset(DATA.conditional("use"))  # inputs that a batch stores at their first use
STAGES = (None, "position", "velocity", "acceleration")  # by mjtStage
SHAPES = [name for name in dir(mujoco.MjModel) if name.startswith(("mesh_", "hfield_", "exclude_"))]


class Part(NamedTuple):
    """Describes the simulations of a call that one native batch runs.

    Attributes:
        batch: the native batch.
        chosen: (n,) numbers of the simulations.
        at: their places in the call.
    """

    batch: Batch
    chosen: np.ndarray
    at: np.ndarray | slice


class Worlds:
    """Holds the native batches of nsim simulations.

    Args:
        model: an MjModel.
        nsim: simulations.
        nthread: threads, 0 for one for each core.

    Attributes:
        rows: the memory that the native batches share.
        base: the native batch of the model itself.
        own: fields of MjModel that a native batch does not store by simulation, (nsim, ...) by name.
        models: the model of each simulation if the caller gave models, else None.

    Raises:
        ModelError, UnsupportedFeatureError: as `featherlane.load` does.
    """

    def __init__(self, model: Any, nsim: int, nthread: int):
        self.model, self.nsim, self.nthread = copy.copy(model), nsim, nthread
        self.rows, self.every = StateRows(model, nsim), np.arange(nsim)
        self.every.flags.writeable = False  # so that calls recognize it
        self.bound: dict[str, None] = {}
        self.own: dict[str, np.ndarray] = {}
        self.models: list | None = None
        self._inputs: set[str] = set()
        self._group: np.ndarray | None = None  # the variant of each simulation; None: all have the base
        self._variants: list[Batch | str] = []  # a native batch, or why there is none
        self._made: dict[bytes, Batch | str] = {}
        self._seen: dict[str, bytes] = {}
        self.base = self._new(self.model)

    def _new(self, model: Any) -> Batch:
        """Returns a native batch of an MjModel in the shared rows."""
        batch = Batch(load(model), self.nsim, self.nthread)
        batch.mute()
        batch.row_memory("bad_part")
        self.rows.move(batch, self.bound)
        for name in self._inputs:
            batch.row_memory(name)
        return batch

    def _natives(self) -> list[Batch]:
        return [self.base, *(batch for batch in self._made.values() if isinstance(batch, Batch))]

    # ---- arrays ------------------------------------------------------------------------------------------------------
    def use_inputs(self, *names: str) -> None:
        """Lets steps read inputs that are not read before their first use, by default all."""
        for name in set(names or ON_DEMAND) & ON_DEMAND & self.rows.places.keys() - self._inputs:
            self._inputs.add(name)
            for batch in self._natives():
                batch.row_memory(name)

    def bind(self, name: str) -> np.ndarray:
        """Returns the rows of an output; zero until the next call."""
        if name not in self.bound:
            self.base.bind(name)
            for batch in self._natives():
                batch.bind(name)
                batch.bound.get(name, np.zeros(0))[...] = 0.0
            self.bound[name] = None
        return self.base.bind(name)

    def expand(self, name: str) -> np.ndarray:
        """Returns per-simulation values of a field of MjModel, (nsim, ...)."""
        if is_real(name):
            return self._shaped(name, self.base.expand(native_name(name)))
        if name not in self.own:
            value = values(self.model, name)
            self.own[name] = np.array(np.broadcast_to(value, (self.nsim, *value.shape)), order="C")
        return self.own[name]

    def expanded(self, name: str) -> np.ndarray | None:
        """Returns per-simulation values of a field of MjModel, None if all simulations have the model's."""
        if not is_real(name):
            return self.own.get(name)
        rows = self.base.expanded_fields.get(native_name(name))
        return None if rows is None else self._shaped(name, rows)

    def _shaped(self, name: str, rows: np.ndarray) -> np.ndarray:
        """Returns native rows of a field with the shape that MuJoCo gives it, a view."""
        shape = values(self.model, name).shape
        if name == "eq_data":  # MuJoCo before 3.17 has fewer columns
            return rows.reshape(self.nsim, shape[0], int(MODEL[name].shape[-1]))[..., : shape[1]]
        return rows.reshape(self.nsim, *shape)

    # ---- models ------------------------------------------------------------------------------------------------------
    def set_models(self, models: Sequence | None) -> None:
        """Sets the model of each simulation; None for the base model.

        Raises:
            FatalError: a model of other sizes.
            ModelError, UnsupportedFeatureError: a model that Featherlane refuses.  Nothing is set then.
        """
        distinct = list({id(model): model for model in models or ()}.values())
        for k, model in enumerate(distinct):
            if _sizes(model) != _sizes(self.model):
                raise mujoco.FatalError(f"set_models: model {k} has other sizes than the model of the batch")
        keys = {id(model): _structure(model) for model in distinct}
        usual = _structure(self.model)
        made: dict[bytes, Batch | str] = {}
        for model in distinct:
            if keys[id(model)] != usual and keys[id(model)] not in made:
                made[keys[id(model)]] = self._new(model)
        self.models, self._made, self._variants, self._group = None if models is None else list(models), {}, [], None
        self.base = self._new(self.model)  # without the expanded fields of earlier models
        fields = {id(model): read_fields(model) for model in distinct}
        for name, value in read_fields(self.model).items():
            rows = {key: each[name] for key, each in fields.items()}
            if MODEL[name].kind == "real" and any(not np.array_equal(value, row) for row in rows.values()):
                target = self.base.expand(name)
                for sim, model in enumerate(models or ()):
                    target[sim] = np.reshape(rows[id(model)], target.shape[1:])
        if made:
            self._made = made
            self._assign([keys[id(model)] if keys[id(model)] != usual else b"" for model in models or ()])

    def _assign(self, keys: Sequence[bytes]) -> None:
        """Sets the variant of each simulation from its key; an empty key is the base."""
        order = {key: k for k, key in enumerate([b"", *self._made])}
        self._variants = [self.base, *self._made.values()]
        self._group = np.array([order[key] for key in keys])

    def _update_variants(self) -> None:
        """Makes native batches for new values of fields that select how a model is stepped."""
        names = [name for name in self.own if is_physics(name)]
        now = {name: self.own[name].tobytes() for name in names}
        if now == self._seen:
            return
        self._seen, made = now, {}
        usual = [np.ascontiguousarray(values(self.model, name)) for name in names]
        keys = []
        for sim in range(self.nsim):
            rows = [self.own[name][sim] for name in names]
            same = all(np.array_equal(a, b) for a, b in zip(rows, usual, strict=True))
            keys.append(b"" if same else b"".join([" ".join(names).encode(), *(row.tobytes() for row in rows)]))
            if not same and keys[-1] not in made:
                made[keys[-1]] = self._made.get(keys[-1]) or self._variant(names, sim)
        self._made = made
        self._group, self._variants = None, []
        if made:
            self._assign(keys)

    def _variant(self, names: Sequence[str], sim: int) -> Batch | str:
        """Returns the native batch for one simulation's values of these fields, or why there is none."""
        model = copy.copy(self.model)
        for name in names:
            set_values(model, name, self.own[name][sim])
        try:
            return self._new(model)
        except (ValueError, mujoco.FatalError) as error:
            return str(error)

    # ---- calls -------------------------------------------------------------------------------------------------------
    def parts(self, chosen: np.ndarray) -> tuple[list[Part], dict[int, str]]:
        """Returns the parts of a call, and the messages of simulations without a valid model."""
        if self.own:
            self._update_variants()
        if self._group is None:
            return [Part(self.base, chosen, slice(None))], {}
        self.base.arrays.check_edits()
        parts, failed, group = [], {}, self._group[chosen]
        for k in np.unique(group).tolist():
            at, variant = np.flatnonzero(group == k), self._variants[k]
            if isinstance(variant, str):
                failed |= dict.fromkeys(chosen[at].tolist(), variant)
            else:
                variant.arrays.share_expanded(self.base.arrays)
                parts.append(Part(variant, chosen[at], at))
        return parts, failed

    def run(self, chosen: np.ndarray, do: Callable[[list[Part]], None]) -> dict[int, str]:
        """Runs a function of the parts of a call; returns the messages of the simulations with errors.

        A simulation with an invalid value of an expanded field keeps its state; the other simulations run.
        """
        try:
            parts, failed = self.parts(chosen)
            do(parts)
        except ModelError:
            bad = self._invalid()
            if not bad:
                raise
            sims, expanded = [*bad], self.base.expanded_fields
            kept = {name: rows[sims] for name, rows in expanded.items()}
            try:
                for name in kept:
                    expanded[name][sims] = self.base.model.__dict__[name]
                parts, failed = self.parts(chosen)
                do([_without(part, sims) for part in parts])
            finally:
                for name, rows in kept.items():
                    expanded[name][sims] = rows
            failed |= {sim: text for sim, text in bad.items() if sim in set(chosen.tolist())}
        return failed

    def _invalid(self) -> dict[int, str]:
        """Returns messages of simulations with a value that a field of the model cannot hold."""
        found = {}
        for name, rows in self.base.expanded_fields.items():
            for sim in () if self._message(name, rows) is None else range(self.nsim):
                text = self._message(name, rows[sim], worlds=False)
                if text is not None:
                    found.setdefault(sim, text)
        return found

    def _message(self, name: str, rows: np.ndarray, worlds: bool = True) -> str | None:
        """Returns the message of an invalid value of a field, None if all are valid."""
        try:
            self.base.model.check_values(name, rows, worlds)
        except ModelError as error:
            return str(error)
        return None

    def set_const(self, chosen: np.ndarray) -> dict[int, str]:
        """Recomputes the fields that depend on expanded ones; returns the messages of simulations with errors."""
        failed: dict[int, str] = {}

        def do(parts: list[Part]) -> None:
            self.base.set_const([])  # raises an error for invalid values
            for batch, sims, _ in parts:
                try:
                    batch.set_const(sims)
                except ModelError:
                    for sim in sims:
                        try:
                            batch.set_const([sim])
                        except ModelError as error:
                            failed[int(sim)] = str(error)

        self.run(chosen, lambda parts: self.base.set_const([]))  # expands dependent fields, which the parts then share
        return self.run(chosen, do) | failed


def step(nstep: int, stage: int = 0) -> Callable[[list[Part]], None]:
    """Returns a function that advances the simulations of its parts by nstep steps, or runs forward if nstep is 0.

    Args:
        nstep: steps.
        stage: mjtStage, the last stage that is computed of the state after the steps.
    """

    def do(parts: list[Part]) -> None:
        step_together(nstep, [(batch, chosen) for batch, chosen, _ in parts], STAGES[stage])

    return do


def _without(part: Part, sims: Sequence[int]) -> Part:
    """Returns a part without some simulations."""
    good = np.flatnonzero(~np.isin(part.chosen, sims))
    at = good if isinstance(part.at, slice) else part.at[good]
    return Part(part.batch, part.chosen[good], at)


def _sizes(model: Any) -> list[int]:
    """Returns the sizes of the MjData of an MjModel."""
    names = "nq nv nu na nbody njnt ngeom nsite ncam nlight neq ntendon nsensor nsensordata nmocap nuserdata".split()
    return [getattr(model, name) for name in names]


def _structure(model: Any) -> bytes:
    """Returns the values of an MjModel that select how it is stepped."""
    parts = [value for name, value in read_fields(model).items() if MODEL[name].kind != "real"]
    parts += [getattr(model, name) for name in SHAPES]
    return b"".join(np.asarray(part).tobytes() for part in parts)
