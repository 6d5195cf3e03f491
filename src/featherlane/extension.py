"""For authors of front ends: checks of arguments, optional libraries, random numbers, rotations, images.

A front end converts between a user, a file or another library and worlds (`featherlane.Worlds`).  Those of this package
import public names only: those of `featherlane`, its public modules, and of this module.
"""

from featherlane.engine.libraries import private, required, requiring
from featherlane.engine.model.arguments import (
    LARGEST,
    bounded,
    check_counts,
    instance,
    interval,
    one_of,
    whole_argument,
)
from featherlane.engine.model.assignment import as_real_array, check_finite, is_numbers, regular
from featherlane.engine.model.load import specification
from featherlane.engine.model.model import peek
from featherlane.engine.simulation.batch.random_rows import RowSampler
from featherlane.engine.spatial import rotation
from featherlane.tools.histories import hold_controls
from featherlane.tools.policy.episodes import PolicyLoop, Rollout
from featherlane.tools.renderer import Painter, prepare_rendering

__all__ = [  # noqa: RUF022  in groups
    # checks of arguments
    "LARGEST",
    "as_real_array",
    "bounded",
    "check_counts",
    "check_finite",
    "instance",
    "interval",
    "is_numbers",
    "one_of",
    "regular",
    "whole_argument",
    # optional libraries
    "private",
    "required",
    "requiring",
    # models
    "peek",
    "specification",
    # worlds
    "RowSampler",
    "hold_controls",
    "rotation",
    # policies
    "PolicyLoop",
    "Rollout",
    # images
    "Painter",
    "prepare_rendering",
]
