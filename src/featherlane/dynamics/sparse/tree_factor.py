"""Computes L^T D L, substitution and product for matrices with branch-induced sparsity, stored by lower-triangle rows.

Row i holds the ancestors of i in ascending order, then i.  So the row of an ancestor is a prefix of the row of each
of its descendants, and no entry outside the pattern is accessed.

The pattern is a `TreeRows`.  Row i starts at adr[i] and has nnz[i] entries, whose columns are in `col`.  In the code

    depth     nnz[i] - 1, the number of ancestors of i: the index of the diagonal in row i
    A_ki      is at adr[k] + depth for each descendant k of i, because row i is a prefix of row k

The factor holds L below the diagonal, D on it; L has ones on its diagonal.
Source: Featherstone, Rigid Body Dynamics Algorithms, sec. 6.5, tables 6.3 and 6.5.
"""

from typing import Any, NamedTuple

from featherlane.prelude import *

ROUNDED = 1e-6  # kg, kg m^2: bound on the rounding errors of the pivots of large inertias
PANEL = 4  # columns of a panel: a field of Vec4 rows
SINGULAR, SINGULAR32 = 1e-15, 5e-7  # D_i / A_ii that is only rounding: 4 roundings of float64, and of float32


@kernel
def clamped_pivot(x):
    """Returns the pivot x of an inertia, MINVAL if it is less by rounding: a singular one does not divide by zero.

    Source: MuJoCo mj_factorI.  Deviation: a pivot below -ROUNDED, of an invalid inertia, is kept.
    """
    return where((x < MINVAL) & (x > -ROUNDED), MINVAL, x)


@kernel
def is_singular(d, inverse, diagonal):
    """Returns whether the pivot D = 1 / inverse of an inertia A is zero up to rounding.

    That is D <= max(MINVAL, SINGULAR A_ii), after `clamped_pivot`; diagonal: A_ii.
    """
    relative = SINGULAR32 if single_precision(d) else SINGULAR
    return inverse * fmax(MINVAL, relative * diagonal) > 0.999  # instead of 1: 1 / D is rounded


@kernel
def nonzero_pivot(x):
    """Returns the pivot x of a Hessian, MINVAL if it is 0; a negative one is kept, because it shows lost digits."""
    return where(fabs(x) < MINVAL, MINVAL, x)


class TreeRows(NamedTuple):
    """Describes where a matrix stores the entries of its rows."""

    n: int  # number of rows
    adr: Any  # start of each row in the matrix
    nnz: Any  # number of entries of each row, the last one on the diagonal
    col: Any  # column of each entry
    below: Any  # number of descendants of each row i: rows below with an entry in column i
    belowadr: Any  # start of the list of these rows in `belowrow`, if they are listed
    belowrow: Any  # rows, descending in each list


# Rows that form a chain are computed together, `height` of them, an argument that is a constant: their common
# columns are read once, and their sums overlap.  The roundings and their order are those of one row at a time.


@kernel
def follows(rows, k):
    """Returns whether row k + 1 belongs to a child of k: it is one entry longer, and k is its last ancestor."""
    return k + 1 < rows.n and rows.nnz[k + 1] == rows.nnz[k] + 1 and rows.col[rows.adr[k + 1] + rows.nnz[k] - 1] == k


@kernel
def three_follow(rows, k):
    """Returns whether rows k + 1 to k + 3 form a chain of children of k."""
    return follows(rows, k) and follows(rows, k + 1) and follows(rows, k + 2)


@kernel
def is_only_child(rows, i):
    """Returns whether row i - 1 is the parent of row i, and has no other child.

    Its diagonal is then one index left of that of row i, and both have the same descendants below i.
    """
    start, depth = rows.adr[i], rows.nnz[i] - 1
    return depth > 0 and rows.below[i - 1] == rows.below[i] + 1 and rows.col[start + depth - 1] == i - 1


# ---- elimination column by column ------------------------------------------------------------------------
#
# Row i is completed from its descendants, the rows k below it, which `below` counts:
#
#     A_ij -= L_ki A_kj   for all ancestors j of i, and j = i;      then  D_i = A_ii,  L_ij = A_ij / D_i
#
# with L_ki = A_ki / D_k.  The contributions are summed in registers and stored once: 0.65 us instead of 1.35 us in a
# tile of humanoids, with the same roundings in the same order as an elimination row by row.
#
# listed: 0 the rows below are i + below[i] ... i + 1, as on a model's tree; 1 they are stored in `belowrow`.


