"""The Delassus matrix A = Y Y^T + cfm / h of one island of one world.

The island's rows stand side by side in a panel, a row of it for each dof, so that eight entries of a row of A come
at once:  A_a = sum over the dofs c of row a of y_ac (y_0c, y_1c, ...).  Columns descend, so an entry has the same bits
from either side, and whatever rows of other worlds the tile has.
"""

from featherlane.prelude import *


@kernel
def clear_panel(d, blocks):
    """Zeros at the dofs of the island's rows; rows that share their columns are looked at once."""
    P, last = eights(d.place_A), -1
    for a in range(d.one_n[0]):
        o = d.lcp_coladr[d.one_row[a]]
        if o != last:
            last = o
            for p in range(o, o + d.lcp_colnum[d.one_row[a]]):
                c = d.lcp_col[p] * blocks
                for q in range(blocks):
                    P[c + q] = 0.0


@kernel
def fill_panel(d, blocks, lane):
    """place_A, which the solver has not begun to use, <- y of the island's rows, by dof."""
    clear_panel(d, blocks)
    for a in range(d.one_n[0]):
        r = d.one_row[a]
        o, e = d.lcp_coladr[r], d.lcp_rowadr[r]
        for p in range(d.lcp_colnum[r]):
            d.place_A[8 * blocks * d.lcp_col[o + p] + a] = read_lane(d.lcp_Y, e + p, lane)


@kernel
def multiply_panel(d, blocks, a):
    """Row a of one_A, without the softness."""
    P, A, r = eights(d.place_A), eights(d.one_A), d.one_row[a]
    o = d.lcp_coladr[r]
    for q in range(blocks):
        s = 0.0 * P[d.lcp_col[o] * blocks + q]
        for p in range(o, o + d.lcp_colnum[r]):
            c = d.lcp_col[p] * blocks
            s = fma(d.place_A[8 * c + a], P[c + q], s)
        A[a * blocks + q] = s


@kernel
def form_delassus(d, lane):
    """one_A <- A of the rows in one_row, full, its rows filled up to eights with zeros.

    Reads:  lcp_Y, lcp_diag.   Writes: one_A; place_A for itself.   Cost: rows^2 / 8 times the dofs of a row.
    """
    n = d.one_n[0]
    blocks = (n + 7) // 8
    fill_panel(d, blocks, lane)
    for a in range(n):
        multiply_panel(d, blocks, a)
        d.one_A[8 * blocks * a + a] = read_lane(d.lcp_diag, d.one_row[a], lane)
