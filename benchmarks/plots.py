"""Plots of the benchmark tables: docs/images/benchmark_NAME.svg, drawn from the table in the page; needs matplotlib.

    python benchmarks/plots.py [NAME...]

`publish` in report.py also draws a plot when a benchmark writes its table.  A plot contains a digest of the numbers of
its table, so that a test finds a plot that is older than the table.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable
from pathlib import Path

IMAGES = Path(__file__).parents[1] / "docs" / "images"
BLUE, ORANGE, GREEN, RED = "#0072b2", "#e69f00", "#009e73", "#d55e00"  # distinguishable with colour blindness
WIDTH = 8.5  # inches
STYLE = {
    "svg.fonttype": "path",  # the same text with any fonts of the reader
    "svg.hashsalt": "featherlane",  # the same table gives the same file
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "0.85",
    "savefig.transparent": True,  # on the colour of the page
}

Table = tuple[list[str], list[list[str]]]  # columns, rows


def tables(section: str) -> list[Table]:
    """Returns all tables of a section."""
    found = []
    for text in re.findall(r"(?:^\|.*\n?)+", section, re.MULTILINE):
        head, _, *rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in text.splitlines()]
        found.append((head, rows))
    return found


def digest(section: str) -> str:
    """Returns a digest of the rows of all tables of a section."""
    rows = [row for _, rows in tables(section) for row in rows]
    return hashlib.sha256(repr(rows).encode()).hexdigest()[:16]


def number(cell: str) -> tuple[float, float, float]:
    """Returns a value with the ends of its range, from `2 (1 - 3)`, `2 ± 1`, `1,000` or `1e-3<br>model`."""
    found = [float(part) for part in re.findall(r"\d[\d.]*(?:e[+-]?\d+)?", cell.partition("<br>")[0].replace(",", ""))]
    if "±" in cell:
        return found[0], found[0] - found[1], found[0] + found[1]
    return (found[0], found[1], found[2]) if len(found) >= 3 else (found[0], found[0], found[0])


def column(table: Table, name: str) -> list[str]:
    """Returns the cells of a column.

    Raises:
        ValueError: the table has no such column.
    """
    columns, rows = table
    return [row[columns.index(name)] for row in rows]


def short(name: str) -> str:
    """Returns the last two parts of a model's name."""
    return "/".join(name.split("/")[-2:])


def bars(axes, labels: list[str], series: dict[str, list[str]], colors=(BLUE, ORANGE, GREEN)) -> None:
    """Draws horizontal bars with error ranges, the first label on top.

    Args:
        axes: where they are drawn.
        labels: one for each group of bars.
        series: cells for each group, by label of the legend.
        colors: of the series.
    """
    height = 0.8 / len(series)
    for k, (label, cells) in enumerate(series.items()):
        values = [number(cell) for cell in cells]
        middle = [value[0] for value in values]
        ranges = [[value[0] - value[1] for value in values], [value[2] - value[0] for value in values]]
        place = [i - 0.4 + (k + 0.5) * height for i in range(len(labels))]
        axes.barh(place, middle, 0.92 * height, color=colors[k], label=label)
        axes.errorbar(middle, place, xerr=ranges, fmt="none", ecolor="0.15", elinewidth=0.9, capsize=1.5)
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.grid(True, axis="x")
    if len(series) > 1:
        axes.legend(loc="lower right", framealpha=1.0)


def mark(axes, at: float = 1.0) -> None:
    """Draws a dashed line over the bars at a value."""
    axes.axvline(at, color="white", linewidth=2.4, zorder=3)
    axes.axvline(at, color="0.1", linewidth=1.4, linestyle=(0, (5, 3)), zorder=3)


def speed(found: list[Table], plt):
    """Ratios of all models, in both precisions."""
    table = found[0]
    figure, axes = plt.subplots(figsize=(WIDTH, 6.2), layout="constrained")
    bars(axes, [short(name) for name in column(table, "model")], {k: column(table, v) for k, v in FLOATS.items()})
    axes.set(xscale="log", xlabel="world-steps per second, relative to MuJoCo's batch on one thread")
    axes.set_xticks([1, 2, 5, 10, 20, 50, 100, 200, 400], ["1", "2", "5", "10", "20", "50", "100", "200", "400"])
    axes.minorticks_off()
    mark(axes)
    return figure


