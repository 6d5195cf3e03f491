"""Factors the Hessian of each world of a pile of bodies alone, in an elimination order for this world.

With irregular couplings of many trees, the model's order fills the factor, and the worlds of a tile share few
couplings.  So H is assembled in lanes, on block rows without fill-in, except the contacts of free bodies.  Then, one
world at a time, trees are ordered by minimum degree (minimum_degree.py), entries are copied, contacts of free bodies
are added (free_panels.py), and panels are solved (panel.py), eight columns at once.
A pile of 64 balls takes a third of the multiplications of one world, a tenth of those on the union of eight.

Layout: the dofs of a tree are in reverse order in its panel: dof i has row and column last - i, with last the tree's
last dof.  `entry_index` of panel.py gives the position of (row, column) in panel.values.
Row i of H begins at hessian.H[rowadr[i]]; blocks e of the row list of block b: blockcol[e], at blockoffset[e].
graph.order: trees by elimination;  graph.col[e], colstart[e]: trees in the row of tree t and their first columns, for
rownnz[t] numbers e from rowadr[t] on (panel.py);  hessian.con_coupling[k]: -1 if only one body of contact k moves.
Tree t has the dofs from tree_dofadr[t] on, tree_dofnum[t] of them; dof_treeid[i] is the tree of dof i, body_treeid[b]
that of body b.  Block b has the dofs from block_dofadr[b] on, block_dofnum[b] of them.  `find_column(d, t, u)` returns
the first column of tree u in the panel of t, -1 if it has none.  `padded_size`: tree_dofnum, rounded up to eights.
General row k has the dofs row_dof[row_dofadr[k] ...], row_dofnum[k] of them; row_present is 0 in worlds without it.
    lane: the world;  graph.position[t]: number of tree t in the order;  panel.adr[t], start[t]: start of its panel and
    x.

The choice depends only on a world's own couplings: the cost of its factor in the model's order, and the part of this
cost due to fill-in.  A tile with both kinds of worlds is split.
"""

from featherlane.engine.prelude import *
from featherlane.engine.solver.hessian.factorizations.free_panels import add_contacts, find_column, store_axes
from featherlane.engine.solver.hessian.factorizations.minimum_degree import (
    clear_graph,
    count_in_model_order,
    couple_trees,
    order_trees,
)
from featherlane.engine.solver.hessian.factorizations.panel import (
    allocate_panels,
    clear_panels,
    entry_index,
    expand_panels,
    factor_panels,
    padded_size,
    reduce_panels,
)

COSTLY = 60000.0  # multiplications of a factor: with fewer, lanes are faster, 10 us for a tile
FILLED = 1.5  # times those without fill-in: another order does not improve stacks and scattered pairs


# ---- selection of worlds -------------------------------------------------------------------------------------------
@kernel
def couple_trees_of_row(m, d, k):
    """Couples each two trees of general row k in the graph."""
    first = d.row_dofadr[k]
    for a in range(first, first + d.row_dofnum[k]):
        t = m.dof_treeid[d.row_dof[a]]
        for b in range(first, a):
            u = m.dof_treeid[d.row_dof[b]]
            if t != u:
                couple_trees(m, d, t, u)


@kernel
def build_graph(m, d, lane):
    """Builds the graph of one world's trees: two trees are coupled if a contact or a general row acts on both."""
    clear_graph(m, d)
    for k in range(d.ncon_slot[0]):
        c = d.contact[k]
        # both bodies move, and this world has the contact
        if d.hessian.con_coupling[k] >= 0 and has(c.D > 0.0, lane):
            t, u = m.body_treeid[c.body[0]], m.body_treeid[c.body[1]]
            if t != u:
                couple_trees(m, d, t, u)
    for k in range(d.ndofrow[0], d.nrow[0]):
        if has(d.row_present[k] > 0.0, lane):
            couple_trees_of_row(m, d, k)


@kernel
def mark_ordered(m, d):
    """Sets ordered, in active worlds, to 1 if the factor in the model's order is costly, else to 0.

    It is costly with more than COSTLY multiplications, and more than FILLED times those without fill-in.
    Discards panels of another step's rows (panel.fits = 0).
    Returns (1 if some active world has ordered = 1, else 0; 1 if some active world has ordered = 0, else 0).
    """
    some_marked, some_unmarked = 0, 0
    d.panel.fits[0] = 0
    for lane in range(width(d)):
        if has(d.active[0] > 0.0, lane):
            build_graph(m, d, lane)  # writes graph.bits
            count_in_model_order(m, d)  # writes panel.cost: with fill-in, without
            if d.panel.cost[0] > COSTLY and d.panel.cost[0] > FILLED * d.panel.cost[1]:
                write_lane(d.ordered, 0, lane, 1.0)
                some_marked = 1
            else:
                write_lane(d.ordered, 0, lane, 0.0)
                some_unmarked = 1
    return some_marked, some_unmarked


