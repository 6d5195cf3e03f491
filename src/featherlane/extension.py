"""For authors of front ends: checks of arguments, optional libraries, random numbers, rotations, images.

A front end converts between a user, a file or another library and worlds (`featherlane.Worlds`).  Those of this package
import public names only: those of `featherlane`, its public modules, and of this module.
"""

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
from featherlane.engine.model.assignment import as_real_array, check_finite, is_numbers, regular
from featherlane.engine.model.fields import MODEL
from featherlane.engine.model.limits import check_field
from featherlane.engine.model.load import specification
from featherlane.engine.model.model import peek
from featherlane.engine.model.mujoco_arrays import read_fields
from featherlane.engine.model.set_const import dependent_fields
from featherlane.engine.model.status import STATUS
from featherlane.engine.simulation.batch.random_rows import RowSampler
from featherlane.engine.simulation.batch.together import roll_together, step_together
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.engine.simulation.world.mujoco_data import shared_arrays
from featherlane.engine.spatial import rotation
from featherlane.tools.histories import hold_controls
from featherlane.tools.policy.episodes import PolicyLoop, Rollout
from featherlane.tools.renderer import Painter, prepare_rendering
from featherlane.tools.sensitivity.adjoint.bridge import Bridge
from featherlane.tools.sensitivity.adjoint.dynamics import Dynamics, Run
from featherlane.tools.sensitivity.adjoint.native import Copy, NativeAdjoint, Program

__all__ = [  # noqa: RUF022  in groups
    # checks of arguments
    "LARGEST",
    "as_real_array",
    "bounded",
    "check_counts",
    "check_field",
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
    "unsupported",
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
    # descriptions of fields: layouts (`featherlane.lanes.Layout`) of models and worlds, columns of the field `warning`
    "DATA",
    "MODEL",
    "STATUS",
    "dependent_fields",
    "read_fields",
    "shared_arrays",
    # several batches in one call
    "roll_together",
    "step_together",
    # gradients of rollouts for other libraries
    "Bridge",
    "Copy",
    "Dynamics",
    "NativeAdjoint",
    "Program",
    "Run",
    # this machine
    "compile_llvm",
    "cores",
]
