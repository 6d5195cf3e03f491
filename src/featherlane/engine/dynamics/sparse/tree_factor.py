"""Computes L^T D L, substitution and product for matrices with branch-induced sparsity, stored by lower-triangle rows.

Row i holds the ancestors of i in ascending order, then i.  So the row of an ancestor is a prefix of the row of each
of its descendants, and no entry outside the pattern is accessed.

The factor has D on the diagonal and L below it; L has a unit diagonal.  Row i of A is completed from its descendants k,
the last one first.  j: the ancestors of i, and i itself.

    A_ij -= L_ki A_kj,   L_ki = A_ki / D_k;      then D_i = A_ii

Before, row k holds A_ki in column i; from then on, it holds L_ki.
The pattern is a `TreeRows`, named rows.  Row i starts at adr[i] and has nnz[i] entries, whose columns are in `col`.

    depth       nnz[i] - 1, the number of ancestors of i: the index of the diagonal in row i
    A_ki        is at adr[k] + depth for each descendant k of i, because row i is a prefix of row k
    rows below  the below[i] descendants of i, the last one first: i + below[i] ... i + 1;  with listed=1 they are in
                `belowrow`, from belowadr[i] on
    height      number of rows that are computed together: rows i, i - 1, ... of a chain, in which each row is the only
                child of the next one.  They have the same rows below.  Their common columns are read once
    corner      the entries of these rows in their own columns: corner[r][j] is in row i - r and column i - r - j

The roundings and their order are those of one row at a time.

`System` holds the arguments of an elimination: the matrix `source`; its factor A, which may be in the same memory;
inverse, 1 / D; and f, one more column.  inertia=1: pivots are at least MINVAL.  inertia=0: A is a Hessian.
`Chain` holds row i, its depth, the number of rows below, and the start of the rows below (`row_below`).
Source: Featherstone, Rigid Body Dynamics Algorithms, sec. 6.5, tables 6.3 and 6.5.
"""

from typing import Any, NamedTuple

from featherlane.engine.prelude import *

ROUNDED = 1e-6  # kg, kg m^2: bound on the rounding errors of the pivots of large inertias
PANEL = 4  # columns of a panel: a field of Vec4 rows
SINGULAR, SINGULAR32 = 1e-15, 5e-7  # D_i / A_ii that is only rounding: 4 roundings of float64, and of float32


@kernel
def clamped_pivot(x):
    """Returns the pivot x of an inertia, or MINVAL if rounding has made it less: no division by zero if it is singular.

    Source: MuJoCo mj_factorI.  Deviation: a pivot below -ROUNDED, of an invalid inertia, is kept.
    """
    return where((x < MINVAL) & (x > -ROUNDED), MINVAL, x)


@kernel
def is_singular(d, inverse, diagonal):
    """Returns the mask of worlds in which the pivot D_i = 1 / inverse of an inertia A is zero up to rounding.

    That is D_i <= max(MINVAL, SINGULAR A_ii), after `clamped_pivot`.  diagonal: A_ii.
    """
    relative = SINGULAR32 if single_precision(d) else SINGULAR
    return inverse * fmax(MINVAL, relative * diagonal) > 0.999  # not 1, because 1 / D_i is rounded


@kernel
def nonzero_pivot(x):
    """Returns the pivot x of a Hessian, MINVAL if it is 0; a negative pivot is kept, because it reveals lost digits."""
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
    listed: int  # 1: the rows below each row are in `belowrow`; 0: they directly follow it


@kernel
def unlisted_rows(n, adr, nnz, col, below):
    """Returns TreeRows whose rows below directly follow each row: no lists, so `below` takes the place of both."""
    return TreeRows(n=n, adr=adr, nnz=nnz, col=col, below=below, belowadr=below, belowrow=below, listed=0)


@kernel
def follows(rows, k):
    """Returns whether row k + 1 belongs to a child of k: it is one entry longer, and k is its last ancestor."""
    return k + 1 < rows.n and rows.nnz[k + 1] == rows.nnz[k] + 1 and rows.col[rows.adr[k + 1] + rows.nnz[k] - 1] == k


@kernel
def is_only_child(rows, i):
    """Returns whether row i is the only child of row i - 1.

    The parent of i is the last column before the diagonal.  Its descendants are i and the descendants of i.
    """
    start = rows.adr[i]
    depth = rows.nnz[i] - 1
    return depth > 0 and rows.below[i - 1] == rows.below[i] + 1 and rows.col[start + depth - 1] == i - 1


# ---- elimination column by column ------------------------------------------------------------------------
#
# The contributions to a row are summed in registers and stored once: 0.65 us instead of 1.35 us in a tile of humanoids,
# with the same roundings in the same order as an elimination row by row.


