"""L^T D L, substitution and product for matrices with branch-induced sparsity, stored by rows of the lower triangle.

Row i holds the ancestors of i in ascending order, then i.  So the row of an ancestor is a prefix of the row of each
of its descendants, and nothing is touched outside the pattern.
Source: Featherstone, Rigid Body Dynamics Algorithms, sec. 6.5, tables 6.3 and 6.5.
"""

from featherlane.prelude import *


@kernel
def solve_lt_rows(n, rowadr, rownnz, colind, L, x):
    """x <- L^-T x, row by row: for rows whose descendants do not follow at once, too."""
    for k in range(n - 1, -1, -1):
        a, xk = rowadr[k], x[k]
        for c in range(a, a + rownnz[k] - 1):
            x[colind[c]] = fma(-L[c], xk, x[colind[c]])


@kernel
def follows(rowadr, rownnz, colind, n, k):
    """Is row k + 1 that of a child of k?"""
    return k + 1 < n and rownnz[k + 1] == rownnz[k] + 1 and colind[rowadr[k + 1] + rownnz[k] - 1] == k


@kernel
def follow_three(rowadr, rownnz, colind, n, k):
    """Are rows k + 1 to k + 3 those of a child of k, of a child of that one and of one of this?"""
    return (
        follows(rowadr, rownnz, colind, n, k)
        and follows(rowadr, rownnz, colind, n, k + 1)
        and follows(rowadr, rownnz, colind, n, k + 2)
    )


@kernel
def multiply_rows(n, rowadr, rownnz, colind, A, x, y):
    """y <- A x for the symmetric matrix whose lower triangle A is: the rows of a parent and its child at once."""
    k = 0
    while k < n:
        a, above, xk = rowadr[k], rownnz[k] - 1, x[k]
        yk = A[a + above] * xk
        if follows(rowadr, rownnz, colind, n, k):
            b, xj = rowadr[k + 1], x[k + 1]
            yj = A[b + above + 1] * xj
            for c in range(above):
                i = colind[a + c]
                p, q, v = A[a + c], A[b + c], x[i]
                yk, yj = fma(p, v, yk), fma(q, v, yj)
                y[i] = fma(q, xj, fma(p, xk, y[i]))
            link = A[b + above]
            y[k] = fma(link, xj, yk)
            y[k + 1] = fma(link, xk, yj)
            k += 2
        else:
            for c in range(a, a + above):
                i = colind[c]
                yk = fma(A[c], x[i], yk)
                y[i] = fma(A[c], xk, y[i])
            y[k] = yk
            k += 1


# ---- the same, column by column ------------------------------------------------------------------------
#
# Row i is finished from the rows below it, which `below` counts: those that have an entry in column i, at the place of
# row i's diagonal.  What it takes from them is summed in registers and stored once: 0.65 us instead of 1.35 us in a
# tile of humanoids, with the same roundings in the same order as an elimination row by row.
#
# listed: 0 the rows below are i + below[i] ... i + 1, as on a model's own tree; 1 they stand in `rows`, from first[i]
# on.  A pass takes the place `start` of the first of them, the highest, and their number n.


@kernel
def row_below(rows, listed, start, t):
    """The t-th row below."""
    k = start - t
    if listed:
        k = rows[start + t]
    return k


@kernel
def is_only_child(rowadr, rownnz, colind, below, i):
    """Is row i - 1 the parent of row i and of no other?"""
    a, at = rowadr[i], rownnz[i] - 1
    return at > 0 and below[i - 1] == below[i] + 1 and colind[a + at - 1] == i - 1


@kernel
def finish_diagonal(rowadr, rows, listed, A, inverse, i, start, n, at, x, reduce, f):
    """L_ki = A_ki / D_k for the rows k below i, and 1 / D_i; with reduce, f_i -= L_ki f_k."""
    g = f[i]
    for q in range(n):
        k = row_below(rows, listed, start, q)
        e = rowadr[k] + at
        y = A[e]
        s = y * inverse[k]
        A[e] = s
        x = fma(-s, y, x)
        if reduce:
            g = fma(-s, f[k], g)
    if reduce:
        f[i] = g
    A[rowadr[i] + at] = x
    inverse[i] = 1.0 / x


@kernel
def finish_four(rowadr, rows, listed, source, A, i, start, n, at, c):
    """Entries c to c + 3 of row i, less L_ki times those of each row k below."""
    a = rowadr[i] + c
    x0, x1, x2, x3 = source[a], source[a + 1], source[a + 2], source[a + 3]
    for q in range(n):
        k = row_below(rows, listed, start, q)
        e = rowadr[k]
        s = A[e + at]
        x0 = fma(-s, A[e + c], x0)
        x1 = fma(-s, A[e + c + 1], x1)
        x2 = fma(-s, A[e + c + 2], x2)
        x3 = fma(-s, A[e + c + 3], x3)
    A[a], A[a + 1], A[a + 2], A[a + 3] = x0, x1, x2, x3