class System(NamedTuple):
    """Holds the inputs and outputs of an elimination."""

    source: Any  # the matrix, which may be A itself
    A: Any  # its factor: L below the diagonal, D on it
    inverse: Any  # 1 / D; initially the diagonal of the matrix, if it differs from that of source
    f: Any  # an additional column, replaced by L^-T f with `reduce`
    inertia: int  # 1: the matrix is an inertia, whose pivots are at least MINVAL; 0: a Hessian


class Chain(NamedTuple):
    """Holds the rows i, i - 1, ... that are completed together, and the rows below them."""

    i: int
    depth: int  # index of the diagonal in row i
    start: int  # of the rows below: the last one, or the address of their list in `belowrow`; see `row_below`
    nbelow: int  # number of rows below


@kernel
def row_below(rows, listed, start, t):
    """Returns the t-th row below: start - t, or if listed entry start + t of `belowrow`."""
    k = start - t
    if listed:
        k = rows.belowrow[start + t]
    return k


@kernel
def eliminate_chain(system, diagonal, i, x, reduce, g, height):
    """Eliminates the rows i to i - height + 1 among themselves, from i on; stores and returns D and L of these rows.

    D_r = x[r][0];  L = x[r][j] / D_r;  row u > r: x[u] -= L_(r, u) times row r;  with reduce g[u] -= L_(r, u) g[r].

    Args:
        diagonal: addresses of the diagonal entries, of row i - r at diagonal[r].
        x: x[r][j] is the entry of row i - r that is j positions left of its diagonal.
        g: the values of `system.f` at these rows.

    Returns x with D at its diagonal and L to the left.
    """
    for r in unrolled(range(height)):
        D = clamped_pivot(x[r][0]) if system.inertia else nonzero_pivot(x[r][0])
        inverse = 1.0 / D
        # L left of the diagonal, D on it: row[u - r] is L_(r, u), the entry of row i - r in column i - u
        row = tuple(x[r][j] * inverse if j > 0 else D for j in range(height - r))
        # rows u > r: L_(r, u) times row r is subtracted, from position u - r on; row r is complete; others are
        # unchanged
        x = tuple(
            tuple(
                fma(-row[u - r], x[r][u - r + j], x[u][j]) if u > r else row[j] if u == r else x[u][j]
                for j in range(height - u)
            )
            for u in range(height)
        )
        for j in unrolled(range(height - r)):
            system.A[diagonal[r] - j] = row[j]
        system.inverse[i - r] = inverse
        if reduce:
            g = tuple(fma(-row[u - r], g[r], g[u]) if u > r else g[u] for u in range(height))
    if reduce:
        for r in unrolled(range(height)):
            system.f[i - r] = g[r]
    return x


@kernel
def complete_corner(rows, listed, system, chain, own, reduce, height):
    """Computes and returns D and L between the rows i to i - height + 1 of a chain, as `eliminate_chain`.

    For each row k below:  L_ki = A_ki / D_k is stored, A_ij -= L_ki A_kj;  with reduce, also f_i -= L_ki f_k.
    In the code y[r] is A_k,i-r, so that x[r][j] -= L_k[r] y[r + j].
    own: 1 takes the diagonal of the matrix from `system.source`, 0 from `system.inverse`.
    """
    A, inverse, f = system.A, system.inverse, system.f
    i, depth, start, nbelow = chain
    diagonal = tuple(rows.adr[i - r] + depth - r for r in range(height))
    # x[r][j]: the entry of row i - r that is j positions left of its diagonal;  g[r]: f of row i - r
    x = tuple(
        tuple(system.source[diagonal[r] - j] if j > 0 or own else inverse[i - r] for j in range(height - r))
        for r in range(height)
    )
    g = tuple(f[i - r] for r in range(height))
    for t in range(nbelow):
        k = row_below(rows, listed, start, t)
        A_ki, inverse_k = rows.adr[k] + depth, inverse[k]  # address of A_ki, and 1 / D_k
        y = tuple(A[A_ki - r] for r in range(height))
        L_k = tuple(y[r] * inverse_k for r in range(height))
        for r in unrolled(range(height)):
            A[A_ki - r] = L_k[r]
        x = tuple(tuple(fma(-L_k[r], y[r + j], x[r][j]) for j in range(height - r)) for r in range(height))
        if reduce:
            f_k = f[k]
            g = tuple(fma(-L_k[r], f_k, g[r]) for r in range(height))
    return eliminate_chain(system, diagonal, i, x, reduce, g, height)