FLOATS = {"float64": "ratio", "float32": "float32"}


def robots(found: list[Table], plt):
    """Ratios of all robots, from the largest to the smallest."""
    columns, rows = found[0]
    rows = sorted(rows, key=lambda row: -number(row[columns.index("ratio")])[0])
    figure, axes = plt.subplots(figsize=(WIDTH, 11.5), layout="constrained")
    table = columns, rows
    bars(axes, [short(name) for name in column(table, "model")], {k: column(table, v) for k, v in FLOATS.items()})
    axes.set(xscale="log", xlabel="speed of a batch, relative to MuJoCo on one thread")
    axes.set_xticks([0.5, 1, 2, 5, 10, 20, 50], ["0.5", "1", "2", "5", "10", "20", "50"])
    axes.minorticks_off()
    mark(axes)
    return figure


def threads(found: list[Table], plt):
    """Speed-up by a second thread, and by a second core."""
    table = found[0]
    names = zip(column(table, "model"), column(table, "worlds"), strict=True)
    figure, axes = plt.subplots(figsize=(WIDTH, 5.0), layout="constrained")
    series = {"2 threads / 1": column(table, "2 threads / 1"), "2 cores / 1": column(table, "2 cores / 1")}
    bars(axes, [f"{short(name)}, {worlds} worlds" for name, worlds in names], series)
    axes.set_xlabel("speed-up")
    mark(axes)
    return figure


def environments(found: list[Table], plt):
    """Ratios to EnvPool."""
    table = found[0]
    figure, axes = plt.subplots(figsize=(WIDTH, 5.5), layout="constrained")
    names = zip(column(table, "task"), column(table, "worlds"), strict=True)
    bars(axes, [f"{task}, {worlds}" for task, worlds in names], {"ratio": column(table, "ratio (min - max)")})
    axes.set_xlabel("environment steps per second, relative to EnvPool")
    mark(axes)
    return figure


def curves(axes, x: list[str], series: dict[str, list[str]], styles) -> None:
    """Draws curves in logarithmic axes."""
    for (label, cells), style in zip(series.items(), styles, strict=True):
        axes.loglog(
            [number(cell)[0] for cell in x], [number(cell)[0] for cell in cells], style, label=label, markersize=4
        )
    axes.grid(True)
    axes.legend(framealpha=1.0)


def collision(found: list[Table], plt):
    """Time of a step and of its collision detection, by the number of free spheres."""
    table = found[1]
    figure, axes = plt.subplots(figsize=(WIDTH, 3.8), layout="constrained")
    names = ("MuJoCo's step [us]", "step [us]", "MuJoCo's collision [us]", "collision [us]")
    labels = ("step, MuJoCo", "step, Featherlane", "collision detection, MuJoCo", "collision detection, Featherlane")
    series = {label: column(table, name) for label, name in zip(labels, names, strict=True)}
    for color, (label, cells) in zip((ORANGE, BLUE, ORANGE, BLUE), series.items(), strict=True):
        style = "o-" if label.startswith("step") else "s--"
        curves(axes, column(table, "spheres"), {label: cells}, [style])
        axes.lines[-1].set_color(color)
    axes.legend(framealpha=1.0)
    axes.set_xticks([int(cell.replace(",", "")) for cell in column(table, "spheres")], column(table, "spheres"))
    axes.minorticks_off()
    axes.set(xlabel="free spheres on a floor, one world", ylabel="time [us]")
    return figure


def lcp(found: list[Table], plt):
    """Time of a solution by the number of rows, for both CFM."""
    columns, rows = found[0]
    figure, axes = plt.subplots(1, 2, figsize=(WIDTH, 3.4), sharey=True, layout="constrained")
    for panel, cfm in zip(axes, dict.fromkeys(column(found[0], "CFM")), strict=True):
        part = columns, [row for row in rows if row[columns.index("CFM")] == cfm]
        series = {"ODE": column(part, "ODE [us]"), "Featherlane": column(part, "ours [us]")}
        curves(panel, column(part, "rows"), series, ["s--", "o-"])
        for line, color in zip(panel.lines, (ORANGE, BLUE), strict=True):
            line.set_color(color)
        panel.legend(framealpha=1.0)
        panel.set(xlabel="rows", title=f"CFM {cfm}")
        panel.set_xticks([int(cell) for cell in column(part, "rows")], column(part, "rows"))
        panel.minorticks_off()
    axes[0].set_ylabel("time of a solution [us]")
    return figure


