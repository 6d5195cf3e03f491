"""For authors of front ends: checks of arguments, optional libraries, descriptions of fields.

A front end converts between a user, a file or another library and worlds (`featherlane.Worlds`).  Those of this package
import public names only: those of `featherlane`, its public modules, and of this module.
"""

from featherlane.engine.configuration import configuration
from featherlane.engine.lanes.cores import cores
from featherlane.engine.libraries import private, required, requiring
from featherlane.engine.model.arguments import LARGEST, bounded, check_counts, instance, one_of, whole_argument
from featherlane.engine.model.array_file import read_array, read_arrays, read_member, whole_file
from featherlane.engine.model.assignment import as_real_array, check_finite, regular
from featherlane.engine.model.fields import DEFAULTS
from featherlane.engine.model.load import compile_source, load_unchecked
from featherlane.engine.model.reader import heard, mujoco_module
from featherlane.engine.model.source_report import SourceReport, source_report
from featherlane.engine.simulation.tile.precompile import compile_kernels
from featherlane.tools.profile.profile import profile
from featherlane.tools.renderer import Painter, prepare_rendering

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
    # descriptions of fields
    "DEFAULTS",
    # images
    "Painter",
    "prepare_rendering",
    # installation
    "compile_kernels",
    "configuration",
    "cores",
    # measurements
    "profile",
    # files
    "read_array",
    "read_arrays",
    "read_member",
    "whole_file",
    # models
    "compile_source",
    "heard",
    "load_unchecked",
    "mujoco_module",
    "SourceReport",
    "source_report",
    # optional libraries
    "private",
    "required",
    "requiring",
]
