"""Plots convergence and motions with matplotlib."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from featherlane.extension import required, whole_file

SIZE, DPI = (10.0, 4.5), 150  # inches, dots per inch
# distinguishable with colour blindness
COLORS = {
    "newton": "#0072b2",
    "cg": "#e69f00",
    "pgs": "#009e73",
    "dantzig": "#d55e00",
    "apgd": "#cc79a7",
}
LINES = {"convex": "-", "lcp": "--", "coulomb": "-."}
SHARED_NAMES = {("lcp", "pgs"): "#999999", ("coulomb", "newton"): "#000000"}  # solvers that convex has, too
WIDTHS = (4.0, 2.4, 1.2)  # of successive solid lines: a line that covers another leaves its edges visible
FLOOR = 1e-17  # smaller values are rounding


def require_matplotlib() -> None:
    """Raises InstallationError with the install command if matplotlib is not installed."""
    required("matplotlib", "a plot")


def draw_convergence(path: Path, title: str, curves: dict[str, list[tuple[np.ndarray, np.ndarray]]]) -> None:
    """Writes a PNG of cost above the best and gradient against the iteration: thin per state, bold for the median.

    Args:
        title: title above both panels.
        curves: for each solver, for each state: cost above the best and norm of the gradient, both scaled, (n + 1,).
    """
    figure, axes = _panels(1, SIZE)
    for which, (axis, label) in enumerate(
        zip(axes, ("scaled cost above its minimum", "scaled gradient (solver_residual)"), strict=True)
    ):
        for name, states in curves.items():
            _draw(axis, name, [np.maximum(state[which], FLOOR) for state in states])
        axis.set(xlabel="iteration", ylabel=label, yscale="log")
    axes[0].set_xscale("symlog", linthresh=10.0)
    axes[0].set_xlim(left=0.0)
    ticks = [0, 2, 4, 6, 8, 10, 20, 50, 100, 200, 500, 1000]
    most = max(len(state[0]) for states in curves.values() for state in states)
    axes[0].set_xticks([t for t in ticks if t <= most] or [0], [str(t) for t in ticks if t <= most] or ["0"])
    axes[0].minorticks_off()
    _write(figure, path, title, axes[1])


def _draw(axis, name: str, states: list[np.ndarray]) -> None:
    """Draws one solver's curves; a state that has stopped keeps its last value."""
    color, most = COLORS.get(name, "0.3"), max(map(len, states))
    for values in states:
        axis.plot(values, color=color, linewidth=0.6, alpha=0.25)
    table = np.array([np.append(v, np.full(most - len(v), v[-1])) for v in states])
    axis.plot(np.exp(np.median(np.log(table), axis=0)), color=color, linewidth=2.0, label=name)


def _panels(rows: int, size: tuple[float, float]):
    """Returns a figure, and the axes of `rows` times two panels."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, 2, sharex=True, squeeze=False).ravel()
    for axis in axes:
        axis.grid(True, which="major", color="0.9", linewidth=0.6)
        axis.set_axisbelow(True)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    return figure, axes


def _write(figure, path: Path, title: str, axis) -> None:
    """Writes the file, with the legend of an axis below all panels, so that it covers no curve."""
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(
        handles, labels, frameon=False, fontsize="small", loc="outside lower center", ncols=min(6, len(labels))
    )
    figure.suptitle(title, fontsize="medium")
    with whole_file(path) as part:
        figure.savefig(part)


def draw_motions(
    path: Path, title: str, times: np.ndarray, curves: dict[tuple[str, str], dict[str, np.ndarray]]
) -> None:
    """Writes a PNG with a panel per quantity and a line per contact model (dash) and solver (colour, width).

    Args:
        times: times of the steps [s], (n,).
        curves: for each (contact model, solver), each quantity by name, (n,).
    """
    names = list(next(iter(curves.values())))
    rows = -(-len(names) // 2)
    figure, axes = _panels(rows, (SIZE[0], 0.7 * SIZE[1] * rows))
    for axis in axes[len(names) :]:
        axis.set_axis_off()
    for axis, name in zip(axes[: len(names)], names, strict=True):
        for k, ((contact, solver), quantities) in enumerate(curves.items()):
            color = SHARED_NAMES.get((contact, solver), COLORS.get(solver, "0.3"))
            width = WIDTHS[k % len(WIDTHS)] if contact == "convex" else 1.3
            style = {"color": color, "linestyle": LINES.get(contact, ":"), "linewidth": width}
            axis.plot(times, quantities[name], label=f"{contact} {solver}", **style)
        axis.set(ylabel=name)
    for axis in axes[len(names) - 2 : len(names)]:
        axis.tick_params(labelbottom=True)
        axis.set_xlabel("time [s]")
    _write(figure, path, title, axes[0])
