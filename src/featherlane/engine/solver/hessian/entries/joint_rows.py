"""Scalar rows in the Hessian: H += sum over the rows that are not at a bound of D J^T J.

A row's force is clamp(-D x, lo, hi), with x = J a - aref.  At a bound it does not change with x, so the row adds
nothing to the second derivative of the cost.
x is primal.row_x.  One-dof row k has the entry row_J[k] at dof row_dof[k].
Layout of H: H_ij = hessian.H[rowadr[i] + offset of j], the diagonal last, in rows of ancestors (on the model's own
tree, or in the pattern PATHS on a wider one) or in block rows (pattern.py).  In rows of ancestors the offset of j is
rownnz[j] - 1.  In block rows, `diagonal_block` and `find_block` return the entry e of a dof's block in the row's block
list, and `offset_in_block` the offset of a dof in it.  `is_above(m, j, i)`: dof j is an ancestor of dof i, or i itself.
Layout of the general rows: row k has n = row_dofnum[k] dofs, row_dof[first ...] in ascending order, with
first = row_dofadr[k], and the Jacobian entries row_J[first ...].  Rows with the same dofs are stored one after the
other, so their entries of one dof are n apart.  row_rownum[k] counts them from row k on, k included.
`bounded_weight` returns D of a row if it is not at a bound, else 0.  `changes_dof`: row i of H is computed, not kept.
"""

from featherlane.engine.prelude import *
from featherlane.engine.solver.hessian.entries.pattern import (
    PATHS,
    changes_dof,
    diagonal_block,
    find_block,
    has_block_rows,
    is_above,
    offset_in_block,
)
from featherlane.engine.solver.rows.laws import bounded_weight


@kernel
def free_weight(d, k):
    """Returns D of scalar row k if it is not at a bound, else 0."""
    return bounded_weight(d.row[k], d.primal.row_x[k])


@kernel
def add_dof_rows(m, d):
    """Adds D J^2 to H_ii for the one-dof rows that are not at a bound."""
    for k in range(d.ndofrow[0]):
        i, J = d.row_dof[k], d.row_J[k]
        weight = free_weight(d, k)
        diagonal = d.hessian.rowadr[i] + d.hessian.rownnz[i] - 1
        if changes_dof(m, d, i):
            d.hessian.H[diagonal] = fma(weight * J, J, d.hessian.H[diagonal])


@kernel
def add_weighted_entries(d, e, stride, weighted, x):
    """Returns x + sum over three rows r of weighted_r J_r, with J_r = row_J[e + r stride], the entries of one dof."""
    return fma(
        weighted[0],
        d.row_J[e],
        fma(weighted[1], d.row_J[e + stride], fma(weighted[2], d.row_J[e + 2 * stride], x)),
    )


@kernel
def add_to_ancestor_row(m, d, first, stride, a, weighted):
    """Adds H_ij += sum over three rows r of D_r J_ri J_rj to row i of ancestors, for the rows' dofs j up to i.

    i: dof number a of the rows.  weighted: (D_r J_ri) of the three rows.
    first: start of the first row in row_dof and row_J.  stride: distance to the next row.
    """
    i = d.row_dof[first + a]
    for b in range(a + 1):
        j = d.row_dof[first + b]
        # on the model's own tree, row i has no entry for the dofs of other branches: APART leaves out their coupling
        if d.hessian.pattern[0] == PATHS or is_above(m, j, i):
            entry = d.hessian.rowadr[i] + d.hessian.rownnz[j] - 1
            d.hessian.H[entry] = add_weighted_entries(d, first + b, stride, weighted, d.hessian.H[entry])


@kernel
def add_to_block_row(m, d, first, stride, a, weighted):
    """Adds H_ij += sum over three rows r of D_r J_ri J_rj to row i in block rows, for the rows' dofs j up to i.

    i: dof number a of the rows.  weighted: (D_r J_ri) of the three rows, for example of a connect equality.
    first: start of the first row in row_dof and row_J.  stride: distance to the next row.
    """
    i = d.row_dof[first + a]
    row = d.hessian.rowadr[i]
    e = diagonal_block(m, d, i)  # entry of the row's block list, for the block of dof j
    for b in range(a, -1, -1):  # descending, because `find_block` searches backward
        j = d.row_dof[first + b]
        e = find_block(m, d, e, j)
        entry = row + offset_in_block(m, d, e, j)
        d.hessian.H[entry] = add_weighted_entries(d, first + b, stride, weighted, d.hessian.H[entry])


@kernel
def add_general_stiffness(m, d):
    """Adds D J^T J for the general rows that are not at a bound: three at a time if they share their dofs."""
    k = d.ndofrow[0]
    while k < d.nrow[0]:
        first, dofs = d.row_dofadr[k], d.row_dofnum[k]
        # three rows with the weights D, whose entries of a dof are `stride` apart.  A single row is added three times,
        # twice with weight 0
        D = (free_weight(d, k), 0.0, 0.0)
        stride, rows = 0, 1
        if d.row_rownum[k] >= 3:
            D = (D[0], free_weight(d, k + 1), free_weight(d, k + 2))
            stride, rows = dofs, 3
        # all dofs of a row are in one group: without a change, none of its entries is added
        for a in range(dofs if dofs > 0 and changes_dof(m, d, d.row_dof[first]) else 0):
            e = first + a
            weighted = (D[0] * d.row_J[e], D[1] * d.row_J[e + stride], D[2] * d.row_J[e + 2 * stride])
            if has_block_rows(d):
                add_to_block_row(m, d, first, stride, a, weighted)
            else:
                add_to_ancestor_row(m, d, first, stride, a, weighted)
        k += rows
