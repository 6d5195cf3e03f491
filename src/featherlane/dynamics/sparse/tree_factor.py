"""L^T D L, substitution and product for matrices with branch-induced sparsity, stored by rows of the lower triangle.

Row i holds the ancestors of i in ascending order, then i.  So the row of an ancestor is a prefix of the row of each
of its descendants, and nothing is touched outside the pattern.
Source: Featherstone, Rigid Body Dynamics Algorithms, sec. 6.5, tables 6.3 and 6.5.
"""

from typing import Any, NamedTuple

from featherlane.prelude import *


class TreeRows(NamedTuple):
    """The rows of a matrix."""

    n: int  # rows
    adr: Any  # where each begins in the matrix
    nnz: Any  # entries of each, its diagonal the last
    col: Any  # their columns
    below: Any  # how many rows below have an entry in column i, at the place of row i's diagonal
    belowadr: Any  # where the list of these rows begins in `belowrow`, if they are listed
    belowrow: Any  # rows, descending in each list


@kernel
def solve_lt_rows(rows, L, x):
    """x <- L^-T x, row by row: for rows whose descendants do not follow at once, too."""
    for k in range(rows.n - 1, -1, -1):
        a, xk = rows.adr[k], x[k]
        for c in range(a, a + rows.nnz[k] - 1):
            x[rows.col[c]] = fma(-L[c], xk, x[rows.col[c]])


@kernel
def follows(rows, k):
    """Is row k + 1 that of a child of k?"""
    return k + 1 < rows.n and rows.nnz[k + 1] == rows.nnz[k] + 1 and rows.col[rows.adr[k + 1] + rows.nnz[k] - 1] == k


@kernel
def follow_three(rows, k):
    """Are rows k + 1 to k + 3 those of a child of k, of a child of that one and of one of this?"""
    return follows(rows, k) and follows(rows, k + 1) and follows(rows, k + 2)


@kernel
def multiply_rows(rows, A, x, y):
    """y <- A x for the symmetric matrix whose lower triangle A is: the rows of a parent and its child at once."""
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


# ---- the same, column by column ------------------------------------------------------------------------
#
# Row i is finished from the rows below it, which `below` counts.  What it takes from them is summed in registers and
# stored once: 0.65 us instead of 1.35 us in a tile of humanoids, with the same roundings in the same order as an
# elimination row by row.
#
# listed: 0 the rows below are i + below[i] ... i + 1, as on a model's own tree; 1 they stand in `belowrow`.


class System(NamedTuple):
    """What an elimination reads and writes."""

    source: Any  # the matrix, which may be A itself
    A: Any  # its factor: L below the diagonal, D on it
    inverse: Any  # 1 / D; before, the diagonal of the matrix, if it is not that of source
    f: Any  # one more column


class Chain(NamedTuple):
    """Rows i, i - 1, ... that are finished together, and the rows below them."""

    i: int
    at: int  # place of the diagonal in row i
    start: int  # place of the highest row below, see `row_below`
    n: int  # rows below


@kernel
def row_below(rows, listed, start, t):
    """The t-th row below."""
    k = start - t
    if listed:
        k = rows.belowrow[start + t]
    return k


@kernel
def is_only_child(rows, i):
    """Is row i - 1 the parent of row i and of no other?"""
    a, at = rows.adr[i], rows.nnz[i] - 1
    return at > 0 and rows.below[i - 1] == rows.below[i] + 1 and rows.col[a + at - 1] == i - 1


@kernel
def finish_corner(system, place, i, x, reduce, g, height):
    """Eliminates the rows i to i - height + 1 among themselves; returns x with D at its diagonal and L to the left.

    x[r][j] is the entry of row i - r that is j places left of its diagonal, which stands at place[r].
    """
    for r in unrolled(range(height)):
        v = 1.0 / x[r][0]
        row = tuple(x[r][j] * v if j > 0 else x[r][0] for j in range(height - r))
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
    """The entries between rows i to i - height + 1; L_ki = A_ki / D_k for the rows k below; returns L between them.

    With reduce, f_i -= L_ki f_k, too.
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
    """Entries c to c + width - 1 of rows i to i - height + 1, less L_ki times those of each row k below."""
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
    """All entries of rows i to i - height + 1, of a chain of one, two or four rows that no other branch joins."""
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
    """A <- L^T D L of the system's matrix and inverse <- 1 / D.  Four rows of a chain at a time, or two.

    own: 1 the diagonal is that of source, 0 it is what stands in `inverse`.
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
    """x <- L^-1 D^-1 x; four rows of a chain at a time, or two, whose sums overlap.

    One sum for each row, term by term: a sum in parts would depend on where a wider pattern puts its zeros.
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