@kernel
def finish_two(rowadr, rows, listed, source, A, i, start, n, at, c):
    """Entries c and c + 1 of row i."""
    a = rowadr[i] + c
    x0, x1 = source[a], source[a + 1]
    for q in range(n):
        k = row_below(rows, listed, start, q)
        e = rowadr[k]
        s = A[e + at]
        x0 = fma(-s, A[e + c], x0)
        x1 = fma(-s, A[e + c + 1], x1)
    A[a], A[a + 1] = x0, x1


@kernel
def finish_one(rowadr, rows, listed, source, A, i, start, n, at, c):
    """Entry c of row i."""
    a = rowadr[i] + c
    x = source[a]
    for q in range(n):
        k = row_below(rows, listed, start, q)
        e = rowadr[k]
        x = fma(-A[e + at], A[e + c], x)
    A[a] = x


@kernel
def finish_diagonals(rowadr, rows, listed, A, inverse, i, start, n, at, x, m, z, reduce, f):
    """The same for row i and its parent i - 1, which no other branch joins, and L between the two, which it returns."""
    a, b = rowadr[i] + at, rowadr[i - 1] + at - 1
    g, h = f[i], f[i - 1]
    for q in range(n):
        k = row_below(rows, listed, start, q)
        e, v = rowadr[k] + at, inverse[k]
        p, q = A[e], A[e - 1]
        s, t = p * v, q * v
        A[e] = s
        A[e - 1] = t
        x = fma(-s, p, x)
        m = fma(-s, q, m)
        z = fma(-t, q, z)
        if reduce:
            r = f[k]
            g, h = fma(-s, r, g), fma(-t, r, h)
    v = 1.0 / x
    s = m * v
    z = fma(-s, m, z)
    A[a], A[a - 1], A[b] = x, s, z
    inverse[i] = v
    inverse[i - 1] = 1.0 / z
    if reduce:
        f[i] = g
        f[i - 1] = fma(-s, g, h)
    return s


@kernel
def finish_four_of_pair(rowadr, rows, listed, source, A, i, start, n, at, c, link):
    """Entries c to c + 3 of rows i and i - 1; link is L between them."""
    a, b = rowadr[i] + c, rowadr[i - 1] + c
    x0, x1, x2, x3 = source[a], source[a + 1], source[a + 2], source[a + 3]
    y0, y1, y2, y3 = source[b], source[b + 1], source[b + 2], source[b + 3]
    for q in range(n):
        k = row_below(rows, listed, start, q)
        e = rowadr[k]
        s, t = A[e + at], A[e + at - 1]
        r0, r1, r2, r3 = A[e + c], A[e + c + 1], A[e + c + 2], A[e + c + 3]
        x0, x1, x2, x3 = fma(-s, r0, x0), fma(-s, r1, x1), fma(-s, r2, x2), fma(-s, r3, x3)
        y0, y1, y2, y3 = fma(-t, r0, y0), fma(-t, r1, y1), fma(-t, r2, y2), fma(-t, r3, y3)
    A[a], A[a + 1], A[a + 2], A[a + 3] = x0, x1, x2, x3
    y0, y1, y2, y3 = fma(-link, x0, y0), fma(-link, x1, y1), fma(-link, x2, y2), fma(-link, x3, y3)
    A[b], A[b + 1], A[b + 2], A[b + 3] = y0, y1, y2, y3


@kernel
def finish_two_of_pair(rowadr, rows, listed, source, A, i, start, n, at, c, link):
    """Entries c and c + 1 of rows i and i - 1."""
    a, b = rowadr[i] + c, rowadr[i - 1] + c
    x0, x1, y0, y1 = source[a], source[a + 1], source[b], source[b + 1]
    for q in range(n):
        k = row_below(rows, listed, start, q)
        e = rowadr[k]
        s, t, r0, r1 = A[e + at], A[e + at - 1], A[e + c], A[e + c + 1]
        x0, x1, y0, y1 = fma(-s, r0, x0), fma(-s, r1, x1), fma(-t, r0, y0), fma(-t, r1, y1)
    A[a], A[a + 1] = x0, x1
    A[b], A[b + 1] = fma(-link, x0, y0), fma(-link, x1, y1)


