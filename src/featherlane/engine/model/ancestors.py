"""Computes the branch-induced sparsity of a model: the ancestor dofs of each dof and each body.

Source: Featherstone, RBDA, sec. 4.1.4 (the sets kappa(i)) and 6.4 (expanded parent array, which is MuJoCo's
dof_parentid).
"""

from __future__ import annotations

import numpy as np

from featherlane.engine.lanes.layout import Declare, size
from featherlane.engine.model.derived import derived

BLOCK = 8  # maximum number of dofs
_field = Declare()


@derived(
    size("nchain", "number of entries of all chains from a dof to the root"),
    size("nblock", "number of blocks of consecutive dofs: each is the only child of the previous one"),
    _field.int("body_lastchild", "nbody", "1", "child body with the largest id, -1: none"),
    _field.int("body_lastdof", "nbody", "1", "last dof that moves the body, of the body or an ancestor, -1: none"),
    _field.int("chain_rownnz", "nv", "1", "number of dofs from the root to this dof, inclusive"),
    _field.int("chain_rowadr", "nv", "1", "address of the chain's first dof"),
    _field.int("chain_colind", "nchain", "1", "dofs of a chain, ascending; the last one is the dof itself"),
    _field.int("block_dofadr", "nblock", "1", "first dof of the block"),
    _field.int("block_dofnum", "nblock", "1", f"number of dofs of the block, at most {BLOCK}"),
    _field.int("block_parentid", "nblock", "1", "parent block: that of its first dof's parent, -1: none"),
    _field.int("dof_blockid", "nv", "1", "block of the dof"),
    _field.int("M_below", "nv", "1", "rows of M with an entry in this column below the diagonal; they follow row i"),
)
def ancestor_chains(mj) -> dict[str, np.ndarray]:
    """Returns the ancestor chains of dofs in CSR form and the last dof of each body.

    Row i of the chains holds the ancestors of dof i in ascending order, then i: the row of an ancestor is a prefix of
    the row of each of its descendants.  `body_lastdof[b]` is the dof nearest to body b on its path to the world; -1 if
    there is none, so that body b cannot move.
    """
    parent, rows, last = mj.dof_parentid, [], np.full(mj.nbody, -1)
    for i, p in enumerate(parent):
        rows.append([*(rows[p] if p >= 0 else []), i])
    for b in range(1, mj.nbody):
        own = mj.body_dofadr[b] + mj.body_dofnum[b] - 1
        last[b] = own if mj.body_dofnum[b] else last[mj.body_parentid[b]]
    children = np.full(mj.nbody, -1)
    children[mj.body_parentid[1:]] = np.arange(1, mj.nbody)  # with several children, the last one is kept
    nnz = np.array([len(row) for row in rows], int)
    return _blocks(parent) | {
        "body_lastchild": children,
        "body_lastdof": last,
        "chain_rownnz": nnz,
        "chain_rowadr": np.cumsum(nnz) - nnz,
        "chain_colind": np.array([dof for row in rows for dof in row], int),
        "M_below": np.bincount(mj.M_colind, minlength=mj.nv)[: mj.nv] - 1,
    }


def _blocks(parent: np.ndarray) -> dict[str, np.ndarray]:
    """Returns runs of dofs, each the parent of only the next one: their rows of M share all columns above.

    A run longer than BLOCK is cut into equal parts.
    """
    nv = len(parent)
    children = np.bincount(parent[parent >= 0], minlength=nv)
    starts = [i for i in range(nv) if not (i and parent[i] == i - 1 and children[i - 1] == 1)]
    adr = np.zeros(0, int)
    for start, end in zip(starts, [*starts[1:], nv], strict=False):
        parts = -(-(end - start) // BLOCK)
        adr = np.concatenate([adr, start + (end - start) * np.arange(parts) // parts])
    num = np.diff([*adr, nv])
    block, above = np.repeat(np.arange(len(adr)), num), parent[adr]
    return {
        "block_dofadr": adr,
        "block_dofnum": num,
        "block_parentid": np.where(above >= 0, block[above], -1),
        "dof_blockid": block,
    }
