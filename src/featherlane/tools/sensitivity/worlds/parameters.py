"""Rates of the residual by fields of the model, from worlds with one parameter displaced each.

A point of a world is a copy of the world with its own model fields.  One entry of one field is displaced, and all
fields that depend on it are recomputed (`set_const`).  All points of some worlds are worlds of one batch, without a
solver.  If implicit differentiation does not apply, they take a whole step.
"""

from __future__ import annotations

import copy

import numpy as np

from featherlane.engine.model.entries import PATH, selection
from featherlane.engine.model.enums import DISABLE_DAMPER, DISABLE_EULERDAMP, EULER
from featherlane.engine.model.fields import MODEL
from featherlane.engine.model.limits import check_displaced
from featherlane.engine.model.model import Model
from featherlane.engine.simulation.batch.arrays import ON_DEMAND, WorldArrays
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.query.position import differentiate_pos
from featherlane.engine.simulation.tile.transfer import Plan
from featherlane.engine.simulation.tile.work import work
from featherlane.errors import ModelError, near
from featherlane.tools.sensitivity.worlds.displaced_worlds import POINTS, OwnWorlds

RELATIVE, LEAST = 1e-6, 1e-2  # displacement of a value: RELATIVE times the larger of its size and LEAST
OF_STEPS = 1e-5  # in place of RELATIVE for differences of steps, which have larger rounding errors
# fields without dependent fields, for which `set_const` is omitted
PLAIN = (
    "opt_ geom_friction geom_sol geom_margin geom_gap dof_damping dof_frictionloss dof_sol jnt_sol jnt_stiffness "
    "jnt_range jnt_margin pair_ eq_sol actuator_gainprm actuator_biasprm actuator_forcerange"
).split()
DAMPERS = ("dof_damping", "dof_dampingpoly", "actuator_damping", "actuator_dampingpoly")
SEQUENCE = "allowed is a sequence of names of real model fields ('body_mass') or of their entries ('body_mass[torso]')"


def _entries(model: Model, given: str) -> tuple[str, str, np.ndarray]:
    """Returns (name of the result, field, indices of the entries in it) for a name."""
    match = PATH.fullmatch(given)
    if match is None:
        raise ModelError(f"parameters: got {given!r}, allowed is FIELD, FIELD[NAME] or FIELD[NAME, NUMBER]")
    field = match[1].replace("opt.", "opt_")
    if field not in MODEL or MODEL[field].kind != "real":
        allowed = [f.name for f in MODEL.fields if f.kind == "real"]
        raise ModelError(f"parameters: {field!r} is not a real field of the model{near(field, allowed)}")
    dims = np.shape(model.__dict__[field])
    entries = np.arange(int(np.prod(dims))).reshape(dims)
    if match[2] is None:
        return field, field, entries
    chosen = entries[selection(model, f"parameters: {given!r}", MODEL[field], dims, match[2])]
    return given, field, np.asarray(chosen)


