"""`featherlane compare --contact`: the same motion under each contact model and solver, side by side.

All start from one state with the same controls and take the same steps.  What a step leaves is measured in the same way
for all: the solver's own residual, how deep bodies overlap, how fast contacts that press slide at the end of the step,
how far equality constraints are off, the energy, the time of a step.  Options that do not go with the lcp are changed
for it, and named.
"""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from featherlane.cli import BAD_WORLDS, complain
from featherlane.cli.controls import Random
from featherlane.cli.output import (
    check_least,
    check_names,
    check_target,
    console,
    label,
    pairs,
    print_json,
    progress,
    table,
)
from featherlane.errors import ModelError
from featherlane.model.enums import EQUALITY

if TYPE_CHECKING:
    from featherlane.model.model import Model
    from featherlane.simulation.world.data import Data

SOLVERS = {"convex": ("newton", "cg", "pgs"), "lcp": ("dantzig", "pgs", "apgd")}
OPTION = {"convex": "solver", "lcp": "lcp_solver"}
SETTLE = 0.25  # simulated time before the common state [s]
PRESSING = 1e-6  # of the model's weight: a contact with less normal force does not press


@dataclass
class Contest:
    """What the user asked for.

    Attributes:
        source: the model.
        contacts: names of contact models.
        solvers: names of solvers; each runs under every contact model that has it.
        steps: of the common motion.
        iterations: most iterations of each solver; None: the model's own.
        seed: of the random controls.
        plot: the picture to write.
    """

    source: str
    contacts: tuple[str, ...]
    solvers: tuple[str, ...]
    steps: int = 400
    iterations: int | None = None
    seed: int = 0
    plot: Path | None = None
    as_json: bool = False

    def check(self) -> None:
        """Raise ModelError for what cannot be."""
        every = tuple(dict.fromkeys(name for names in SOLVERS.values() for name in names))
        check_names("contact", self.contacts, SOLVERS)
        check_names("solvers", self.solvers, every)
        for name in self.solvers:
            if not any(name in SOLVERS[contact] for contact in self.contacts):
                raise ModelError(f"solvers: {name!r} is none of the contact models {', '.join(self.contacts)}")
        check_least("steps", self.steps, 1)
        check_least("iterations", self.iterations, 1)
        if self.plot is not None:
            check_target(self.plot, ".png")

    def entries(self) -> list[tuple[str, str]]:
        """(contact model, solver) of each run."""
        return [(c, s) for c in self.contacts for s in SOLVERS[c] if s in self.solvers]


@dataclass
class Trace:
    """One run: a number for each step."""

    residual: list[float] = field(default_factory=list)
    penetration: list[float] = field(default_factory=list)
    slip: list[float] = field(default_factory=list)
    drift: list[float] = field(default_factory=list)
    energy: list[float] = field(default_factory=list)
    iterations: list[float] = field(default_factory=list)
    microseconds: list[float] = field(default_factory=list)
    position: list[np.ndarray] = field(default_factory=list)
    resets: int = 0

    def plain(self) -> dict[str, Any]:
        """Medians and largest values; energy at the end less that at the start."""
        return {
            "residual": {"median": np.median(self.residual), "max": max(self.residual)},
            "penetration": {"median": np.median(self.penetration), "max": max(self.penetration)},
            "slip": {"median": np.median(self.slip), "max": max(self.slip)},
            "drift": {"median": np.median(self.drift), "max": max(self.drift)},
            "energy_change": self.energy[-1] - self.energy[0],
            "iterations": {"mean": np.mean(self.iterations), "max": max(self.iterations)},
            "microseconds": {"median": np.median(self.microseconds)},
            "resets": self.resets,
        }


