"""Block rows: L^T D L with exact fill-in, and several right-hand sides."""

import numpy as np
import pytest

from featherlane.engine.model import load
from featherlane.engine.simulation.tile.workspace import Workspace
from featherlane.engine.solver.hessian.entries.assembly import assemble_entries
from featherlane.engine.solver.hessian.entries.couplings import coupling_key_of
from featherlane.engine.solver.hessian.entries.pattern import BLOCKS
from featherlane.engine.solver.hessian.factorizations.block_factor import expand_blocks, factor_blocks, reduce_blocks
from featherlane.engine.solver.hessian.factorizations.block_rows import find_block_rows
from oracles.hessians import columns
from oracles.uncompiled import call, records
from scenes.coupled import mixed
from scenes.factorizations import assert_solution, on, solves
from scenes.touching import vectors


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_the_factor_solves_like_a_dense_matrix(cone, monkeypatch, rng):
    s = on("blocks", monkeypatch, rng, cone)
    call(assemble_entries, s.m, s.d)
    for k in range(3):
        f = vectors(s, rng)
        s.a["primal.search"][: s.nv] = f
        call(reduce_blocks if k else factor_blocks, s.m, s.d)
        call(expand_blocks, s.m, s.d)
        solves(s, f)


@pytest.mark.parametrize("count", [1, 3, 7, 20])
def test_any_matrix_on_the_pattern_is_factored(count, rng):
    """Factors random values on rows of blocks of one to six dofs, with random couplings."""
    w = Workspace(load(mixed()), 1)
    (m, d), a, nv = records(w), w.arrays, w.model.nv
    keys = sorted({coupling_key_of.function(*map(int, rng.choice(nv, 2, False))) for _ in range(count)})
    a["hessian.ncoupling"][0], a["hessian.coupling_key"][: len(keys)] = len(keys), keys
    a["hessian.fill"][0], a["hessian.pattern"][0] = 1, BLOCKS
    call(find_block_rows, m, d)
    assert a["con_overflow"][0] == 0
    H = np.zeros((nv, nv))
    for i in range(nv):
        H[i, columns(w, i)] = rng.normal(size=len(columns(w, i)))
    H = np.tril(H, -1) + np.tril(H, -1).T
    H += np.diag(np.abs(H).sum(1) + 1)
    for i in range(nv):
        a["hessian.H"][a["hessian.rowadr"][i] :][: a["hessian.rownnz"][i], 0] = H[i, columns(w, i)]
    for k in range(2):
        f = rng.normal(size=nv)
        a["primal.search"][:nv, 0] = f
        call(reduce_blocks if k else factor_blocks, m, d)
        call(expand_blocks, m, d)
        assert_solution(H, a["primal.search"][:nv, 0], f)
