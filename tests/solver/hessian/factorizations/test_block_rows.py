"""Block rows: for any couplings exactly the fill-in of an elimination, by sets."""

import numpy as np
import pytest

from featherlane.engine.model import load
from featherlane.engine.simulation.tile.workspace import Workspace
from featherlane.engine.solver.hessian.entries.couplings import coupling_key_of
from featherlane.engine.solver.hessian.entries.pattern import BLOCKS
from featherlane.engine.solver.hessian.factorizations.block_rows import find_block_rows
from oracles.hessians import columns
from oracles.uncompiled import call, records
from scenes.coupled import ancestors, mixed

SEEDS = range(8)


@pytest.fixture(scope="module")
def w():
    return Workspace(load(mixed()), 1)


def enter(w, rng, count):
    """Returns random couplings of dofs in different branches, and their ends."""
    parents, ends = w.model.dof_parentid, set()
    while len(ends) < count:
        i, j = sorted(map(int, rng.choice(w.model.nv, 2, False)), reverse=True)
        if j not in ancestors(parents, i):
            ends.add((i, j))
    keys = sorted(coupling_key_of.function(i, j) for i, j in ends)
    w.arrays["hessian.ncoupling"][0], w.arrays["hessian.coupling_key"][: len(keys)] = len(keys), keys
    return ends


def eliminated(model, ends, fill):
    """Returns rows of blocks after an elimination from the last one on; without fill-in, within trees alone."""
    parent, block = model.block_parentid, model.dof_blockid
    rows = {b: {*ancestors(parent, b)} for b in range(model.nblock)}
    for i, j in ends:
        rows[block[i]] |= {*ancestors(parent, block[j])}
    tree = [model.dof_treeid[model.block_dofadr[b]] for b in range(model.nblock)]
    for k in range(model.nblock - 1, -1, -1):
        above = sorted(rows[k] - {k})
        for target in above if fill else above[-1:]:
            if fill or tree[target] == tree[k]:
                rows[target] |= {c for c in above if c <= target}
    return rows


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_contain_exactly_the_fill_in(w, seed):
    ends, (m, d), a = enter(w, np.random.default_rng(seed), 1 + seed), records(w), w.arrays
    a["hessian.fill"][0], a["con_overflow"][0], a["hessian.pattern"][0] = 1, 0, BLOCKS
    call(find_block_rows, m, d)
    rows, model, entries = eliminated(w.model, ends, True), w.model, 0
    for b in range(model.nblock):
        listed = a["hessian.blockcol"][a["hessian.blockadr"][b] :][: a["hessian.blocknum"][b]]
        assert [*listed] == sorted(rows[b])
        places = a["hessian.blockoffset"][a["hessian.blockadr"][b] :][: len(listed)]
        assert [*places] == [int(sum(model.block_dofnum[c] for c in listed[:e])) for e in range(len(listed))]
        for i in range(model.block_dofadr[b], model.block_dofadr[b] + model.block_dofnum[b]):
            row = columns(w, i)
            assert row[-1] == i == row.max() and len(row) == a["hessian.rownnz"][i]
    # rows of a block have the length of its last row, and do not overlap
    starts = sorted((int(a["hessian.rowadr"][i]), int(i)) for i in range(model.nv))
    for at, i in starts:
        assert at == entries
        b = model.dof_blockid[i]
        entries += sum(int(model.block_dofnum[c]) for c in rows[b])
    assert a["con_overflow"][0] == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_without_fill_in_hold_every_entry_of_h(w, seed):
    """All dofs above a coupling's ends, in both trees, have entries with each other."""
    ends, (m, d), a = enter(w, np.random.default_rng(seed), 1 + seed), records(w), w.arrays
    a["hessian.fill"][0], a["con_overflow"][0], a["hessian.pattern"][0] = 0, 0, BLOCKS
    call(find_block_rows, m, d)
    parent, tree, total = w.model.dof_parentid, w.model.dof_treeid, 0
    for i, j in ends:
        for x in ancestors(parent, i):
            for y in ancestors(parent, j) if tree[i] != tree[j] else ():
                assert min(x, y) in columns(w, max(x, y))
    for b in range(w.model.nblock):
        total += a["hessian.blocknum"][b]
    assert total <= sum(map(len, eliminated(w.model, ends, True).values()))


def test_rows_beyond_the_capacity_are_reported(w):
    (m, d), a = records(w), w.arrays
    enter(w, np.random.default_rng(3), 6)
    a["hessian.fill"][0], a["con_overflow"][0] = 1, 0
    call(find_block_rows, m, d)
    assert a["con_overflow"][0] == 0
    blocks = int(a["hessian.blocknum"][: w.model.nblock].sum())
    last = int(a["hessian.rowadr"][0] + a["hessian.rownnz"][0] - 1 + w.model.block_dofnum[0])
    used = max(last, int((a["hessian.rowadr"] + a["hessian.rownnz"])[: w.model.nv].max()))
    for name, size in (("nHblock", blocks - 1), ("nH", used - 1)):
        kept = getattr(d, name)
        setattr(d, name, size)
        a["con_overflow"][0] = 0
        call(find_block_rows, m, d)
        assert a["con_overflow"][0] == 1
        setattr(d, name, used if name == "nH" else kept)
        a["con_overflow"][0] = 0
        call(find_block_rows, m, d)
        assert a["con_overflow"][0] == 0