def compare_contact_models(request: Contest) -> int:
    """Run, print, and draw.

    Returns:
        The exit code: BAD_WORLDS where a run's numbers turned bad.

    Raises:
        ModelError: anything wrong with the request, before anything is computed.
        UnsupportedFeatureError: the model has features that are not computed.
        InstallationError: a plot is asked for and matplotlib is not installed.
    """
    request.check()
    if request.plot is not None:
        from featherlane.cli.plot import prepare

        prepare()
    from featherlane.model.load import load

    loaded = load(request.source)
    models, changed = {}, {}
    for contact in request.contacts:
        models[contact], changed[contact] = _prepared(loaded, contact)
    model = models[request.contacts[0]]
    state, traces = _settled(model, request), {}
    with progress(request.as_json) as bar:
        for entry in bar.track(request.entries(), description="stepping"):
            traces[entry] = _run(models[entry[0]], state, request, *entry)
    result = {
        "model": model.source,
        "name": label(model.source),
        "timestep": model.opt.timestep,
        "steps": request.steps,
        "changed": changed,
        "runs": [{"contact": c, "solver": s, **trace.plain()} for (c, s), trace in traces.items()],
    }
    if request.plot is not None:
        from featherlane.cli.plot import draw_motions

        times = model.opt.timestep * np.arange(1, request.steps + 1)
        title = f"{label(model.source)}: {request.steps} steps from one state under each contact model"
        draw_motions(request.plot, title, times, _curves(model, traces))
    if request.as_json:
        print_json(result)
    else:
        _print(result, request.plot)
    lost = [f"{r['contact']} {r['solver']}" for r in result["runs"] if r["resets"]]
    if lost:
        return complain(f"numbers turned bad (NaN, or beyond 1e10) under {', '.join(lost)}", BAD_WORLDS)
    return 0


def _prepared(model: Model, contact: str) -> tuple[Model, list[str]]:
    """A copy of the model under a contact model, and which options had to change for it."""
    from featherlane.model.option import LCP_REFUSED

    copied, changed = copy.copy(model), []
    opt = copied.opt
    if contact == "lcp":
        if opt.integrator.name.lower() != "euler":
            changed.append(f"integrator {opt.integrator.name.lower()} -> euler")
            opt.integrator = "euler"
        if opt.noslip_iterations:
            changed.append("noslip_iterations -> 0")
            opt.noslip_iterations = 0
        refused = opt.enableflags & LCP_REFUSED
        if refused:
            changed.append(f"flags off: {', '.join(str(flag.name).lower() for flag in refused)}")
            opt.enableflags &= ~refused
    opt.contact_model = contact
    return copied, changed


def _settled(model: Model, request: Contest) -> dict[str, np.ndarray]:
    """The common state: some time under random control, with the first contact model."""
    from featherlane.simulation.steps import step
    from featherlane.simulation.world.data import Data

    data, controls = Data(model), Random(model, request.seed, model.opt.timestep)
    for k in range(round(SETTLE / model.opt.timestep)):
        controls.steer(data, k)
        step(model, data)
    return {name: getattr(data, name).copy() for name in ("qpos", "qvel", "act")}


def _run(model: Model, state, request: Contest, contact: str, solver: str) -> Trace:
    """All steps under one contact model by one solver."""
    from featherlane.simulation.stages import energy
    from featherlane.simulation.steps import forward_position, step
    from featherlane.simulation.world.data import Data

    setattr(model.opt, OPTION[contact], solver)
    if request.iterations is not None:
        setattr(model.opt, "iterations" if contact == "convex" else "lcp_iterations", request.iterations)
    data, trace, moves = Data(model), Trace(), _moves(model)
    for name, value in state.items():
        getattr(data, name)[...] = value
    controls = Random(model, request.seed + 1, model.opt.timestep)
    for k in range(request.steps):
        controls.steer(data, k)
        start = time.perf_counter()
        step(model, data)
        trace.microseconds.append(1e6 * (time.perf_counter() - start))
        trace.residual.append(float(data.solver_residual))
        trace.iterations.append(float(data.solver_niter))
        trace.position.append(data.xipos.copy())
        depth, slip = _contacts(model, data, moves)
        trace.penetration.append(depth)
        trace.slip.append(slip)
        trace.drift.append(loop_error(data))
        forward_position(model, data)  # the step's frames are those of the position before it
        energy(model, data)
        trace.energy.append(float(data.energy.sum()))
    trace.resets = int(data.nbad)
    return trace


