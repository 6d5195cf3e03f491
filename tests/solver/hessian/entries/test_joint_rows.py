"""Stiffness of rows of dofs and of general rows: only rows inside their bounds count."""

import numpy as np

from featherlane.engine.solver.hessian.entries.joint_rows import free_weight
from oracles.uncompiled import call, record


def test_a_general_row_counts_inside_its_bounds():
    x = np.array([-0.6, -0.5, 0.0, 0.4, 0.5, 0.7])
    d = record(6, row_D=[2.0], row_lo=[-1.0], row_hi=[1.0], primal={"row_x": x[None]})
    np.testing.assert_array_equal(call(free_weight, d, 0), [0, 0, 2, 2, 0, 0])
