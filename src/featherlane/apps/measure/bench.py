"""Runs all benchmarks of a model against MuJoCo, stage times, counts of pairs and lanes; returns plain values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from featherlane import load
from featherlane.apps.measure.speed_comparison import WARM_ROUNDS, Course, Lineup, race_batches, race_one_world
from featherlane.errors import UnsupportedFeatureError
from featherlane.extension import profile


def refuse_unsupported(source: str) -> None:
    """Raises an error for an unsupported model early, except for options that the benchmark sets anyway.

    Raises:
        ModelError: the model cannot be loaded.
        UnsupportedFeatureError: the model has unsupported features.
    """
    try:
        load(source)
    except UnsupportedFeatureError as error:
        if any(not feature.startswith("option solver") for feature in error.features):
            raise


def bench_model(
    source: str, course: Course, stages: bool, on_progress: Callable[[str, int, int], None]
) -> dict[str, Any]:
    """Runs all benchmarks of one model.

    Args:
        source: a bundled name, or a source that `load` takes.
        stages: whether to time each stage, to count the pairs per collision test, and the
            active lanes per solver iteration.
        on_progress: called with the name of the measurement, the amount done and the total, to report progress.
    """
    rounds, done = 2 * (course.rounds + WARM_ROUNDS), 0

    def another() -> None:
        nonlocal done
        done += 1
        on_progress("racing", done, rounds)

    on_progress("settling", 0, rounds)
    lineup = Lineup(source, course)
    on_progress("racing", 0, rounds)
    batch, worlds = race_batches(lineup, another)
    single = race_one_world(lineup, another)
    result = {
        "model": lineup.source,
        "changed": lineup.changed,
        "load_seconds": lineup.load_seconds,
        "batch": batch.plain(),
        "one_world": single.plain(),
        "worlds": worlds,
    }
    if stages:
        on_progress("stages", 0, course.worlds)
        result |= profile(lineup, lambda what, done: on_progress(what, done, course.worlds))
    return result
