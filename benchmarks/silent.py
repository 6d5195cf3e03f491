"""Silent steps: solves that end above their tolerance and say nothing, counted over all models of the wheels.

    python benchmarks/silent.py --steps 10_000_000 --processes 16 --results silent.jsonl --write

Every model with each solver, in float64 and float32, with both friction cones, in batches of 64 worlds: *driven* by
random controls, new ones each 20 steps, and from *hard* states: 12 steps from kicked positions, speeds up to 100 rad/s,
random controls.  A step is silent where `not_converged` did not count it, though its residual, relative to the forces
that it is made of, is above 1e-6 (float32: 1e-4), and neither the gap nor rounding explains it:

    convex   |grad| / max(|qfrc_smooth|, |qfrc_constraint|),  grad = M a - qfrc_smooth - J^T f(J a - aref);
             gap: `solver_gap`, which bounds the cost above its minimum, is at most 100 tolerances;
             rounding: 256 eps times the norm of |M a| + |qfrc_smooth| + |qfrc_constraint| + |J|^T D (|J| |a| + |aref|),
             |a| not less than that without constraints; in float32 contacts that it may see, though bodies are up to
             TOUCHING apart, are among the rows; it explains no residual above 1e-2 (float32: 2e-3)
    right    above that, too: M qacc - qfrc_smooth and qfrc_constraint are those of the minimum in extended precision,
             to the limit, times the forces, and a few roundings of each row
    lcp      `solver_residual`, which is relative; none but float32's 2e-6

Rounding and the minimum are computed here, in NumPy, from the rows of the step taken again by one world alone.  Of some
steps a copy is solved from a cold start: its qacc has to be the same to 1e-5 of the largest.
"""

from __future__ import annotations

import argparse
import copy
import json
import multiprocessing
import os
import sys
import time
import traceback
import warnings
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
from report import arguments, markdown, origin, publish

import featherlane as fl
from featherlane.engine.dynamics.inertia.articulated import uses_articulated
from featherlane.engine.model.enums import Integrator, State
from featherlane.engine.model.integrator import has_metric

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import mujoco  # the oracle, for `report` came first

from oracles.precise import Precise
from robots import wheels
from robots.models import NO_TRUTH
from scenes.states import kicked

NWORLD, HOLD, HARD_STEPS, DRIVEN_STEPS = 64, 20, 12, 60
SPEED = 100.0  # [m/s, rad/s]
LIMIT = {"float64": 1e-6, "float32": 1e-4}  # relative
NEAR = 100.0  # tolerances that the gap may be
ROUNDING = 256.0  # of what one rounding of every term leaves
SAME = {"float64": 1e-5, "float32": 1e-2}  # of the largest qacc
TOUCHING = 1e-6  # [m] what rounds where things are in float32
ROUNDED = 16.0  # roundings of each term of a row that its force may have
REPLAYED = 5000  # steps of a case whose rounding is looked at: the rest counts as silent
EXPLAINED = {"float64": 1e-2, "float32": 2e-3}  # relative residual that rounding may explain, at most
COLD = 10  # every so many steps of a batch one is solved from a cold start, too
LIVES = 8  # processes of a case
FEW = 20  # iterations; the default is 100
KEPT = 20  # worst silent steps that a case hands over
RIGID = {"integrator": "euler", "noslip_iterations": 0, "contact_model": "lcp"}  # in this order: others are refused
SOLVERS = {
    "Newton": {"solver": "Newton"},
    "CG": {"solver": "CG"},
    "PGS": {"solver": "PGS"},
    "Dantzig": RIGID | {"lcp_solver": "dantzig"},
    "lcp PGS": RIGID | {"lcp_solver": "pgs"},
    "APGD": RIGID | {"lcp_solver": "apgd"},
}
CONES = {
    "pyramidal": {"convex": {"cone": "pyramidal"}, "lcp": {"lcp_cone": "pyramid"}},
    "elliptic": {"convex": {"cone": "elliptic"}, "lcp": {"lcp_cone": "cone"}},
}
WAYS = ("driven", "hard")


