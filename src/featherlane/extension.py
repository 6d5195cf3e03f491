"""For authors of front ends: checks of arguments, optional libraries, descriptions of fields, parts of batches.

A front end converts between a user, a file or another library and worlds (`featherlane.Worlds`).  Those of this package
import public names only: those of `featherlane`, its public modules, and of this module.

`DATA` and `MODEL` describe the fields of `Data` and `Model` (docs/fields.md).  `BINDABLE` has the fields of `Data`
that a world of a batch has, and `STATE` those of its state and inputs.  `EDITABLE_INTS` are the integer fields of a
model that may be set, and `DEFAULTS` the initial values of fields that MuJoCo's model lacks.  `LARGEST` is the largest
finite number.  `Control`, `Record` and `Reduction` are the types of the arguments of `Worlds.rollout`.
"""

from featherlane.engine.configuration import configuration
from featherlane.engine.lanes.cores import cores
from featherlane.engine.libraries import private, required, requiring
from featherlane.engine.model.arguments import LARGEST, bounded, check_counts, instance, one_of, whole_argument
from featherlane.engine.model.array_file import read_array, read_arrays, read_member, whole_file
from featherlane.engine.model.assignment import (
    as_real_array,
    assign,
    check_finite,
    described,
    flag,
    is_mixed,
    real_number,
    regular,
)
from featherlane.engine.model.entries import selection, split_path
from featherlane.engine.model.fields import DEFAULTS, EDITABLE_INTS, MODEL
from featherlane.engine.model.load import compile_source, load_unchecked
from featherlane.engine.model.mujoco_arrays import binary
from featherlane.engine.model.reader import heard as mujoco_warnings
from featherlane.engine.model.reader import mujoco_module
from featherlane.engine.model.source_report import SourceReport, source_report
from featherlane.engine.model.write_detection import TrackedArray
from featherlane.engine.simulation.batch.arrays import STATE
from featherlane.engine.simulation.batch.reduction import (
    Histogram,
    Reduction,
    checked_reduction,
    merged_reduction,
    partial_reduction,
)
from featherlane.engine.simulation.batch.rollout_request import Record, RolloutRequest
from featherlane.engine.simulation.tile.call_lock import Turn, hold, stack_frames
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.engine.simulation.tile.library import kernels_hash
from featherlane.engine.simulation.tile.precompile import compile_kernels
from featherlane.engine.simulation.world.contacts import takes_contacts
from featherlane.engine.simulation.world.recordings import BINDABLE, Control, field_names, world_shape
from featherlane.tools.profile.profile import profile
from featherlane.tools.renderer import Painter, prepare_rendering

__all__ = [  # noqa: RUF022  in groups
    # checks of arguments
    "LARGEST",
    "as_real_array",
    "assign",
    "bounded",
    "check_counts",
    "check_finite",
    "described",
    "field_names",
    "flag",
    "instance",
    "is_mixed",
    "one_of",
    "real_number",
    "regular",
    "takes_contacts",
    "whole_argument",
    # descriptions of fields
    "BINDABLE",
    "DATA",
    "DEFAULTS",
    "EDITABLE_INTS",
    "MODEL",
    "STATE",
    "selection",
    "split_path",
    "world_shape",
    # models
    "SourceReport",
    "binary",
    "compile_source",
    "load_unchecked",
    "mujoco_module",
    "mujoco_warnings",
    "source_report",
    # batches whose worlds are in several parts
    "Control",
    "Histogram",
    "Record",
    "Reduction",
    "RolloutRequest",
    "TrackedArray",
    "Turn",
    "checked_reduction",
    "hold",
    "merged_reduction",
    "partial_reduction",
    "stack_frames",
    # files
    "read_array",
    "read_arrays",
    "read_member",
    "whole_file",
    # images
    "Painter",
    "prepare_rendering",
    # installation and speed
    "compile_kernels",
    "configuration",
    "cores",
    "kernels_hash",
    "profile",
    # optional libraries
    "private",
    "required",
    "requiring",
]
