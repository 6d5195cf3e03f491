"""`featherlane bench`: benchmarks of one or several models against MuJoCo, as tables or JSON."""

from __future__ import annotations

from typing import Any

from featherlane.apps.cli.output import (
    add_model_label,
    console,
    model_label,
    name_value_table,
    print_json,
    progress,
    table,
)
from featherlane.apps.measure.bench import bench_model, refuse_unsupported
from featherlane.apps.measure.machine import machine
from featherlane.apps.measure.speed_comparison import Course, Ratio, their_batch
from featherlane.extension import mujoco_warnings

# cost of a pair that reaches the computation of points
PAIR_KINDS = {
    "apart": "by iterative search, without contact",
    "touching": "by iterative search, with contact",
    "closed_form": "in closed form",
}
FIRST_ITERATIONS = 8  # of the solver, each with a line in the table


def bench(sources: list[str], course: Course, stages: bool, as_json: bool) -> None:
    """Benchmarks each model and prints the results.

    Raises:
        ModelError: a number is out of range, or a model cannot be loaded; raised before any measurement.
        InstallationError: this MuJoCo has no `mujoco.batch`.
    """
    course.check()
    their_batch()
    for source in sources:
        refuse_unsupported(source)
    with mujoco_warnings():
        results = [_measured(source, course, stages, as_json) for source in sources]
    document = {"machine": machine(), "course": vars(course), "models": results}
    if as_json:
        print_json(document)
    else:
        _print(document)


def _measured(source: str, course: Course, stages: bool, quiet: bool) -> dict[str, Any]:
    """Runs all benchmarks of one model, with a progress bar."""
    with progress(quiet) as bar:
        name = model_label(source)
        task = bar.add_task(name)

        def show(what: str, done: int, total: int) -> None:
            bar.update(task, description=f"{name}: {what}", completed=done, total=total)

        return add_model_label(bench_model(source, course, stages, show))


def _print(document: dict[str, Any]) -> None:
    screen, course, where = console(), document["course"], document["machine"]
    columns = ["model", "ours [us]", "MuJoCo [us]", "ratio (min - max)", "one world", "contacts", "iterations"]
    rows = []
    for r in document["models"]:
        b, w = r["batch"], r["worlds"]
        cells = [f"{b['ours']:.2f}", f"{b['theirs']:.2f}", Ratio(**b["ratio"]), Ratio(**r["one_world"]["ratio"])]
        cells += [f"{w['contacts']['mean']:.1f}", f"{w['solver_iterations']['mean']:.1f}"]
        rows.append([r["name"], *cells])
    title = (
        f"Against MuJoCo {where['mujoco']}: {course['worlds']} worlds, {course['dtype']}, {course['threads']} threads, "
        f"{course['nstep']} steps per call, {course['rounds']} rounds; times per step and world"
    )
    screen.print(table(title, columns, rows))
    for r in document["models"]:
        _print_stages(screen, r)
    load = f", load {where['load']:.1f}" if where["load"] is not None else ""
    screen.print(
        name_value_table(
            "Machine",
            {
                "processor": f"{where['processor']}, {where['cores']} cores{load}",
                "kernels": f"{where['kernels']}; {where['cpu_level']}; worlds per tile: {where['widths']}",
                "versions": f"Python {where['python']}, NumPy {where['numpy']}, MuJoCo {where['mujoco']}",
            },
        )
    )


def _print_stages(screen, result: dict[str, Any]) -> None:
    w = result["worlds"]
    about = {
        "changed options": ", ".join(result["changed"]),
        "load time, time of first call": f"{result['load_seconds']:.2f} s, {w['first_call_seconds']:.2f} s",
        "difference in qvel": ", ".join(f"{name} {value:.1e}" for name, value in w["qvel_apart"].items()),
        "not converged": w["not_converged"],
    }
    screen.print(name_value_table(result["name"], about))
    times = result.get("stage_microseconds")
    if times:
        whole = times["step"]
        rows = [[name, f"{value:.3f}", f"{100 * value / whole:.0f} %"] for name, value in times.items()]
        screen.print(
            table(
                "Stages of a batch step, measured one by one; rest: checks and measurement error",
                ["stage", "us per world", "part of the step"],
                rows,
            )
        )
    if result.get("solver_lanes"):
        _print_lanes(screen, result["solver_lanes"])
    if result.get("collision"):
        _print_pairs(screen, result["collision"])


def _print_lanes(screen, lanes: dict[str, Any]) -> None:
    """Prints the share of active lanes by solver iteration: the first ones, then every doubling, and the last one."""
    each, rows = lanes["iterations"], []
    for k, one in enumerate(each, 1):
        if k <= FIRST_ITERATIONS or k & (k - 1) == 0 or k == len(each):
            rows.append([str(k), f"{100 * one['tiles']:.0f} %", f"{100 * one['lanes']:.0f} %"])
    title = (
        f"Solver: {lanes['world']:.1f} iterations of a world, {lanes['tile']:.1f} of its tile; "
        f"{100 * lanes['lanes_active']:.0f} % of the lanes are active; {lanes['contacts']:.1f} contacts of a world, "
        f"{lanes['slots']:.1f} contact slots of its tile"
    )
    screen.print(table(title, ["iteration", "tiles that iterate", "active lanes in these tiles"], rows))


def _print_pairs(screen, collision: dict[str, Any]) -> None:
    """Prints how many pairs of geoms reach each collision test, and the time of the tests."""
    pairs_of, micro = collision["pairs"], collision.get("microseconds", {})
    lines = {
        "candidate pairs of the model": ("listed", None),
        "boxes of bodies overlap": ("body_boxes", None),
        "found by the bounding volume tree": ("tree", None),
        "bounding spheres overlap": ("spheres", "listing"),
        "computed in closed form": ("closed_form", None),
        "oriented boxes overlap: iterative search": ("searched", "turned_boxes"),
        "touching": ("touching", "points"),
    }
    rows = []
    for title, (count, time) in lines.items():
        reached = pairs_of[count] > 0 and (count != "body_boxes" or pairs_of["body_boxes"] < pairs_of["listed"])
        if reached or time:
            rows.append([title, f"{pairs_of[count]:.2f}", f"{micro[time]:.3f}" if time in micro else ""])
    title = "Geom pairs that pass each collision test; a time includes all tests since the previous time"
    screen.print(table(title, ["test", "pairs per world", "us per world"], rows))
    if ways := collision.get("hulls"):
        screen.print(
            f"Pairs with convex hulls per step and world: {ways['apart_as_before']:.2f} separated "
            f"by the previous axis, {ways['proved_as_before']:.2f} verified by the previous depth, "
            f"{ways['grown_from_before']:.2f} by continuing the previous search, {ways['searched']:.2f} searched again"
        )
    each = dict(collision.get("microseconds_of_a_pair", {}))
    explained = each.pop("explained", 0.0)
    if each:
        words = ", ".join(f"{value:.3f} us {PAIR_KINDS[name]}" for name, value in each.items())
        screen.print(
            f"Time per pair: {words}; the least-squares fit explains {100 * explained:.0f} % of the "
            f"variance between tiles"
        )