class System(NamedTuple):
    """Holds the inputs and outputs of an elimination."""

    source: Any  # the matrix, which may be A itself
    A: Any  # its factor: L below the diagonal, D on it
    inverse: Any  # 1 / D; initially the diagonal of the matrix, if own_diagonal is 0
    f: Any  # one more column, replaced by L^-T f if reduce is 1
    inertia: int  # 1: the matrix is an inertia, whose pivots are at least MINVAL; 0: a Hessian
    own_diagonal: int  # 1: the diagonal of the matrix is in source; 0: it is in `inverse`
    reduce: int  # 1: f is also reduced


class Chain(NamedTuple):
    """Holds the rows i, i - 1, ... that are completed together, and the rows below them."""

    i: int
    depth: int  # index of the diagonal in row i
    start: int  # of the rows below: the last one, or the address of their list in `belowrow`; see `row_below`
    nbelow: int  # number of rows below


@kernel
def row_below(rows, start, t):
    """Returns the t-th row below: row start - t; if the rows are listed, entry start + t of `belowrow`."""
    k = start - t
    if rows.listed:
        k = rows.belowrow[start + t]
    return k


@kernel
def eliminate_chain(system, diagonal, i, x, g, height):
    """Factors the corner of the rows i to i - height + 1 of a chain: stores and returns its D and L.

    Rows are numbered 0 for row i, 1 for row i - 1, and so on, so a higher number is an ancestor.  Row r = 0, 1, ... is
    eliminated from the rows u > r above it:
    D_r = A_rr,  L_ru = A_ru / D_r,  A_uv -= L_ru A_rv for v >= u;  with reduce, f_u -= L_ru f_r.

    Args:
        diagonal: diagonal[r] is the address of A_rr.
        x: the corner: x[r][j] is A_r,r+j, which is j positions left of the diagonal of row r.
        g: f of these rows, if system.reduce is 1.

    Returns the corner with D_r at x[r][0], and L_ru at x[r][u - r].
    """
    for r in unrolled(range(height)):
        D = clamped_pivot(x[r][0]) if system.inertia else nonzero_pivot(x[r][0])
        inverse = 1.0 / D
        # row r of the factor: D_r, then L_r,r+j
        L_r = tuple(x[r][j] * inverse if j > 0 else D for j in range(height - r))
        # the rows above, u > r: A_u,u+j -= L_ru A_r,u+j;  row r becomes L_r;  rows u < r are complete
        x = tuple(
            tuple(
                fma(-L_r[u - r], x[r][u - r + j], x[u][j]) if u > r else L_r[j] if u == r else x[u][j]
                for j in range(height - u)
            )
            for u in range(height)
        )
        for j in unrolled(range(height - r)):
            system.A[diagonal[r] - j] = L_r[j]
        system.inverse[i - r] = inverse
        if system.reduce:
            g = tuple(fma(-L_r[u - r], g[r], g[u]) if u > r else g[u] for u in range(height))
    if system.reduce:
        for r in unrolled(range(height)):
            system.f[i - r] = g[r]
    return x  # each row is its L_r, since it was eliminated


@kernel
def complete_corner(rows, system, chain, height):
    """Computes D and L in the corner of the rows i to i - height + 1 of a chain; returns the corner, D on its diagonal.

    For each row k below:  L_ki = A_ki / D_k is stored, A_ij -= L_ki A_kj;  with reduce, also f_i -= L_ki f_k.
    """
    A, inverse, f = system.A, system.inverse, system.f
    i, depth, start, nbelow = chain
    diagonal = tuple(rows.adr[i - r] + depth - r for r in range(height))
    # x[r][j]: the entry of row i - r that is j positions left of its diagonal;  g[r]: f of row i - r
    x = tuple(
        tuple(
            system.source[diagonal[r] - j] if j > 0 or system.own_diagonal else inverse[i - r]
            for j in range(height - r)
        )
        for r in range(height)
    )
    g = tuple(f[i - r] for r in range(height))
    for t in range(nbelow):
        k = row_below(rows, start, t)
        address = rows.adr[k] + depth  # of A_ki; A_k,i-r is r positions left of it
        inverse_k = inverse[k]
        A_k = tuple(A[address - r] for r in range(height))
        L_k = tuple(A_k[r] * inverse_k for r in range(height))
        for r in unrolled(range(height)):
            A[address - r] = L_k[r]
        # A_ij -= L_ki A_kj in row i - r, column i - r - j
        x = tuple(tuple(fma(-L_k[r], A_k[r + j], x[r][j]) for j in range(height - r)) for r in range(height))
        if system.reduce:
            f_k = f[k]
            g = tuple(fma(-L_k[r], f_k, g[r]) for r in range(height))
    return eliminate_chain(system, diagonal, i, x, g, height)


