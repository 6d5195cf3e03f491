"""Bitwise independence of a world from its batch: cases sampled over models and options, with a report of differences.

A case is a model with options, and some worlds of it, the subjects.  The reference is a subject alone, in a batch of
one world with every field bound.  The same world is then simulated as `fl.Data`, in batches of many sizes, at other
places, next to unrelated worlds (hard states, asleep, non-finite), on more threads, with other fields bound, step
by step or in parts or as a rollout, after a copy, a pickle and a checkpoint, in a batch that was used before, in tiles
that are split.  If worlds have different models, `get_model` is compared with the expanded fields.  Every
public field and report is compared bit for bit, at some steps; so are inverse dynamics,
derivatives and rays at the start.

As a program: `python tests/bits invariance SECONDS [SEED] [FOLDER or part of a model's name ...]` prints the
differences, over the bundled models and those of the folders; without folders, over the models of the wheels.
"""

from __future__ import annotations

import copy
import pickle
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import numpy as np

import featherlane as fl
from featherlane.engine.model import simple_bodies
from featherlane.engine.model.enums import Enable
from featherlane.engine.model.limits import ROWS
from featherlane.engine.simulation.tile import capacity
from featherlane.engine.simulation.tile.fields import DATA, WANTED
from robots import wheels
from scenes.states import kicked

CHECKS = (1, 2, 4, 7, 12)  # steps after which fields are compared
SIZES = (1, 2, 3, 7, 8, 9, 16, 17)
REPORTS = ("ncon", "solver_niter", "solver_residual", "solver_gap", "warning", "nreset")
FIELDS = tuple(n for n in DATA.that("shown") if n not in DATA.of("report", "count"))
ISLANDS = ("nisland", "tree_island", "dof_island")  # computed if trees may sleep
AT_CALL = ("qfrc_inverse", "solver_fwdinv")
IN_A_BATCH = {
    "energy",
    *WANTED["want_subtree"],
    *WANTED["want_wrenches"],
    *AT_CALL,
    *ISLANDS,
}  # `Data` has them if sensors or flags need them
WAYS = ("steps", "singly", "parts", "rollout", "copy", "pickle", "checkpoint", "used")
SOLVERS = ("newton", "cg", "pgs")
INTEGRATORS = ("euler", "rk4", "implicit", "implicitfast", "discrete")
COULOMB_INTEGRATORS = ("euler", "implicit", "implicitfast")
LCP_SOLVERS = ("dantzig", "pgs", "apgd")
EXPANDED = (
    "body_mass body_inertia body_ipos dof_damping dof_armature dof_frictionloss geom_friction geom_solref geom_solimp "
    "geom_margin jnt_stiffness jnt_range jnt_solref actuator_gainprm actuator_biasprm actuator_gear opt_gravity "
    "opt_timestep opt_wind opt_density opt_tolerance tendon_stiffness tendon_damping eq_solref qpos_spring body_pos "
    "site_pos geom_size geom_pos qpos0 body_quat body_gravcomp geom_gap actuator_forcerange actuator_dynprm dof_solref"
).split()

# fields of which some edits are refused: these elements keep their value
COMPILED = ("body_mass", "body_inertia", *simple_bodies.ROWS)

SWITCHES = (  # fields whose zeros switch something off: 0 in some worlds only
    "dof_damping dof_dampingpoly dof_frictionloss dof_armature jnt_stiffness jnt_stiffnesspoly jnt_pos body_gravcomp "
    "opt_density opt_viscosity opt_wind tendon_stiffness tendon_stiffnesspoly tendon_damping tendon_dampingpoly "
    "tendon_armature tendon_frictionloss geom_margin geom_gap geom_adhesion geom_surfacevel geom_restitution geom_slip "
    "geom_fdir actuator_damping actuator_armature jnt_motor_force jnt_stop_bounce jnt_margin geom_fluid sensor_cutoff "
    "link_motor_force link_stop_bounce actuator_delay"
).split()


@dataclass(frozen=True)
class Case:
    """Describes a model, options, a precision, and the seed of its worlds.

    Attributes:
        name: the model's name.
        load: function that loads it.
        options: of the model, by name.
        dtype: float64 or float32.
        expand: model fields that differ by world.
        seed: of the states.
        slots: maximum number of contact slots of a tile, so that tiles are split; 0: the default.
    """

    name: str
    load: Callable[[], fl.Model]
    options: tuple[tuple[str, object], ...] = ()
    dtype: str = "float64"
    expand: tuple[str, ...] = ()
    seed: int = 0
    slots: int = 0

    def __str__(self):
        options = " ".join(f"{k}={v}" for k, v in self.options)
        own = ",".join(self.expand) or "-"
        return f"{self.name} {self.dtype} seed={self.seed} {options} expand={own} slots={self.slots}"

    def model(self) -> fl.Model:
        """Returns the model with its options."""
        model = self.load()
        for name, value in self.options:
            setattr(model.opt, name, value)
        return model


