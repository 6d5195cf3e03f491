"""`profile`: all measurements of a batch's step, as plain values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from featherlane.engine.lanes.processor import tile_width
from featherlane.tools.profile.pair_tests import pair_tests
from featherlane.tools.profile.settled_states import SettledStates
from featherlane.tools.profile.solver_lanes import solver_lanes
from featherlane.tools.profile.stage_times import stage_times


def profile(
    lineup: SettledStates, on_progress: Callable[[str, int], None] = lambda what, worlds: None
) -> dict[str, Any]:
    """Measures the parts of a step of a batch that starts from given states.

    Args:
        lineup: the model, the states and the settings of the batch.
        on_progress: called with `stages` or `pairs` and the number of worlds that are done.

    Returns:
        `stage_microseconds`: times by stage, per world [us]; `solver_lanes`: iterations of worlds and tiles;
        `collision`: pairs of geoms that pass each test, and times of the tests.  The result is empty if the worlds do
        not fill a tile.

    Raises:
        ModelError: a value of the model is invalid.
    """
    if lineup.course.worlds < tile_width(lineup.course.dtype):
        return {}
    return {
        "stage_microseconds": stage_times(lineup, lambda worlds: on_progress("stages", worlds)),
        "solver_lanes": solver_lanes(lineup),
        "collision": pair_tests(lineup, lambda worlds: on_progress("pairs", worlds)),
    }