def accuracy(found: list[Table], plt):
    """Errors of all models by quantity, with the bound of the tests."""
    columns, rows = found[0]
    first = columns.index("M, bias, qacc_smooth")
    figure, axes = plt.subplots(figsize=(WIDTH, 4.2), layout="constrained")
    for k in range(len(columns) - first):
        errors = [max(number(row[first + k])[0], FLOOR) for row in rows[:-1]]
        offsets = [k - 0.28 + 0.56 * i / (len(errors) - 1) for i in range(len(errors))]
        axes.semilogy(offsets, errors, ".", color=BLUE, markersize=5, label="a model or package" if k == 0 else None)
        bound = number(rows[-1][first + k])[0]
        axes.plot([k - 0.4, k + 0.4], [bound, bound], color=RED, linewidth=2, label="bound" if k == 0 else None)
    axes.set_xticks(range(len(columns) - first), [name.replace(", ", ",\n") for name in columns[first:]], fontsize=8)
    axes.set(ylabel="largest difference from MuJoCo", ylim=(FLOOR / 3, 1e-5))
    axes.set_yticks([1e-17, 1e-15, 1e-13, 1e-11, 1e-9, 1e-7], ["0", "1e-15", "1e-13", "1e-11", "1e-9", "1e-7"])
    axes.minorticks_off()
    axes.grid(True, axis="y")
    axes.legend(loc="upper left", ncols=2, framealpha=1.0)
    return figure


FLOOR = 1e-17  # smaller errors are drawn here

# ---- contact benchmark -----------------------------------------------------------------------------------------------
ENGINES = {"MuJoCo": "0.4", "convex": ORANGE, "lcp": BLUE, "lcp consistent": GREEN, "coulomb": RED}


def part(table: Table, **cells: str) -> Table:
    """Returns the rows with these cells; `_` in a name of a column is a space."""
    columns, rows = table
    places = {columns.index(name.replace("_", " ")): cell for name, cell in cells.items()}
    return columns, [row for row in rows if all(row[k] == cell for k, cell in places.items())]


