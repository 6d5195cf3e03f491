"""The Delassus matrix A = Y Y^T + cfm / h of a tile, in lanes where it is small, else row by row of one world.

A row is laid out on all dofs and multiplied with the rows before it, entry by entry in the order of their columns: so
both ways give the same bits, and what other rows stand between does not matter.
"""

from __future__ import annotations

from ...lanes import fma, kernel, read_lane, real, single_precision, stage


@kernel
def fits_lanes(d):
    """Is A formed in all worlds at once?  In float32 a world's problem is one of float64, whatever its company."""
    return not single_precision(d) and d.lcp_n[0] * d.lcp_n[0] <= d.nlcpA


@kernel
def entry(d, j):
    """y_j times the row that is laid out in `search`."""
    o, e, s = d.lcp_coladr[j], d.lcp_rowadr[j], real(d, 0.0)
    for p in range(d.lcp_colnum[j]):
        s = fma(d.lcp_Y[e + p], d.search[d.lcp_col[o + p]], s)
    return s


@stage
def form_delassus(m, d):
    """lcp_A <- A, its lower triangle with stride lcp_n, where some world has both rows.

    Reads:  lcp_Y, lcp_diag, lcp_order (see mark_worlds).   Writes: lcp_A (nlcpA,); search for itself.
    Cost:   rows^2 / 2 times the dofs of a row.
    """
    n = d.lcp_n[0]
    for i in range(m.nv):
        d.search[i] = real(d, 0.0)
    for i in range(n):
        o, e, size = d.lcp_coladr[i], d.lcp_rowadr[i], d.lcp_colnum[i]
        for p in range(size):
            d.search[d.lcp_col[o + p]] = d.lcp_Y[e + p]
        for j in range(i):
            if d.lcp_order[i] & d.lcp_order[j]:
                d.lcp_A[i * n + j] = entry(d, j)
        d.lcp_A[i * n + i] = d.lcp_diag[i]
        for p in range(size):
            d.search[d.lcp_col[o + p]] = real(d, 0.0)


# ---- one world -----------------------------------------------------------------------------------------------------
@kernel
def one_entry(d, j, lane):
    """y_j times the row that is laid out in panel_x, of one world."""
    o, e, s = d.lcp_coladr[j], d.lcp_rowadr[j], 0.0
    for p in range(d.lcp_colnum[j]):
        s = fma(read_lane(d.lcp_Y, e + p, lane), d.panel_x[d.lcp_col[o + p]], s)
    return s


@kernel
def set_symmetric(d, stride, a, b, x):
    """one_A at (a, b) and (b, a)."""
    d.one_A[a * stride + b] = x
    d.one_A[b * stride + a] = x


@kernel
def gather_delassus(d, stride, lane):
    """one_A <- A of the rows in one_row, from lcp_A."""
    n = d.lcp_n[0]
    for a in range(d.one_n[0]):
        i = d.one_row[a]
        for b in range(a + 1):
            set_symmetric(d, stride, a, b, read_lane(d.lcp_A, i * n + d.one_row[b], lane))


@kernel
def form_one_delassus(d, stride, lane):
    """one_A <- A of the rows in one_row, of one world."""
    for i in range(d.nlcpz):
        d.panel_x[i] = 0.0
    for a in range(d.one_n[0]):
        i = d.one_row[a]
        o, e, size = d.lcp_coladr[i], d.lcp_rowadr[i], d.lcp_colnum[i]
        for p in range(size):
            d.panel_x[d.lcp_col[o + p]] = read_lane(d.lcp_Y, e + p, lane)
        for b in range(a):
            set_symmetric(d, stride, a, b, one_entry(d, d.one_row[b], lane))
        d.one_A[a * stride + a] = read_lane(d.lcp_diag, i, lane)
        for p in range(size):
            d.panel_x[d.lcp_col[o + p]] = 0.0
