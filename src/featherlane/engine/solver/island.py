"""Constraint islands: trees that rows connect, directly or over other trees.

The problem of a scene separates into one problem per island.  The sparse factor already solves islands separately,
because no entry of H joins them; this file only identifies them.
While islands are found, dof_island[t] is the label of tree t: the smallest number of a tree that is known to be in its
island, ntree if no row acts on it.  A label is a real number: each world of the tile has its own.
Rows: row_* on row_dofnum dofs, row_dof from row_dofadr on; contacts on the bodies carrier; row_present, con_D: not 0 in
worlds that have the row.  dof_treeid, body_treeid: tree of a dof or body, -1 of a body that cannot move.
`fold_rows(scalar, contact)`: kernel (m, d, unused, x) that passes x through both kernels for all rows.
Source: MuJoCo documentation, Computation, "Constraint islands" (numbers ascend with each island's first tree).
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.fold import fold_rows


@kernel
def merge_labels(d, present, s, t, changed):
    """Sets the labels of trees s and t, which a row joins, to the smallest of the four numbers: both labels, s and t.

    present: mask of worlds that have the row; only these change.  s or t is -1 if the row acts on one tree only.
    Returns 1 in worlds with a changed label, else `changed`.
    """
    # a row on one tree joins the tree with itself
    if s < 0:
        s = t
    if t < 0:
        t = s
    if s >= 0:  # else the row acts on no tree
        label_s, label_t = d.dof_island[s], d.dof_island[t]
        # the smallest of s, t and their labels
        label = fmin(fmin(label_s, label_t), 1.0 * (s if s < t else t))
        changed = where(present & ((label < label_s) | (label < label_t)), 1.0, changed)
        d.dof_island[s] = where(present, label, label_s)
        d.dof_island[t] = where(present, label, d.dof_island[t])
    return changed


@kernel
def lower_labels_of_row(m, d, k, unused, changed):
    """Gives the trees of scalar row k the smallest of their labels; returns 1 in worlds with a changed label."""
    adr = d.row_dofadr[k]
    # joins the tree of each entry with that of the first one
    for e in range(adr, adr + d.row_dofnum[k]):
        s, t = m.dof_treeid[d.row_dof[adr]], m.dof_treeid[d.row_dof[e]]
        changed = merge_labels(d, d.row_present[k] > 0.0, s, t, changed)
    return changed


@kernel
def lower_labels_of_contact(m, d, k, unused, changed):
    """Gives the trees of contact k the smallest of their labels; returns 1 in worlds with a changed label."""
    c = d.contact[k]
    return merge_labels(d, c.D > 0.0, m.body_treeid[c.carrier[0]], m.body_treeid[c.carrier[1]], changed)


lower_labels_of_rows = fold_rows(lower_labels_of_row, lower_labels_of_contact)


@kernel
def lower_labels(m, d):
    """Runs one pass over all rows, each of which gives its trees the smallest of their labels.

    Returns a positive number in worlds in which some label became smaller.
    """
    changed = lower_labels_of_rows(m, d, 0, 0.0)
    # all worlds have the links of the LCP contact model
    for k in range(m.nlink):
        s, t = m.body_treeid[m.link_body[k, 0]], m.body_treeid[m.link_body[k, 1]]
        changed = merge_labels(d, true_mask(d), s, t, changed)
    return changed


@kernel
def number_islands(m, d):
    """Numbers the islands in the order of their labels, which are their first trees; a tree without rows has number -1.

    Writes: tree_island, nisland.
    """
    n = 0.0  # islands so far
    no_label = 1.0 * m.ntree
    for t in range(m.ntree):
        label = d.dof_island[t]
        is_first = label == t  # worlds in which t is the first tree of its island
        d.tree_island[t] = where(is_first, n, 0.0)
        # tree_island[t] = tree_island[label]: the number of the island's first tree, label <= t, is known
        d.tree_island[t] = where(
            label < no_label, gather_rows(d.tree_island, where(label < no_label, label, 0.0)), -1.0
        )
        n = where(is_first, n + 1.0, n)
    d.nisland[0] = n


@stage
def islands(m, d):
    """Computes constraint islands of the present rows: trees that contacts, limits and other rows connect.

    Each pass lowers labels toward the smallest tree number in the island, until none changes; islands are numbered by
    their first trees.
    Source: MuJoCo's documentation, "Computation", sec. "Constraint islands".
    Reads:  all rows.   Writes: nisland (1,), tree_island (ntree,), dof_island (nv,), -1 where no row acts on the tree.
    Cost:   O(rows) a pass; two passes if rows are sorted by tree, at most ntree.
    """
    # labels of trees are in dof_island at first; ntree: no row acts on the tree
    for t in range(m.ntree):
        d.dof_island[t] = 1.0 * m.ntree
    while any_(lower_labels(m, d) > 0.0):  # until no label changes
        pass
    number_islands(m, d)
    for i in range(m.nv):
        d.dof_island[i] = d.tree_island[m.dof_treeid[i]]