@kernel
def complete_entries(rows, listed, system, chain, c, corner, height, width):
    """Computes entries c to c + width - 1 of the rows i to i - height + 1 of a chain, left of `complete_corner`.

    A_ij -= L_ki A_kj for each row k below, with the L that `complete_corner` stored; then row i - r -= L row i - u for
    the rows u < r of the chain.  corner: L between these rows, corner[u][r - u] of row i - u and column i - r.
    """
    A = system.A
    i, depth, start, nbelow = chain
    first = tuple(rows.adr[i - r] + c for r in range(height))
    x = tuple(tuple(system.source[first[r] + j] for j in range(width)) for r in range(height))
    for t in range(nbelow):
        row_k = rows.adr[row_below(rows, listed, start, t)]
        L_k, y = tuple(A[row_k + depth - r] for r in range(height)), tuple(A[row_k + c + j] for j in range(width))
        x = tuple(tuple(fma(-L_k[r], y[j], x[r][j]) for j in range(width)) for r in range(height))
    for u in unrolled(range(height)):
        x = tuple(
            tuple(fma(-corner[u][r - u], x[u][j], x[r][j]) if r > u else x[r][j] for j in range(width))
            for r in range(height)
        )
    for r in unrolled(range(height)):
        for j in unrolled(range(width)):
            A[first[r] + j] = x[r][j]


@kernel
def complete_rows(rows, listed, system, chain, own, reduce, height):
    """Computes all entries of rows i to i - height + 1, of a chain of one, two or four rows without other branches.

    First D and L between these rows, then their other columns in blocks of `width`: those of the common ancestors.
    """
    corner = complete_corner(rows, listed, system, chain, own, reduce, height)
    width = 2 if height == 4 else 4  # blocks of eight entries fit into the registers of AVX2, too
    c, ncommon = 0, chain.depth - height + 1
    while c + width <= ncommon:
        complete_entries(rows, listed, system, chain, c, corner, height, width)
        c += width
    # the remaining one to three columns: two if bit 1 of their number is set, one if bit 0 is
    if width == 4 and ncommon & 2:
        complete_entries(rows, listed, system, chain, c, corner, height, width=2)
        c += 2
    if ncommon & 1:
        complete_entries(rows, listed, system, chain, c, corner, height, width=1)


@kernel
def factor_columns(rows, listed, system, own, reduce):
    """A <- L^T D L of the system's matrix and inverse <- 1 / D, for four rows of a chain at a time, or two.

    Args:
        listed: whether the descendants of each row are listed in `rows.belowrow`; else they directly follow it.
        own: 1 uses the diagonal of `system.source`, 0 the values in `system.inverse`.
        reduce: 1 also f <- L^-T f.
    """
    i = rows.n - 1
    while i >= 0:
        nbelow = rows.below[i]
        chain = Chain(i, rows.nnz[i] - 1, rows.belowadr[i] if listed else i + nbelow, nbelow)
        pair = is_only_child(rows, i)
        if pair and is_only_child(rows, i - 1) and is_only_child(rows, i - 2):
            complete_rows(rows, listed, system, chain, own, reduce, height=4)
            i -= 4
        elif pair:
            complete_rows(rows, listed, system, chain, own, reduce, height=2)
            i -= 2
        else:
            complete_rows(rows, listed, system, chain, own, reduce, height=1)
            i -= 1


# ---- substitution and product ------------------------------------------------------------------------------------
#
# x holds values: a column; or rows of values, such as Vec4: PANEL columns, of which each matrix entry is read once.
# Each column has the same roundings in the same order as a column computed separately.