@dataclass
class Count:
    """What became of the steps of one solver, cone, precision and way, of one model or of all.

    Attributes:
        steps: of a world, each.
        above: with a relative residual above the limit.
        reported: of all steps, those that `not_converged` counted.
        short: of these, those of models that allow fewer than `FEW` iterations.
        near: of those above and not reported, those with a small gap.
        rounding: of the others, what rounding explains.
        right: of the others, those with acceleration and force of the minimum.
        silent: the rest.
        unlike: of the steps solved from a cold start, too, and reported by neither, those with another qacc.
        cold: how many were.
        bad: worlds that were reset, and do not count otherwise.
        worst: the largest relative residual of a silent step.
    """

    steps: int = 0
    above: int = 0
    reported: int = 0
    short: int = 0
    near: int = 0
    rounding: int = 0
    right: int = 0
    silent: int = 0
    unlike: int = 0
    cold: int = 0
    bad: int = 0
    worst: float = 0.0

    def add(self, other: Count) -> None:
        """Take another's steps in."""
        for name in asdict(self):
            both = getattr(self, name), getattr(other, name)
            setattr(self, name, max(both) if name == "worst" else sum(both))


@dataclass(frozen=True)
class Case:
    """A model under one solver; `name` is a real model's, a bundled model's or a file's."""

    name: str
    solver: str
    cone: str
    dtype: str
    steps: int
    seed: int
    seconds: float

    def key(self, way: str) -> tuple[str, str, str, str]:
        """The line of the table that its steps count in."""
        return self.solver, self.cone, self.dtype, way


@dataclass
class Found:
    """What a case met: counts by way, its worst silent steps, and why it was not run, if so."""

    case: Case
    counts: dict[str, Count] = field(default_factory=dict)
    steps: list[dict] = field(default_factory=list)
    error: str = ""
    seconds: float = 0.0


def names(folder: str | None, chosen: list[str] | None) -> Iterator[str]:
    """All models of the wheels and of the bundle, or the files of a folder; of these what `chosen` names a part of."""
    found = [str(path) for path in sorted(Path(folder).rglob("*.xml"))] if folder else []
    if not folder:
        found += fl.bundled_names() + [*wheels.GYMNASIUM_MODELS, *wheels.DM_CONTROL_MODELS]
        for wheel in wheels.WHEELS:
            if not wheels.WHEELS[wheel].models:
                found += wheels.models_in(wheel)
    for name in found:
        if name not in NO_TRUTH and (not chosen or any(part in name for part in chosen)):
            yield name


@lru_cache(maxsize=1)
def compiled(name: str) -> mujoco.MjModel:
    """MuJoCo's model of that name; the last one is kept."""
    return mujoco.MjModel.from_xml_path(name if name.endswith(".xml") else str(wheels.model_path(name)))


def load(name: str) -> fl.Model | None:
    """The model; None where it does not load by itself, is refused, or has nothing that moves."""
    try:
        model = fl.bundled(name) if name in fl.bundled_names() else fl.load(compiled(name))
    except (ValueError, fl.FeatherlaneError):
        return None
    return model if model.nv else None


def kick(model: fl.Model, batch: fl.Batch, rng: np.random.Generator, way: str) -> None:
    """Start all worlds again."""
    batch.reset()
    hard = way == "hard"
    for w in range(NWORLD):
        speed = SPEED * rng.uniform() ** 2 if hard else 0.1
        position = 0.3 * rng.uniform() if hard else 0.02
        qpos, qvel = kicked(model, rng, position)
        batch.qpos[w], batch.qvel[w] = qpos, speed * rng.uniform(-1, 1, model.nv) if hard else speed * qvel


def controls(model: fl.Model, rng: np.random.Generator) -> np.ndarray:
    """(NWORLD, nu): over all of their range, between -1 and 1 where they have none."""
    limited = np.asarray(model.actuator_ctrllimited, bool)
    low, high = (np.where(limited, model.actuator_ctrlrange[:, k], (-1.0, 1.0)[k]) for k in (0, 1))
    return rng.uniform(low, high, (NWORLD, model.nu))


