"""The same states solved by several solvers, each from a cold start.

One motion under random controls gives the states.  Each is solved by Newton at tolerance 0, the reference, and by each
solver with the model's own tolerance and number of iterations; then by each at tolerance 0, for the curves.  Every
number is measured in the same way for all: the gradient and the cost are those of the primal problem at the
acceleration that the solver returns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from featherlane.errors import ModelError
from featherlane.measure.controls import Random
from featherlane.measure.request import check_names
from featherlane.model import solver as solver_table
from featherlane.model.arguments import counts
from featherlane.model.enums import Disable
from featherlane.model.load import load
from featherlane.model.model import Model
from featherlane.simulation.stages import solve
from featherlane.simulation.steps import forward
from featherlane.simulation.world.data import Data, step

SOLVERS = tuple(solver.name for solver in solver_table.SOLVERS.values())
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
    """

    source: str
    solvers: tuple[str, ...] = SOLVERS
    states: int = 20
    steps: int = 20
    iterations: int | None = None
    seed: int = 0

    def check(self) -> None:
        """Raise ModelError for what cannot be."""
        check_names("solvers", self.solvers, SOLVERS)
        counts(self, {"states": 1, "steps": 1, "seed": 0, "iterations": 1})


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


def compare_solvers(
    request: Comparison, through: Callable[[list], Iterable] = iter
) -> tuple[dict[str, Any], dict[str, list]]:
    """Solve the states of a motion by each solver.

    Args:
        request: checked.
        through: from the states to what goes through them, and may say how far it is.

    Returns:
        What was measured, as plain values; and each solver's curves, one for each state.

    Raises:
        ModelError: the model cannot be loaded; a motion without a single row.
    """
    model = load(request.source)
    options = {"tolerance": model.opt.tolerance, "iterations": request.iterations or model.opt.iterations}
    data = Data(model)
    states = _motion(model, data, request)
    model.opt.disableflags |= Disable.WARMSTART
    trials = {name: Trial() for name in request.solvers}
    contacts, rows = [], []
    for state in through(states):
        data.reset()
        for name, value in state.items():
            setattr(data, name, value)
        _solve_all(model, data, options, trials)
        contacts.append(data.ncon)
        rows.append(data.nefc)
    result = {
        "model": model.source,
        "cone": model.opt.cone.name.lower(),
        "states": len(states),
        "contacts": {"mean": np.mean(contacts), "max": max(contacts)},
        "rows": {"mean": np.mean(rows), "max": max(rows)},
        **options,
        "solvers": {name: trial.plain() for name, trial in trials.items()},
    }
    return result, {name: trial.curves for name, trial in trials.items()}


def _motion(model: Model, data: Data, request: Comparison) -> list[dict[str, np.ndarray]]:
    """States with rows along one motion: qpos, qvel, ctrl."""
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
