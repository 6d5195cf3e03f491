"""`featherlane bench`: the races of `race` for one model or several, as tables or JSON."""

from __future__ import annotations

import os
import platform
from typing import Any

from featherlane.cli.output import console, label, pairs, print_json, progress, table
from featherlane.cli.race import (
    WARM_ROUNDS,
    Course,
    Lineup,
    Ratio,
    race_batches,
    race_one_world,
    stage_times,
    their_batch,
)
from featherlane.lanes.processor import tile_width


def bench(sources: list[str], course: Course, stages: bool, as_json: bool) -> None:
    """Race each model and print the results.

    Raises:
        ModelError: a number out of range, or a model that cannot be loaded; before anything is measured.
        InstallationError: this MuJoCo has no batches.
    """
    course.check()
    their_batch()
    from featherlane.model.load import load
    from featherlane.model.reader import heard

    for source in sources:
        _refuse_unsupported(load, source)
    with heard():
        results = [measure(source, course, stages, as_json) for source in sources]
    document = {"machine": machine(), "course": vars(course), "models": results}
    if as_json:
        print_json(document)
    else:
        _print(document)


def _refuse_unsupported(load, source: str) -> None:
    """Fail early: MuJoCo's options that the race sets anyway do not count."""
    from featherlane.errors import UnsupportedFeatureError

    try:
        load(source)
    except UnsupportedFeatureError as error:
        if any(not feature.startswith("option solver") for feature in error.features):
            raise


def machine() -> dict[str, Any]:
    """Where this runs: processor, cores, load, versions, kernels."""
    import mujoco
    import numpy as np

    from featherlane.simulation.tile.library import library

    configuration = library().configuration()
    return {
        "processor": processor_name(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "cpu_level": configuration["cpu"],
        "widths": configuration["widths"],
        "kernels": configuration["kernels"],
        "python": platform.python_version(),
        "numpy": np.__version__,
        "mujoco": mujoco.__version__,
    }


def processor_name() -> str:
    """The processor's name as the system tells it."""
    try:
        with open("/proc/cpuinfo") as file:
            return next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "")
    except OSError:
        return platform.processor() or platform.machine()


def measure(source: str, course: Course, stages: bool, quiet: bool) -> dict[str, Any]:
    """All races of one model, as plain values."""
    with progress(quiet) as bar:
        rounds = 2 * (course.rounds + WARM_ROUNDS)
        name = label(source)
        task = bar.add_task(f"{name}: settling", total=rounds)
        lineup = Lineup(source, course)
        bar.update(task, description=f"{name}: racing")
        batch, worlds = race_batches(lineup, lambda: bar.advance(task))
        single = race_one_world(lineup, lambda: bar.advance(task))
        result = {
            "model": lineup.source,
            "name": label(lineup.source),
            "changed": lineup.changed,
            "load_seconds": lineup.load_seconds,
            "batch": batch.plain(),
            "one_world": single.plain(),
            "worlds": worlds,
        }
        if stages and course.worlds >= tile_width(course.dtype):
            bar.update(task, description=f"{name}: stages", completed=0, total=course.worlds)
            result["stage_microseconds"] = stage_times(lineup, lambda done: bar.update(task, completed=done))
    return result


def _print(document: dict[str, Any]) -> None:
    screen, course, where = console(), document["course"], document["machine"]
    columns = ["model", "ours [us]", "MuJoCo [us]", "ratio (least - most)", "one world", "contacts", "iterations"]
    rows = []
    for r in document["models"]:
        b, w = r["batch"], r["worlds"]
        cells = [f"{b['ours']:.2f}", f"{b['theirs']:.2f}", Ratio(**b["ratio"]), Ratio(**r["one_world"]["ratio"])]
        cells += [f"{w['contacts']['mean']:.1f}", f"{w['solver_iterations']['mean']:.1f}"]
        rows.append([r["name"], *cells])
    title = (
        f"Against MuJoCo {where['mujoco']}: {course['worlds']} worlds, {course['dtype']}, {course['threads']} threads, "
        f"{course['nstep']} steps a call, {course['rounds']} rounds; times per step of a world"
    )
    screen.print(table(title, columns, rows))
    for r in document["models"]:
        _print_stages(screen, r)
    load = f", load {where['load']:.1f}" if where["load"] is not None else ""
    screen.print(
        pairs(
            "Machine",
            {
                "processor": f"{where['processor']}, {where['cores']} cores{load}",
                "kernels": f"{where['kernels']}; {where['cpu_level']}; worlds in a tile: {where['widths']}",
                "versions": f"Python {where['python']}, NumPy {where['numpy']}, MuJoCo {where['mujoco']}",
            },
        )
    )


def _print_stages(screen, result: dict[str, Any]) -> None:
    w = result["worlds"]
    about = {
        "set in the model": ", ".join(result["changed"]),
        "load, first call": f"{result['load_seconds']:.2f} s, {w['first_call_seconds']:.2f} s",
        "apart in qvel": ", ".join(f"{name} {value:.1e}" for name, value in w["qvel_apart"].items()),
        "not converged": w["not_converged"],
    }
    screen.print(pairs(result["name"], about))
    times = result.get("stage_microseconds")
    if times:
        whole = times["step"]
        rows = [[name, f"{value:.3f}", f"{100 * value / whole:.0f} %"] for name, value in times.items()]
        screen.print(
            table(
                "Stages of the batch's step, one by one on its tiles; rest: checks, and what rounding leaves",
                ["stage", "us per world", "of the step"],
                rows,
            )
        )
