"""`featherlane compare`: comparisons of solvers or of contact models, as tables, JSON and plots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from featherlane.apps.cli.exit import BAD_WORLDS, complain
from featherlane.apps.cli.output import (
    add_model_label,
    check_target,
    console,
    name_value_table,
    print_json,
    progress,
    table,
)
from featherlane.apps.cli.plot import draw_convergence, draw_motions, require_matplotlib
from featherlane.apps.measure.contact_models import Contest, compare_motions
from featherlane.apps.measure.solvers import REPEATS, Comparison, compare_solvers


def compare(request: Comparison, plot: Path | None, as_json: bool) -> None:
    """Compares solvers, prints the results, and draws the plot.

    Raises:
        ModelError: the request is invalid (raised before any computation), or the motion has no constraint rows.
        InstallationError: a plot is requested and matplotlib is not installed.
    """
    _check(request, plot)
    with progress(as_json) as bar:
        result, curves = compare_solvers(request, lambda states: bar.track(states, description="solving"))
    result = add_model_label(result)
    if plot is not None:
        title = f"{result['name']}, {result['cone']} cones, {result['states']} states, cold start"
        draw_convergence(plot, title, curves)
    if as_json:
        print_json(result)
    else:
        _print_solvers(result, plot)


def compare_contact_models(request: Contest, plot: Path | None, as_json: bool) -> int:
    """Compares contact models, prints the results, and draws the plot.

    Returns:
        The exit code: BAD_WORLDS if a run became non-finite or out of range.

    Raises:
        ModelError: the request is invalid; raised before any computation.
        UnsupportedFeatureError: the model has unsupported features.
        InstallationError: a plot is requested and matplotlib is not installed.
    """
    _check(request, plot)
    with progress(as_json) as bar:
        result, curves = compare_motions(request, lambda entries: bar.track(entries, description="stepping"))
    result = add_model_label(result)
    if plot is not None:
        title = f"{result['name']}: {request.steps} steps from one state under each contact model"
        draw_motions(plot, title, result["timestep"] * np.arange(1, request.steps + 1), curves)
    if as_json:
        print_json(result)
    else:
        _print_motions(result, plot)
    lost = [f"{r['contact']} {r['solver']}" for r in result["runs"] if r["resets"]]
    if lost:
        return complain(f"values became non-finite or larger than 1e10 under {', '.join(lost)}", BAD_WORLDS)
    return 0


def _check(request: Comparison | Contest, plot: Path | None) -> None:
    """Raises an error for an invalid request before any computation."""
    request.check()
    if plot is not None:
        check_target(plot, ".png")
        require_matplotlib()


def _print_solvers(result: dict[str, Any], plot: Path | None) -> None:
    columns = ["solver", "iterations", "residual (max)", "duality gap (max)", "distance (max)", "time [us]"]
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
        "contacts": f"mean {result['contacts']['mean']:.1f}, maximum {result['contacts']['max']}",
        "rows": f"mean {result['rows']['mean']:.1f}, maximum {result['rows']['max']}",
        "tolerance": f"{result['tolerance']:g}, at most {result['iterations']} iterations",
        "distance": "largest |qacc - reference| over the largest |reference|; the reference is Newton at tolerance 0",
        "time": f"one solve in one world, called from Python; the fastest of {REPEATS}",
    }
    screen.print(name_value_table("", about | ({"wrote plot": str(plot)} if plot else {})))


def _print_motions(result: dict[str, Any], plot: Path | None) -> None:
    runs = result["runs"]
    columns = ["contact", "solver", "iterations", "residual (max)"]
    lengths = {"penetration": "overlap [mm] (max)", "slip": "slip [mm/s] (max)", "drift": "loops [mm] (max)"}
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
        "residual": "convex, coulomb: norm of the scaled gradient; lcp: largest violation of complementarity, scaled",
        "overlap": "of the deepest contact; loops: largest error of an equality constraint",
        "slip": "mean over the contacts with normal force after the step; median over steps",
        "energy": "energy at the end minus energy at the start",
        "time": "median of one step in one world, called from Python",
    }
    lost = [f"{r['contact']} {r['solver']}: {r['resets']}" for r in runs if r["resets"]]
    about |= {f"changed options of {c}": ", ".join(what) for c, what in result["changed"].items() if what}
    about |= {"non-finite values": ", ".join(lost)} if lost else {}
    screen.print(name_value_table("", about | ({"wrote plot": str(plot)} if plot else {})))
