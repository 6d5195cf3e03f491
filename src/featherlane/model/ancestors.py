"""Branch-induced sparsity of a model: which dofs lie above each dof and each body.

Source: Featherstone, RBDA, sec. 4.1.4 (the sets kappa(i)) and 6.4 (expanded parent array, which is MuJoCo's
dof_parentid).
"""

from __future__ import annotations

import numpy as np

BLOCK = 8  # dofs at most


def ancestor_ints(mj) -> dict[str, np.ndarray]:
    """Chains of dofs in CSR form and the last dof of each body.

    Row i of the chains holds the ancestors of dof i in ascending order, then i: the row of an ancestor is a prefix of
    the row of each of its descendants.  `body_lastdof[b]` is the dof nearest to body b on its path to the world, -1
    where there is none: body b cannot move.
    """
    parent = mj.dof_parentid
    nnz = _depths(parent)
    adr = np.concatenate([[0], np.cumsum(nnz)[:-1]]) if mj.nv else np.zeros(0, int)
    rows: list[list[int]] = []
    for i, p in enumerate(parent):
        rows.append([*(rows[p] if p >= 0 else []), i])
    last = np.full(mj.nbody, -1)
    for b in range(1, mj.nbody):
        own = mj.body_dofadr[b] + mj.body_dofnum[b] - 1
        last[b] = own if mj.body_dofnum[b] else last[mj.body_parentid[b]]
    columns = np.concatenate([np.asarray(r) for r in rows]) if rows else np.zeros(0, int)
    children = np.full(mj.nbody, -1)
    children[mj.body_parentid[1:]] = np.arange(1, mj.nbody)  # of several, the last one stays
    chains = {
        "body_lastchild": children,
        "chain_rownnz": nnz,
        "chain_rowadr": adr,
        "chain_colind": columns,
        "body_lastdof": last,
    }
    return chains | _blocks(parent) | {"M_below": np.bincount(mj.M_colind, minlength=mj.nv)[: mj.nv] - 1}


def _blocks(parent: np.ndarray) -> dict[str, np.ndarray]:
    """Runs of dofs of which each is the parent of the next and of no other: their rows of M share all columns above.

    A run longer than BLOCK is cut into equal parts.
    """
    nv = len(parent)
    children = np.bincount(parent[parent >= 0], minlength=nv)
    follows = [i > 0 and parent[i] == i - 1 and children[i - 1] == 1 for i in range(nv)]
    starts = [i for i in range(nv) if not follows[i]]
    adr = np.zeros(0, int)
    for start, end in zip(starts, [*starts[1:], nv], strict=False):
        parts = -(-(end - start) // BLOCK)
        adr = np.concatenate([adr, start + (end - start) * np.arange(parts) // parts])
    num = np.diff([*adr, nv])
    block = np.repeat(np.arange(len(adr)), num)
    above = parent[adr] if nv else adr
    return {
        "block_dofadr": adr,
        "block_dofnum": num,
        "block_parentid": np.where(above >= 0, block[above], -1) if nv else adr,
        "dof_blockid": block,
    }


def _depths(parent: np.ndarray) -> np.ndarray:
    """Number of dofs from the root to each dof, itself included."""
    depth = np.zeros(len(parent), int)
    for i, p in enumerate(parent):
        depth[i] = 1 + (depth[p] if p >= 0 else 0)
    return depth
