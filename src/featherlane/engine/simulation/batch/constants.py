"""Recomputes the model fields that depend on others: `set_const`, `Batch.set_const`, `Batch.set_variant`.

Kernels compute them for many worlds at once (benchmarks/set_const.py).  The worlds are those of a separate batch in
float64, which the model keeps: a batch in float32 rounds them when they are stored.

An entry that is as in the loaded model keeps the bits that MuJoCo's compiler gave it.  `set_variant` calls MuJoCo, so
that a world has the bits of a model compiled with this variant alone.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

import numpy as np

from featherlane.engine.model.fields import MODEL
from featherlane.engine.model.model import Model
from featherlane.engine.model.set_const import BOTH, DEPENDENT_REALS, VOLUMES, Constants, recompile_constants
from featherlane.engine.model.variant import MEAN, exact, mean_inertia
from featherlane.engine.simulation.batch.arrays import WorldArrays
from featherlane.engine.simulation.batch.expanded import Entries, dependent
from featherlane.engine.simulation.batch.runner import Runner
from featherlane.engine.simulation.query.dependent import DependentFields
from featherlane.engine.simulation.tile.team import Team
from featherlane.engine.simulation.tile.uninterrupted import Assignment, set_all
from featherlane.errors import ModelError, near

AT_ONCE = 64  # worlds that are computed in one call
ROUNDING = 1e-9  # largest relative difference of values from MuJoCo: M of a long chain is ill-conditioned
# fields on which others depend
INPUTS = [f.name for f in MODEL.fields if f.kind == "real" and f.name not in {*DEPENDENT_REALS} - BOTH - VOLUMES]
FLUID = ("geom_size", "geom_fluid")  # `geom_fluid` depends on these


class DependentWorlds:
    """Computes dependent fields for many sets of values of one model's fields; keeps a batch between calls."""

    def __init__(self, model: Model):
        self.model, self.loaded, self.source = model, model.loaded(), model.loaded_reals
        self._arrays = WorldArrays(model, AT_ONCE, np.dtype(np.float64), 0)
        self._runner, self._query = Runner(self._arrays, Team(1)), DependentFields(model, AT_ONCE)
        self._lock = threading.Lock()  # batches of one model share it
        self._unchanged: np.ndarray | None = None  # fields as computed for the loaded model, to compare with
        self._loaded = np.concatenate([self.loaded[name].ravel() for name in self._query.places])
        self._parents = model.body_parentid.tolist()
        self._seen, self._edits = object(), []  # the model's stamp at the last comparison, and its result
        self._compiler: Constants | None = None

    def of(self, values: Mapping[str, np.ndarray], n: int, fluid: bool = True) -> dict[str, np.ndarray]:
        """Returns the dependent fields of n worlds, (n, ...) by name, in float64.

        Args:
            values: real fields that differ by world, (n, ...) by name; other fields have the model's values.
            n: number of worlds.
            fluid: whether `geom_fluid` is wanted.
        """
        own = self.model.__dict__
        given = {name: np.broadcast_to(own[name], (n, *own[name].shape)) for name in self._edited()} | {**values}
        with self._lock:
            if self._unchanged is None:
                first = self._computed({name: self.loaded[name][None] for name in given}, 1)[0]
                self._unchanged = unchanged(self._loaded, first)
            found = self._computed(given, n)
        np.copyto(found, self._loaded, where=found == self._unchanged)
        rows = self._query.by_field(found)
        return rows | {"geom_fluid": self._fluid_of(values, n)} if fluid else rows

    def _edited(self) -> list[str]:
        """Returns the fields of the model that differ from those of the loaded model, except dependent ones."""
        self.model.check_edits()
        own = self.model.__dict__
        if own["_own_stamp"] is not self._seen:
            is_same = np.array_equal(self.model.real_buffer, self.source)
            self._edits = [] if is_same else [n for n in INPUTS if not np.array_equal(own[n], self.loaded[n])]
            self._seen = own["_own_stamp"]
        return self._edits

    def _computed(self, values: Mapping[str, np.ndarray], n: int) -> np.ndarray:
        """Returns the fields (n, ...) in the columns of the query, computed for at most AT_ONCE worlds at a time."""
        own, expanded, found = self.model.__dict__, self._arrays.expanded, np.empty((n, self._loaded.size))
        for name in {*values, "body_subtreemass"} - expanded.keys():
            self._arrays.expand(name)
        at, _ = self._query.places["body_subtreemass"]
        for first in range(0, n, AT_ONCE):
            part = found[first : first + AT_ONCE]
            count, chosen = len(part), np.arange(len(part))
            for name, rows in expanded.items():
                rows[:count] = values[name][first : first + count] if name in values else own[name]
            mass = subtree_masses(self._parents, expanded.own("body_mass", chosen))
            expanded["body_subtreemass"][:count] = mass
            part[...] = self._runner.query(self._query, chosen)[:count]
            part[:, at] = mass
        return found

    def compiled(self, values: Mapping[str, np.ndarray], n: int) -> dict[str, np.ndarray]:
        """Returns the same fields, computed by MuJoCo."""
        with self._lock:
            if self._compiler is None or not self._compiler.is_of(self.model):
                self._compiler = Constants(self.model)
            return self._compiler.of(self.model, values, n)

    def _fluid_of(self, values: Mapping[str, np.ndarray], n: int) -> np.ndarray:
        """Returns coefficients of fluid forces (n, ...): of ellipsoids with other sizes those that MuJoCo computes."""
        own = self.model.__dict__["geom_fluid"]
        given = {name: values[name] for name in FLUID if name in values}
        if not given or not (own.any() or "geom_fluid" in given):
            return np.broadcast_to(own, (n, *own.shape))
        return self.compiled(given, n)["geom_fluid"]


