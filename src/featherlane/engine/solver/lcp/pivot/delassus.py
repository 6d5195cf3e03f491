"""The Delassus matrix A = Y Y^T + cfm / h of one island of one world.

The panel is Y^T of the island, with a row per dof and a column per row of the island.  So eight entries of a row of A
are computed at once:  A_a = sum over the dofs i of row a of y_ai (y_0i, y_1i, ...).  All sums run over descending dofs,
so A is bitwise symmetric and independent of the rows of other worlds in the tile.
Symbols: a: a row of the island, of one.n, row r = one.row[a] of the tile;  i: a dof, lcp.col[e] for an entry e of row
    r;  row r has colnum[r] entries, at lcp.col[coladr[r] ...] and lcp.Y[rowadr[r] ...].
Layout: y_ai = scaled.A[8 * blocks * i + a] in the panel, A_ab = one.A[8 * blocks * a + b], with rows of `blocks` eights
    (vectors of eight adjacent numbers).
"""

from featherlane.engine.prelude import *


@kernel
def clear_panel(d, blocks):
    """Clears the panel's rows of all dofs of the island; consecutive rows that share their dofs are handled once."""
    panel8 = eights(d.scaled.A)
    previous = -1
    for a in range(d.one.n[0]):
        first = d.lcp.coladr[d.one.row[a]]
        if first != previous:
            previous = first
            for e in range(first, first + d.lcp.colnum[d.one.row[a]]):
                panel_row = d.lcp.col[e] * blocks  # its first eight
                for block in range(blocks):
                    panel8[panel_row + block] = 0.0


@kernel
def fill_panel(d, blocks, lane):
    """Copies y of the island's rows, in the world of `lane`, to the panel, scaled.A, which pivoting overwrites."""
    clear_panel(d, blocks)
    for a in range(d.one.n[0]):
        r = d.one.row[a]
        column, entry = d.lcp.coladr[r], d.lcp.rowadr[r]
        for k in range(d.lcp.colnum[r]):
            d.scaled.A[8 * blocks * d.lcp.col[column + k] + a] = read_lane(d.lcp.Y, entry + k, lane)


@kernel
def compute_delassus_row(d, blocks, a):
    """Computes row a of Y Y^T from the panel, in one.A; the CFM is not included."""
    panel8, A8 = eights(d.scaled.A), eights(d.one.A)
    r = d.one.row[a]
    first = d.lcp.coladr[r]
    for block in range(blocks):
        sums = 0.0
        for e in range(first, first + d.lcp.colnum[r]):
            panel_row = d.lcp.col[e] * blocks  # its first eight
            sums = fma(d.scaled.A[8 * panel_row + a], panel8[panel_row + block], sums)
        A8[a * blocks + block] = sums


@kernel
def form_delassus(d, lane):
    """Computes one.A, the full A of the rows in one.row, with its rows zero-padded to a multiple of eight.

    Reads:  lcp.Y, lcp.diag of the world in `lane`.
    Writes: one.A.
    Scratch: scaled.A.
    Cost:   rows^2 / 8 times the dofs of a row.
    """
    n = d.one.n[0]
    blocks = (n + 7) // 8
    fill_panel(d, blocks, lane)
    for a in range(n):
        compute_delassus_row(d, blocks, a)
        # lcp.diag is the diagonal of A with the CFM
        d.one.A[8 * blocks * a + a] = read_lane(d.lcp.diag, d.one.row[a], lane)