@dataclass
class Report:
    """Collects the amount of comparisons and the differences.

    Attributes:
        values: numbers compared.
        fields: fields compared, one for each world and moment.
        cases: number of cases run.
        found: (case, batch, world, step, first field, largest difference) of each subject that differed.
    """

    values: int = 0
    fields: int = 0
    cases: int = 0
    found: list[tuple] = field(default_factory=list)

    def __str__(self):
        worst = Counter((str(case), name) for case, _, _, _, name, _ in self.found)
        lines = [f"{self.cases} cases, {self.fields:,} fields, {self.values:,} numbers, {len(self.found)} differ"]
        for (case, name), n in sorted(worst.items()):
            first = next(f for f in self.found if str(f[0]) == case and f[4] == name)
            lines.append(
                f"  {n:4} x {name} (by {first[5]:.1e}, step {first[3]}, world {first[2]}, {first[1]}) in {case}"
            )
        return "\n".join(lines)


# ---- worlds ----------------------------------------------------------------------------------------------------------
@dataclass
class World:
    """Holds a world's start, its inputs at each check, and its rows of model fields."""

    kind: str
    state: dict[str, np.ndarray]
    controls: np.ndarray
    rows: dict[str, np.ndarray]


def _state(model, rng, kind: str) -> dict[str, np.ndarray]:
    """Returns a start: calm, near, kicked, low, fast, or bad."""
    size, speed = {"calm": (0.0, 1e-8), "near": (0.01, 0.1), "rest": (0.0, 0.0)}.get(kind, (0.3, 1.0))
    qpos, qvel = kicked(model, rng, size, speed)
    free = np.flatnonzero(model.jnt_type == 0)
    if kind in ("low", "deep"):
        qpos[model.jnt_qposadr[free] + 2] -= rng.uniform(0, 0.5 if kind == "low" else 1.5)
    if kind == "fast":
        qvel *= 50.0
    state = {"qpos": qpos, "qvel": qvel}
    if model.na and kind not in ("calm", "rest"):
        state["act"] = rng.uniform(0, 1, model.na)
    if kind == "pushed":
        state["xfrc_applied"] = rng.standard_normal((model.nbody, 6))
        state["qfrc_applied"] = rng.standard_normal(model.nv)
        state["qacc_warmstart"] = 10.0 * rng.standard_normal(model.nv)
        if model.nmocap:
            state["mocap_pos"] = rng.uniform(-0.5, 0.5, (model.nmocap, 3))
        if model.neq:
            state["eq_active"] = rng.integers(2, size=model.neq).astype(float)
    if kind == "nan" and model.nq:
        state["qpos"][rng.integers(model.nq)] = np.nan
    if kind == "inf" and model.nv:
        state["qvel"][rng.integers(model.nv)] = np.inf
    if kind == "huge" and model.nv:
        state["qvel"][rng.integers(model.nv)] = 1e9
    if kind == "torn" and model.nv:
        state["qfrc_applied"] = np.full(model.nv, 1e300 if rng.integers(2) else 1e30)
    return state


def world(model, rng, kind: str, expand) -> World:
    """Returns a world of a kind."""
    state = _state(model, rng, kind)
    controls = rng.uniform(-1, 1, (len(CHECKS), model.nu))
    if kind == "nan" and model.nu and rng.integers(2):
        controls[rng.integers(len(CHECKS))] = np.nan
    rows = {}
    for name in expand:
        value = np.array(model.__dict__[name])
        rows[name] = value * rng.uniform(0.8, 1.2, value.shape)
        if name == "geom_size":
            rows[name] = value * rng.uniform(0.95, 1.0)
        if name in SWITCHES:
            what = rng.integers(3)
            more = 0.1 * rng.random(value.shape) * rng.integers(2, size=value.shape)
            if name == "actuator_delay":
                more *= model.actuator_history[:, 0] > 0
            rows[name] = (0.0 * value, rows[name], np.abs(value) + more)[what]
    if kind == "warped" and expand:
        rows[expand[rng.integers(len(expand))]] *= 10.0 ** rng.integers(3, 15)
    for name in {*expand} & {*COMPILED}:
        wrong, _ = ROWS[name](model, rows[name])
        rows[name][wrong] = model.__dict__[name][wrong]
    return World(kind, state, controls, rows)