@kernel
def complete_entries(rows, system, chain, c, corner, height, width):
    """Computes entries c to c + width - 1 of the rows i to i - height + 1 of a chain: columns of common ancestors.

    A_ij -= L_ki A_kj for each row k below, then for each row k of the chain.
    A holds L of the rows below, and `corner` L of the chain: L_(i-u),(i-r) is corner[u][r - u].
    """
    A = system.A
    i, depth, start, nbelow = chain
    first = tuple(rows.adr[i - r] + c for r in range(height))
    # x[r][j]: entry c + j of row i - r
    x = tuple(tuple(system.source[first[r] + j] for j in range(width)) for r in range(height))
    for t in range(nbelow):
        row_k = rows.adr[row_below(rows, start, t)]  # address of row k
        L_k = tuple(A[row_k + depth - r] for r in range(height))
        A_k = tuple(A[row_k + c + j] for j in range(width))
        x = tuple(tuple(fma(-L_k[r], A_k[j], x[r][j]) for j in range(width)) for r in range(height))
    # row i - u is complete, and is subtracted from the rows i - r above it
    for u in unrolled(range(height)):
        x = tuple(
            tuple(fma(-corner[u][r - u], x[u][j], x[r][j]) if r > u else x[r][j] for j in range(width))
            for r in range(height)
        )
    for r in unrolled(range(height)):
        for j in unrolled(range(width)):
            A[first[r] + j] = x[r][j]


@kernel
def complete_rows(rows, system, chain, height):
    """Computes all entries of rows i to i - height + 1, a chain of one, two or four rows.

    First D and L between these rows (corner), then the columns of their common ancestors in blocks of `width`.
    """
    corner = complete_corner(rows, system, chain, height)
    width = 2 if height == 4 else 4  # blocks of eight entries fit into the registers of AVX2, too
    c = 0
    ncommon = chain.depth - height + 1
    while c + width <= ncommon:
        complete_entries(rows, system, chain, c, corner, height, width)
        c += width
    # the remaining columns: with width 4 up to three, two of them if bit 1 of ncommon is set, one if bit 0 is;  with
    # width 2 at most one
    if width == 4 and ncommon & 2:
        complete_entries(rows, system, chain, c, corner, height, width=2)
        c += 2
    if ncommon & 1:
        complete_entries(rows, system, chain, c, corner, height, width=1)


@kernel
def factor_columns(rows, system):
    """system.A <- L^T D L of the system's matrix, system.inverse <- 1 / D: four rows of a chain at a time, two or one.

    With system.reduce, also system.f <- L^-T system.f.
    """
    i = rows.n - 1
    while i >= 0:
        nbelow = rows.below[i]
        chain = Chain(i=i, depth=rows.nnz[i] - 1, start=rows.belowadr[i] if rows.listed else i + nbelow, nbelow=nbelow)
        is_pair = is_only_child(rows, i)
        if is_pair and is_only_child(rows, i - 1) and is_only_child(rows, i - 2):
            complete_rows(rows, system, chain, height=4)
            i -= 4
        elif is_pair:
            complete_rows(rows, system, chain, height=2)
            i -= 2
        else:
            complete_rows(rows, system, chain, height=1)
            i -= 1


# ---- substitution and product ------------------------------------------------------------------------------------
#
# x holds values: a column; or rows of values, such as Vec4: PANEL columns, of which each matrix entry is read once.
# Each column has the same roundings in the same order as a column computed separately.


@kernel
def reduce_rows(rows, L, x, i, height):
    """Computes rows i to i - height + 1 of L^-T x: x_i -= L_ki x_k for the descendants k of i, the last one first."""
    depth = rows.nnz[i] - 1
    nbelow = rows.below[i]
    start = rows.belowadr[i] if rows.listed else i + nbelow
    x_i = tuple(x[i - r] for r in range(height))
    for t in range(nbelow):
        k = row_below(rows, start, t)
        address = rows.adr[k] + depth  # of L_ki; L_k,i-r is r positions left of it
        x_k = x[k]
        x_i = tuple(fma(-L[address - r], x_k, x_i[r]) for r in range(height))
    # then within the chain: x of row i - u is complete, and is subtracted from the rows i - r above it, r > u
    for u in unrolled(range(height)):
        address = rows.adr[i - u] + depth  # L_(i-u),(i-r) is r positions left of it
        x_i = tuple(fma(-L[address - r], x_i[u], x_i[r]) if r > u else x_i[r] for r in range(height))
        x[i - u] = x_i[u]


@kernel
def reduce_columns(rows, L, x):
    """x <- L^-T x, from the last row to the first, two rows of a chain at a time."""
    i = rows.n - 1
    while i >= 0:
        if is_only_child(rows, i):
            reduce_rows(rows, L, x, i, height=2)
            i -= 2
        else:
            reduce_rows(rows, L, x, i, height=1)
            i -= 1


