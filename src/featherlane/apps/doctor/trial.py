"""Checks by trial simulation: each start is simulated with its controls."""

from __future__ import annotations

from collections.abc import Iterator

from featherlane.apps.doctor.examined_model import ExaminedModel
from featherlane.apps.doctor.finding import ERROR, WARNING, Sign
from featherlane.apps.doctor.registry import check

OFTEN = 0.01  # fraction of the steps


@check("trial-bad", ERROR, "the world is reset to the model's defaults repeatedly")
def non_finite_states(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds states that become non-finite or exceed 1e10 within a second, or 500 steps (50,000 / DoFs if fewer), from a
    start with its controls."""
    for trial in examined.trials:
        if trial.counts["non_finite"]:
            seen = f"non-finite or out-of-range values within {trial.when:.3g} s from {trial.start}"
            advice = "fix the other findings first; try a smaller timestep to find out if the model is stiff"
            yield Sign("model", -1, seen, advice)


@check("trial-not-converged", WARNING, "the solver does not reach its tolerance in these steps")
def not_converged(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds trials in which more than 1 % of the steps are counted in `not_converged`."""
    steps = examined.trial_steps
    for trial in examined.trials:
        if trial.counts["not_converged"] > OFTEN * steps:
            seen = f"{trial.counts['not_converged']} of {steps} steps from {trial.start} did not converge"
            yield Sign("option", "iterations", seen, "use more iterations, newton or dantzig, or softer constraints")


@check("trial-full", WARNING, "contacts or rows beyond the capacity are dropped")
def full(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds trials with more contacts or rows than the capacity."""
    for trial in examined.trials:
        for name in ("contacts_full", "rows_full"):
            if trial.counts[name]:
                seen = f"{name} in {trial.counts[name]} of {examined.trial_steps} steps from {trial.start}"
                advice = "reserve more by <size nconmax>, or reduce overlapping pairs (contype, conaffinity); "
                advice += "a pair with a height field or a signed distance field has at most 50: use larger cells there"
                yield Sign("model", -1, seen, advice)