SUBJECTS = ("calm", "near", "kicked", "low", "fast", "pushed", "huge")
WILD = ("warped", "fast", "deep", "nan", "inf", "torn", "huge", "rest", "low", "pushed")


def fill(batch, worlds: list[World]) -> None:
    """Writes the worlds' starts into a batch."""
    for name in worlds[0].rows:
        batch.expand(name)[...] = [w.rows[name] for w in worlds]
    if worlds[0].rows:
        batch.reset()  # mocap bodies, plastic springs: each world starts from its model's values
    for w, start in enumerate(worlds):
        for name, value in start.state.items():
            getattr(batch, name)[w] = value


# ---- reading ---------------------------------------------------------------------------------------------------------
def look(batch, names) -> dict[str, np.ndarray]:
    """Returns copies of the fields of all worlds, (nworld, ...)."""
    out = {}
    for name in names:
        a = batch.arrays.rows.get(name)
        out[name] = np.array(batch.arrays.bound[name] if a is None else a)
    return out


def kept(model) -> tuple[str, ...]:
    """Returns state and reports that a batch has without binding."""
    names = [n for n in fl.Data.layout.index if n in ("time", "qpos", "qvel", "act", "history", "plastic")]
    sleeps = ("tree_asleep",) if model.opt.enableflags & Enable.SLEEP else ()
    return (*names, "qacc_warmstart", *sleeps, "mocap_pos", "mocap_quat", "eq_active", *REPORTS)


def computed(model) -> list[str]:
    """Returns fields that each step computes if they are bound."""
    sleeps = model.opt.enableflags & Enable.SLEEP
    out = [n for n in FIELDS if n not in AT_CALL and (sleeps or n not in (*ISLANDS, *SLEEP_ONLY)) and n not in INPUTS]
    if not model.nsensordata:
        out.remove("sensordata")
    return [n for n in out if n not in kept(model)]


SLEEP_ONLY = (*DATA.of("memory"), "tree_awake", "body_awake")
INPUTS = DATA.of("drive")


def equal(a, b) -> bool:
    """Returns whether all bits are equal; all NaNs count as equal."""
    if a.tobytes() == b.tobytes():
        return True
    same = a.view(f"i{a.itemsize}") == b.view(f"i{b.itemsize}")
    return bool((same | (np.isnan(a) & np.isnan(b))).all())


def difference(a, b) -> float:
    """Returns the largest difference, 0 if only signs of zeros differ."""
    with np.errstate(all="ignore"):
        far = np.abs(np.asarray(a, float) - b)
    return float(np.nanmax(far)) if np.isfinite(far).any() else np.inf


class Truth:
    """Returns the subjects of a case, each simulated alone, at each check, by field."""

    def __init__(self, case: Case):
        self.case, self.model = case, case.model()
        rng = np.random.default_rng(case.seed)
        self.worlds = [world(self.model, rng, kind, case.expand) for kind in SUBJECTS]
        self.all = (*kept(self.model), *computed(self.model))
        self.looks = []
        for w in self.worlds:
            batch = SampledBatch(self, [w], "alone").batch(bound=self.all)
            self.looks.append([{n: a[0] for n, a in seen.items()} for _, seen in steps(batch, [w], "steps", self.all)])

    def was_reset(self, subject: int, k: int) -> bool:
        """Returns whether the subject was reset before check k."""
        return self.looks[subject][k]["nreset"][0] > 0


@dataclass
class SampledBatch:
    """Returns worlds of a case in one batch."""

    truth: Truth
    worlds: list[World]
    name: str

    def batch(self, bound=(), nthread: int = 1, used: bool = False) -> fl.Batch:
        """Returns the batch at its start, or reset to it after some steps of the same worlds in another order."""
        batch = fl.Batch(self.truth.model, len(self.worlds), nthread=nthread, dtype=self.truth.case.dtype)
        if used:
            fill(batch, self.worlds[::-1])
            batch.step(3)
            batch.reset()
        fill(batch, self.worlds)
        for name in bound:
            if name not in batch.arrays.rows:
                batch.bind(name)
        return batch


