"""L^T D L of one world's Hessian in an elimination order for this world: a panel of rows for each kinematic tree.

Trees are eliminated in this order, the dofs of a tree from the last one to the first.  Row k of a tree's panel holds,
in elimination order, the tree's own dofs from k on and all dofs of the trees in its row of the factor.  Columns are
stored in groups of eight, each with all rows (`entry`), so that the entries of two trees are contiguous.
A tree is eliminated as a whole: each row of a later tree gets one update, whose rank is the tree's number of dofs.
Source: J. W. H. Liu, E. G. Ng and B. W. Peyton, "On finding supernodes for sparse matrix computations" (1993).
"""

from featherlane.prelude import *
from featherlane.dynamics.sparse.tree_factor import nonzero_pivot
from featherlane.solver.hessian.factorizations.minimum_degree import WORD_BITS, lowest_bit

FREE = 6  # dofs of a free body, the tree of most piles: its rows have separate kernels


# ---- places of rows and columns ------------------------------------------------------------------------------------
@kernel
def list_row_trees(d1, t, adr):
    """Lists trees in the row of t, by their place in the order; returns how many."""
    n = 0
    for w in range(d1.ngraphword):
        left = d1.graph.bits[t * d1.ngraphword + w]
        while left != 0:
            u = w * WORD_BITS + lowest_bit(left)
            left = left & (left - 1)
            e = adr + n
            while e > adr and d1.graph.place[d1.graph.col[e - 1]] > d1.graph.place[u]:
                d1.graph.col[e] = d1.graph.col[e - 1]
                e -= 1
            d1.graph.col[e] = u
            n += 1
    return n


@kernel
def padded_size(m1, t):
    """Returns the columns that tree t takes in a panel: its dofs, rounded up to a multiple of eight."""
    return (m1.tree_dofnum[t] + 7) // 8 * 8