@kernel
def reduce_rows(rows, listed, L, x, i, height):
    """Computes rows i to i - height + 1 of L^-T x: x_i -= L_ki x_k for the descendants k of i, the last one first."""
    depth, nbelow = rows.nnz[i] - 1, rows.below[i]
    start = rows.belowadr[i] if listed else i + nbelow
    y = tuple(x[i - r] for r in range(height))
    for t in range(nbelow):
        k = row_below(rows, listed, start, t)
        L_ki, x_k = rows.adr[k] + depth, x[k]  # address of L_ki; that of L_k,i-r is r less
        y = tuple(fma(-L[L_ki - r], x_k, y[r]) for r in range(height))
    for u in unrolled(range(height)):
        row = rows.adr[i - u] + depth  # L_i-u,i-r is at row - r
        y = tuple(fma(-L[row - r], y[u], y[r]) if r > u else y[r] for r in range(height))
        x[i - u] = y[u]


@kernel
def reduce_columns(rows, listed, L, x):
    """x <- L^-T x, from the last row to the first, two rows of a chain at a time; listed: as for `factor_columns`."""
    i = rows.n - 1
    while i >= 0:
        if is_only_child(rows, i):
            reduce_rows(rows, listed, L, x, i, height=2)
            i -= 2
        else:
            reduce_rows(rows, listed, L, x, i, height=1)
            i -= 1


@kernel
def expand_rows(rows, L, inverse, x, k, first, height):
    """Computes rows k to k + height - 1 of L^-1 D^-1 x: x_k = x_k / D_k - sum over ancestors j of L_kj x_j.

    Each row has one sum, term by term: partial sums would depend on the zeros of a wider pattern.
    first: x_k / D_k, which the caller computes before its branches: else LLVM gathers the four sums of one world in a
    vector, which takes 1.8 times as long.
    """
    row, depth = tuple(rows.adr[k + r] for r in range(height)), rows.nnz[k] - 1
    y = tuple(x[k + r] * inverse[k + r] if r > 0 else first for r in range(height))
    for c in range(depth):
        x_j = x[rows.col[row[0] + c]]
        y = tuple(fma(-L[row[r] + c], x_j, y[r]) for r in range(height))
    # the entries between the rows of the chain
    for u in unrolled(range(height)):
        y = tuple(fma(-L[row[r] + depth + u], y[u], y[r]) if r > u else y[r] for r in range(height))
    for r in unrolled(range(height)):
        x[k + r] = y[r]


@kernel
def expand_columns(rows, L, inverse, x, most):
    """x <- L^-1 D^-1 x, from the first row to the last; inverse: 1 / D.

    most: rows of a chain at a time: 4 of values, 2 of rows of values, whose sums fit into registers.
    """
    k = 0
    while k < rows.n:
        first = x[k] * inverse[k]
        if most == 4 and three_follow(rows, k):
            expand_rows(rows, L, inverse, x, k, first, height=4)
            k += 4
        elif follows(rows, k):
            expand_rows(rows, L, inverse, x, k, first, height=2)
            k += 2
        else:
            expand_rows(rows, L, inverse, x, k, first, height=1)
            k += 1


@kernel
def multiply_rows(rows, A, x, y, k, height):
    """Adds the terms of entries A_kj, j <= k, of rows k to k + height - 1 to y = A x: A_kj x_j to y_k, A_kj x_k to y_j.

    y_k is first written here, y_j has the terms of the rows before k.
    """
    row, depth = tuple(rows.adr[k + r] for r in range(height)), rows.nnz[k] - 1
    x_k = tuple(x[k + r] for r in range(height))
    y_k = tuple(A[row[r] + depth + r] * x_k[r] for r in range(height))
    for c in range(depth):
        j = rows.col[row[0] + c]
        A_kj, x_j, y_j = tuple(A[row[r] + c] for r in range(height)), x[j], y[j]
        y_k = tuple(fma(A_kj[r], x_j, y_k[r]) for r in range(height))
        for r in unrolled(range(height)):
            y_j = fma(A_kj[r], x_k[r], y_j)
        y[j] = y_j
    if height == 2:
        link = A[row[1] + depth]  # the entry between both rows
        y_k = fma(link, x_k[1], y_k[0]), fma(link, x_k[0], y_k[1])
    for r in unrolled(range(height)):
        y[k + r] = y_k[r]


@kernel
def multiply_symmetric(rows, A, x, y):
    """y <- A x for the symmetric matrix with lower triangle A: the rows of a parent and its child at once."""
    k = 0
    while k < rows.n:
        if follows(rows, k):
            multiply_rows(rows, A, x, y, k, height=2)
            k += 2
        else:
            multiply_rows(rows, A, x, y, k, height=1)
            k += 1