@kernel
def finish_one_of_pair(rowadr, rows, listed, source, A, i, start, n, at, c, link):
    """Entry c of rows i and i - 1."""
    a, b = rowadr[i] + c, rowadr[i - 1] + c
    x, y = source[a], source[b]
    for q in range(n):
        k = row_below(rows, listed, start, q)
        e = rowadr[k]
        r = A[e + c]
        x, y = fma(-A[e + at], r, x), fma(-A[e + at - 1], r, y)
    A[a] = x
    A[b] = fma(-link, x, y)


@kernel
def finish_row(rowadr, rows, listed, source, A, i, start, n, at):
    """All entries of row i but the diagonal."""
    c = 0
    while c + 4 <= at:
        finish_four(rowadr, rows, listed, source, A, i, start, n, at, c)
        c += 4
    if at & 2:
        finish_two(rowadr, rows, listed, source, A, i, start, n, at, c)
        c += 2
    if at & 1:
        finish_one(rowadr, rows, listed, source, A, i, start, n, at, c)


@kernel
def finish_pair(rowadr, rows, listed, source, A, i, start, n, at, link):
    """All entries of rows i and i - 1 but those between the two and the diagonals."""
    c = 0
    while c + 4 < at:
        finish_four_of_pair(rowadr, rows, listed, source, A, i, start, n, at, c, link)
        c += 4
    if (at - 1) & 2:
        finish_two_of_pair(rowadr, rows, listed, source, A, i, start, n, at, c, link)
        c += 2
    if (at - 1) & 1:
        finish_one_of_pair(rowadr, rows, listed, source, A, i, start, n, at, c, link)


@kernel
def starts_four(rowadr, rownnz, colind, below, i):
    """Are rows i - 1 to i - 3 parent, grandparent and so on of row i, and of no other branch?"""
    return (
        is_only_child(rowadr, rownnz, colind, below, i)
        and is_only_child(rowadr, rownnz, colind, below, i - 1)
        and is_only_child(rowadr, rownnz, colind, below, i - 2)
    )


@kernel
def finish_corner(A, inverse, a, b, c, e, i, x, y, z, w, reduce, f):
    """The entries between four rows of a chain, less what the rows below took; returns L between them.

    x, y, z and w are the entries from the diagonal of row i, i - 1, i - 2 and i - 3 on, to the left; the diagonals
    stand at a, b, c and e.
    """
    v = 1.0 / x[0]
    xy, xz, xw = x[1] * v, x[2] * v, x[3] * v
    y0, y1, y2 = fma(-xy, x[1], y[0]), fma(-xy, x[2], y[1]), fma(-xy, x[3], y[2])
    u = 1.0 / y0
    yz, yw = y1 * u, y2 * u
    z0, z1 = fma(-yz, y1, fma(-xz, x[2], z[0])), fma(-yz, y2, fma(-xz, x[3], z[1]))
    w0 = fma(-yw, y2, fma(-xw, x[3], w))
    t = 1.0 / z0
    zw = z1 * t
    w0 = fma(-zw, z1, w0)
    A[a], A[a - 1], A[a - 2], A[a - 3] = x[0], xy, xz, xw
    A[b], A[b - 1], A[b - 2] = y0, yz, yw
    A[c], A[c - 1], A[e] = z0, zw, w0
    inverse[i], inverse[i - 1], inverse[i - 2], inverse[i - 3] = v, u, t, 1.0 / w0
    if reduce:
        g = f[i]
        h = fma(-xy, g, f[i - 1])
        k = fma(-yz, h, fma(-xz, g, f[i - 2]))
        f[i - 1], f[i - 2] = h, k
        f[i - 3] = fma(-zw, k, fma(-yw, h, fma(-xw, g, f[i - 3])))
    return xy, xz, xw, yz, yw, zw