# ---- from block rows to panels -------------------------------------------------------------------------------------
@kernel
def load_block_between_trees(m, d, lane, b, t, offset, c, u):
    """Copies the entries of block b of tree t with block c of tree u from one world's H to its panels.

    offset: first offset of block c in the rows of b.  Nothing is copied if the world does not couple the trees.
    The panel of the tree that is eliminated first has the entries: its dofs are rows, the later dofs columns.
    """
    size_t, size_u = m.tree_dofnum[t], m.tree_dofnum[u]
    last_t, last_u = m.tree_dofadr[t] + size_t - 1, m.tree_dofadr[u] + size_u - 1
    t_is_first = d.graph.position[t] < d.graph.position[u]  # in the elimination order
    # first column of the later tree, -1 if the world does not couple the trees
    column = find_column(d, t, u) if t_is_first else find_column(d, u, t)
    first_j = m.block_dofadr[c]
    first_i = m.block_dofadr[b]
    end_i = first_i + m.block_dofnum[b] if column >= 0 else 0  # no dofs i if the world does not couple the trees
    for i in range(first_i, end_i):
        for j in range(first_j, first_j + m.block_dofnum[c]):
            if t_is_first:
                target = entry_index(d.panel.adr[t], size_t, last_t - i, column + last_u - j)
            else:
                target = entry_index(d.panel.adr[u], size_u, last_u - j, column + last_t - i)
            d.panel.values[target] = read_lane(d.hessian.H, d.hessian.rowadr[i] + offset + j - first_j, lane)


@kernel
def load_row_within_tree(m, d, lane, i, t, entry, c):
    """Copies one world's entries H_ij to the panel of tree t: dof i, and the dofs j <= i of block c of the same tree.

    entry: position of the first H_ij in hessian.H.
    """
    size, first = m.tree_dofnum[t], m.block_dofadr[c]
    last = m.tree_dofadr[t] + size - 1
    n = m.block_dofnum[c]
    if first + n > i + 1:  # dof i is in block c, which ends at the diagonal
        n = i + 1 - first
    for e in range(n):
        x = read_lane(d.hessian.H, entry + e, lane)
        d.panel.values[entry_index(d.panel.adr[t], size, last - i, last - first - e)] = x


@kernel
def load_world(m, d, lane):
    """Computes the panels of the world `lane`: entries of H, then the contacts of free bodies.

    Entries between trees that the world does not couple become zero (`load_block_between_trees`).
    """
    for b in range(m.nblock):
        first, t = m.block_dofadr[b], m.dof_treeid[m.block_dofadr[b]]
        # e: entries of the row list of block b
        for e in range(d.hessian.blockadr[b], d.hessian.blockadr[b] + d.hessian.blocknum[b]):
            c, offset = d.hessian.blockcol[e], d.hessian.blockoffset[e]
            u = m.dof_treeid[m.block_dofadr[c]]
            if t == u:
                for i in range(first, first + m.block_dofnum[b]):
                    load_row_within_tree(m, d, lane, i, t, d.hessian.rowadr[i] + offset, c)
            else:
                load_block_between_trees(m, d, lane, b, t, offset, c, u)
    add_contacts(m, d, lane)


@stage
def prepare_panels(m, d, lane):
    """Computes one world's elimination order and the offsets of its panels, and clears the panels.

    If the panels do not fit, the world's trees are decoupled: ordered = 2.  A tile of one world keeps order and offsets
    from one iteration to the next.
    Reads:  hessian.con_coupling, con_body, con_D, row_dof, row_present.
    Writes: ordered; graph.*, panel.*, panel.values (zeros).
    Cost:   O(entries of the factor).
    """
    # a tile of several worlds has panels for one world at a time; fits = 0: the tile has no panels yet
    if width(d) > 1 or d.panel.fits[0] == 0:
        build_graph(m, d, lane)
        order_trees(m, d)
        allocate_panels(m, d)
        if d.panel.fits[0] == 0:
            # without couplings, each tree is factored alone
            write_lane(d.ordered, 0, lane, 2.0)
            clear_graph(m, d)
            order_trees(m, d)
            allocate_panels(m, d)
        store_axes(m, d, lane)
    clear_panels(m, d)


# ---- the factor ----------------------------------------------------------------------------------------------------
@kernel
def copy_entries(m, d, lane, e, t, row, column, count, to_hessian):
    """Copies `count` entries between one world's hessian.H, from e on, and a row of t's panel, from a column on.

    to_hessian: 1 copies from the panel to H, 0 from H to the panel.  Returns the position behind the entries in H.
    """
    for c in range(column, column + count):
        panel_entry = entry_index(d.panel.adr[t], m.tree_dofnum[t], row, c)
        if to_hessian:
            write_lane(d.hessian.H, e, lane, d.panel.values[panel_entry])
        else:
            d.panel.values[panel_entry] = read_lane(d.hessian.H, e, lane)
        e += 1
    return e


