"""For authors of front ends: checks of arguments, optional libraries, descriptions of fields, parts of rollouts.

A front end converts between a user, a file or another library and worlds (`featherlane.Worlds`).  Those of this package
import public names only: those of `featherlane`, its public modules, and of this module.
"""

from featherlane.engine.configuration import configuration
from featherlane.engine.lanes.cores import cores
from featherlane.engine.lanes.foreign import compile_llvm
from featherlane.engine.libraries import private, required, requiring, unsupported
from featherlane.engine.model.arguments import (
    LARGEST,
    bounded,
    check_counts,
    instance,
    interval,
    one_of,
    whole_argument,
)
from featherlane.engine.model.array_file import read_array, read_arrays, read_member, whole_file
from featherlane.engine.model.assignment import (
    as_real_array,
    assign,
    check_finite,
    described,
    flag,
    is_mixed,
    is_numbers,
    real_number,
    regular,
)
from featherlane.engine.model.entries import selection, split_path
from featherlane.engine.model.fields import DEFAULTS, EDITABLE_INTS, MODEL
from featherlane.engine.model.limits import check_field
from featherlane.engine.model.load import compile_source, load_unchecked, specification
from featherlane.engine.model.mjcf_writer import write_mjcf
from featherlane.engine.model.model import peek
from featherlane.engine.model.mujoco_arrays import binary, read_fields
from featherlane.engine.model.reader import heard as mujoco_warnings
from featherlane.engine.model.reader import mujoco_module
from featherlane.engine.model.repair import repairing
from featherlane.engine.model.robot_setup import RobotSetup
from featherlane.engine.model.set_const import dependent_fields
from featherlane.engine.model.source_report import SourceReport, source_report
from featherlane.engine.model.status import STATUS
from featherlane.engine.model.write_detection import TrackedArray
from featherlane.engine.simulation.batch.arrays import STATE
from featherlane.engine.simulation.batch.one_world import batch_of
from featherlane.engine.simulation.batch.random_rows import RowSampler
from featherlane.engine.simulation.batch.reduction import (
    Histogram,
    Reduction,
    checked_reduction,
    merged_reduction,
    partial_reduction,
)
from featherlane.engine.simulation.batch.rollout_request import Record, RolloutRequest
from featherlane.engine.simulation.batch.together import roll_together, step_together
from featherlane.engine.simulation.tile.call_lock import Turn, hold, stack_frames
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.engine.simulation.tile.library import kernels_hash
from featherlane.engine.simulation.tile.precompile import compile_kernels
from featherlane.engine.simulation.world.contacts import takes_contacts
from featherlane.engine.simulation.world.mujoco_data import shared_arrays
from featherlane.engine.simulation.world.recordings import BINDABLE, Control, field_names, world_shape
from featherlane.engine.spatial import rotation
from featherlane.tools.histories import hold_controls
from featherlane.tools.policy.episodes import PolicyLoop, Rollout
from featherlane.tools.profile.profile import profile
from featherlane.tools.renderer import Painter, prepare_rendering
from featherlane.tools.sensitivity.adjoint.bridge import Bridge
from featherlane.tools.sensitivity.adjoint.dynamics import Dynamics, Run
from featherlane.tools.sensitivity.adjoint.native import Copy, NativeAdjoint, Program

__all__ = [  # noqa: RUF022  in groups
    # checks of arguments
    "LARGEST",
    "as_real_array",
    "assign",
    "bounded",
    "check_counts",
    "check_field",
    "check_finite",
    "described",
    "flag",
    "instance",
    "interval",
    "is_mixed",
    "is_numbers",
    "one_of",
    "real_number",
    "regular",
    "takes_contacts",
    "whole_argument",
    # optional libraries
    "private",
    "required",
    "requiring",
    "unsupported",
    # models
    "RobotSetup",
    "SourceReport",
    "binary",
    "compile_source",
    "load_unchecked",
    "mujoco_module",
    "mujoco_warnings",
    "peek",
    "repairing",
    "source_report",
    "specification",
    "write_mjcf",
    # descriptions of fields: layouts (`featherlane.lanes.Layout`) of models and worlds, columns of the field `warning`
    "BINDABLE",
    "DATA",
    "DEFAULTS",
    "EDITABLE_INTS",
    "MODEL",
    "STATE",
    "STATUS",
    "dependent_fields",
    "field_names",
    "read_fields",
    "selection",
    "shared_arrays",
    "split_path",
    "world_shape",
    # worlds
    "RowSampler",
    "TrackedArray",
    "batch_of",
    "hold_controls",
    "rotation",
    # several batches in one call
    "roll_together",
    "step_together",
    # batches whose worlds are in several parts
    "Control",
    "Histogram",
    "Record",
    "Reduction",
    "RolloutRequest",
    "Turn",
    "checked_reduction",
    "hold",
    "merged_reduction",
    "partial_reduction",
    "stack_frames",
    # gradients of rollouts for other libraries
    "Bridge",
    "Copy",
    "Dynamics",
    "NativeAdjoint",
    "Program",
    "Run",
    # policies
    "PolicyLoop",
    "Rollout",
    # images
    "Painter",
    "prepare_rendering",
    # files
    "read_array",
    "read_arrays",
    "read_member",
    "whole_file",
    # installation and speed
    "compile_kernels",
    "compile_llvm",
    "configuration",
    "cores",
    "kernels_hash",
    "profile",
]
