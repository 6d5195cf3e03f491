"""Whitens rows of a Jacobian with M = L^T D L: y <- D^-1/2 L^-T y, so that J M^-1 J^T = Y Y^T.

A row of L has entries at ancestors only.  So a row y with entries at some DoFs has entries at these and at their
ancestors afterwards, and is stored there only.

block: `SparseRows`, rows y with entries at the same n DoFs.  The list of these DoFs is dofs[start : start + n]: with
each DoF it has all ancestors, and it descends.  Entry p of row c, at the p-th DoF of the list, is y[first + c n + p].
position[j] is the position p of DoF j in the list.
rows: `TreeRows`, the pattern of L.  Row i has its nnz[i] entries from L[adr[i]] on: the ancestors of i, ascending, then
i itself; their DoFs are in `col` at the same addresses.  `reduce_columns`: x <- L^-T x (tree_factor.py).
Source: Featherstone, Rigid Body Dynamics Algorithms, sec. 6.5; MuJoCo mj_solveM2.
"""

from typing import Any, NamedTuple

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.sparse.tree_factor import reduce_columns


class SparseRows(NamedTuple):
    """Describes where rows of a Jacobian have their entries: row c from y[first + c n] on, one for each of n DoFs."""

    y: Any  # the rows
    first: int  # address of the first one
    dofs: Any  # lists of DoFs
    start: int  # start of the rows' list, which is closed under ancestors and descends
    n: int  # its length
    position: Any  # (nv,) position of each of these DoFs in the list


@kernel
def store_dof_positions(block):
    """Writes the positions of the DoFs of a block's list to `position`."""
    for p in range(block.n):
        block.position[block.dofs[block.start + p]] = p


@kernel
def eliminate_dofs(rows, L, block, p, chain, height, count):
    """Eliminates `height` DoFs i from the rows: y_j -= L_ij y_i for all their ancestors j.

    Args:
        p: position of the first of these DoFs in the list; the others follow it.
        chain: these DoFs, each the parent of the one before.
        count: number of rows that are computed at once, from block.first on.

    Returns the final y_i: result[r][c] is the entry of DoF chain[r] in row c.
    """
    y = block.y
    e_i = block.first + p  # address of the entry of DoF chain[0] in the first row
    # row[r]: address of L's row of chain[r].  It has the ncommon ancestors of the whole chain, then chain[height - 1]
    # ... chain[r]
    row = tuple(rows.adr[chain[r]] for r in range(height))
    ncommon = rows.nnz[chain[0]] - height
    x = tuple(tuple(y[e_i + r + c * block.n] for c in range(count)) for r in range(height))
    # within the chain, from DoF chain[u] to its ancestors chain[r], r > u: y_r -= L_ur y_u
    for u in unrolled(range(height)):
        x = tuple(
            tuple(
                fma(-L[row[u] + ncommon + height - 1 - r], x[u][c], x[r][c]) if r > u else x[r][c] for c in range(count)
            )
            for r in range(height)
        )
    # from the chain to the common ancestors j, whose entry in the first row is y[e_j]
    for k in range(ncommon):
        e_j = block.first + block.position[rows.col[row[0] + k]]
        minus_L = tuple(-L[row[r] + k] for r in range(height))
        for c in unrolled(range(count)):
            y_j = y[e_j + c * block.n]
            for r in unrolled(range(height)):
                y_j = fma(minus_L[r], x[r][c], y_j)
            y[e_j + c * block.n] = y_j
    return x


@kernel
def half_solve_rows(rows, L, scale, block, scaled, count):
    """y <- D^-1/2 L^-T y for `count` rows of a block at once; each result is bitwise that of one row alone.

    DoFs are eliminated in the order of the list, descendants first.  A DoF and its parent are eliminated together if
    they are adjacent in the list: the entries of their common ancestors are then read once.

    Args:
        scale: (nv,) D^-1/2.
        block: the rows, whose `position` is set.
        scaled: 1 includes the factor `scale`, 0 leaves it out: y <- L^-T y.
    """
    p = 0
    while p < block.n:
        # i: the DoF at p, with `depth` ancestors;  j: the next one of the list, or i itself at its end
        i = block.dofs[block.start + p]
        next_p = min(p + 1, block.n - 1)
        j = block.dofs[block.start + next_p]
        depth = rows.nnz[i] - 1
        # the parent of i, its last ancestor, is the next DoF of the list
        if next_p > p and depth > 0 and rows.col[rows.adr[i] + depth - 1] == j:
            x = eliminate_dofs(rows, L, block, p, chain=(i, j), height=2, count=count)
            for c in unrolled(range(count)):
                e = block.first + p + c * block.n
                block.y[e] = x[0][c] * scale[i] if scaled else x[0][c]
                block.y[e + 1] = x[1][c] * scale[j] if scaled else x[1][c]
            p += 2
        else:
            x = eliminate_dofs(rows, L, block, p, chain=(i,), height=1, count=count)
            for c in unrolled(range(count)):
                e = block.first + p + c * block.n
                block.y[e] = x[0][c] * scale[i] if scaled else x[0][c]
            p += 1


@kernel
def half_solve_column(rows, L, inverse, x):
    """x <- D^-1/2 L^-T x for a column with an entry at each DoF; inverse: 1 / D."""
    reduce_columns(rows, L, x)
    for i in range(rows.n):
        x[i] = x[i] * sqrt(inverse[i])