@kernel
def copy_factor(m, d, lane, to_hessian):
    """Copies one world's factor between its panels and hessian.H, hessian.dinv, which hold its rows without gaps.

    to_hessian: 1 copies from the panels to H, 0 from H to the panels.
    """
    e = 0  # position in H
    for k in range(d.ngraph):
        t = d.graph.order[k]
        for r in range(m.tree_dofnum[t]):
            # the tree's own columns from the diagonal on, then those of the trees in its row
            e = copy_entries(m, d, lane, e, t, row=r, column=r, count=m.tree_dofnum[t] - r, to_hessian=to_hessian)
            for at in range(d.graph.rowadr[t], d.graph.rowadr[t] + d.graph.rownnz[t]):
                e = copy_entries(
                    m,
                    d,
                    lane,
                    e,
                    t,
                    row=r,
                    column=d.graph.colstart[at],
                    count=m.tree_dofnum[d.graph.col[at]],
                    to_hessian=to_hessian,
                )
    for i in range(m.nv):
        if to_hessian:
            write_lane(d.hessian.dinv, i, lane, d.panel.inverse[i])
        else:
            d.panel.inverse[i] = read_lane(d.hessian.dinv, i, lane)


@kernel
def load_search(m, d, lane):
    """Copies one world's search to panel.x: the dofs of each tree from the last one on, padded with zeros."""
    for t in range(d.ngraph):
        n, start = m.tree_dofnum[t], d.panel.start[t]
        last = m.tree_dofadr[t] + m.tree_dofnum[t] - 1
        for r in range(n):
            d.panel.x[start + r] = read_lane(d.primal.search, last - r, lane)
        for r in range(n, padded_size(m, t)):
            d.panel.x[start + r] = 0.0


@kernel
def store_search(m, d, lane):
    """Copies panel.x to one world's search."""
    for t in range(d.ngraph):
        start = d.panel.start[t]
        last = m.tree_dofadr[t] + m.tree_dofnum[t] - 1
        for r in range(m.tree_dofnum[t]):
            write_lane(d.primal.search, last - r, lane, d.panel.x[start + r])


@stage
def factor_world(m, d, lane):
    """Factors one world in its panels, and computes panel.x <- L^-T (its search).

    Reads:  hessian.H, its pattern, primal.search.
    Writes: ordered; graph.*, panel.*.
    Cost:   see `factor_panels`.
    """
    prepare_panels(m, d, lane)  # writes the order and offsets of the panels
    load_world(m, d, lane)  # writes panel.values
    load_search(m, d, lane)  # writes panel.x
    factor_panels(m, d)


@stage
def solve_ordered(m, d):
    """Computes search <- H^-1 search, one world at a time, in live worlds; H is unchanged, and no factor is kept.

    Reads:  hessian.H, its pattern, active, primal.live, primal.search.
    Writes: primal.search (nv,), ordered; one world's graph.bits and panels.
    """
    for lane in range(width(d)):
        if has((d.active[0] > 0.0) & (d.primal.live[0] > 0.0), lane):
            factor_world(m, d, lane)
            expand_panels(m, d)
            store_search(m, d, lane)


@stage
def factor_ordered(m, d):
    """Replaces H by its factor in each world's own order; hessian.dinv = 1 / D.

    The factor fits into H: without the padding of panels, it is a part of a full lower triangle.  Copying costs about
    as much as loading, so a step avoids it (`solve_ordered`).
    Reads:  hessian.H, its pattern, active, primal.search.
    Writes: hessian.H, hessian.dinv (nv,), ordered; graph.*, panel.*.
    """
    for lane in range(width(d)):
        if has(d.active[0] > 0.0, lane):
            factor_world(m, d, lane)
            copy_factor(m, d, lane, to_hessian=1)


@stage
def substitute_ordered(m, d):
    """Computes search <- H^-1 search by the factor of `factor_ordered`; recomputes each world's order.

    Reads:  hessian.H, hessian.dinv, active, primal.search.
    Writes: primal.search (nv,), ordered; graph.*, panel.*, hessian.*.
    """
    for lane in range(width(d)):
        if has(d.active[0] > 0.0, lane):
            prepare_panels(m, d, lane)
            copy_factor(m, d, lane, to_hessian=0)
            load_search(m, d, lane)
            reduce_panels(m, d)  # panel.x <- L^-T panel.x
            expand_panels(m, d)
            store_search(m, d, lane)


@kernel
def has_decoupled_trees(d):
    """Returns the mask of worlds whose search direction ignores the couplings of trees."""
    return d.ordered[0] > 1.5  # `prepare_panels` sets 2
