"""Computes L^T D L, substitution and product for matrices with branch-induced sparsity, stored by lower-triangle rows.

Row i holds the ancestors of i in ascending order, then i.  So the row of an ancestor is a prefix of the row of each
of its descendants, and no entry outside the pattern is accessed.
Source: Featherstone, Rigid Body Dynamics Algorithms, sec. 6.5, tables 6.3 and 6.5.
"""

from typing import Any, NamedTuple

from featherlane.prelude import *

ROUNDED = 1e-6  # kg, kg m^2: rounding errors of the pivots of large inertias are below
SINGULAR, SINGULAR32 = 1e-15, 5e-7  # D_i / A_ii that is only rounding: 4 of float64, and of float32


@kernel
def clamped_pivot(x):
    """Returns the pivot x of an inertia, MINVAL if it is less by rounding: a singular one does not divide by zero.

    Source: MuJoCo mj_factorI.  Deviation: a pivot below -ROUNDED, of an invalid inertia, is kept.
    """
    return where((x < MINVAL) & (x > -ROUNDED), MINVAL, x)


@kernel
def is_singular(d, inverse, diagonal):
    """Returns whether the pivot of an inertia, after `clamped_pivot`, is MINVAL, or SINGULAR times A_ii, or less."""
    small = SINGULAR32 if single_precision(d) else SINGULAR
    return inverse * fmax(MINVAL, small * diagonal) > 0.999


@kernel
def nonzero_pivot(x):
    """Returns the pivot x of a Hessian, MINVAL if it is 0; a negative one is kept, because it shows lost digits."""
    return where(fabs(x) < MINVAL, MINVAL, x)


class TreeRows(NamedTuple):
    """Holds the rows of a matrix."""

    n: int  # rows
    adr: Any  # start of each row in the matrix
    nnz: Any  # entries of each, its diagonal the last
    col: Any  # their columns
    below: Any  # number of rows below with an entry in column i, at the index of row i's diagonal
    belowadr: Any  # start of the list of these rows in `belowrow`, if they are listed
    belowrow: Any  # rows, descending in each list


@kernel
def solve_lt_rows(rows, L, x):
    """x <- L^-T x, row by row: also for rows whose descendants do not directly follow."""
    for k in range(rows.n - 1, -1, -1):
        a, xk = rows.adr[k], x[k]
        for c in range(a, a + rows.nnz[k] - 1):
            x[rows.col[c]] = fma(-L[c], xk, x[rows.col[c]])


@kernel
def follows(rows, k):
    """Returns whether row k + 1 belongs to a child of k."""
    return k + 1 < rows.n and rows.nnz[k + 1] == rows.nnz[k] + 1 and rows.col[rows.adr[k + 1] + rows.nnz[k] - 1] == k


@kernel
def follow_three(rows, k):
    """Returns whether rows k + 1 to k + 3 form a chain of children of k."""
    return follows(rows, k) and follows(rows, k + 1) and follows(rows, k + 2)


@kernel
def multiply_rows(rows, A, x, y):
    """y <- A x for the symmetric matrix with lower triangle A: the rows of a parent and its child at once."""
    k = 0
    while k < rows.n:
        a, above, xk = rows.adr[k], rows.nnz[k] - 1, x[k]
        yk = A[a + above] * xk
        if follows(rows, k):
            b, xj = rows.adr[k + 1], x[k + 1]
            yj = A[b + above + 1] * xj
            for c in range(above):
                i = rows.col[a + c]
                p, q, v = A[a + c], A[b + c], x[i]
                yk, yj = fma(p, v, yk), fma(q, v, yj)
                y[i] = fma(q, xj, fma(p, xk, y[i]))
            link = A[b + above]
            y[k] = fma(link, xj, yk)
            y[k + 1] = fma(link, xk, yj)
            k += 2
        else:
            for c in range(a, a + above):
                i = rows.col[c]
                yk = fma(A[c], x[i], yk)
                y[i] = fma(A[c], xk, y[i])
            y[k] = yk
            k += 1


# ---- elimination column by column ------------------------------------------------------------------------
#
# Row i is completed from the rows below it, which `below` counts.  Their contributions are summed in registers and
# stored once: 0.65 us instead of 1.35 us in a tile of humanoids, with the same roundings in the same order as an
# elimination row by row.
#
# listed: 0 the rows below are i + below[i] ... i + 1, as on a model's tree; 1 they are stored in `belowrow`.