@kernel
def reduce_chain(rows, L, x, i):
    """x <- L^-T x for a column whose only entries are at row i and its ancestors: x[p] is that of the p-th of these.

    The roundings and their order are those of `reduce_columns`.
    """
    start, p = rows.adr[i], rows.nnz[i] - 1
    while p > 0:  # the p-th row and the one before, its parent
        x_p, x_parent = x[p], x[p - 1]
        for k in range(rows.nnz[i] - 1, p, -1):
            address = rows.adr[rows.col[start + k]] + p  # of L_kp
            x_p = fma(-L[address], x[k], x_p)
            x_parent = fma(-L[address - 1], x[k], x_parent)
        x[p], x[p - 1] = x_p, fma(-L[rows.adr[rows.col[start + p]] + p - 1], x_p, x_parent)
        p -= 2
    if p == 0:
        x_0 = x[0]
        for k in range(rows.nnz[i] - 1, 0, -1):
            x_0 = fma(-L[rows.adr[rows.col[start + k]]], x[k], x_0)
        x[0] = x_0


@kernel
def expand_rows(rows, L, inverse, x, k, quotient, height):
    """Computes rows k to k + height - 1 of L^-1 D^-1 x: x_k = x_k / D_k - sum over ancestors j of L_kj x_j.

    Each row has one sum, term by term: partial sums would depend on the zeros of a wider pattern.
    quotient: x_k / D_k.  The caller computes it before its branches: else LLVM gathers the four sums of one world in a
    vector, which takes 1.8 times as long.
    """
    # row[r]: address of row k + r;  depth: number of ancestors of k, common to all these rows
    row = tuple(rows.adr[k + r] for r in range(height))
    depth = rows.nnz[k] - 1
    x_k = tuple(x[k + r] * inverse[k + r] if r > 0 else quotient for r in range(height))
    for c in range(depth):
        x_j = x[rows.col[row[0] + c]]
        x_k = tuple(fma(-L[row[r] + c], x_j, x_k[r]) for r in range(height))
    # the last ancestors are rows k + u of the chain: L_(k+r),(k+u) is entry depth + u of row k + r
    for u in unrolled(range(height)):
        x_k = tuple(fma(-L[row[r] + depth + u], x_k[u], x_k[r]) if r > u else x_k[r] for r in range(height))
    for r in unrolled(range(height)):
        x[k + r] = x_k[r]


@kernel
def expand_columns(rows, L, inverse, x, most):
    """x <- L^-1 D^-1 x, from the first row to the last; inverse: 1 / D.

    Up to four rows are computed at once if each is a child of the row before; these may have other children, too.
    most: largest number of these rows, whose sums fit into registers: 4 if x[k] is a value, 2 if it is a row of values,
    such as Vec4.
    """
    k = 0
    while k < rows.n:
        quotient = x[k] * inverse[k]  # row k's; `expand_rows` computes those of the rows that follow
        if most == 4 and follows(rows, k) and follows(rows, k + 1) and follows(rows, k + 2):
            expand_rows(rows, L, inverse, x, k, quotient, height=4)
            k += 4
        elif follows(rows, k):
            expand_rows(rows, L, inverse, x, k, quotient, height=2)
            k += 2
        else:
            expand_rows(rows, L, inverse, x, k, quotient, height=1)
            k += 1


@kernel
def multiply_rows(rows, A, x, y, k, height):
    """Adds the terms of rows k to k + height - 1 of A to y = A x: A_kj x_j to y_k, and A_kj x_k to y_j, for j <= k.

    y_k is set here; y_j already has the terms of the rows before k.  height: 1, or 2 for dof k and its child k + 1.
    """
    # row[r]: address of row k + r;  depth: number of ancestors j of k, common to these rows
    row = tuple(rows.adr[k + r] for r in range(height))
    depth = rows.nnz[k] - 1
    x_k = tuple(x[k + r] for r in range(height))
    y_k = tuple(A[row[r] + depth + r] * x_k[r] for r in range(height))
    for c in range(depth):
        j = rows.col[row[0] + c]
        A_kj = tuple(A[row[r] + c] for r in range(height))
        x_j, y_j = x[j], y[j]
        y_k = tuple(fma(A_kj[r], x_j, y_k[r]) for r in range(height))
        for r in unrolled(range(height)):
            y_j = fma(A_kj[r], x_k[r], y_j)
        y[j] = y_j
    if height == 2:
        between = A[row[1] + depth]  # A_k+1,k
        y_k = fma(between, x_k[1], y_k[0]), fma(between, x_k[0], y_k[1])
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
