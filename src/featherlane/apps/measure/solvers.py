"""Compares several solvers on the same states, each from a cold start.

The states come from one motion under random controls.  Newton at tolerance 0 computes the reference.  Each solver runs
on each state with the model's tolerance and iteration limit, and then at tolerance 0 for curves.  All quantities are
measured in the same way for all solvers: the gradient and the cost are those of the primal problem at the acceleration
that the solver returns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from featherlane import Data, Model, forward, load, step
from featherlane.apps.measure.controls import Random
from featherlane.enums import Disable
from featherlane.errors import ModelError
from featherlane.extension import check_counts, one_of
from featherlane.results import Option
from featherlane.stages import solve

SOLVERS = Option.choices("solver")
REFERENCE_ITERATIONS = 200
SETTLE = 0.25  # simulated time before the first state [s]
ROUNDING = 1e-15  # relative rounding error of a cost, at which curves end
REPEATS = 5  # repetitions of a timed solve; the fastest counts


def check_names(what: str, names: Iterable[str], allowed: Iterable[str]) -> None:
    """Raises ModelError if no name is given, a name is unknown, or a name is repeated."""
    names, allowed = list(names), list(allowed)
    if not names:
        raise ModelError(f"{what}: got none, allowed are {', '.join(allowed)}")
    for name in names:
        one_of(what, name, allowed)
    if len(set(names)) != len(names):
        raise ModelError(f"{what}: got a name twice")


@dataclass
class Comparison:
    """Arguments of the comparison.

    Attributes:
        solvers: names of SOLVERS.
        states: number of states of the motion.
        steps: steps between states.
        iterations: iteration limit of each solver; None for the model's.
    """

    source: str
    solvers: tuple[str, ...] = SOLVERS
    states: int = 20
    steps: int = 20
    iterations: int | None = None
    seed: int = 0

    def check(self) -> None:
        """Raises ModelError for invalid arguments."""
        check_names("solvers", self.solvers, SOLVERS)
        check_counts(self, {"states": 1, "steps": 1, "seed": 0, "iterations": 1})


@dataclass
class Trial:
    """Results of one solver over all states: a number per state, and a curve of (cost above the best, gradient)."""

    iterations: list[float] = field(default_factory=list)
    residual: list[float] = field(default_factory=list)
    gap: list[float] = field(default_factory=list)
    distance: list[float] = field(default_factory=list)
    microseconds: list[float] = field(default_factory=list)
    curves: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)

    def plain(self) -> dict[str, Any]:
        """Returns means, medians and largest values."""
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
    """Solves the states of a motion with each solver.

    Args:
        through: wraps the iterable of states, for example to report progress.

    Returns:
        The measurements as plain values, and each solver's curves, one per state.

    Raises:
        ModelError: the model cannot be loaded, or the motion has no constraint rows.
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
    """Returns states with constraint rows along one motion: qpos, qvel, ctrl."""
    controls = Random(model, request.seed, model.opt.timestep)
    settle, states = round(SETTLE / model.opt.timestep), []
    for k in range(settle + request.states * request.steps):
        controls.steer(data, k)
        step(model, data)
        if k >= settle and (k - settle) % request.steps == request.steps - 1 and data.nefc:
            states.append({name: getattr(data, name).copy() for name in ("qpos", "qvel", "ctrl")})
    if not states:
        raise ModelError(
            f"{request.source}: none of the {request.states} states has active constraints; change --steps"
        )
    return states


def _solve_all(model: Model, data: Data, options: dict[str, Any], trials: dict[str, Trial]) -> None:
    """Solves one state: the reference, then each solver with the options, and at tolerance 0 for its curve."""
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
