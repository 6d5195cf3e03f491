"""L^T D L of one world's Hessian in an elimination order for this world: a panel of rows for each kinematic tree.

Trees are eliminated in this order, the dofs of a tree from the last one to the first.  Row k of a tree's panel holds,
in elimination order, the tree's own dofs from k on and all dofs of the trees in its row of the factor.
A tree is eliminated as a whole: each row of a later tree gets one update, whose rank is the tree's number of dofs.
Layout: columns are stored in groups of eight, each with all rows of the panel (`entry_index`), so that the entries of
two trees are contiguous.  `eights(panel.values)` reads them as vectors, one per row and group: in a panel that begins
at vector v, row r of group c is vector v + c * size + r, with `size` rows.  The columns of each tree are padded to a
multiple of eight.  The trees in the row of tree t are graph.col[e], their first columns graph.colstart[e], for
rownnz[t] numbers e from rowadr[t] on.  panel.x holds the right-hand side, tree t from panel.start[t] on.
The factored panel holds D_k on the diagonal and A_kr = D_k L_kr right of it.  panel.inverse is 1 / D by dof: row k of a
tree is its dof last - k, with `last` its last dof.
Tree t has the dofs from tree_dofadr[t] on, tree_dofnum[t] of them; its panel begins at panel.values[panel.adr[t]] and
has panel.width[t] columns.  panel.zero: eight zeros;  panel.sum: partial sums of up to six rows, eight each.
`nonzero_pivot` returns a pivot, or MINVAL if its magnitude is smaller; `lowest_bit` the position of the lowest set bit
of a word.
FREE = 6: dofs of a free body.  ngraph: number of trees.  nfill, npanel: the capacities of graph.col and panel.values.
Source: J. W. H. Liu, E. G. Ng and B. W. Peyton, "On finding supernodes for sparse matrix computations" (1993).
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.sparse.tree_factor import nonzero_pivot
from featherlane.engine.solver.hessian.factorizations.minimum_degree import WORD_BITS, lowest_bit
from featherlane.engine.solver.vectors import sum_of_eight

FREE = 6  # dofs of a free body, the tree of most piles: its rows have separate kernels


# ---- offsets of rows and columns ------------------------------------------------------------------------------------
@kernel
def list_row_trees(d1, t, adr):
    """Lists the trees in the row of t in graph.col from adr on, sorted by position in the order; returns how many.

    The trees are the neighbours of t in graph.bits, WORD_BITS of them in a word (minimum_degree.py).
    """
    n = 0
    for w in range(d1.ngraphword):
        bits = d1.graph.bits[t * d1.ngraphword + w]
        while bits != 0:
            u = w * WORD_BITS + lowest_bit(bits)
            bits = bits & (bits - 1)  # clears the lowest bit
            # insertion sort
            e = adr + n
            while e > adr and d1.graph.position[d1.graph.col[e - 1]] > d1.graph.position[u]:
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
def entry_index(start, size, row, column):
    """Returns the index of an entry of a panel in panel.values: each group of eight columns has all `size` rows.

    start: index of the panel's first entry.
    """
    return start + (column // 8 * size + row) * 8 + column % 8


@stage
def clear_panels(m1, d1):
    """Sets all entries of the panels to zero.

    Reads:  graph.order, panel.adr, panel.width, panel.zero.   Writes: panel.values.
    """
    last_tree = d1.graph.order[d1.ngraph - 1]  # its panel is the last one
    vectors = eights(d1.panel.values)
    zero = eights(d1.panel.zero)[0]
    end = d1.panel.adr[last_tree] + m1.tree_dofnum[last_tree] * d1.panel.width[last_tree]
    for e in range(end // 8):
        vectors[e] = zero


@stage
def allocate_panels(m1, d1):
    """Computes the start of each tree's panel and x, and the columns of each tree; panel.fits = 0 if they do not fit.

    graph.degree[t] is the number of trees in the row of t.
    Reads:  graph.bits, graph.order, graph.position, graph.degree of `order_trees`.
    Writes: graph.*, panel.*, panel.width (ngraph,), graph.colstart (nfill,).
    """
    adr, entries, start = 0, 0, 0  # next free positions in graph.col, in panel.values, in panel.x
    d1.panel.fits[0] = 1
    for t in range(d1.ngraph):
        d1.panel.start[t] = start
        start += padded_size(m1, t)
    for k in range(d1.ngraph):
        t = d1.graph.order[k]
        if adr + d1.graph.degree[t] > d1.nfill:
            d1.panel.fits[0] = 0
            break
        n = list_row_trees(d1, t, adr)
        width = padded_size(m1, t)
        for e in range(adr, adr + n):
            d1.graph.colstart[e] = width
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
def factor_free(d1, start, width, last, x_start):
    """Factors a free body's own rows as `factor_tree` does: first its own columns, in registers, then all others.

    Row r -= L_kr row k for the rows k < r, with L_kr = A_kr / D_k; the same for x.
    start: index of the panel's first entry.  width: number of its columns.  last: last dof.  x_start: start of x.
    The body's own columns are the first group of eight: A_kr is at start + 8 k + r.
    """
    values = d1.panel.values
    vectors = eights(d1.panel.values)
    A = tuple(tuple(values[start + 8 * k + r] for r in range(FREE)) for k in range(FREE))
    # A in minus_L is a placeholder: minus_L[k], the multipliers of row k, is set when row k is eliminated
    x, minus_L = d1.panel.x[x_start : x_start + FREE], A
    # own columns c >= r, the upper triangle
    for k in unrolled(range(FREE)):
        inverse = 1.0 / nonzero_pivot(A[k][k])
        d1.panel.inverse[last - k] = inverse
        minus_L_k = tuple(-(A[k][r] * inverse) for r in range(FREE))
        A = tuple(
            tuple(fma(minus_L_k[r], A[k][c], A[r][c]) if k < r <= c else A[r][c] for c in range(FREE))
            for r in range(FREE)
        )
        x = tuple(fma(minus_L_k[r], x[k], x[r]) if r > k else x[r] for r in range(FREE))
        minus_L = tuple(minus_L_k if i == k else minus_L[i] for i in range(FREE))
    for k in unrolled(range(FREE)):
        for r in unrolled(range(k, FREE)):
            values[start + 8 * k + r] = A[k][r]
    d1.panel.x[x_start : x_start + FREE] = x
    # all groups but the first: the columns of later trees
    for c in range(1, width // 8):
        group = start // 8 + FREE * c  # vector of row 0 in group c
        rows = vectors[group : group + FREE]
        for k in unrolled(range(FREE - 1)):
            rows = tuple(fma(minus_L[k][r], rows[k], rows[r]) if r > k else rows[r] for r in range(FREE))
        for r in unrolled(range(1, FREE)):
            vectors[group + r] = rows[r]


@kernel
def factor_tree(m1, d1, t):
    """Factors the tree's own rows: row r -= (A_kr / D_k) row k for the rows k before r; the same for x."""
    A, x = d1.panel.values, d1.panel.x
    vectors = eights(d1.panel.values)
    start, width, size, x_start = d1.panel.adr[t], d1.panel.width[t], m1.tree_dofnum[t], d1.panel.start[t]
    last = m1.tree_dofadr[t] + size - 1
    if size == FREE:
        factor_free(d1, start, width, last, x_start)
    else:
        for k in range(size):
            inverse = 1.0 / nonzero_pivot(A[entry_index(start, size, k, k)])
            d1.panel.inverse[last - k] = inverse
            for r in range(k + 1, size):
                minus_L = -(A[entry_index(start, size, k, r)] * inverse)
                for c in range(r // 8, width // 8):  # groups of columns, from that of the diagonal on
                    group = start // 8 + c * size  # vector of row 0
                    vectors[group + r] = fma(minus_L, vectors[group + k], vectors[group + r])
                x[x_start + r] = fma(minus_L, x[x_start + k], x[x_start + r])


@kernel
def store_multipliers(m1, d1, t, u, source, size, groups):
    """Stores the multipliers of eliminated tree t for the rows of tree u, and eliminates x of t from x of u.

    -L_kr = -A_kr / D_k for row r of u and row k of t;  x_r += -L_kr x_k.  Eight rows of u at once.
    Layout: -L_kr is panel.scale[8 (r // 8 * size + k) + r % 8].
    source: vector of row 0 of u's columns in the panel of t.  size: number of dofs of t.  groups: number of groups
    of u's own columns.
    """
    vectors, x, scale = eights(d1.panel.values), eights(d1.panel.x), eights(d1.panel.scale)
    last = m1.tree_dofadr[t] + size - 1
    start = d1.panel.start[t]
    target = d1.panel.start[u] // 8
    for c in range(groups):
        y = x[target + c]
        for k in range(size):
            minus_L = -(vectors[source + c * size + k] * d1.panel.inverse[last - k])
            scale[c * size + k] = minus_L
            y = fma(minus_L, d1.panel.x[start + k], y)
        x[target + c] = y


@kernel
def update_row(d1, target, rows, source, size, r, count):
    """Updates row r of a tree in a run of `count` groups of columns: row r += sum over k of -L_kr (row k of source).

    target: vector of row r in the first group, whose panel has `rows` rows.
    source: vector of row 0 of the eliminated tree in the first group, whose panel has `size` rows.
    Reads:  panel.scale of `store_multipliers`: -L_kr is at 8 (r // 8 * size + k) + r % 8.
    """
    vectors = eights(d1.panel.values)
    scale = d1.panel.scale
    minus_L_0r = 8 * (r // 8 * size) + r % 8
    for k in range(size):
        for c in range(count):
            vectors[target + c * rows] = fma(
                scale[minus_L_0r + 8 * k], vectors[source + c * size + k], vectors[target + c * rows]
            )


@kernel
def update_free_columns(d1, target, source, count):
    """Updates `count` groups of columns of a free body: row r -= sum over k of L_kr (row k of an eliminated free body).

    target, source: vector of row 0 of the first group.  The multipliers -L_kr = panel.scale[8 k + r] are those of
    `store_multipliers`; each is read once.
    """
    vectors = eights(d1.panel.values)
    minus_L = d1.panel.scale
    source_rows = tuple(vectors[source + FREE * c : source + FREE * c + FREE] for c in range(count))
    x = tuple(vectors[target + FREE * c : target + FREE * c + FREE] for c in range(count))
    for k in unrolled(range(FREE)):
        x = tuple(tuple(fma(minus_L[8 * k + r], source_rows[c][k], x[c][r]) for r in range(FREE)) for c in range(count))
    for c in unrolled(range(count)):
        vectors[target + FREE * c : target + FREE * c + FREE] = x[c]


@kernel
def update_free(d1, target, source, count):
    """Runs `update_free_columns` for `count` groups, two at a time."""
    c = 0
    while c + 2 <= count:
        update_free_columns(d1, target + FREE * c, source + FREE * c, count=2)
        c += 2
    if c < count:
        update_free_columns(d1, target + FREE * c, source + FREE * c, count=1)


@kernel
def update_tree_rows(d1, target, rows, source, size, count):
    """Updates all `rows` rows of a tree in `count` groups of columns, as `update_row` does.

    target, source: vector of row 0 of the first group.  size: number of rows of the eliminated tree.
    """
    if size == FREE and rows == FREE:
        update_free(d1, target, source, count)
    else:
        for r in range(rows):
            update_row(d1, target + r, rows, source, size, r, count)


@kernel
def update_tree(m1, d1, t, u, at):
    """Eliminates tree t from the rows of tree u, which is number `at` in the row of t, and from x of u.

    Trees that are adjacent in both rows form a run: their groups of columns are updated at once.  The first run begins
    with u's own columns.
    """
    start_t, start_u = d1.panel.adr[t] // 8, d1.panel.adr[u] // 8  # first vectors of both panels
    size, rows = m1.tree_dofnum[t], m1.tree_dofnum[u]  # their numbers of rows
    e, f = d1.graph.rowadr[t] + at, d1.graph.rowadr[u]  # the next entries of graph.col in the rows of t and u
    end = d1.graph.rowadr[t] + d1.graph.rownnz[t]  # end of the row of t
    # the run: vectors of row 0 of its first group in both panels, and its number of groups so far
    source, target = start_t + d1.graph.colstart[e] // 8 * size, start_u
    count = padded_size(m1, u) // 8
    if size == FREE and rows == FREE:  # with constants, so that the compiler knows the lengths of loops
        store_multipliers(m1, d1, t, u, source, size=FREE, groups=1)
    else:
        store_multipliers(m1, d1, t, u, source, size, count)
    # u's own columns, if u has more than eight dofs, are a separate run: row r begins with the group r // 8 of its
    # diagonal
    if count > 1:
        for r in range(rows):
            c = r // 8
            update_row(d1, start_u + c * rows + r, rows, source + c * size, size, r, count - c)
        count = 0
    e += 1
    while count > 0 or e < end:  # count > 0: the first run, with u's own columns, is not yet updated
        if count == 0:  # a new run begins at the offset of tree col[e] in the row of u
            while d1.graph.col[f] != d1.graph.col[e]:
                f += 1
            source, target = start_t + d1.graph.colstart[e] // 8 * size, start_u + d1.graph.colstart[f] // 8 * rows
        # extend the run to trees that are adjacent in both rows
        while e < end and d1.graph.col[f] == d1.graph.col[e]:
            count += padded_size(m1, d1.graph.col[e]) // 8
            e += 1
            f += 1
        update_tree_rows(d1, target, rows, source, size, count)
        count = 0


@stage
def factor_panels(m1, d1):
    """Replaces the panels by their factor, rows D_k L_kr, and panel.x by L^-T panel.x.

    Reads:  panel.values (npanel,), its offsets.
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
    """Subtracts the products of L with x of tree t from x of later dofs: x_r -= L_kr x_k, L_kr = A_kr / D_k.

    The rows r are first the tree's own later dofs, then those of the trees u in its row.
    """
    A, x = d1.panel.values, d1.panel.x
    start, size = d1.panel.adr[t], m1.tree_dofnum[t]
    last = m1.tree_dofadr[t] + size - 1
    x_start = d1.panel.start[t]
    for k in range(size):
        for r in range(k + 1, size):
            L = A[entry_index(start, size, k, r)] * d1.panel.inverse[last - k]
            x[x_start + r] = fma(-L, x[x_start + k], x[x_start + r])
    for e in range(d1.graph.rowadr[t], d1.graph.rowadr[t] + d1.graph.rownnz[t]):
        u, column = d1.graph.col[e], d1.graph.colstart[e]
        target = d1.panel.start[u]
        for r in range(m1.tree_dofnum[u]):
            y = x[target + r]
            for k in range(size):
                L = A[entry_index(start, size, k, column + r)] * d1.panel.inverse[last - k]
                y = fma(-L, x[x_start + k], y)
            x[target + r] = y


@kernel
def row_products(m1, d1, t, row, count):
    """Returns the products of `count` rows of tree t, from `row` on, with x of later trees.

    Each product is a vector of eight partial sums, one for each column of a group.
    """
    vectors, X = eights(d1.panel.values), eights(d1.panel.x)
    size = m1.tree_dofnum[t]
    start = d1.panel.adr[t] // 8 + row
    zero = eights(d1.panel.zero)[0]
    sums = tuple(zero for _ in range(count))
    for e in range(d1.graph.rowadr[t], d1.graph.rowadr[t] + d1.graph.rownnz[t]):
        u = d1.graph.col[e]
        group = start + d1.graph.colstart[e] // 8 * size
        x_u = d1.panel.start[u] // 8
        for c in range(padded_size(m1, u) // 8):
            x = X[x_u + c]
            sums = tuple(fma(vectors[group + c * size + r], x, sums[r]) for r in range(count))
    return sums


@kernel
def expand_free(m1, d1, t):
    """Computes x of a free body t, as `expand_tree` does, with x in registers.

    The products with the body's own dofs are subtracted from the last dof down: as soon as their x is known.
    """
    A, inverse = d1.panel.values, d1.panel.inverse
    start, x_start = d1.panel.adr[t], d1.panel.start[t]
    last = m1.tree_dofadr[t] + FREE - 1
    # products with later trees: six vectors go through memory, so that the parts of each can be added
    sums = d1.panel.sum
    eights(sums)[0:6] = row_products(m1, d1, t, row=0, count=FREE)
    x = d1.panel.x[x_start : x_start + FREE]
    x = tuple(x[r] - sum_of_eight(sums, 8 * r) for r in range(FREE))
    for r in unrolled(range(FREE - 1, -1, -1)):  # backward: row r needs x of the dofs behind it
        y = x[r]
        for c in unrolled(range(FREE - 1, r, -1)):  # entry (r, c) is at start + 8 r + c
            y = fma(-A[start + 8 * r + c], x[c], y)
        x = tuple(y * inverse[last - r] if k == r else x[k] for k in range(FREE))
    d1.panel.x[x_start : x_start + FREE] = x


@kernel
def expand_tree(m1, d1, t):
    """Computes x of tree t: D^-1 (x minus the products with later dofs)."""
    A, x, sums = d1.panel.values, d1.panel.x, d1.panel.sum
    start, size, x_start = d1.panel.adr[t], m1.tree_dofnum[t], d1.panel.start[t]
    last = m1.tree_dofadr[t] + size - 1
    for r in range(size - 1, -1, -1):  # backward: row r needs x of the later dofs
        # products with later trees, then with the tree's own later dofs
        products = row_products(m1, d1, t, r, count=1)
        eights(sums)[0] = products[0]
        y = x[x_start + r] - sum_of_eight(sums, first=0)
        for c in range(r + 1, size):
            y = fma(-A[entry_index(start, size, r, c)], x[x_start + c], y)
        x[x_start + r] = y * d1.panel.inverse[last - r]


@stage
def reduce_panels(m1, d1):
    """Computes panel.x <- L^-T panel.x, bitwise identical to its result during factorization.

    Reads:  panel.values, panel.inverse, its offsets.   Writes: panel.x (npanelcolumn,).   Cost: O(entries).
    """
    for k in range(d1.ngraph):
        reduce_tree(m1, d1, d1.graph.order[k])


@stage
def expand_panels(m1, d1):
    """Computes panel.x <- L^-1 D^-1 panel.x.

    Reads:  panel.values, panel.inverse, its offsets.
    Writes: panel.x (npanelcolumn,).
    Scratch: panel.sum.
    Cost:   O(entries).
    """
    for k in range(d1.ngraph):
        t = d1.graph.order[d1.ngraph - 1 - k]  # backward: a tree needs x of those eliminated later
        if m1.tree_dofnum[t] == FREE:
            expand_free(m1, d1, t)
        else:
            expand_tree(m1, d1, t)