# ---- one case ------------------------------------------------------------------------------------------------------
def norm(x: np.ndarray) -> np.ndarray:
    """Length of each row, without overflow."""
    size = np.maximum(np.abs(x).max(axis=1, initial=0.0), 1e-300)
    return size * np.sqrt(((x / size[:, None]) ** 2).sum(axis=1))


def relative_residual(model: fl.Model, batch: fl.Batch, lcp: bool) -> np.ndarray:
    """(NWORLD,) that of the last step."""
    residual = np.asarray(batch.solver_residual, float)
    if lcp:
        return residual
    inertia = trace_of_inertia(model, batch)
    forces = np.maximum(norm(np.asarray(batch.qfrc_smooth, float)), norm(np.asarray(batch.qfrc_constraint, float)))
    return residual * inertia / np.maximum(forces, 1e-12 * inertia)


def trace_of_inertia(model: fl.Model, batch: fl.Batch) -> np.ndarray | float:
    """(nworld,) the scale of the residual: that of M, or the model's where another matrix, or none, is the metric."""
    if uses_articulated(model) or has_metric(model):
        return model.stat_meaninertia * model.nv
    return np.asarray(batch.M, float)[:, model.M_rowadr + model.M_rownnz - 1].sum(axis=1)


class Replay:
    """Steps taken again by one world alone, whose rows say what rounding explains."""

    def __init__(self, model: fl.Model, dtype: str):
        self.dtype, self.worlds, self.batch = dtype, [(model, fl.Data(model))], None
        if dtype == "float32":
            # bodies that touch in float32 may be a rounding apart: the rows of the step are those with the contact
            near = copy.copy(model)
            near.geom_margin[:] += TOUCHING
            near.pair_margin[:] += TOUCHING
            self.worlds.append((near, fl.Data(near)))

    def explained(self, state: np.ndarray) -> float:
        """What rounding explains of the relative residual of a step from this state."""
        terms = max(self.terms(model, data, state) for model, data in self.worlds)
        return min(ROUNDING * float(np.finfo(self.dtype).eps) * terms, EXPLAINED[self.dtype])

    def right(self, state: np.ndarray, qacc: np.ndarray) -> bool:
        """Are acceleration and force of a step from this state those of the minimum?"""
        model = self.worlds[0][0]
        if model.opt.integrator == Integrator.RK4 or has_metric(model):
            return False
        if self.batch is None:
            self.batch = fl.Batch(model, 1, nthread=1, dtype=self.dtype)
            for name in ("qacc", "qfrc_constraint", "M"):
                self.batch.bind(name)
        fl.set_state(model, self.batch, state[None], State.INTEGRATION)
        self.batch.forward()
        ((workspace,),) = self.batch.runner.plans.workspaces.values()
        problem = Precise(model, workspace.arrays)
        a = problem.minimum(qacc)
        net, found = problem.net(a), (problem.net(qacc), self.batch.qfrc_constraint[0])
        size = np.sqrt(max(problem.f0 @ problem.f0, net @ net))
        bound = LIMIT[self.dtype] * size + ROUNDED * problem.rounding(a, np.finfo(self.dtype).eps)
        return bool((self.batch.qacc[0] == qacc).all() and all((np.abs(x - net) <= bound).all() for x in found))

    @staticmethod
    def terms(model: fl.Model, data: fl.Data, state: np.ndarray) -> float:
        """The sum of all terms of the gradient of a step from this state, relative to the forces."""
        fl.set_state(model, data, state, State.INTEGRATION)
        if model.opt.integrator == Integrator.RK4:
            fl.step(model, data)  # the report is that of the fourth stage, and so are the rows that it leaves
        else:
            fl.forward(model, data)
        return terms_of_gradient(model, data)


