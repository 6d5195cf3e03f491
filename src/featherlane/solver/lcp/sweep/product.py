"""Products with A, by rows: of a dense A, or of factored rows A = Y Y^T + diag(cfm), with z = Y^T x stored."""

from featherlane.prelude import *


@kernel
def dense_dot(p, x, i):
    """Returns (A x)_i of a dense A, in four independent sums, which hide latency."""
    n, a = p.lcp.n[0], i * p.lcp.n[0]
    s = zeros(4)
    for k in range(n // 4):
        j = 4 * k
        s = tuple(fma(p.lcp.A[a + j + c], x[j + c], s[c]) for c in range(4))
    first = s[0]
    for j in range(n // 4 * 4, n):
        first = fma(p.lcp.A[a + j], x[j], first)
    return (first + s[1]) + (s[2] + s[3])


@kernel
def factored_dot(p, x, i):
    """Returns (A x)_i, given z = Y^T x."""
    c, y, n = p.lcp.coladr[i], p.lcp.rowadr[i], p.lcp.colnum[i]
    s0, s1 = p.lcp.cfm[i] * x[i], 0.0
    for k in range(n // 2):
        j = 2 * k
        s0 = fma(p.lcp.Y[y + j], p.lcp.z[p.lcp.col[c + j]], s0)
        s1 = fma(p.lcp.Y[y + j + 1], p.lcp.z[p.lcp.col[c + j + 1]], s1)
    if n % 2 == 1:
        s0 = fma(p.lcp.Y[y + n - 1], p.lcp.z[p.lcp.col[c + n - 1]], s0)
    return s0 + s1


@kernel
def delassus_row_product(p, x, i):
    """Returns (A x)_i; for factored rows from the z of x."""
    if p.lcp.dense[0] != 0:
        s = dense_dot(p, x, i)
    else:
        s = factored_dot(p, x, i)
    return s


@kernel
def add_row_change(p, i, delta):
    """Updates z by a change of x_i."""
    if p.lcp.dense[0] == 0:
        c, y = p.lcp.coladr[i], p.lcp.rowadr[i]
        for k in range(p.lcp.colnum[i]):
            j = p.lcp.col[c + k]
            p.lcp.z[j] = fma(p.lcp.Y[y + k], delta, p.lcp.z[j])


@kernel
def sum_factored_rows(p, x):
    """Computes z = Y^T x."""
    if p.lcp.dense[0] == 0:
        for j in range(p.nlcpz):
            p.lcp.z[j] = 0.0
        for i in range(p.lcp.n[0]):
            add_row_change(p, i, x[i])


@kernel
def multiply_delassus(p, x, y):
    """Computes y = A x; z becomes that of x."""
    sum_factored_rows(p, x)
    for i in range(p.lcp.n[0]):
        y[i] = delassus_row_product(p, x, i)


@kernel
def place_w(p):
    """Computes w = A x - b; for factored rows from the stored z."""
    for i in range(p.lcp.n[0]):
        p.lcp.w[i] = delassus_row_product(p, p.lcp.x, i) - p.lcp.b[i]


@kernel
def compute_w(p):
    """Computes w = A x - b, and z = Y^T x."""
    sum_factored_rows(p, p.lcp.x)
    place_w(p)
