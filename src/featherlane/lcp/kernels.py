"""Kernels for registered solvers (`register`): rows of A x, and bounds, for dense and factored problems alike.

sum_factored_rows(p, x)          prepares products with x; call it after a change of x by other means
delassus_row_product(p, x, i)    returns (A x)_i
add_row_change(p, i, change)     updates what `delassus_row_product` needs, after a change of x_i
compute_w(p)                     computes p.lcp.w = A x - b of p.lcp.x, and prepares its products
row_bounds(p, x, i)              returns (lower, upper) of row i in effect at x
project_box(p, x, i, u)          returns u clipped to them
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