def unchanged(loaded: np.ndarray, computed: np.ndarray) -> np.ndarray:
    """Returns what the kernels compute for the loaded model; NaN where MuJoCo's value differs by more than rounding.

    An MjModel may have been edited before it was loaded.
    """
    close = np.abs(loaded - computed) <= ROUNDING * np.maximum(np.abs(computed), 1.0)
    return np.where(close, computed, np.nan)


def subtree_masses(parents: list[int], mass: np.ndarray) -> np.ndarray:
    """Returns the masses (n, nbody) of the subtrees of bodies with these parents and masses (n, nbody)."""
    total = mass.T.copy()
    rows = [*total]
    for b in range(len(parents) - 1, 0, -1):  # children before their parents
        rows[parents[b]] += rows[b]
    return total.T


def dependent_worlds(model: Model) -> DependentWorlds:
    """Returns the model's `DependentWorlds`, which its batches share."""
    kept = model.__dict__.get("_dependent")
    if kept is None or kept.source is not model.loaded_reals:
        kept = model.__dict__["_dependent"] = DependentWorlds(model)
    return kept


# ---- worlds of a batch -----------------------------------------------------------------------------------------------
def _constants(
    arrays: WorldArrays, names: list[str], chosen: np.ndarray, changes: Mapping[str, Entries], compiled: bool
) -> dict[str, np.ndarray]:
    """Returns dependent fields (n, ...) of worlds by name, from their rows with changed entries."""
    expanded, model = arrays.expanded, arrays.model
    if not len(chosen):
        return {}
    values = {name: expanded[name][chosen].astype(np.float64, copy=False) for name in expanded.inputs()}
    for name, (places, entries) in changes.items():
        values[name].reshape(len(chosen), -1)[:, places] = entries
    worlds, values = dependent_worlds(model), exact(model, values, arrays.dtype)
    rows = worlds.compiled(values, len(chosen)) if compiled else worlds.of(values, len(chosen), "geom_fluid" in names)
    if MEAN in names:
        rows[MEAN] = mean_inertia(rows["dof_M0"])
    return {name: rows[name] for name in names}


def set_const_of(arrays: WorldArrays, chosen: np.ndarray) -> None:
    """Recomputes the model fields that depend on expanded ones, in the chosen worlds."""
    arrays.check_edits()
    names = dependent(arrays.model, arrays.expanded)
    for name in names:
        arrays.expand(name)
    rows = _constants(arrays, names, chosen, {}, compiled=False)
    set_all([(arrays.expand(name), chosen, values) for name, values in rows.items() if values.size])


def set_variant(arrays: WorldArrays, chosen: np.ndarray, values: Mapping[str, Entries]) -> None:
    """Sets entries of model fields in the chosen worlds, and the fields that depend on them.

    Only fields that differ from the model's get rows, because each one takes time in every step.

    Args:
        arrays: the worlds.
        chosen: numbers of those that change.
        values: flat indices of the entries and their values, by field.
    """
    arrays.check_edits()
    fields = {name: arrays.expand(name).reshape(arrays.nworld, -1) for name in values}
    new: list[Assignment] = [(fields[n], (chosen[:, None], at), entries) for n, (at, entries) in values.items()]
    names = dependent(arrays.model, arrays.expanded)
    for name, rows in _constants(arrays, names, chosen, values, compiled=True).items():
        if name in arrays.expanded or (rows != arrays.model.__dict__[name]).any():
            # a changed entry of a field that is recomputed as well, such as a bounding volume, has the new value
            new.append((arrays.expand(name), chosen, rows))
    set_all(new)


def set_const(model: Model) -> None:
    """Recomputes the fields that depend on edited ones (`DEPENDENT_REALS`, `DEPENDENT_INTS`).

    A batch's world with the same edits has the same bits after `Batch.set_const`.

    Source: MuJoCo mj_setConst, equal up to rounding.  Deviation: rest lengths of a tendon that are both -1 become its
        length in qpos_spring, as in the compiler; MuJoCo 4.0 keeps -1.

    Raises:
        ModelError: the edits contradict how the model was compiled (MuJoCo's message names the place); or geom sizes
            with ellipsoid fluid forces were edited, and this MuJoCo (before 3.16) does not update the coefficients.
    """
    recompile_constants(model)
    rows = dependent_worlds(model).of({}, 1, fluid=False)
    model.take_constants({name: values[0] for name, values in rows.items()})
    model.write_to(model.mj_model)


def dependent_fields(model: Model, values: Iterable[Mapping[str, np.ndarray]]) -> list[dict[str, np.ndarray]]:
    """Computes the fields that `set_const` recomputes, for several sets of values; the model is not changed.

    Args:
        model: the model.
        values: real fields by name, each with the field's shape; a field that a set lacks has the model's value.

    Returns:
        For each set, the dependent fields by name, in float64.

    Raises:
        ModelError: a name that is no real field; as `set_const` does.

    Source: MuJoCo mj_setConst.
    """
    worlds = list(values)
    known = [field.name for field in MODEL.fields if field.kind == "real"]
    names = {name for world in worlds for name in world}
    for name in sorted(names - {*known}):
        raise ModelError(f"dependent_fields: {name!r} is not a real field of the model{near(name, known)}")
    own = model.__dict__
    rows = {
        name: np.stack([np.reshape(world.get(name, own[name]), own[name].shape) for world in worlds]) for name in names
    }
    found = dependent_worlds(model).of(rows, len(worlds)) if worlds else {}
    return [{name: found[name][w] for name in DEPENDENT_REALS} for w in range(len(worlds))]