def steps(batch, worlds, way: str, names, rng=None) -> Iterator[tuple[int, dict]]:
    """Steps the batch with some method; yields the index of each check and the fields at that step."""
    done = 0
    for k, until in enumerate(CHECKS):
        control = np.array([w.controls[k] for w in worlds])
        batch.ctrl = control
        if way == "singly":
            for _ in range(until - done):
                batch.step()
        elif way == "parts":
            order = rng.permutation(len(worlds))
            for ids in np.array_split(order, min(3, len(worlds))):
                batch.step(until - done, ids=ids)
        elif way == "rollout":
            repeated = np.repeat(control[:, None], until - done, axis=1)
            batch.rollout(until - done, repeated if k % 2 else None, record=("qpos",))
        else:
            if k == 2 and way == "copy":
                batch = copy.deepcopy(batch)
            if k == 2 and way == "pickle":
                batch = pickle.loads(pickle.dumps(batch))
            if k == 2 and way == "checkpoint":
                other = fl.Batch(batch.model, batch.nworld, nthread=batch.nthread, dtype=batch.dtype)
                other.restore(batch.checkpoint())
                for name in names:
                    if name not in other.arrays.rows:
                        other.bind(name)
                batch = other
            batch.step(until - done)
        done = until
        yield k, look(batch, names)


# ---- comparing -------------------------------------------------------------------------------------------------------
def compare(report: Report, truth: Truth, name: str, subject: int, k: int, seen, names) -> bool:
    """Returns whether one world at one check equals the reference."""
    wrong = []
    for n in names:
        a, b = np.ascontiguousarray(seen[n]), truth.looks[subject][k][n]
        report.fields, report.values = report.fields + 1, report.values + a.size
        if not equal(a, b):
            wrong.append((n, difference(a, b)))
    kind = f"{subject} {truth.worlds[subject].kind}"
    for reports in (True, False):
        for n, far in [(n, far) for n, far in wrong if (n in REPORTS) == reports][:1]:
            report.found.append((truth.case, name, kind, CHECKS[k], n, far))
    return not wrong


def in_order(names) -> list[str]:
    """Returns fields in the order in which they become valid: state at the end."""
    ends = ("time", "qpos", "qvel", "act", "history", "plastic", "qacc_warmstart")
    index = list(DATA.index)
    return sorted(names, key=lambda n: (n in ends, index.index(n)))


def look_at_data(report: Report, truth: Truth, how: str = "plain") -> None:
    """Checks the subjects as `fl.Data`."""
    names = in_order(n for n in truth.all if n not in IN_A_BATCH)
    for s, w in enumerate(truth.worlds):
        model = truth.model
        if w.rows:
            one = SampledBatch(truth, [w], "model").batch()
            model = one.get_model(0)
        data, done = fl.Data(model), 0
        if how == "used":
            data.qvel[...] = 3.0
            fl.step(model, data, 3)
            data.reset()
        for name, value in w.state.items():
            getattr(data, name)[...] = value
        for k, until in enumerate(CHECKS):
            data.ctrl[...] = w.controls[k]
            for _ in range(until - done):
                fl.step(model, data)
            done = until
            if k == 2 and how == "pickle":
                data = pickle.loads(pickle.dumps(data))
                model = data.model
            arrays = data.workspace.arrays
            seen = {n: arrays[n][: DATA[n].count(data.workspace.sizes), 0] for n in names}
            seen = {n: a.reshape(truth.looks[s][k][n].shape) for n, a in seen.items()}
            if not compare(report, truth, f"fl.Data {how}", s, k, seen, names):
                break


def look_at_model(report: Report, truth: Truth) -> None:
    """Checks subjects with per-world models, in batches of one with the model from `get_model`."""
    names = in_order(truth.all)
    for s, w in enumerate(truth.worlds):
        model = SampledBatch(truth, [w], "model").batch().get_model(0)
        batch = fl.Batch(model, 1, nthread=1, dtype=truth.case.dtype)
        fill(batch, [World(w.kind, w.state, w.controls, {})])
        for n in truth.all:
            if n not in batch.arrays.rows:
                batch.bind(n)
        for k, seen in steps(batch, [w], "steps", names):
            if not compare(report, truth, "get_model", s, k, {n: a[0] for n, a in seen.items()}, names):
                break


