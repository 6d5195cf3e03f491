"""The stages that differentiate steps with convex rows, or without rows."""

from featherlane.tools.sensitivity.columns.system import Stages
from featherlane.tools.sensitivity.systems.differences import (
    correction_columns,
    parameter_points,
    residual_columns,
)
from featherlane.tools.sensitivity.systems.formulas import formula_columns, formula_steps
from featherlane.tools.sensitivity.systems.solution import base_tiles, solve_columns

CONVEX_STAGES = Stages(
    accelerations=base_tiles,
    residual=residual_columns,
    correction=correction_columns,
    parameters=parameter_points,
    formulas=formula_columns,
    solution=solve_columns,
    whole=formula_steps,
)
