"""For authors of front ends: checks of arguments, optional libraries, descriptions of fields, parts of rollouts.

A front end converts between a user, a file or another library and worlds (`featherlane.Worlds`).  Those of this package
import public names only: those of `featherlane`, its public modules, and of this module.
"""

from featherlane.engine.configuration import configuration
from featherlane.engine.lanes.cores import cores
from featherlane.engine.lanes.foreign import compile_llvm
from featherlane.engine.libraries import private, required, requiring, unsupported
from featherlane.engine.model.arguments import (
    bounded,
    check_counts,
    instance,
    interval,
    one_of,
    whole_argument,
)
from featherlane.engine.model.array_file import read_array, read_arrays, whole_file
from featherlane.engine.model.assignment import (
    as_real_array,
    assign,
    check_finite,
    described,
    is_mixed,
    real_number,
    regular,
)
from featherlane.engine.model.entries import selection, split_path
from featherlane.engine.model.fields import DEFAULTS, MODEL
from featherlane.engine.model.load import compile_source, load_unchecked, specification
from featherlane.engine.model.mjcf_writer import write_mjcf
from featherlane.engine.model.mujoco_arrays import binary, read_fields
from featherlane.engine.model.reader import heard as mujoco_warnings
from featherlane.engine.model.reader import mujoco_module
from featherlane.engine.model.repair import repairing
from featherlane.engine.model.robot_setup import RobotSetup
from featherlane.engine.model.source_report import source_report
from featherlane.engine.model.status import STATUS
from featherlane.engine.simulation.batch.constants import dependent_fields
from featherlane.engine.simulation.batch.expanded import Expanded
from featherlane.engine.simulation.batch.one_world import batch_of
from featherlane.engine.simulation.batch.random_rows import RowSampler
from featherlane.engine.simulation.batch.reduction import (
    Histogram,
    Reduction,
)
from featherlane.engine.simulation.batch.rollout_request import RolloutRequest
from featherlane.engine.simulation.batch.together import roll_together, step_together
from featherlane.engine.simulation.tile.call_lock import Turn
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.engine.simulation.tile.library import kernels_hash
from featherlane.engine.simulation.tile.precompile import compile_kernels
from featherlane.engine.simulation.world.contacts import takes_contacts
from featherlane.engine.simulation.world.recordings import world_shape
from featherlane.engine.spatial import rotation
from featherlane.tools.histories import hold_histories
from featherlane.tools.policy.episodes import PolicyLoop
from featherlane.tools.profile.profile import profile
from featherlane.tools.renderer import Painter, prepare_rendering
from featherlane.tools.sensitivity.adjoint.bridge import Bridge
from featherlane.tools.sensitivity.adjoint.native import Program

__all__ = [  # noqa: RUF022  in groups
    # checks of arguments
    "as_real_array",
    "assign",
    "bounded",
    "check_counts",
    "check_finite",
    "described",
    "instance",
    "interval",
    "is_mixed",
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
    "binary",
    "compile_source",
    "load_unchecked",
    "mujoco_module",
    "mujoco_warnings",
    "repairing",
    "source_report",
    "specification",
    "write_mjcf",
    # descriptions of fields: layouts (`featherlane.lanes.Layout`) of models and worlds, columns of the field `warning`
    "DATA",
    "DEFAULTS",
    "MODEL",
    "STATUS",
    "dependent_fields",
    "read_fields",
    "selection",
    "split_path",
    "world_shape",
    # worlds
    "Expanded",
    "RowSampler",
    "batch_of",
    "hold_histories",
    "rotation",
    # several batches in one call
    "roll_together",
    "step_together",
    # batches whose worlds are in several parts
    "Histogram",
    "Reduction",
    "RolloutRequest",
    "Turn",
    # gradients of rollouts for other libraries
    "Bridge",
    "Program",
    # policies
    "PolicyLoop",
    # images
    "Painter",
    "prepare_rendering",
    # files
    "read_array",
    "read_arrays",
    "whole_file",
    # installation and speed
    "compile_kernels",
    "compile_llvm",
    "configuration",
    "cores",
    "kernels_hash",
    "profile",
]
