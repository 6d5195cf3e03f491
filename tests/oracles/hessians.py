"""The Hessian of a workspace as a dense lower triangle."""

from __future__ import annotations

import numpy as np

from featherlane.solver.hessian.pattern import COUPLED, PATHS


def columns(w, i):
    """Columns of row i of the pattern, ascending, the diagonal last."""
    m, a = w.model, w.arrays
    if a["H_pattern"][0] == PATHS:
        return a["H_colind"][a["H_rowadr"][i] :][: a["H_rownnz"][i]]
    if a["H_pattern"][0] != COUPLED:
        return m.chain_colind[m.chain_rowadr[i] :][: m.chain_rownnz[i]]
    b = m.dof_blockid[i]
    blocks = a["H_blockcol"][a["H_blockadr"][b] :][: a["H_blocknum"][b]]
    return np.concatenate([m.block_dofadr[c] + np.arange(m.block_dofnum[c]) for c in blocks])[: a["H_rownnz"][i]]


def dense_hessian(w, lane=0):
    """H (nv, nv) of one world, zero above the diagonal."""
    a, nv = w.arrays, w.model.nv
    H = np.zeros((nv, nv))
    for i in range(nv):
        H[i, columns(w, i)] = a["H"][a["H_rowadr"][i] :][: a["H_rownnz"][i], lane]
    return H