class System(NamedTuple):
    """Holds the inputs and outputs of an elimination."""

    source: Any  # the matrix, which may be A itself
    A: Any  # its factor: L below the diagonal, D on it
    inverse: Any  # 1 / D; initially the diagonal of the matrix, if it differs from that of source
    f: Any  # an additional column
    inertia: int  # 1: the matrix is an inertia, whose pivots are at least MINVAL; 0: a Hessian


class Chain(NamedTuple):
    """Holds the rows i, i - 1, ... that are completed together, and the rows below them."""

    i: int
    at: int  # index of the diagonal in row i
    start: int  # index of the highest row below, see `row_below`
    n: int  # rows below


@kernel
def row_below(rows, listed, start, t):
    """Returns the t-th row below."""
    k = start - t
    if listed:
        k = rows.belowrow[start + t]
    return k


@kernel
def is_only_child(rows, i):
    """Returns whether row i - 1 is the parent of row i only."""
    a, at = rows.adr[i], rows.nnz[i] - 1
    return at > 0 and rows.below[i - 1] == rows.below[i] + 1 and rows.col[a + at - 1] == i - 1


@kernel
def finish_corner(system, place, i, x, reduce, g, height):
    """Eliminates the rows i to i - height + 1 among themselves; returns x with D at its diagonal and L to the left.

    x[r][j] is the entry of row i - r that is j positions left of its diagonal, which is at place[r].
    """
    for r in unrolled(range(height)):
        D = clamped_pivot(x[r][0]) if system.inertia else nonzero_pivot(x[r][0])
        v = 1.0 / D
        row = tuple(x[r][j] * v if j > 0 else D for j in range(height - r))
        x = tuple(
            tuple(
                fma(-row[u - r], x[r][u - r + j], x[u][j]) if u > r else row[j] if u == r else x[u][j]
                for j in range(height - u)
            )
            for u in range(height)
        )
        for j in unrolled(range(height - r)):
            system.A[place[r] - j] = row[j]
        system.inverse[i - r] = v
        if reduce:
            g = tuple(fma(-row[u - r], g[r], g[u]) if u > r else g[u] for u in range(height))
    if reduce:
        for r in unrolled(range(height)):
            system.f[i - r] = g[r]
    return x


@kernel
def finish_diagonals(rows, listed, system, chain, own, reduce, height):
    """Computes and returns L between rows i to i - height + 1; sets L_ki = A_ki / D_k for the rows k below.

    With reduce, also f_i -= L_ki f_k.
    """
    A, inverse, f = system.A, system.inverse, system.f
    i, at, start, n = chain
    place = tuple(rows.adr[i - r] + at - r for r in range(height))
    x = tuple(
        tuple(system.source[place[r] - j] if j > 0 or own else inverse[i - r] for j in range(height - r))
        for r in range(height)
    )
    g = tuple(f[i - r] for r in range(height))
    for q in range(n):
        k = row_below(rows, listed, start, q)
        e, v = rows.adr[k] + at, inverse[k]
        y = tuple(A[e - r] for r in range(height))
        s = tuple(y[r] * v for r in range(height))
        for r in unrolled(range(height)):
            A[e - r] = s[r]
        x = tuple(tuple(fma(-s[r], y[r + j], x[r][j]) for j in range(height - r)) for r in range(height))
        if reduce:
            v = f[k]
            g = tuple(fma(-s[r], v, g[r]) for r in range(height))
    return finish_corner(system, place, i, x, reduce, g, height)


@kernel
def finish_tile(rows, listed, system, chain, c, link, height, width):
    """Computes entries c to c + width - 1 of rows i to i - height + 1, less L_ki times those of each row k below."""
    A = system.A
    i, at, start, n = chain
    a = tuple(rows.adr[i - r] + c for r in range(height))
    x = tuple(tuple(system.source[a[r] + j] for j in range(width)) for r in range(height))
    for q in range(n):
        e = rows.adr[row_below(rows, listed, start, q)]
        s, y = tuple(A[e + at - r] for r in range(height)), tuple(A[e + c + j] for j in range(width))
        x = tuple(tuple(fma(-s[r], y[j], x[r][j]) for j in range(width)) for r in range(height))
    for u in unrolled(range(height)):
        x = tuple(
            tuple(fma(-link[u][r - u], x[u][j], x[r][j]) if r > u else x[r][j] for j in range(width))
            for r in range(height)
        )
    for r in unrolled(range(height)):
        for j in unrolled(range(width)):
            A[a[r] + j] = x[r][j]