def terms_of_gradient(model: fl.Model, data: fl.Data) -> float:
    """The sum of all terms of the gradient, relative to the forces."""
    f0, fc = np.asarray(data.qfrc_smooth, float), np.asarray(data.qfrc_constraint, float)
    # iterations add to the acceleration without constraints, and cancel it
    a = np.maximum(np.abs(np.asarray(data.qacc, float)), np.abs(np.asarray(data.qacc_smooth, float)))
    J, D = np.abs(data.efc_J), np.asarray(data.efc_D)
    x = J @ a + np.abs(data.efc_aref)
    # a row at a bound has the force of its bound, a row that does not push none
    free = (np.asarray(data.efc_state) == 1) | (np.asarray(data.efc_state) == 4)
    terms = np.abs(fl.query.full_m(model, data)) @ a + np.abs(f0) + np.abs(fc) + J.T @ np.where(free, D * x, 0.0)
    forces = max(np.linalg.norm(f0), np.linalg.norm(fc), 1e-12 * model.stat_meaninertia * model.nv)
    return float(np.linalg.norm(terms)) / forces


class Runner:
    """The worlds of a case, and what they count."""

    def __init__(self, model: fl.Model, case: Case, found: Found, way: str):
        self.model, self.case, self.found, self.way = model, case, found, way
        self.lcp = "lcp_solver" in SOLVERS[case.solver]
        self.batch = fl.Batch(model, NWORLD, nthread=1, dtype=case.dtype)
        self.cold = None if self.lcp else fl.Batch(model, NWORLD, nthread=1, dtype=case.dtype)
        for batch in filter(None, (self.batch, self.cold)):
            batch.mute()  # resets are counted
            for name in ("qacc", "qfrc_smooth", "qfrc_constraint", "M"):
                batch.bind(name)
        self.count = found.counts[way] = Count()
        self.looked, self.replay = 0, Replay(model, case.dtype)

    def step(self, index: int) -> None:
        """One step of all worlds."""
        batch, count = self.batch, self.count
        before = fl.get_state(self.model, batch, State.INTEGRATION)
        reported, nreset = batch.status["not_converged"].copy(), batch.nreset.copy()
        if self.cold is not None and index % COLD == 0:
            fl.set_state(self.model, self.cold, before, State.INTEGRATION)
            self.cold.qacc_warmstart[:] = 0.0
            self.cold.step()
        batch.step()
        reported, bad = batch.status["not_converged"] > reported, batch.nreset != nreset
        residual = relative_residual(self.model, batch, self.lcp)
        # not `>`: a NaN residual counts as above
        above = ~(residual <= LIMIT[self.case.dtype]) & ~bad
        count.steps += int((~bad).sum())
        count.bad += int(bad.sum())
        count.reported += int((reported & ~bad).sum())
        count.short += int((reported & ~bad).sum()) if self.model.opt.iterations < FEW and not self.lcp else 0
        count.above += int(above.sum())
        near = above & ~reported & (batch.solver_gap <= NEAR * self.model.opt.tolerance) & (not self.lcp)
        count.near += int(near.sum())
        for w in np.flatnonzero(above & ~reported & ~near):
            self.look(before[w], float(residual[w]), index, int(w))
        if self.cold is not None and index % COLD == 0:
            self.compare(~bad & ~reported & (self.cold.nreset == 0))

    def look(self, state: np.ndarray, residual: float, index: int, world: int) -> None:
        """A step above the limit that says nothing: rounding, or silent."""
        self.looked += 1
        rounding, replayed = 0.0, not self.lcp and self.looked <= REPLAYED
        if replayed:
            rounding = self.replay.explained(state)
        if residual <= rounding:
            self.count.rounding += 1
        elif replayed and self.replay.right(state, np.array(self.batch.qacc[world])):
            self.count.right += 1
        else:
            self.count.silent += 1
            self.count.worst = max(self.count.worst, residual)
            if len(self.found.steps) < KEPT:
                step = {"way": self.way, "step": index, "world": world, "residual": residual, "rounding": rounding}
                self.found.steps.append(step)

    def compare(self, chosen: np.ndarray) -> None:
        """The accelerations of the step and of one from a cold start."""
        cold = self.cold
        chosen = chosen & (cold.status["not_converged"] == 0)
        a, b = np.asarray(self.batch.qacc, float), np.asarray(cold.qacc, float)
        size = np.maximum(np.abs(a).max(axis=1), np.abs(b).max(axis=1))
        unlike = ~(np.abs(a - b).max(axis=1) <= SAME[self.case.dtype] * np.maximum(size, 1e-3))
        self.count.cold += int(chosen.sum())
        self.count.unlike += int((unlike & chosen).sum())
        cold.reset()

    def run(self, steps: int, until: float) -> None:
        """Steps until the budget of steps or of time is spent."""
        rng = np.random.default_rng([self.case.seed, zlib.crc32(repr(self.case.key(self.way)).encode())])
        span = HARD_STEPS if self.way == "hard" else DRIVEN_STEPS
        for index in range(-(-steps // NWORLD)):
            if index % span == 0:
                kick(self.model, self.batch, rng, self.way)
            if index % (span if self.way == "hard" else HOLD) == 0 and self.model.nu:
                self.batch.ctrl[:] = controls(self.model, rng)
            self.step(index)
            if time.perf_counter() > until:
                break


def configure(model: fl.Model, case: Case) -> None:
    """Its solver and its cone."""
    solver = SOLVERS[case.solver]
    for name, value in (solver | CONES[case.cone]["lcp" if "lcp_solver" in solver else "convex"]).items():
        setattr(model.opt, name, value)


def run(case: Case) -> Found:
    """All of a case; what goes wrong is part of what it met."""
    found, start = Found(case), time.perf_counter()
    warnings.simplefilter("ignore", fl.NonFiniteWarning)  # counted here
    try:
        model = load(case.name)
        if model is None:
            found.error = "not loaded"
            return found
        configure(model, case)
        for k, way in enumerate(WAYS):
            until = start + case.seconds * (k + 1) / len(WAYS)
            Runner(model, case, found, way).run(case.steps // len(WAYS), until)
    except fl.UnsupportedFeatureError as error:
        found.error = f"unsupported: {error}".splitlines()[0]
    except Exception:
        found.error = traceback.format_exc()
    found.seconds = time.perf_counter() - start
    return found


# ---- all cases -----------------------------------------------------------------------------------------------------
def cases(asked) -> list[Case]:
    """Every model with every solver, the budget of steps in equal parts."""
    every = []
    for name in names(asked.models_from, asked.models):
        for solver in asked.solvers:
            for cone in CONES if solver != "Dantzig" else ("pyramidal",):
                every += [(name, solver, cone, dtype) for dtype in asked.dtypes]
    steps = max(asked.steps // max(len(every), 1), 2 * NWORLD)
    return [Case(*one, steps, asked.seed, asked.seconds) for one in every]


def table(counts: dict[tuple[str, str, str, str], Count]) -> str:
    """The counts, a line for each solver, cone, precision and way."""
    rows = []
    for (solver, cone, dtype, way), n in counts.items():
        share, examined = (
            f"{1e6 * reported / n.steps:,.0f}" if n.steps else "" for reported in (n.reported, n.reported - n.short)
        )
        numbers = (n.above, n.near, n.rounding, n.right, n.silent, n.cold, n.unlike)
        above, near, rounding, right, silent, cold, unlike = (f"{x:,}" for x in numbers)
        worst, solver = f"{n.worst:.0e}" if n.silent else "", f"{solver}, {cone}"
        rows.append(
            [solver, dtype, way, f"{n.steps:,}", share, examined, above, near, rounding, right, silent, worst, cold]
            + [unlike]
        )
    columns = ("solver", "precision", "states", "steps", "`not_converged` per million")
    columns += (f"of these, with at least {FEW} iterations allowed", "residual above the limit", "small duality gap")
    columns += ("rounding", "correct acceleration", "**unreported**", "largest", "compared with a cold start")
    columns += ("different",)
    return markdown(columns, rows)


def parser() -> argparse.ArgumentParser:
    """What may be asked for."""
    own = arguments(__doc__)
    own.add_argument("--steps", type=int, default=1_000_000, help="world-steps of all cases together")
    own.add_argument("--processes", type=int, default=os.cpu_count(), help="cases that run at once")
    own.add_argument("--models-from", metavar="FOLDER", help="models: every .xml below it, in place of the wheels")
    own.add_argument("--models", nargs="*", metavar="PART", help="only models whose names have one of these parts")
    own.add_argument("--solvers", nargs="*", choices=SOLVERS, default=[*SOLVERS], help="only these")
    own.add_argument("--dtypes", nargs="*", choices=LIMIT, default=[*LIMIT], help="only these")
    own.add_argument("--seconds", type=float, default=120.0, help="the most that one case takes")
    own.add_argument("--seed", type=int, default=0, help="of all random numbers")
    own.add_argument(
        "--results",
        metavar="FILE",
        type=Path,
        help="a line of JSON for each case as it ends, its worst silent steps too; cases found there are not run again",
    )
    return own


def serve(every: list[Case], end) -> None:
    """Runs the cases in a separate process."""
    for case in every:
        end.send(run(case))


def run_apart(every: list[Case]) -> Iterator[Found]:
    """Yields the results of the cases, from a separate process; a new one starts if it dies or exceeds its time."""
    context, died = multiprocessing.get_context("spawn"), {}
    while every:
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=serve, args=(every, theirs), daemon=True)
        process.start()
        theirs.close()
        try:
            while every:
                if not ours.poll(60.0 + 10.0 * every[0].seconds):
                    process.kill()
                    raise EOFError("it hung, and its process was ended")
                yield ours.recv()
                every = every[1:]
        except EOFError as error:
            # just in time, LLVM dies of many stages in one process: it is the case's own only where it comes again
            died[every[0]] = died.get(every[0], 0) + 1
            if died[every[0]] == LIVES or str(error):
                yield Found(every[0], error=str(error) or f"its process died {LIVES} times")
                every = every[1:]
        process.join()


def read_results(file: Path | None) -> list[Found]:
    """What a survey that was broken off had found."""
    results = []
    for line in file.read_text().splitlines() if file and file.exists() else ():
        found = json.loads(line)
        counts = {way: Count(**count) for way, count in found["counts"].items()}
        results.append(Found(**found | {"case": Case(**found["case"]), "counts": counts}))
    return results


def survey(every: list[Case], processes: int, file: Path | None = None, report=lambda line: None) -> list[Found]:
    """All cases, those of a model in one process; those of the file are there already."""
    results = [found for found in read_results(file) if found.case in every]
    done, models = {found.case for found in results}, {}
    for case in every:
        if case not in done:
            models.setdefault(case.name, []).append(case)

    def take(cases: list[Case]) -> None:
        for found in run_apart(cases):
            results.append(found)
            if file:
                with file.open("a") as out:
                    out.write(json.dumps(asdict(found)) + "\n")
            tell(found, report)

    with ThreadPoolExecutor(processes) as pool:
        list(pool.map(take, models.values()))
    return results


def tell(found: Found, report) -> None:
    """A line on a case that met what it should not."""
    silent = sum(count.silent for count in found.counts.values())
    if silent or found.error not in ("", "not loaded"):
        case = found.case
        what = found.error.strip().splitlines()[-1] if found.error else f"{silent} silent"
        report(f"{case.name} {case.solver} {case.cone} {case.dtype}: {what}")


def total(results: list[Found]) -> dict[tuple[str, str, str, str], Count]:
    """Returns the counts of all models by line of the table, sorted by solver."""
    counts = {}
    for found in results:
        for way, count in found.counts.items():
            counts.setdefault(found.case.key(way), Count()).add(count)
    order = [*SOLVERS]
    return dict(sorted(counts.items(), key=lambda item: (order.index(item[0][0]), item[0][1:])))


def main() -> None:
    asked = parser().parse_args()
    results = survey(
        cases(asked), asked.processes, asked.results, lambda line: print(line, file=sys.stderr, flush=True)
    )
    models = len({found.case.name for found in results if found.counts})
    publish("silent", f"{table(total(results))}\n\n{models} models.\n\n{origin()}", asked.write)


if __name__ == "__main__":
    main()