def asked_of(batch, rng) -> dict[str, np.ndarray]:
    """Returns inverse dynamics, derivatives and rays of all worlds, (nworld, ...)."""
    model = batch.model
    qacc, point, way = rng.standard_normal(model.nv), rng.uniform(-1, 1, (4, 3)), rng.standard_normal((4, 3))
    hits = batch.ray(point, way)
    out = {"ray": hits.distance, "normal": hits.normal, "jacobian": batch.jac(point[0], model.nbody - 1)[0]}
    awake = not model.opt.enableflags & Enable.SLEEP
    if model.opt.contact_model == "convex":
        for name, given in (("inverse", None), ("inverse of qacc", qacc)):
            batch.inverse(given)
            out[name] = batch.qfrc_inverse.copy()
        if awake:
            rates = fl.inverse_derivatives(model, batch, qacc=np.tile(qacc, (batch.nworld, 1)))
            out |= {"DfDq": rates.DfDq, "DfDv": rates.DfDv, "DfDa": rates.DfDa}
    if awake:
        found = fl.linearize(model, batch)
        out |= {"A": found.A, "B": found.B, "switching": found.switching}
    return out


def look_at_questions(report: Report, truth: Truth) -> None:
    """Compares queries of the subjects at their start, together and alone."""
    everyone = SampledBatch(truth, truth.worlds[:-1], "questions")
    together = asked_of(everyone.batch(), np.random.default_rng(truth.case.seed))
    for s, w in enumerate(everyone.worlds):
        alone = asked_of(SampledBatch(truth, [w], "questions").batch(), np.random.default_rng(truth.case.seed))
        for name, value in alone.items():
            report.fields, report.values = report.fields + 1, report.values + value.size
            a, b = np.ascontiguousarray(together[name][s], truth.case.dtype), np.ascontiguousarray(value[0])
            if not equal(a, b.astype(a.dtype)):
                report.found.append((truth.case, "questions", f"{s} {w.kind}", 0, name, difference(a, b)))


def look_at_batch(report: Report, truth: Truth, size: int, rng, way: str, bound: str) -> None:
    """Puts subjects at random places of a batch of a size; the other worlds are unrelated or subjects again."""
    model, case = truth.model, truth.case
    chosen = rng.integers(len(truth.worlds), size=size)
    wild = rng.random(size) < rng.choice([0.0, 0.3, 0.8])
    if size > 1:
        wild[rng.integers(size)] = False
    else:
        wild[:] = False
    worlds = [
        world(model, rng, WILD[rng.integers(len(WILD))], case.expand) if wild[i] else truth.worlds[chosen[i]]
        for i in range(size)
    ]
    some = computed(model)
    asked = {"all": some, "none": [], "some": [n for n in some if rng.random() < 0.1]}[bound]
    names = in_order((*kept(model), *asked))
    nthread = int(rng.integers(1, 3))
    kinds = " ".join(w.kind for w in worlds)
    what = f"{size} worlds [{kinds}], {way}, {bound} bound, {nthread} threads"
    sampled = SampledBatch(truth, worlds, what)
    going = {i for i in range(size) if not wild[i]}
    if any(w.kind == "warped" for w in worlds) and not is_allowed(sampled):
        return
    if way == "checkpoint" and any(n in w.state for w in worlds for n in INPUTS):
        way = "copy"
    for k, seen in steps(sampled.batch(asked, nthread, way == "used"), worlds, way, names, rng):
        for i in sorted(going):
            if way == "rollout" and truth.was_reset(int(chosen[i]), k):
                going.discard(i)  # the rest of a rollout has its given controls, that of a step none
                continue
            one = {n: a[i] for n, a in seen.items()}
            if not compare(report, truth, what, int(chosen[i]), k, one, names):
                going.discard(i)
        if not going:
            break


def is_allowed(sampled: SampledBatch) -> bool:
    """Returns whether the model values of all worlds are in their allowed ranges."""
    try:
        sampled.batch().forward()
    except fl.ModelError:
        return False
    return True


def look_at(case: Case, report: Report, batches: int = 10) -> None:
    """Runs all comparisons of a case."""
    limit = case.slots or capacity.CONTACT_LIMIT
    with warnings.catch_warnings(), mock.patch.object(capacity, "CONTACT_LIMIT", limit):
        warnings.simplefilter("ignore")
        truth = Truth(case)
        report.cases += 1
        if case.dtype == "float64":
            look_at_data(report, truth)
            look_at_data(report, truth, ("pickle", "used")[case.seed % 2])
        if case.expand:
            look_at_model(report, truth)
        look_at_questions(report, truth)
        rng = np.random.default_rng(case.seed + 1)
        for c in range(batches):
            size = SIZES[(c + case.seed) % len(SIZES)]
            look_at_batch(report, truth, size, rng, WAYS[rng.integers(len(WAYS))], ("all", "none", "some")[c % 3])