@kernel
def finish_rows(rows, listed, system, chain, own, reduce, height):
    """Computes all entries of rows i to i - height + 1, of a chain of one, two or four rows without other branches."""
    link = finish_diagonals(rows, listed, system, chain, own, reduce, height)
    width = 2 if height == 4 else 4  # tiles of eight entries fit into the registers of AVX2, too
    c, count = 0, chain.at - height + 1
    while c + width <= count:
        finish_tile(rows, listed, system, chain, c, link, height, width)
        c += width
    if width == 4 and count & 2:
        finish_tile(rows, listed, system, chain, c, link, height, width=2)
        c += 2
    if count & 1:
        finish_tile(rows, listed, system, chain, c, link, height, width=1)


@kernel
def factor_columns(rows, listed, system, own, reduce):
    """A <- L^T D L of the system's matrix and inverse <- 1 / D, for four rows of a chain at a time, or two.

    own: 1 uses the diagonal of source, 0 the values in `inverse`.
    reduce: 1 also f <- L^-T f.
    """
    i = rows.n - 1
    while i >= 0:
        n = rows.below[i]
        chain = Chain(i, rows.nnz[i] - 1, rows.belowadr[i] if listed else i + n, n)
        pair = is_only_child(rows, i)
        if pair and is_only_child(rows, i - 1) and is_only_child(rows, i - 2):
            finish_rows(rows, listed, system, chain, own, reduce, height=4)
            i -= 4
        elif pair:
            finish_rows(rows, listed, system, chain, own, reduce, height=2)
            i -= 2
        else:
            finish_rows(rows, listed, system, chain, own, reduce, height=1)
            i -= 1


@kernel
def solve_lt_columns(rows, L, x):
    """x <- L^-T x."""
    i = rows.n - 1
    while i >= 0:
        at, last = rows.nnz[i] - 1, i + rows.below[i]
        if at > 0 and rows.below[i - 1] == rows.below[i] + 1 and rows.nnz[i - 1] == at:
            y, z = x[i], x[i - 1]
            for k in range(last, i, -1):
                e, v = rows.adr[k] + at, x[k]
                y, z = fma(-L[e], v, y), fma(-L[e - 1], v, z)
            x[i] = y
            x[i - 1] = fma(-L[rows.adr[i] + at - 1], y, z)
            i -= 2
        else:
            y = x[i]
            for k in range(last, i, -1):
                y = fma(-L[rows.adr[k] + at], x[k], y)
            x[i] = y
            i -= 1


@kernel
def expand_columns(rows, L, inverse, x):
    """x <- L^-1 D^-1 x, for four rows of a chain at a time, or two, whose sums overlap.

    Each row has one sum, term by term: partial sums would depend on the zeros of a wider pattern.
    """
    k = 0
    while k < rows.n:
        a, above = rows.adr[k], rows.nnz[k] - 1
        y = x[k] * inverse[k]
        if follow_three(rows, k):
            b, e, g = rows.adr[k + 1], rows.adr[k + 2], rows.adr[k + 3]
            z, v, w = x[k + 1] * inverse[k + 1], x[k + 2] * inverse[k + 2], x[k + 3] * inverse[k + 3]
            for c in range(above):
                u = x[rows.col[a + c]]
                y, z, v, w = fma(-L[a + c], u, y), fma(-L[b + c], u, z), fma(-L[e + c], u, v), fma(-L[g + c], u, w)
            z = fma(-L[b + above], y, z)
            v = fma(-L[e + above + 1], z, fma(-L[e + above], y, v))
            w = fma(-L[g + above + 2], v, fma(-L[g + above + 1], z, fma(-L[g + above], y, w)))
            x[k], x[k + 1], x[k + 2], x[k + 3] = y, z, v, w
            k += 4
        elif follows(rows, k):
            b, z = rows.adr[k + 1], x[k + 1] * inverse[k + 1]
            for c in range(above):
                v = x[rows.col[a + c]]
                y, z = fma(-L[a + c], v, y), fma(-L[b + c], v, z)
            x[k] = y
            x[k + 1] = fma(-L[b + above], y, z)
            k += 2
        else:
            for c in range(above):
                y = fma(-L[a + c], x[rows.col[a + c]], y)
            x[k] = y
            k += 1