def contact_creep(found: list[Table], plt):
    """Creep of the grasp by case, and lift of the cube by step size."""
    figure, axes = plt.subplots(1, 2, figsize=(WIDTH, 4.6), layout="constrained", width_ratios=(3, 2))
    grasp, cube = found
    series = {engine: column(grasp, engine) for engine in ENGINES}
    bars(axes[0], column(grasp, grasp[0][0]), series, list(ENGINES.values()))
    axes[0].set(xscale="log", xlabel="creep [um/s]")
    mark(axes[0])
    axes[0].get_legend().remove()
    for engine, color in ENGINES.items():
        table = part(cube, engine=engine)
        lift = [max(number(cell)[0], 1e-4) for cell in column(table, "lift [mm]")]
        axes[1].loglog([float(h) for h in column(table, "step size [ms]")], lift, "o-", color=color, label=engine)
    axes[1].set(xlabel="step size [ms]", ylabel="lift [mm], at least 1e-4")
    axes[1].grid(True)
    figure.legend(*axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
    return figure


MEASURES = {
    "rod, mu 0.5: error of the turn [%]": "rod, turn [%]",
    "rattleback: error of the reversal [%]": "rattleback, reversal [%]",
    "nut: change of energy [%]": "nut, energy [%]",
    "four-bar: change of energy [%]": "four-bar, energy [%]",
}


def contact_classic(found: list[Table], plt):
    """Errors by step size."""
    figure, axes = plt.subplots(1, len(MEASURES), figsize=(WIDTH, 2.9), layout="constrained")
    for panel, (measure, title) in zip(axes, MEASURES.items(), strict=True):
        table = part(found[0], measure=measure)
        for engine in ("MuJoCo", "lcp consistent", "coulomb"):
            errors = [float(cell) for cell in column(table, engine)]  # infinite errors are not drawn
            steps = [float(h) for h in column(table, "step size [ms]")]
            panel.loglog(steps, errors, "o-", color=ENGINES[engine], label=engine, alpha=0.8)
        panel.set(title=title, xlabel="step size [ms]")
        panel.set_xticks(steps, [f"{h:g}" for h in steps])
        panel.minorticks_off()
        panel.grid(True)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure


def contact_history(found: list[Table], plt):
    """Quantities of the dominoes over time."""
    table = found[0]
    figure, axes = plt.subplots(2, 2, figsize=(WIDTH, 5.0), sharex=True, layout="constrained")
    for panel, quantity in zip(axes.flat, table[0][2:], strict=True):
        for engine in dict.fromkeys(column(table, "engine")):
            rows = part(table, engine=engine)
            values = [float(cell) for cell in column(rows, quantity)]
            panel.plot([float(t) for t in column(rows, "time [s]")], values, color=ENGINES[engine], label=engine)
        panel.set(ylabel=quantity, yscale="log" if quantity == "residual" else "linear")
        panel.grid(True)
    for panel in axes[1]:
        panel.set_xlabel("time [s]")
    axes[0, 0].legend()
    return figure


def contact_simbenchmark(found: list[Table], plt):
    """Errors of each task at its smallest step size."""
    columns, rows = found[0]
    tasks = [task for task in dict.fromkeys(column(found[0], "task")) if task != "ANYmal PD"]
    across = 2
    down = -(-len(tasks) // across)
    figure, axes = plt.subplots(down, across, figsize=(WIDTH, 2.4 * down), layout="constrained", squeeze=False)
    for panel in axes.flat[len(tasks) :]:
        panel.remove()
    for panel, task in zip(axes.flat, tasks, strict=False):
        mine = [row for row in rows if row[0] == task and row[1] == "1" and row[columns.index("error")]]
        colors = [GREEN if row[2].startswith("best") else BLUE for row in mine]
        errors = [max(float(row[columns.index("error")]), FLOOR) for row in mine]
        panel.barh(range(len(mine)), errors, color=colors)
        panel.set_yticks(range(len(mine)), [row[2].removeprefix("best published: ") for row in mine], fontsize=9)
        panel.set(xscale="log", title=task, ylim=(len(mine) - 0.4, -0.6))
        panel.grid(True, axis="x")
    return figure


def contact_fclib(found: list[Table], plt):
    """Performance profiles at both tolerances."""
    table = found[1]
    factors = [float(cell) for cell in column(table, table[0][0])]
    tolerances = list(dict.fromkeys(name.rpartition(", ")[2] for name in table[0][1:]))
    figure, axes = plt.subplots(1, len(tolerances), figsize=(WIDTH, 3.4), sharey=True, layout="constrained")
    for panel, tolerance in zip(axes, tolerances, strict=True):
        names = [name for name in table[0][1:] if name.endswith(tolerance)]
        for name, color in zip(names, (RED, BLUE, ORANGE), strict=True):
            shares = [float(cell) for cell in column(table, name)]
            panel.step(factors, shares, where="post", color=color, label=name.partition(",")[0])
        panel.set(xscale="log", xlabel="time / fastest time", title=f"tolerance {tolerance.removesuffix(' [%]')}")
        panel.set_ylim(0, 102)
        panel.grid(True)
    axes[0].set_ylabel("solved problems [%]")
    axes[0].legend(loc="lower right")
    return figure


CONTACT = (contact_creep, contact_classic, contact_history, contact_simbenchmark, contact_fclib)
PLOTS: dict[str, Callable] = {
    f.__name__: f for f in (speed, robots, threads, environments, collision, lcp, accuracy, *CONTACT)
}


def path(name: str) -> Path:
    """Returns the file of a plot."""
    return IMAGES / f"benchmark_{name}.svg"


def draw(name: str, section: str) -> None:
    """Draws the plot of a section.

    Args:
        name: of the section and of its function in PLOTS.
        section: text of the section, with its tables.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with matplotlib.rc_context(STYLE):
        figure = PLOTS[name](tables(section), plt)
        figure.savefig(path(name), metadata={"Date": None, "Description": f"numbers {digest(section)}"})
        plt.close(figure)


if __name__ == "__main__":
    from report import section

    for name in sys.argv[1:] or PLOTS:
        draw(name, section(name))
