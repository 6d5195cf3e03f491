"""The Delassus matrix A = Y Y^T + cfm / h of one island of one world.

The island's rows are columns of a panel with a row per dof, so eight entries of a row of A are computed at
once:  A_a = sum over the dofs c of row a of y_ac (y_0c, y_1c, ...).  Columns descend, so A is bitwise symmetric and
independent of the rows of other worlds in the tile.
"""

from featherlane.prelude import *


@kernel
def clear_panel(d, blocks):
    """Clears the dofs of the island's rows; rows that share their columns are handled together."""
    P, last = eights(d.place.A), -1
    for a in range(d.one.n[0]):
        o = d.lcp.coladr[d.one.row[a]]
        if o != last:
            last = o
            for p in range(o, o + d.lcp.colnum[d.one.row[a]]):
                c = d.lcp.col[p] * blocks
                for q in range(blocks):
                    P[c + q] = 0.0


@kernel
def fill_panel(d, blocks, lane):
    """Copies y of the island's rows, by dof, to place_A, which the solver does not use yet."""
    clear_panel(d, blocks)
    for a in range(d.one.n[0]):
        r = d.one.row[a]
        o, e = d.lcp.coladr[r], d.lcp.rowadr[r]
        for p in range(d.lcp.colnum[r]):
            d.place.A[8 * blocks * d.lcp.col[o + p] + a] = read_lane(d.lcp.Y, e + p, lane)


@kernel
def compute_delassus_row(d, blocks, a):
    """Computes row a of one.A, without the softness."""
    P, A, r = eights(d.place.A), eights(d.one.A), d.one.row[a]
    o = d.lcp.coladr[r]
    for q in range(blocks):
        s = 0.0 * P[d.lcp.col[o] * blocks + q]
        for p in range(o, o + d.lcp.colnum[r]):
            c = d.lcp.col[p] * blocks
            s = fma(d.place.A[8 * c + a], P[c + q], s)
        A[a * blocks + q] = s


@kernel
def form_delassus(d, lane):
    """Computes one.A, the full A of the rows in one.row, with its rows zero-padded to a multiple of eight.

    Reads:  lcp.Y, lcp.diag.
    Writes: one.A.
    Scratch: place.A.
    Cost:   rows^2 / 8 times the dofs of a row.
    """
    n = d.one.n[0]
    blocks = (n + 7) // 8
    fill_panel(d, blocks, lane)
    for a in range(n):
        compute_delassus_row(d, blocks, a)
        d.one.A[8 * blocks * a + a] = read_lane(d.lcp.diag, d.one.row[a], lane)
