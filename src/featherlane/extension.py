"""For authors of front ends: checks of arguments, optional libraries, descriptions of fields, files, rotations.

A front end converts between a user, a file or another library and worlds (`featherlane.Worlds`).  Those of this package
import public names only: those of `featherlane`, its public modules, and of this module.
"""

from featherlane.engine.libraries import private, required, requiring, unsupported
from featherlane.engine.model.arguments import LARGEST, bounded, check_counts, instance, one_of, whole_argument
from featherlane.engine.model.array_file import read_arrays, read_member
from featherlane.engine.model.assignment import as_real_array, check_finite, regular
from featherlane.engine.model.entries import selection
from featherlane.engine.simulation.batch.one_world import batch_of
from featherlane.engine.spatial import rotation

__all__ = [  # noqa: RUF022  in groups
    # checks of arguments
    "LARGEST",
    "as_real_array",
    "bounded",
    "check_counts",
    "check_finite",
    "instance",
    "one_of",
    "regular",
    "whole_argument",
    # optional libraries
    "private",
    "required",
    "requiring",
    "unsupported",
    # worlds
    "batch_of",
    # descriptions of fields
    "selection",
    # files
    "read_arrays",
    "read_member",
    # rotations of many bodies
    "rotation",
]
