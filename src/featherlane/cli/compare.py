"""`featherlane compare`: the same states solved by several solvers, each from a cold start.

One motion under random controls gives the states.  Each is solved by Newton at tolerance 0, the reference, and by each
solver with the model's own tolerance and number of iterations; then by each at tolerance 0, for the curves.  Every
number is measured in the same way for all: the gradient and the cost are those of the primal problem at the
acceleration that the solver returns.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

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

if TYPE_CHECKING:
    from featherlane.model.model import Model
    from featherlane.simulation.world.data import Data

SOLVERS = ("newton", "cg", "pgs")
REFERENCE_ITERATIONS = 200
SETTLE = 0.25  # simulated time before the first state [s]
ROUNDING = 1e-15  # of a cost, relative: curves end there
REPEATS = 5  # of a solve that is timed; the quickest counts


@dataclass
class Comparison:
    """What the user asked for.

    Attributes:
        source: the model.
        solvers: names of SOLVERS.
        states: how many states of the motion.
        steps: from one state to the next.
        iterations: most iterations of each solver; None: the model's own.
        seed: of the random controls.
        plot: the picture to write.
    """

    source: str
    solvers: tuple[str, ...] = SOLVERS
    states: int = 20
    steps: int = 20
    iterations: int | None = None
    seed: int = 0
    plot: Path | None = None
    as_json: bool = False

    def check(self) -> None:
        """Raise ModelError for what cannot be."""
        check_names("solvers", self.solvers, SOLVERS)
        for name, least in (("states", 1), ("steps", 1), ("seed", 0), ("iterations", 1)):
            check_least(name, getattr(self, name), least)
        if self.plot is not None:
            check_target(self.plot, ".png")


@dataclass
class Trial:
    """One solver over all states: a number for each, and a curve of (cost above the best, gradient)."""

    iterations: list[float] = field(default_factory=list)
    residual: list[float] = field(default_factory=list)
    gap: list[float] = field(default_factory=list)
    distance: list[float] = field(default_factory=list)
    microseconds: list[float] = field(default_factory=list)
    curves: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)

    def plain(self) -> dict[str, Any]:
        """Means, medians and largest values."""
        return {
            "iterations": {"mean": np.mean(self.iterations), "max": max(self.iterations)},
            "residual": {"median": np.median(self.residual), "max": max(self.residual)},
            "gap": {"median": np.median(self.gap), "max": max(self.gap)},
            "distance": {"median": np.median(self.distance), "max": max(self.distance)},
            "microseconds": {"median": np.median(self.microseconds)},
        }


def compare(request: Comparison) -> None:
    """Compare, print, and draw.

    Raises:
        ModelError: anything wrong with the request, before anything is computed; a motion without a single row.
        InstallationError: a plot is asked for and matplotlib is not installed.
    """
    request.check()
    if request.plot is not None:
        from featherlane.cli.plot import prepare

        prepare()
    from featherlane.model.enums import Disable
    from featherlane.model.load import load
    from featherlane.simulation.world.data import Data

    model = load(request.source)
    options = {"tolerance": model.opt.tolerance, "iterations": request.iterations or model.opt.iterations}
    data = Data(model)
    states = _motion(model, data, request)
    model.opt.disableflags |= Disable.WARMSTART
    trials = {name: Trial() for name in request.solvers}
    contacts, rows = [], []
    with progress(request.as_json) as bar:
        for state in bar.track(states, description="solving"):
            data.reset()
            for name, value in state.items():
                setattr(data, name, value)
            _solve_all(model, data, options, trials)
            contacts.append(data.ncon)
            rows.append(data.nefc)
    result = {
        "model": model.source,
        "name": label(model.source),
        "cone": model.opt.cone.name.lower(),
        "states": len(states),
        "contacts": {"mean": np.mean(contacts), "max": max(contacts)},
        "rows": {"mean": np.mean(rows), "max": max(rows)},
        **options,
        "solvers": {name: trial.plain() for name, trial in trials.items()},
    }
    if request.plot is not None:
        from featherlane.cli.plot import draw_convergence

        title = f"{label(model.source)}, {result['cone']} cones, {len(states)} states, cold start"
        draw_convergence(request.plot, title, {name: trial.curves for name, trial in trials.items()})
    if request.as_json:
        print_json(result)
    else:
        _print(result, request.plot)


def _motion(model: Model, data: Data, request: Comparison) -> list[dict[str, np.ndarray]]:
    """States with rows along one motion: qpos, qvel, ctrl."""
    from featherlane.simulation.steps import step

    controls = Random(model, request.seed, model.opt.timestep)
    settle, states = round(SETTLE / model.opt.timestep), []
    for k in range(settle + request.states * request.steps):
        controls.steer(data, k)
        step(model, data)
        if k >= settle and (k - settle) % request.steps == request.steps - 1 and data.nefc:
            states.append({name: getattr(data, name).copy() for name in ("qpos", "qvel", "ctrl")})
    if not states:
        raise ModelError(f"{request.source}: none of {request.states} states has a constraint to solve; see --steps")
    return states


def _solve_all(model: Model, data: Data, options: dict[str, Any], trials: dict[str, Trial]) -> None:
    """One state: the reference, then each solver with the options, and at tolerance 0 for its curve."""
    from featherlane.simulation.stages import solve
    from featherlane.simulation.steps import forward

    model.opt.solver, model.opt.tolerance, model.opt.iterations = "newton", 0.0, REFERENCE_ITERATIONS
    data.record_solver = True
    forward(model, data)
    reference, best = data.qacc.copy(), data.solver_history.cost.min()
    size = max(float(np.abs(reference).max()), 1.0)
    for name, trial in trials.items():
        model.opt.solver, model.opt.tolerance, model.opt.iterations = name, 0.0, options["iterations"]
        data.record_solver = True
        solve(model, data)
        history = data.solver_history
        trial.curves.append((np.maximum(history.cost - best, ROUNDING * abs(best)), history.gradient))
        model.opt.tolerance, data.record_solver = options["tolerance"], False
        times = []
        for _ in range(REPEATS):
            start = time.perf_counter()
            solve(model, data)
            times.append(1e6 * (time.perf_counter() - start))
        trial.iterations.append(data.solver_niter)
        trial.residual.append(data.solver_residual)
        trial.gap.append(data.solver_gap)
        trial.distance.append(float(np.abs(data.qacc - reference).max()) / size)
        trial.microseconds.append(min(times))


def _print(result: dict[str, Any], plot: Path | None) -> None:
    columns = ["solver", "iterations", "residual (most)", "duality gap (most)", "distance (most)", "time [us]"]
    rows = []
    for name, r in result["solvers"].items():
        cells = [f"{r['iterations']['mean']:.1f} ({r['iterations']['max']:.0f})"]
        cells += [f"{r[key]['median']:.1e} ({r[key]['max']:.1e})" for key in ("residual", "gap", "distance")]
        rows.append([name, *cells, f"{r['microseconds']['median']:.1f}"])
    screen = console()
    title = f"{result['name']}: {result['states']} states from a cold start, medians over states"
    screen.print(table(title, columns, rows))
    about = {
        "cones": result["cone"],
        "contacts": f"{result['contacts']['mean']:.1f} in the mean, {result['contacts']['max']} at most",
        "rows": f"{result['rows']['mean']:.1f} in the mean, {result['rows']['max']} at most",
        "tolerance": f"{result['tolerance']:g}, {result['iterations']} iterations at most",
        "distance": "largest |qacc - reference| over the largest |reference|; the reference is Newton at tolerance 0",
        "time": f"one solve in one world, as called from Python; the quickest of {REPEATS}",
    }
    screen.print(pairs("", about | ({"wrote plot": str(plot)} if plot else {})))
