"""Products with A, by rows: of a dense A, or of factored rows A = Y Y^T + diag(cfm), with z = Y^T x stored.

Layout: A_ij = lcp.A[i * n + j].  Row i of Y has colnum[i] entries: entry k is lcp.Y[rowadr[i] + k], at column
lcp.col[coladr[i] + k].   Symbols: i: a row;  j: a column;  k: an entry;  p: the record of the problems.
"""

from featherlane.engine.prelude import *


@kernel
def dense_dot(p, x, i):
    """Returns (A x)_i of a dense A, in four independent sums, which hide latency."""
    n = p.lcp.n[0]
    A_i = i * p.lcp.n[0]  # index of A_i0
    sums = zeros(4)  # sum c takes the columns c, c + 4, ...
    for k in range(n // 4):
        j = 4 * k
        sums = tuple(fma(p.lcp.A[A_i + j + c], x[j + c], sums[c]) for c in range(4))
    # the last columns, if n is no multiple of four, go to sum 0
    sum_0 = sums[0]
    for j in range(n // 4 * 4, n):
        sum_0 = fma(p.lcp.A[A_i + j], x[j], sum_0)
    return (sum_0 + sums[1]) + (sums[2] + sums[3])


@kernel
def factored_dot(p, x, i):
    """Returns (A x)_i = cfm_i x_i + sum over j of Y_ij z_j, given lcp.z = Y^T x."""
    column, entry, n = p.lcp.coladr[i], p.lcp.rowadr[i], p.lcp.colnum[i]
    # two independent sums, of even and odd entries, hide latency
    even = p.lcp.cfm[i] * x[i]
    odd = 0.0
    for half in range(n // 2):
        k = 2 * half
        even = fma(p.lcp.Y[entry + k], p.lcp.z[p.lcp.col[column + k]], even)
        odd = fma(p.lcp.Y[entry + k + 1], p.lcp.z[p.lcp.col[column + k + 1]], odd)
    if n % 2 == 1:
        even = fma(p.lcp.Y[entry + n - 1], p.lcp.z[p.lcp.col[column + n - 1]], even)
    return even + odd


@kernel
def delassus_row_product(p, x, i):
    """Returns (A x)_i; for factored rows from the stored z, which must be Y^T x."""
    if p.lcp.dense[0] != 0:
        product = dense_dot(p, x, i)
    else:
        product = factored_dot(p, x, i)
    return product


@kernel
def add_row_change(p, i, delta):
    """Updates lcp.z = Y^T x after x_i has changed by `delta`: z_j += Y_ij delta.  A dense A has no z."""
    if p.lcp.dense[0] == 0:
        column, entry = p.lcp.coladr[i], p.lcp.rowadr[i]
        for k in range(p.lcp.colnum[i]):
            j = p.lcp.col[column + k]
            p.lcp.z[j] = fma(p.lcp.Y[entry + k], delta, p.lcp.z[j])


@kernel
def sum_factored_rows(p, x):
    """Computes lcp.z = Y^T x of factored rows."""
    if p.lcp.dense[0] == 0:
        for j in range(p.nlcpz):
            p.lcp.z[j] = 0.0
        for i in range(p.lcp.n[0]):
            add_row_change(p, i, x[i])


@kernel
def multiply_delassus(p, x, y):
    """Computes y = A x, and lcp.z = Y^T x of factored rows."""
    sum_factored_rows(p, x)
    for i in range(p.lcp.n[0]):
        y[i] = delassus_row_product(p, x, i)


@kernel
def compute_w_from_z(p):
    """Computes lcp.w = A x - b; for factored rows from the stored z, which must be Y^T x."""
    for i in range(p.lcp.n[0]):
        p.lcp.w[i] = delassus_row_product(p, p.lcp.x, i) - p.lcp.b[i]


@kernel
def compute_w(p):
    """Computes lcp.w = A x - b, and lcp.z = Y^T x of factored rows."""
    sum_factored_rows(p, p.lcp.x)
    compute_w_from_z(p)