class Parameters:
    """Holds the model fields by which steps are differentiated.

    Args:
        model: the model.
        names: of real fields, `body_mass`, `opt.gravity`, or of entries, `body_mass[torso]`, `geom_friction[:, 0]`.

    Attributes:
        names: names of the results: fields as in the model, entries as given.
        fields: the field of each.
        entries: flat indices of its entries.
        shapes: of each.
        sizes: number of values of each.
        n: number of values in total.
        follows: whether other fields of the model depend on them.

    Instances with equal names are equal: they are interchangeable for a model.

    Raises:
        ModelError: an unknown real field or entry, one given twice, or the timestep.
    """

    def __init__(self, model: Model, names):
        try:
            given = tuple(names)
        except TypeError:
            given = None
        if given is None or isinstance(names, str) or not all(isinstance(name, str) for name in given):
            raise ModelError(f"parameters: got {names!r}, {SEQUENCE}")
        self.model = model
        chosen = [_entries(model, name) for name in given]
        self.names, self.fields = tuple(name for name, *_ in chosen), tuple(field for _, field, *_ in chosen)
        for name, field in zip(self.names, self.fields, strict=True):
            if field == "opt_timestep" or self.names.count(name) > 1:
                raise ModelError(f"parameters: got {name!r}, allowed are distinct fields other than the timestep")
            check_displaced(model, field, chosen[self.names.index(name)][2])
        self.entries = [np.ravel(entry) for _, _, entry in chosen]
        self.shapes = [np.shape(entry) for _, _, entry in chosen]
        self.sizes = [entry.size for entry in self.entries]
        self.n = sum(self.sizes)
        self.follows = any(not field.startswith(tuple(PLAIN)) for field in self.fields)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Parameters) and self.names == other.names and self.model is other.model

    def __hash__(self) -> int:
        return hash(self.names)

    def undamped(self, worlds: OwnWorlds) -> np.ndarray:
        """Returns the worlds in which a parameter would be the first damping, indices.

        Without damping, `euler` uses the acceleration itself, and formulas omit the derivative of its M + h B.
        """
        model = self.model
        explicit = model.opt_integrator != EULER or model.opt_disableflags & (DISABLE_EULERDAMP | DISABLE_DAMPER)
        if explicit or set(DAMPERS).isdisjoint(self.fields):
            return np.zeros(0, int)
        found = np.zeros(worlds.batch.nworld, bool)
        for name in DAMPERS:
            values = worlds.batch.arrays.expanded.own(name, np.arange(worlds.batch.nworld))
            found |= (values != 0.0).reshape(len(found), -1).any(1)
        return np.flatnonzero(~found)

    def rates(
        self, worlds, chosen: np.ndarray, width: int, follow: np.ndarray, part: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns (dg, dp, dact'), each (k, n, ...), of worlds whose accelerations are known.

        Args:
            worlds: `ImplicitWorlds` that hold them.
            chosen: indices of the worlds.
            width: of tiles.
            follow: (k, n, nv) rates at which the acceleration follows; set to 0 for one-sided displacements.
            part: of the displacements.
        """
        k, n, source = len(chosen), 2 * self.n * len(chosen), np.repeat(chosen, 2 * self.n)
        # one object for calls with any number of worlds, unless they are too many to be kept
        most = 2 * self.n * min(worlds.batch.nworld, POINTS // (2 * self.n))
        points = worlds.kept(Points, lambda: Points(self.model, worlds, most)) if n <= most else None
        points = points or Points(self.model, worlds, n)
        span, moves = self._displace(points, worlds, source, part * RELATIVE)
        # one-sided steps are some 1e-8, too short for the rounding of a residual whose acceleration changes
        follow[moves[..., 1] == 0.0] = 0.0
        given = {**worlds.rows, "qacc": worlds.qacc, "qacc_step": worlds.qacc_step}
        given = {name: a[source] for name, a in given.items()} | {"displacement": moves.reshape(n, 1)}
        found = points.residual(given | {"follow": np.repeat(follow.reshape(-1, self.model.nv), 2, 0)}, worlds, width)
        g, p, act = (self._quotient(found[name], span, k) for name in ("dg", "dp", "dact"))
        return g, p, act

    def rates_of_steps(self, worlds: OwnWorlds) -> np.ndarray:
        """Returns (nworld, n, nx) of the next state by differences of whole steps, without implicit differentiation."""
        model, nq, out = self.model, self.model.nq, []
        if worlds.disabled:
            model = copy.copy(model)
            model.opt.disableflags |= worlds.disabled
        each = max(1, POINTS // (2 * self.n))
        for first in range(0, worlds.batch.nworld, each):
            k = min(each, worlds.batch.nworld - first)
            source = np.repeat(np.arange(first, first + k), 2 * self.n)
            points = Points(model, worlds, len(source))
            span, _ = self._displace(points, worlds, source, OF_STEPS)
            rows = points.batch.arrays.rows
            for name, a in worlds.rows.items():
                rows[name][...] = a[source]
            points.batch.step()
            after = np.concatenate([rows["qpos"], rows["qvel"], rows["act"]], 1).reshape(k, self.n, 2, -1)
            up, down = np.moveaxis(after, 2, 0)
            position = differentiate_pos(model, 1.0, down[..., :nq], up[..., :nq])
            out.append(np.concatenate([position, up[..., nq:] - down[..., nq:]], -1) / span[..., None])
        return np.concatenate(out)

    def _displace(
        self, points: Points, worlds: OwnWorlds, source: np.ndarray, relative: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Copies worlds to the first points with one value displaced each; returns what `_move` returns."""
        arrays, given, n = points.batch.arrays, worlds.batch.arrays.expanded, len(source)
        for name in (*given, *self.fields):
            arrays.expand(name)
        for name, rows in arrays.expanded.items():
            rows[:n] = given.shared_or_own(name, source)
            rows[n:] = rows[:1]  # of an earlier call with more points
        span, moves = self._move(arrays, n // (2 * self.n), relative)
        if self.follows:
            points.batch.set_const(points.every[:n])
        return span, moves

    def _move(self, arrays: WorldArrays, k: int, relative: float) -> tuple[np.ndarray, np.ndarray]:
        """Displaces one value of each of the first 2 n k points, up and down alternately.

        Returns the spans of the pairs, (k, n), and the displacements, (k, n, 2).
        """
        span, moves, first = np.empty((k, self.n)), np.empty((k, self.n, 2)), 0
        for name, entry, size in zip(self.fields, self.entries, self.sizes, strict=True):
            # `arrays.expand`, because displaced values need not be those of a body: a flat one has A + B = C
            field = arrays.expand(name)[: 2 * self.n * k].reshape(k, self.n, 2, -1)
            column = first + np.arange(size)
            value = field[:, column, 0, entry]
            # an infinite value is not displaced and has no derivative
            step = np.where(np.isfinite(value), relative * np.maximum(np.abs(value), LEAST), 0.0)
            # only places change their sign: negative masses and dampers are invalid
            down = np.where((np.abs(value) < step) & (not name.endswith(("_pos", "_quat"))), 0.0, step)
            field[:, column, 0, entry], field[:, column, 1, entry] = value + step, value - down
            with np.errstate(invalid="ignore"):
                span[:, first : first + size] = np.where(step > 0.0, (value + step) - (value - down), 1.0)
            moves[:, first : first + size] = np.stack([step, -down], -1)
            first += size
        return span, moves

    def _quotient(self, a: np.ndarray, span: np.ndarray, k: int) -> np.ndarray:
        pairs = a.reshape(k, self.n, 2, -1)
        return (pairs[:, :, 0] - pairs[:, :, 1]) / span[..., None]

    def parts(self, P: np.ndarray) -> dict[str, np.ndarray]:
        """Returns name -> (..., nx, shape of the entries), of all columns (..., nx, n)."""
        ends = np.cumsum(self.sizes)[:-1]
        parts = zip(self.names, self.shapes, np.split(P, ends, -1), strict=True)
        return {name: part.reshape(*P.shape[:-1], *shape) for name, shape, part in parts}


class Points:
    """Holds copies of worlds, as worlds of a batch, and the rates that a pass computes in them.

    Args:
        model: the model.
        worlds: the worlds.
        n: largest number of copies in a call.
    """

    def __init__(self, model: Model, worlds: OwnWorlds, n: int):
        self.batch = Batch(model, n, worlds.batch.nthread, dtype="float64", given_contacts=worlds.batch.ngiven)
        for name in worlds.rows:
            if name in ON_DEMAND:
                getattr(self.batch, name)
        self.every = np.arange(n)
        self._passes: dict[tuple[int, int], tuple[dict[str, np.ndarray], dict[str, np.ndarray], Plan]] = {}

    def residual(self, given: dict[str, np.ndarray], worlds, width: int) -> dict[str, np.ndarray]:
        """Returns dg, dp and dact of the first n points, (n, 1, ...); valid until the next call.

        given: their rows, (n, ...).   width: of tiles.
        """
        plans, model, most = self.batch.runner.plans, worlds.model, len(self.every)
        plans.disabled = worlds.disabled
        # a plan is valid for the fields that differed when it was made
        key = width, len(self.batch.arrays.expanded)
        if key not in self._passes:
            sizes = {"dg": model.nv, "dp": model.nv, "dact": model.na}
            found = {name: np.zeros((most, 1, size)) for name, size in sizes.items()}
            load = {name: np.zeros((most, *a.shape[1:]), a.dtype) for name, a in given.items()}
            stage = worlds.stages.parameters
            self._passes[key] = load, found, plans.plan(stage, most, taken=found, load=load, keeps=(), width=width)
        load, found, plan = self._passes[key]
        n = len(given["qacc"])
        for name, a in given.items():
            load[name][:n] = a
        found = {name: a[:n] for name, a in found.items()}
        for a in found.values():
            a[...] = 0.0
        plans.prepare(width)
        plan.begin(1, self.every[:n], self.every[:n])
        work([(plan, -(-n // width))], plans.team)
        return found
