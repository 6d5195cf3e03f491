"""Pictures of convergence and of motions, by matplotlib."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np

from featherlane.cli.output import whole_file
from featherlane.errors import InstallationError

INSTALL = "pip install 'featherlane[plot]'"
SIZE, DPI = (10.0, 4.5), 150  # inches, dots per inch
# told apart by the colour-blind, too
COLORS = {"newton": "#0072b2", "cg": "#e69f00", "pgs": "#009e73", "dantzig": "#d55e00", "apgd": "#cc79a7"}
LINES = {"convex": "-", "lcp": "--"}
FLOOR = 1e-17  # below, a number is rounding


def prepare() -> None:
    """Raise InstallationError, with the command that repairs it, where matplotlib is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        raise InstallationError(f"a plot needs matplotlib; install it with:\n  {INSTALL}")


def draw_convergence(path: Path, title: str, curves: dict[str, list[tuple[np.ndarray, np.ndarray]]]) -> None:
    """Write a PNG: cost above the best, and gradient, against the iteration; each state thin, their median bold.

    Args:
        path: the file.
        title: above both.
        curves: for each solver, for each state: cost above the best and norm of the gradient, both scaled, (n + 1,).
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE, dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, 2, sharex=True)
    for which, (axis, label) in enumerate(
        zip(axes, ("cost - least cost, scaled", "gradient, scaled (solver_residual)"), strict=True)
    ):
        for name, states in curves.items():
            _draw(axis, name, [np.maximum(state[which], FLOOR) for state in states])
        axis.set(xlabel="iteration", ylabel=label, yscale="log")
        axis.grid(True, which="major", color="0.9", linewidth=0.6)
        axis.set_axisbelow(True)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    axes[0].set_xscale("symlog", linthresh=10.0)
    axes[0].set_xlim(left=0.0)
    ticks = [0, 2, 4, 6, 8, 10, 20, 50, 100, 200, 500, 1000]
    most = max(len(state[0]) for states in curves.values() for state in states)
    axes[0].set_xticks([t for t in ticks if t <= most] or [0], [str(t) for t in ticks if t <= most] or ["0"])
    axes[0].minorticks_off()
    _add_legend(figure, axes[1])
    figure.suptitle(title, fontsize="medium")
    with whole_file(path) as part:
        figure.savefig(part)


def _draw(axis, name: str, states: list[np.ndarray]) -> None:
    """One solver's curves; where a state has stopped its last value stands."""
    color, most = COLORS.get(name, "0.3"), max(map(len, states))
    for values in states:
        axis.plot(values, color=color, linewidth=0.6, alpha=0.25)
    table = np.array([np.append(v, np.full(most - len(v), v[-1])) for v in states])
    axis.plot(np.exp(np.median(np.log(table), axis=0)), color=color, linewidth=2.0, label=name)


def _add_legend(figure, axis) -> None:
    """Adds the legend of a panel below all panels, where it covers no curve."""
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(
        handles, labels, frameon=False, fontsize="small", loc="outside lower center", ncols=min(5, len(labels))
    )


def draw_motions(
    path: Path, title: str, times: np.ndarray, curves: dict[tuple[str, str], dict[str, np.ndarray]]
) -> None:
    """Write a PNG: for each quantity a panel, in it a line for each contact model (its dash) and solver (its colour).

    Args:
        path: the file.
        title: above all.
        times: of the steps [s], (n,).
        curves: for each (contact model, solver), each quantity by name, (n,).
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    names = list(next(iter(curves.values())))
    rows = -(-len(names) // 2)
    figure = Figure(figsize=(SIZE[0], 0.7 * SIZE[1] * rows), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, 2, sharex=True, squeeze=False).ravel()
    for axis in axes[len(names) :]:
        axis.set_axis_off()
    for axis, name in zip(axes[: len(names)], names, strict=True):
        for (contact, solver), quantities in curves.items():
            line = {"color": COLORS.get(solver, "0.3"), "linestyle": LINES.get(contact, ":"), "linewidth": 1.4}
            axis.plot(times, quantities[name], label=f"{contact} {solver}", alpha=0.85, **line)
        axis.set(ylabel=name)
        axis.grid(True, which="major", color="0.9", linewidth=0.6)
        axis.set_axisbelow(True)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    for axis in axes[len(names) - 2 : len(names)]:
        axis.tick_params(labelbottom=True)
        axis.set_xlabel("time [s]")
    _add_legend(figure, axes[0])
    figure.suptitle(title, fontsize="medium")
    with whole_file(path) as part:
        figure.savefig(part)
