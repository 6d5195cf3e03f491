"""Compares Featherlane with itself: one and two threads, one and two cores, float64 and float32."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from featherlane.apps.measure.speed_comparison import Lineup, Ratio, alternate, no_progress, ratio, timed
from featherlane.engine.simulation.batch.batch import Batch


def race_threads(lineup: Lineup, threads: tuple[int, int] = (1, 2)) -> Ratio:
    """Compares the batch on the second number of threads with the first."""
    first, second = (Batch(lineup.model, lineup.course.worlds, nthread=n, dtype=lineup.course.dtype) for n in threads)
    return _race_ours(lineup, first, second)


def race_cores(lineup: Lineup) -> Ratio:
    """Measures the throughput gain of two cores: two batches of half the worlds in parallel versus in sequence.

    The batches share no work, so the result bounds that of `race_threads`: cores that share a cache, memory, or time
    with other virtual machines reach less than 2.  With one world each batch has a copy of it.
    """
    course, middle = lineup.course, lineup.course.worlds // 2
    halves = [slice(0, max(middle, 1)), slice(middle, course.worlds)]
    batches = [Batch(lineup.model, h.stop - h.start, nthread=1, dtype=course.dtype) for h in halves]

    def prepare() -> None:
        for batch, half in zip(batches, halves, strict=True):
            lineup.put(batch, half)

    def one_by_one() -> None:
        for batch in batches:
            batch.step(course.nstep)

    with ThreadPoolExecutor(1) as other:

        def at_once() -> None:
            second = other.submit(batches[1].step, course.nstep)
            batches[0].step(course.nstep)
            second.result()

        seconds = alternate(
            {"one": timed(prepare, one_by_one), "both": timed(prepare, at_once)}, course.rounds, no_progress
        )
    return ratio(seconds["one"], seconds["both"])


def race_precisions(lineup: Lineup) -> Ratio:
    """Compares the batch in float32 with float64."""
    course = lineup.course
    double, single = (
        Batch(lineup.model, course.worlds, nthread=course.threads, dtype=dtype) for dtype in ("float64", "float32")
    )
    return _race_ours(lineup, double, single)


def _race_ours(lineup: Lineup, first: Batch, second: Batch) -> Ratio:
    """Computes the speedup of the second batch over the first."""
    sides = {
        name: timed(lambda b=b: lineup.put(b), lambda b=b: b.step(lineup.course.nstep))
        for name, b in (("first", first), ("second", second))
    }
    seconds = alternate(sides, lineup.course.rounds, no_progress)
    return ratio(seconds["first"], seconds["second"])
