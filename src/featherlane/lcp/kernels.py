"""Kernels for registered solvers (`register`): rows of A x, and bounds, for dense and factored problems alike.

A factored problem stores z = Y^T x in p.lcp.z, from which rows of A x are computed; z must belong to the present x.

sum_factored_rows(p, x)          computes z from x: call it once x is set, and after changes without `add_row_change`
delassus_row_product(p, x, i)    returns (A x)_i, for factored rows from z
add_row_change(p, i, change)     updates z after x_i has changed by `change`
compute_w(p)                     computes p.lcp.w = A x - b for x in p.lcp.x, and z
row_bounds(p, x, i)              returns (lower, upper) of row i in effect at x
project_box(p, x, i, u)          returns u clipped to the bounds of row i in effect at x
"""

from featherlane.engine.solver.lcp.sweep.product import (
    add_row_change,
    compute_w,
    delassus_row_product,
    sum_factored_rows,
)
from featherlane.engine.solver.lcp.sweep.projection import project_box, row_bounds

__all__ = [
    "add_row_change",
    "compute_w",
    "delassus_row_product",
    "project_box",
    "row_bounds",
    "sum_factored_rows",
]