# ---- cases -----------------------------------------------------------------------------------------------------------
def drawn(names: list, rng, loaders) -> Case:
    """Returns a case: any of the models, with options."""
    name = names[rng.integers(len(names))]
    options = []
    if rng.random() < 0.35:
        options += [("integrator", "euler"), ("enableflags", 0), ("contact_model", "lcp")]
        options += [("noslip_iterations", 0), ("lcp_solver", LCP_SOLVERS[rng.integers(len(LCP_SOLVERS))])]
        options += [("lcp_iterations", int(rng.choice([10, 50])))]
        if options[-2][1] != "dantzig" and rng.random() < 0.3:
            options += [("lcp_cone", "cone")]
        elif rng.random() < 0.3:
            options += [("lcp_friction", "consistent")]
    else:
        coulomb = rng.random() < 0.2
        solver = "newton" if coulomb else SOLVERS[rng.integers(len(SOLVERS))]
        integrators = COULOMB_INTEGRATORS if coulomb else INTEGRATORS
        options += [("solver", solver), ("integrator", integrators[rng.integers(len(integrators))])]
        options += [("cone", ("pyramidal", "elliptic")[rng.integers(2)])]
        if coulomb:
            options += [("noslip_iterations", 0), ("contact_model", "coulomb")]
        elif rng.random() < 0.2:
            options += [("noslip_iterations", 5)]
        if rng.random() < 0.3:
            options += [("tolerance", float(rng.choice([0.0, 1e-4, 1e-12])))]
        if options[1][1] != "rk4" and rng.random() < 0.15:
            options += [("enableflags", int(Enable.SLEEP))]
    dtype = ("float64", "float64", "float32")[rng.integers(3)]
    expand = ()
    if rng.random() < 0.5:
        expand = tuple(sorted({*rng.choice(EXPANDED, 3), *rng.choice(SWITCHES, 4)}))
    slots = int(rng.choice([6, 12, 30])) if rng.random() < 0.25 else 0
    return Case(name, loaders[name], tuple(options), dtype, expand, int(rng.integers(1 << 30)), slots)


def models(folders=()) -> dict[str, Callable[[], fl.Model]]:
    """Returns loaders of the bundled models and of all XML files of some folders, by name."""
    out = {name: (lambda n=name: fl.bundled(n)) for name in fl.bundled_names()}
    for folder in folders:
        for path in sorted(Path(folder).rglob("*.xml")):
            out[f"{Path(folder).name}/{path.relative_to(folder)}"] = lambda p=path: fl.load(p)
    return out


def search(seconds: float, seed: int, loaders, most_dofs: int = 60, say=None) -> Report:
    """Runs cases one after the other until time is up; returns the report."""
    report, rng, end, names = Report(), np.random.default_rng(seed), time.monotonic() + seconds, list(loaders)
    while time.monotonic() < end and names:
        case = drawn(names, rng, loaders)
        try:
            model = case.model()
            if model.nv == 0 or model.nv > most_dofs:
                names.remove(case.name)
                continue
            before = len(report.found)
            look_at(case, report)
        except (fl.ModelError, fl.UnsupportedFeatureError, ValueError, OSError) as error:
            if say:
                say(f"refused {case}: {str(error)[:100]}")
            if not case.options or isinstance(error, fl.UnsupportedFeatureError | OSError):
                names.remove(case.name)
            continue
        if say and len(report.found) > before:
            for case, sampled, world, step, name, far in report.found[before : before + 3]:
                say(f"DIFFERS {case} | {sampled} | world {world} | step {step} | {name} by {far:.2e}")
    return report


def of_wheels() -> list[Path]:
    """Returns the folders of all wheels; without a network none."""
    try:
        return [wheels.models_folder(name) for name in wheels.WHEELS]
    except wheels.Unreachable:
        return []


def main(arguments: list[str]) -> int:
    if not arguments:
        sys.exit("python tests/bits invariance SECONDS [seed] [folder ...] [part of a model's name ...]")
    seconds, seed = float(arguments[0]), int(arguments[1]) if len(arguments) > 1 else 0
    folders, parts = [p for p in arguments[2:] if Path(p).is_dir()], [p for p in arguments[2:] if not Path(p).is_dir()]
    found = models(folders or of_wheels())
    found = {n: load for n, load in found.items() if not parts or any(part in n for part in parts)}
    print(search(seconds, seed, found, say=lambda line: print(line, flush=True)))
    return 0