@kernel
def finish_diagonals_of_four(rowadr, rows, listed, source, A, inverse, i, start, n, at, own, reduce, f):
    """`finish_diagonals` for rows i to i - 3; returns L between the four."""
    a, b, c, e = rowadr[i] + at, rowadr[i - 1] + at - 1, rowadr[i - 2] + at - 2, rowadr[i - 3] + at - 3
    x0 = source[a] if own else inverse[i]
    y0 = source[b] if own else inverse[i - 1]
    z0 = source[c] if own else inverse[i - 2]
    w0 = source[e] if own else inverse[i - 3]
    x1, x2, x3, y1, y2, z1 = source[a - 1], source[a - 2], source[a - 3], source[b - 1], source[b - 2], source[c - 1]
    f0, f1, f2, f3 = f[i], f[i - 1], f[i - 2], f[i - 3]
    for q in range(n):
        k = row_below(rows, listed, start, q)
        o, v = rowadr[k] + at, inverse[k]
        p0, p1, p2, p3 = A[o], A[o - 1], A[o - 2], A[o - 3]
        s0, s1, s2, s3 = p0 * v, p1 * v, p2 * v, p3 * v
        A[o], A[o - 1], A[o - 2], A[o - 3] = s0, s1, s2, s3
        x0, x1, x2, x3 = fma(-s0, p0, x0), fma(-s0, p1, x1), fma(-s0, p2, x2), fma(-s0, p3, x3)
        y0, y1, y2 = fma(-s1, p1, y0), fma(-s1, p2, y1), fma(-s1, p3, y2)
        z0, z1, w0 = fma(-s2, p2, z0), fma(-s2, p3, z1), fma(-s3, p3, w0)
        if reduce:
            r = f[k]
            f0, f1, f2, f3 = fma(-s0, r, f0), fma(-s1, r, f1), fma(-s2, r, f2), fma(-s3, r, f3)
    if reduce:
        f[i], f[i - 1], f[i - 2], f[i - 3] = f0, f1, f2, f3
    return finish_corner(A, inverse, a, b, c, e, i, (x0, x1, x2, x3), (y0, y1, y2), (z0, z1), w0, reduce, f)


@kernel
def finish_two_of_four(rowadr, rows, listed, source, A, i, start, n, at, c, link):
    """Entries c and c + 1 of rows i to i - 3; link is L between them."""
    a, b, e, g = rowadr[i] + c, rowadr[i - 1] + c, rowadr[i - 2] + c, rowadr[i - 3] + c
    x0, x1, y0, y1 = source[a], source[a + 1], source[b], source[b + 1]
    z0, z1, w0, w1 = source[e], source[e + 1], source[g], source[g + 1]
    for q in range(n):
        o = rowadr[row_below(rows, listed, start, q)]
        r0, r1, p = A[o + c], A[o + c + 1], o + at
        s0, s1, s2, s3 = A[p], A[p - 1], A[p - 2], A[p - 3]
        x0, x1, y0, y1 = fma(-s0, r0, x0), fma(-s0, r1, x1), fma(-s1, r0, y0), fma(-s1, r1, y1)
        z0, z1, w0, w1 = fma(-s2, r0, z0), fma(-s2, r1, z1), fma(-s3, r0, w0), fma(-s3, r1, w1)
    y0, z0, w0 = finish_entry(link, x0, y0, z0, w0)
    y1, z1, w1 = finish_entry(link, x1, y1, z1, w1)
    A[a], A[a + 1], A[b], A[b + 1] = x0, x1, y0, y1
    A[e], A[e + 1], A[g], A[g + 1] = z0, z1, w0, w1


@kernel
def finish_entry(link, x, y, z, w):
    """What the first rows of four take from the others in one column."""
    y = fma(-link[0], x, y)
    z = fma(-link[3], y, fma(-link[1], x, z))
    return y, z, fma(-link[5], z, fma(-link[4], y, fma(-link[2], x, w)))


@kernel
def finish_one_of_four(rowadr, rows, listed, source, A, i, start, n, at, c, link):
    """Entry c of rows i to i - 3."""
    a, b, e, g = rowadr[i] + c, rowadr[i - 1] + c, rowadr[i - 2] + c, rowadr[i - 3] + c
    x, y, z, w = source[a], source[b], source[e], source[g]
    for q in range(n):
        o = rowadr[row_below(rows, listed, start, q)]
        r, p = A[o + c], o + at
        x, y = fma(-A[p], r, x), fma(-A[p - 1], r, y)
        z, w = fma(-A[p - 2], r, z), fma(-A[p - 3], r, w)
    y, z, w = finish_entry(link, x, y, z, w)
    A[a], A[b], A[e], A[g] = x, y, z, w


@kernel
def finish_four_rows(rowadr, rows, listed, source, A, i, start, n, at, link):
    """All entries of rows i to i - 3 but those between the four."""
    c = 0
    while c + 5 <= at:
        finish_two_of_four(rowadr, rows, listed, source, A, i, start, n, at, c, link)
        c += 2
    if c + 4 <= at:
        finish_one_of_four(rowadr, rows, listed, source, A, i, start, n, at, c, link)


