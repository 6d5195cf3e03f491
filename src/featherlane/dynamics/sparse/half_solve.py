"""Whitens rows of a Jacobian with M = L^T D L: y <- D^-1/2 L^-T y, so that J M^-1 J^T = Y Y^T.

A row of L has entries at ancestors only.  So a row with entries at some DoFs has entries at these and at their
ancestors afterwards, and is stored there only.  L is stored by TreeRows (tree_factor.py).
Source: Featherstone, Rigid Body Dynamics Algorithms, sec. 6.5; MuJoCo mj_solveM2.
"""

from typing import Any, NamedTuple

from featherlane.prelude import *
from featherlane.dynamics.sparse.tree_factor import reduce_columns


class SparseRows(NamedTuple):
    """Describes where rows of a Jacobian have their entries: row c at y[first + c n ...], one for each of n DoFs."""

    y: Any  # the rows
    first: int  # address of the first one
    dofs: Any  # lists of DoFs
    start: int  # start of the rows' list, which is closed under ancestors and descends
    n: int  # its length
    place: Any  # position of each of these DoFs in the list


@kernel
def place_dofs(block):
    """Writes the positions of the DoFs of a block's list to `place`."""
    for p in range(block.n):
        block.place[block.dofs[block.start + p]] = p


@kernel
def eliminate_dofs(rows, L, block, p, chain, height, count):
    """Eliminates the DoFs at positions p to p + height - 1 of the list from those above: y_j -= L_ij y_i.

    chain: these DoFs, each the parent of the one before.  count: rows that are computed at once, from block.first on.
    Returns their entries y_i: result[r][c] of DoF p + r in row c.
    """
    y, e = block.y, block.first + p
    row, depth = tuple(rows.adr[chain[r]] for r in range(height)), rows.nnz[chain[0]] - height
    x = tuple(tuple(y[e + r + c * block.n] for c in range(count)) for r in range(height))
    for u in unrolled(range(height)):
        # L of the pair (u, r), r > u, is r entries left of the last ancestor of all
        x = tuple(
            tuple(
                fma(-L[row[u] + depth + height - 1 - r], x[u][c], x[r][c]) if r > u else x[r][c] for c in range(count)
            )
            for r in range(height)
        )
    for k in range(depth):
        e_j, minus_L = block.first + block.place[rows.col[row[0] + k]], tuple(-L[row[r] + k] for r in range(height))
        for c in unrolled(range(count)):
            y_j = y[e_j + c * block.n]
            for r in unrolled(range(height)):
                y_j = fma(minus_L[r], x[r][c], y_j)
            y[e_j + c * block.n] = y_j
    return x


@kernel
def half_solve_rows(rows, L, scale, block, scaled, count):
    """y <- D^-1/2 L^-T y for `count` rows of a block at once; each has the roundings of one row alone.

    A DoF and its parent are eliminated together if they are adjacent in the list: entries above are read once.

    Args:
        scale: D^-1/2, by DoF.
        block: the rows, whose `place` is set.
        scaled: 1; 0: y <- L^-T y, without the factor `scale`.
    """
    p = 0
    while p < block.n:
        i, next_p = block.dofs[block.start + p], min(p + 1, block.n - 1)
        j, depth = block.dofs[block.start + next_p], rows.nnz[i] - 1
        # the last ancestor of i is the next DoF of the list
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
    reduce_columns(rows, 0, L, x)
    for i in range(rows.n):
        x[i] = x[i] * sqrt(inverse[i])