def _contacts(model: Model, data: Data, moves: np.ndarray) -> tuple[float, float]:
    """Deepest overlap [m], and the mean speed [m/s] at which contacts that press slide after the step.

    Args:
        model: the model.
        data: the world after a step: contacts and forces of the step, velocities at its end.
        moves: (nbody, nv) which dofs move a body.
    """
    view = data.workspace.view
    slots = np.flatnonzero(view("con_present")[: int(view("ncon_slot")[0])] > 0.0)
    depth = float(np.maximum(-view("con_dist")[slots], 0.0).max(initial=0.0))
    weight = float(model.body_mass.sum() * np.linalg.norm(model.opt.gravity))
    pressing = slots[view("con_force")[slots, 0] > PRESSING * weight]
    if not len(pressing):
        return depth, 0.0
    motion = moves @ (data.cdof * data.qvel[:, None])  # of the bodies, at their trees' centres of mass
    pos, velocity = view("con_pos")[pressing], np.zeros((len(pressing), 3))
    for sign, bodies in zip((-1.0, 1.0), view("con_carrier")[pressing].T, strict=True):
        arm = pos - data.subtree_com[model.body_rootid[bodies]]
        velocity += sign * (motion[bodies, 3:] + np.cross(motion[bodies, :3], arm))
    tangents = view("con_frame")[pressing].reshape(-1, 3, 3)[:, 1:]
    return depth, float(np.linalg.norm(np.einsum("ktc,kc->kt", tangents, velocity), axis=1).mean())


def _moves(model: Model) -> np.ndarray:
    """(nbody, nv): which dofs move a body."""
    out = np.zeros((model.nbody, model.nv))
    for body, last in enumerate(model.body_lastdof):
        if last >= 0:
            out[body, model.chain_colind[model.chain_rowadr[last] :][: model.chain_rownnz[last]]] = 1.0
    return out


def loop_error(data: Data) -> float:
    """Largest error of an equality constraint [m, rad]."""
    view = data.workspace.view
    n = int(view("ngenrow")[0])
    equalities = (view("genrow_type")[:n] == EQUALITY) & (view("genrow_present")[:n] > 0.0)
    return float(np.abs(view("genrow_pos")[:n][equalities]).max(initial=0.0))


def _curves(model: Model, traces: dict[tuple[str, str], Trace]) -> dict[tuple[str, str], dict[str, np.ndarray]]:
    """What is drawn of each run: the coordinate that moves most in the first one, and all that is not 0 everywhere."""
    first = np.array(next(iter(traces.values())).position)
    body, axis = np.unravel_index(np.argmax(np.ptp(first, axis=0)), first.shape[1:])
    name = model.names("body")[body] or f"body {body}"
    curves = {
        entry: {
            f"{'xyz'[axis]} of {name} [m]": np.array(trace.position)[:, body, axis],
            "energy [J]": np.array(trace.energy),
            "deepest overlap [m]": np.array(trace.penetration),
            "slip of contacts that press [m/s]": np.array(trace.slip),
            "error of closed loops [m, rad]": np.array(trace.drift),
        }
        for entry, trace in traces.items()
    }
    shown = [what for what in next(iter(curves.values())) if any(c[what].any() for c in curves.values())]
    return {entry: {what: quantities[what] for what in shown} for entry, quantities in curves.items()}


def _print(result: dict[str, Any], plot: Path | None) -> None:
    runs = result["runs"]
    columns = ["contact", "solver", "iterations", "residual (most)"]
    lengths = {"penetration": "overlap [mm] (most)", "slip": "slip [mm/s] (most)", "drift": "loops [mm] (most)"}
    lengths = {key: name for key, name in lengths.items() if any(r[key]["max"] for r in runs)}
    columns += [*lengths.values(), "energy [J]", "time [us]"]
    rows = []
    for r in runs:
        cells = [r["contact"], r["solver"], f"{r['iterations']['mean']:.1f} ({r['iterations']['max']:.0f})"]
        cells.append(f"{r['residual']['median']:.0e} ({r['residual']['max']:.0e})")
        cells += [f"{1e3 * r[key]['median']:.2g} ({1e3 * r[key]['max']:.2g})" for key in lengths]
        rows.append([*cells, f"{r['energy_change']:+.3g}", f"{r['microseconds']['median']:.1f}"])
    screen = console()
    title = f"{result['name']}: {result['steps']} steps from one state"
    screen.print(table(title, columns, rows))
    about = {
        "residual": "convex: norm of the scaled gradient; lcp: largest violation of complementarity, scaled",
        "overlap": "of the deepest contact; loops: largest error of an equality constraint",
        "slip": "mean over the contacts that press, after the step; medians over steps",
        "energy": "at the end less that at the start",
        "time": "one step in one world, as called from Python; the median",
    }
    lost = [f"{r['contact']} {r['solver']}: {r['resets']}" for r in runs if r["resets"]]
    about |= {f"changed for {c}": ", ".join(what) for c, what in result["changed"].items() if what}
    about |= {"bad numbers": ", ".join(lost)} if lost else {}
    screen.print(pairs("", about | ({"wrote plot": str(plot)} if plot else {})))