@kernel
def eliminate_columns(n, rowadr, rownnz, colind, below, first, rows, listed, source, A, inverse, own, reduce, f):
    """What `factor_columns` and `factor_listed` do.  Four rows of a chain at a time, or two."""
    i = n - 1
    while i >= 0:
        at, count = rownnz[i] - 1, below[i]
        start = first[i] if listed else i + count
        x = source[rowadr[i] + at] if own else inverse[i]
        if starts_four(rowadr, rownnz, colind, below, i):
            links = finish_diagonals_of_four(
                rowadr, rows, listed, source, A, inverse, i, start, count, at, own, reduce, f
            )
            finish_four_rows(rowadr, rows, listed, source, A, i, start, count, at, links)
            i -= 4
        elif is_only_child(rowadr, rownnz, colind, below, i):
            a, b = rowadr[i] + at, rowadr[i - 1] + at - 1
            z = source[b] if own else inverse[i - 1]
            m = source[a - 1]
            link = finish_diagonals(rowadr, rows, listed, A, inverse, i, start, count, at, x, m, z, reduce, f)
            finish_pair(rowadr, rows, listed, source, A, i, start, count, at, link)
            i -= 2
        else:
            finish_diagonal(rowadr, rows, listed, A, inverse, i, start, count, at, x, reduce, f)
            finish_row(rowadr, rows, listed, source, A, i, start, count, at)
            i -= 1


@kernel
def factor_columns(n, rowadr, rownnz, colind, below, source, A, inverse, own, reduce, f):
    """A <- L^T D L of the matrix `source` (which may be A itself); inverse = 1 / D.

    own: 1 the diagonal is that of source, 0 it is what stands in `inverse`.
    reduce: 1 also f <- L^-T f, as one more column.
    """
    eliminate_columns(n, rowadr, rownnz, colind, below, below, below, 0, source, A, inverse, own, reduce, f)


@kernel
def factor_listed(n, rowadr, rownnz, colind, below, first, rows, A, inverse, f):
    """A <- L^T D L in place and f <- L^-T f; the rows below column i are rows[first[i]], ..., descending."""
    eliminate_columns(n, rowadr, rownnz, colind, below, first, rows, 1, A, A, inverse, 1, 1, f)


@kernel
def solve_lt_columns(n, rowadr, rownnz, below, L, x):
    """x <- L^-T x."""
    i = n - 1
    while i >= 0:
        at, last = rownnz[i] - 1, i + below[i]
        if at > 0 and below[i - 1] == below[i] + 1 and rownnz[i - 1] == at:
            y, z = x[i], x[i - 1]
            for k in range(last, i, -1):
                e, v = rowadr[k] + at, x[k]
                y, z = fma(-L[e], v, y), fma(-L[e - 1], v, z)
            x[i] = y
            x[i - 1] = fma(-L[rowadr[i] + at - 1], y, z)
            i -= 2
        else:
            y = x[i]
            for k in range(last, i, -1):
                y = fma(-L[rowadr[k] + at], x[k], y)
            x[i] = y
            i -= 1


@kernel
def expand_columns(n, rowadr, rownnz, colind, L, inverse, x):
    """x <- L^-1 D^-1 x; four rows of a chain at a time, or two, whose sums overlap.

    One sum for each row, term by term: a sum in parts would depend on where a wider pattern puts its zeros.
    """
    k = 0
    while k < n:
        a, above = rowadr[k], rownnz[k] - 1
        y = x[k] * inverse[k]
        if follow_three(rowadr, rownnz, colind, n, k):
            b, e, g = rowadr[k + 1], rowadr[k + 2], rowadr[k + 3]
            z, v, w = x[k + 1] * inverse[k + 1], x[k + 2] * inverse[k + 2], x[k + 3] * inverse[k + 3]
            for c in range(above):
                u = x[colind[a + c]]
                y, z, v, w = fma(-L[a + c], u, y), fma(-L[b + c], u, z), fma(-L[e + c], u, v), fma(-L[g + c], u, w)
            z = fma(-L[b + above], y, z)
            v = fma(-L[e + above + 1], z, fma(-L[e + above], y, v))
            w = fma(-L[g + above + 2], v, fma(-L[g + above + 1], z, fma(-L[g + above], y, w)))
            x[k], x[k + 1], x[k + 2], x[k + 3] = y, z, v, w
            k += 4
        elif follows(rowadr, rownnz, colind, n, k):
            b, z = rowadr[k + 1], x[k + 1] * inverse[k + 1]
            for c in range(above):
                v = x[colind[a + c]]
                y, z = fma(-L[a + c], v, y), fma(-L[b + c], v, z)
            x[k] = y
            x[k + 1] = fma(-L[b + above], y, z)
            k += 2
        else:
            for c in range(above):
                y = fma(-L[a + c], x[colind[a + c]], y)
            x[k] = y
            k += 1
