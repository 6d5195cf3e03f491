"""Rows of ancestors: H on the model's own tree, or on the wider tree of coupled branches (paths.py).

Row i holds the ancestors of i, then i.  An elimination from the last row touches no entry outside these rows.  A row is
computed from those below it: on the model's own tree they follow it directly, on a wider one they are listed.
Row i begins at hessian.H[rowadr[i]] and has rownnz[i] entries, the diagonal last; dinv = 1 / D.  PATHS: the pattern on
the wider tree.
body_reached[b] (rows/rows.py) is 0 if no contact acts on body b or on a body below it.  It is PAIRED (1) if only
contacts between two bodies of one tree act there; these are not stiffnesses of one body.  It is REACHED (2) or higher
if another contact acts there.
chain_rowadr, chain_rownnz and chain_colind are the rows of the model's own tree.
`TreeRows` holds a pattern, `System` the arguments of an elimination.  `factor_columns` computes A <- L^T D L and
f <- L^-T f, `reduce_columns` x <- L^-T x, `expand_columns` x <- L^-1 D^-1 x, for up to `most` rows at a time.
Row by row, the same entries with the same roundings take 1.3 to 1.8 times as long.
Source: Featherstone, RBDA, sec. 6.5.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.sparse.tree_factor import (
    System,
    TreeRows,
    expand_columns,
    factor_columns,
    reduce_columns,
    unlisted_rows,
)
from featherlane.engine.solver.hessian.entries.pattern import PATHS
from featherlane.engine.solver.rows.rows import REACHED


# ---- the pattern ----------------------------------------------------------------------------------------------------
@kernel
def use_model_tree(m, d, label):
    """Sets the model's own tree as the pattern, and the number of rows below each in hessian.below.

    label: TREE or APART, stored in hessian.pattern.
    """
    for i in range(m.nv):
        d.hessian.rowadr[i] = m.chain_rowadr[i]
        d.hessian.rownnz[i] = m.chain_rownnz[i]
        d.hessian.below[i] = 0
    # the rows below a dof are those of its descendants
    for i in range(m.nv - 1, -1, -1):  # from the last dof: descendants before their ancestors
        parent = m.dof_parentid[i]
        if parent >= 0:
            d.hessian.below[parent] = d.hessian.below[parent] + d.hessian.below[i] + 1
    d.hessian.pattern[0] = label


@kernel
def mark_all_contacts_unpaired(m, d):
    """Sets body_reached from PAIRED to REACHED: contacts within one tree become stiffnesses of their bodies, too.

    The trees are decoupled, with the pattern APART.
    """
    for b in range(m.nbody):
        if d.body_reached[b] > 0:
            d.body_reached[b] = REACHED


# ---- the factor -----------------------------------------------------------------------------------------------------
@kernel
def model_tree_rows(m, d):
    """Returns the rows of the model's own tree; without lists of rows below, as these follow each row directly."""
    h = d.hessian
    return unlisted_rows(n=m.nv, adr=h.rowadr, nnz=h.rownnz, col=m.chain_colind, below=h.below)


@kernel
def path_rows(m, d):
    """Returns the rows that are closed under paths (paths.py)."""
    h = d.hessian
    return TreeRows(
        n=m.nv,
        adr=h.rowadr,
        nnz=h.rownnz,
        col=h.colind,
        below=h.below,
        belowadr=h.belowadr,
        belowrow=h.belowrow,
        listed=1,
    )


@stage
def factor_chains(m, d):
    """Computes H = L^T D L in place, hessian.dinv = 1 / D, and search <- L^-T search.

    Source: Featherstone, RBDA, sec. 6.5, table 6.3, column by column.
    Reads:  hessian.H in rows of ancestors (nH,) [kg, kg m, kg m^2], its pattern.
    Writes: hessian.H, hessian.dinv (nv,), primal.search (nv,).
    Cost:   O(nv * depth^2).
    """
    # the factor A replaces H in the same memory;  inertia=0: pivots have no lower bound
    H, dinv, f = d.hessian.H, d.hessian.dinv, d.primal.search
    system = System(source=H, A=H, inverse=dinv, f=f, inertia=0, own_diagonal=1, reduce=1)
    if d.hessian.pattern[0] == PATHS:
        factor_columns(path_rows(m, d), system)
    else:
        factor_columns(model_tree_rows(m, d), system)


@kernel
def reduce_chains(m, d, x):
    """Computes x <- L^-T x for a column, or for a panel of columns: a field of Vec4 rows."""
    if d.hessian.pattern[0] == PATHS:
        reduce_columns(path_rows(m, d), d.hessian.H, x)
    else:
        reduce_columns(model_tree_rows(m, d), d.hessian.H, x)


@kernel
def expand_chain_columns(m, d, x, most):
    """Computes x <- L^-1 D^-1 x for a column with most=4, or for a panel with most=2 (`expand_columns`)."""
    if d.hessian.pattern[0] == PATHS:
        expand_columns(path_rows(m, d), d.hessian.H, d.hessian.dinv, x, most)
    else:
        expand_columns(model_tree_rows(m, d), d.hessian.H, d.hessian.dinv, x, most)


@stage
def expand_chains(m, d):
    """Computes search <- L^-1 D^-1 search.

    Source: Featherstone, RBDA, sec. 6.5, table 6.5.
    Reads:  hessian.H, hessian.dinv, the pattern.   Writes: primal.search (nv,).   Cost: O(nv * depth).
    """
    expand_chain_columns(m, d, d.primal.search, most=4)