@kernel
def entry(a, size, row, column):
    """Returns the index of an entry of a panel at a; each group of eight columns is stored with all its rows."""
    return a + (column // 8 * size + row) * 8 + column % 8


@stage
def clear_panels(m1, d1):
    """Clears the panels that are in use.

    Reads:  graph.order, panel.adr, panel.width.   Writes: panel.*.
    """
    t = d1.graph.order[d1.ngraph - 1]
    P, zero = eights(d1.panel.values), eights(d1.panel.zero)[0]
    for e in range((d1.panel.adr[t] + m1.tree_dofnum[t] * d1.panel.width[t]) // 8):
        P[e] = zero


@stage
def place_panels(m1, d1):
    """Computes the start of each tree's panel and x, and the columns of each tree; panel.fits = 0 if it is too small.

    Reads:  graph.bits, graph.order, graph.place, graph.degree of `order_trees`.
    Writes: graph.*, panel.*, panel.width (ngraph,), graph.colplace (nfill,).
    """
    adr, entries, start = 0, 0, 0
    d1.panel.fits[0] = 1
    for t in range(d1.ngraph):
        d1.panel.start[t] = start
        start += padded_size(m1, t)
    for k in range(d1.ngraph):
        t = d1.graph.order[k]
        if adr + d1.graph.degree[t] > d1.nfill:
            d1.panel.fits[0] = 0
            break
        n, width = list_row_trees(d1, t, adr), padded_size(m1, t)
        for e in range(adr, adr + n):
            d1.graph.colplace[e] = width
            width += padded_size(m1, d1.graph.col[e])
        d1.graph.rowadr[t], d1.graph.rownnz[t] = adr, n
        d1.panel.adr[t], d1.panel.width[t] = entries, width
        adr += n
        entries += m1.tree_dofnum[t] * width
        if entries > d1.npanel:
            d1.panel.fits[0] = 0
            break


# ---- the factor ----------------------------------------------------------------------------------------------------
@kernel
def factor_free(d1, a, width, last, x):
    """Runs `factor_tree` for a free body: its own columns in registers, then all others, read and written once."""
    P, E = d1.panel.values, eights(d1.panel.values)
    p = tuple(tuple(P[a + 8 * k + r] for r in range(FREE)) for k in range(FREE))
    y, s = d1.panel.x[x : x + FREE], p
    for k in unrolled(range(FREE)):
        inv = 1.0 / nonzero_pivot(p[k][k])
        d1.panel.inverse[last - k] = inv
        f = tuple(-(p[k][r] * inv) for r in range(FREE))
        p = tuple(
            tuple(fma(f[r], p[k][c], p[r][c]) if k < r <= c else p[r][c] for c in range(FREE)) for r in range(FREE)
        )
        y = tuple(fma(f[r], y[k], y[r]) if r > k else y[r] for r in range(FREE))
        s = tuple(f if i == k else s[i] for i in range(FREE))
    for k in unrolled(range(FREE)):
        for r in unrolled(range(k, FREE)):
            P[a + 8 * k + r] = p[k][r]
    d1.panel.x[x : x + FREE] = y
    for c in range(1, width // 8):
        o = a // 8 + FREE * c
        e = E[o : o + FREE]
        for k in unrolled(range(FREE - 1)):
            e = tuple(fma(s[k][r], e[k], e[r]) if r > k else e[r] for r in range(FREE))
        for r in unrolled(range(1, FREE)):
            E[o + r] = e[r]


@kernel
def factor_tree(m1, d1, t):
    """Factors the tree's own rows: row r -= (A_kr / D_k) row k for the rows k before r; the same for x."""
    P, x, E = d1.panel.values, d1.panel.x, eights(d1.panel.values)
    a, width, size, i = d1.panel.adr[t], d1.panel.width[t], m1.tree_dofnum[t], d1.panel.start[t]
    last = m1.tree_dofadr[t] + size - 1
    if size == FREE:
        factor_free(d1, a, width, last, i)
    else:
        for k in range(size):
            inv = 1.0 / nonzero_pivot(P[entry(a, size, k, k)])
            d1.panel.inverse[last - k] = inv
            for r in range(k + 1, size):
                s = -(P[entry(a, size, k, r)] * inv)
                for c in range(r // 8, width // 8):
                    q = a // 8 + c * size
                    E[q + r] = fma(s, E[q + k], E[q + r])
                x[i + r] = fma(s, x[i + k], x[i + r])


@kernel
def scale_rows(m1, d1, t, u, column):
    """Computes panel.scale[size r + k] = -L for row r of u, row k of eliminated t; subtracts t's part of x from u's."""
    a, size, rows = d1.panel.adr[t], m1.tree_dofnum[t], m1.tree_dofnum[u]
    last, source, target = m1.tree_dofadr[t] + size - 1, d1.panel.start[t], d1.panel.start[u]
    f = d1.panel.scale
    for r in range(rows):
        y = d1.panel.x[target + r]
        for k in range(size):
            s = -(d1.panel.values[entry(a, size, k, column + r)] * d1.panel.inverse[last - k])
            f[r * size + k] = s
            y = fma(s, d1.panel.x[source + k], y)
        d1.panel.x[target + r] = y


@kernel
def scale_free(m1, d1, t, u, o):
    """Runs `scale_rows` for two free bodies, eight columns at once: factor k of row r is at 8 k + r; o: u's columns."""
    X, S, E, last = eights(d1.panel.x), eights(d1.panel.scale), eights(d1.panel.values), m1.tree_dofadr[t] + FREE - 1
    source, target = d1.panel.start[t], d1.panel.start[u] // 8
    y = X[target]
    for k in unrolled(range(FREE)):
        s = -(E[o + k] * d1.panel.inverse[last - k])
        S[k] = s
        y = fma(s, d1.panel.x[source + k], y)
    X[target] = y


@kernel
def update_run(d1, q, rows, o, size, f, count):
    """Updates a target run at q += sum over k of (factor k from f on) (run of row k at o); q and o in eights."""
    E, s = eights(d1.panel.values), d1.panel.scale
    for k in range(size):
        for c in range(count):
            E[q + c * rows] = fma(s[f + k], E[o + c * size + k], E[q + c * rows])


@kernel
def update_columns(d1, q, o, count):
    """Updates `count` eights of columns of a free body at q by those of another one at o; each factor is read once."""
    E, s = eights(d1.panel.values), d1.panel.scale
    e = tuple(E[o + FREE * c : o + FREE * c + FREE] for c in range(count))
    y = tuple(E[q + FREE * c : q + FREE * c + FREE] for c in range(count))
    for k in unrolled(range(FREE)):
        y = tuple(tuple(fma(s[8 * k + r], e[c][k], y[c][r]) for r in range(FREE)) for c in range(count))
    for c in unrolled(range(count)):
        E[q + FREE * c : q + FREE * c + FREE] = y[c]


@kernel
def update_free(d1, q, o, count):
    """Runs `update_run` for all rows of a free body by another one."""
    c = 0
    while c + 2 <= count:
        update_columns(d1, q + FREE * c, o + FREE * c, 2)
        c += 2
    if c < count:
        update_columns(d1, q + FREE * c, o + FREE * c, 1)


@kernel
def update_tree_rows(d1, q, rows, o, size, count):
    """Updates all rows of a tree in a run that belongs to them from its first column on."""
    if size == FREE and rows == FREE:
        update_free(d1, q, o, count)
    else:
        for r in range(rows):
            update_run(d1, q + r, rows, o, size, r * size, count)


@kernel
def update_tree(m1, d1, t, u, at):
    """Eliminates tree t from the rows of tree u, which is number `at` in the row of t, and from x of u."""
    a, size, b, rows = d1.panel.adr[t] // 8, m1.tree_dofnum[t], d1.panel.adr[u] // 8, m1.tree_dofnum[u]
    e, end, f = d1.graph.rowadr[t] + at, d1.graph.rowadr[t] + d1.graph.rownnz[t], d1.graph.rowadr[u]
    # runs: trees that are adjacent in both rows; the first one begins with u's own columns
    o, q, count = a + d1.graph.colplace[e] // 8 * size, b, padded_size(m1, u) // 8
    if size == FREE and rows == FREE:
        scale_free(m1, d1, t, u, o)
    else:
        scale_rows(m1, d1, t, u, d1.graph.colplace[e])
    if count > 1:
        for r in range(rows):
            c = r // 8
            update_run(d1, b + c * rows + r, rows, o + c * size, size, r * size, count - c)
        count = 0
    e += 1
    while count > 0 or e < end:
        if count == 0:
            while d1.graph.col[f] != d1.graph.col[e]:
                f += 1
            o, q = a + d1.graph.colplace[e] // 8 * size, b + d1.graph.colplace[f] // 8 * rows
        while e < end and d1.graph.col[f] == d1.graph.col[e]:
            count += padded_size(m1, d1.graph.col[e]) // 8
            e += 1
            f += 1
        update_tree_rows(d1, q, rows, o, size, count)
        count = 0


@stage
def factor_panels(m1, d1):
    """Replaces the panels by D L, and panel.x by L^-T panel.x.

    Reads:  panel.values (npanel,), its places.
    Writes: panel.values, panel.inverse (nv,) = 1 / D, panel.x (npanelcolumn,).
    Scratch: panel.scale.
    Cost:   sum over trees of s n^2 / 2, with n the width of the panel, eight at a time.
    """
    for k in range(d1.ngraph):
        t = d1.graph.order[k]
        factor_tree(m1, d1, t)
        for at in range(d1.graph.rownnz[t]):
            update_tree(m1, d1, t, d1.graph.col[d1.graph.rowadr[t] + at], at)


# ---- substitution --------------------------------------------------------------------------------------------------
@kernel
def reduce_tree(m1, d1, t):
    """Subtracts the products of L with x of tree t from x of later dofs."""
    P, x = d1.panel.values, d1.panel.x
    a, size = d1.panel.adr[t], m1.tree_dofnum[t]
    last, i = m1.tree_dofadr[t] + size - 1, d1.panel.start[t]
    for k in range(size):
        for r in range(k + 1, size):
            x[i + r] = fma(-(P[entry(a, size, k, r)] * d1.panel.inverse[last - k]), x[i + k], x[i + r])
    for e in range(d1.graph.rowadr[t], d1.graph.rowadr[t] + d1.graph.rownnz[t]):
        u, o = d1.graph.col[e], d1.graph.colplace[e]
        target = d1.panel.start[u]
        for r in range(m1.tree_dofnum[u]):
            y = x[target + r]
            for k in range(size):
                y = fma(-(P[entry(a, size, k, o + r)] * d1.panel.inverse[last - k]), x[i + k], y)
            x[target + r] = y


@kernel
def row_products(m1, d1, t, row, count):
    """Returns products of `count` rows of tree t from a row on with x of later trees, in eight partial sums each."""
    E, X, size = eights(d1.panel.values), eights(d1.panel.x), m1.tree_dofnum[t]
    o, nothing = d1.panel.adr[t] // 8 + row, eights(d1.panel.zero)[0]
    y = tuple(nothing for _ in range(count))
    for e in range(d1.graph.rowadr[t], d1.graph.rowadr[t] + d1.graph.rownnz[t]):
        u, q = d1.graph.col[e], o + d1.graph.colplace[e] // 8 * size
        p = d1.panel.start[u] // 8
        for c in range(padded_size(m1, u) // 8):
            x = X[p + c]
            y = tuple(fma(E[q + c * size + r], x, y[r]) for r in range(count))
    return y


@kernel
def sum_panel_eight(s, o):
    """Returns the sum of eight numbers."""
    return ((s[o] + s[o + 1]) + (s[o + 2] + s[o + 3])) + ((s[o + 4] + s[o + 5]) + (s[o + 6] + s[o + 7]))


@kernel
def expand_free(m1, d1, t):
    """Runs `expand_tree` for a free body, in registers; products are subtracted in the order in which x is computed."""
    P, inverse, S, i = d1.panel.values, d1.panel.inverse, d1.panel.sum, d1.panel.start[t]
    a, last = d1.panel.adr[t], m1.tree_dofadr[t] + FREE - 1
    eights(S)[0:6] = row_products(m1, d1, t, 0, FREE)
    x = d1.panel.x[i : i + FREE]
    x = tuple(x[r] - sum_panel_eight(S, 8 * r) for r in range(FREE))
    for r in unrolled(range(FREE - 1, -1, -1)):
        z = x[r]
        for c in unrolled(range(FREE - 1, r, -1)):
            z = fma(-P[a + 8 * r + c], x[c], z)
        x = tuple(z * inverse[last - r] if k == r else x[k] for k in range(FREE))
    d1.panel.x[i : i + FREE] = x


@kernel
def expand_tree(m1, d1, t):
    """Computes x of tree t: D^-1 (x minus the products with later dofs)."""
    P, x, S = d1.panel.values, d1.panel.x, d1.panel.sum
    a, size, i = d1.panel.adr[t], m1.tree_dofnum[t], d1.panel.start[t]
    last = m1.tree_dofadr[t] + size - 1
    for r in range(size - 1, -1, -1):
        y = row_products(m1, d1, t, r, 1)
        eights(S)[0] = y[0]
        z = x[i + r] - sum_panel_eight(S, 0)
        for c in range(r + 1, size):
            z = fma(-P[entry(a, size, r, c)], x[i + c], z)
        x[i + r] = z * d1.panel.inverse[last - r]


@stage
def reduce_panels(m1, d1):
    """Computes panel.x <- L^-T panel.x, bitwise identical to its result during factorization.

    Reads:  panel.values, panel.inverse, its places.   Writes: panel.x (npanelcolumn,).   Cost: O(entries).
    """
    for k in range(d1.ngraph):
        reduce_tree(m1, d1, d1.graph.order[k])


@stage
def expand_panels(m1, d1):
    """Computes panel.x <- L^-1 D^-1 panel.x.

    Reads:  panel.values, panel.inverse, its places.
    Writes: panel.x (npanelcolumn,).
    Scratch: panel.sum.
    Cost:   O(entries).
    """
    for k in range(d1.ngraph):
        t = d1.graph.order[d1.ngraph - 1 - k]
        if m1.tree_dofnum[t] == FREE:
            expand_free(m1, d1, t)
        else:
            expand_tree(m1, d1, t)
