"""Worlds with a separate elimination order: the worlds that use it, and agreement with a dense solve."""

import numpy as np
import pytest

from featherlane.engine.solver.hessian.entries.assembly import assemble_entries
from featherlane.engine.solver.hessian.factorizations import ordered
from featherlane.engine.solver.hessian.factorizations.minimum_degree import WORD_BITS
from featherlane.engine.solver.hessian.factorizations.ordered import (
    build_graph,
    factor_ordered,
    has_decoupled_trees,
    mark_ordered,
    solve_ordered,
    substitute_ordered,
)
from oracles.uncompiled import call
from scenes.factorizations import dense, on, solves
from scenes.touching import XML, present, vectors

# the tree coupled to all others is eliminated last: first of all trees, or last of them
TRUNK, END = XML.index('<body pos="0 0 0.055">'), XML.index('<body pos="0 0 0.165">')
LAST = XML[:TRUNK] + XML[END:].replace("</worldbody>", XML[TRUNK:END] + "</worldbody>")


@pytest.mark.parametrize("xml", [XML, LAST])
def test_the_factor_of_a_step_and_the_kept_one_solve_like_a_dense_matrix(xml, monkeypatch, rng):
    s = on("ordered", monkeypatch, rng, xml=xml)
    call(assemble_entries, s.m, s.d)
    f = vectors(s, rng)
    s.a["primal.search"][: s.nv] = f
    s.a["primal.live"][0, 3] = s.a["active"][0, 4] = 0.0
    H = s.a["hessian.H"].copy()
    call(solve_ordered, s.m, s.d)
    np.testing.assert_array_equal(s.a["primal.search"][: s.nv, 3:5], f[:, 3:5])  # converged worlds
    np.testing.assert_array_equal(s.a["hessian.H"], H)
    s.a["primal.live"][0, 3] = 1.0
    s.a["primal.search"][: s.nv, 3] = np.linalg.solve(dense(s, 3), f[:, 3])
    solves(s, f)
    call(factor_ordered, s.m, s.d)
    for _ in range(2):
        f = vectors(s, rng)
        s.a["primal.search"][: s.nv] = f
        call(substitute_ordered, s.m, s.d)
        solves(s, f)
        np.testing.assert_array_equal(s.a["primal.search"][: s.nv, 4], f[:, 4])
    assert not call(has_decoupled_trees, s.d).any()


def test_panels_beyond_the_capacity_omit_couplings_and_report_it(monkeypatch, rng):
    s = on("ordered", monkeypatch, rng)
    call(assemble_entries, s.m, s.d)
    s.d.nfill = 1
    f = vectors(s, rng)
    s.a["primal.search"][: s.nv] = f
    call(solve_ordered, s.m, s.d)
    out, tree = call(has_decoupled_trees, s.d), s.model.dof_treeid
    assert out[0]
    for lane in range(s.width):
        H = dense(s, lane)
        H = np.where(tree[:, None] == tree, H, 0.0) if out[lane] else H
        np.testing.assert_allclose(H @ s.a["primal.search"][: s.nv, lane], f[:, lane], atol=1e-8)


@pytest.mark.parametrize("xml", [XML, LAST])
def test_the_graph_of_a_world_has_only_its_own_couplings(xml, monkeypatch, rng):
    s = on("ordered", monkeypatch, rng, xml=xml)
    s.a["row_present"][s.a["ndofrow"][0], 1] = 0.0
    for lane in range(s.width):
        call(build_graph, s.m, s.d, lane)
        expected = set()
        for k in (k for k, w in present(s) if w == lane and s.a["con_body"][2 * k + 1] > 0):
            expected.add(frozenset(int(s.model.body_treeid[b]) for b in s.a["con_body"][2 * k : 2 * k + 2]))
        for k in np.flatnonzero(s.a["row_present"][: s.a["nrow"][0], lane] > 0):
            dofs = s.a["row_dof"][s.a["row_dofadr"][k] :][: s.a["row_dofnum"][k]]
            expected |= {
                frozenset((int(s.model.dof_treeid[i]), int(s.model.dof_treeid[j]))) for i in dofs for j in dofs
            }
        words = s.w.sizes["ngraphword"]
        found = {
            frozenset((t, u))
            for t in range(s.model.ntree)
            for u in range(s.model.ntree)
            if s.a["graph.bits"][t * words + u // WORD_BITS] >> (u % WORD_BITS) & 1
        }
        assert found == {pair for pair in expected if len(pair) == 2}


@pytest.mark.parametrize(("costly", "filled", "said"), [(0.0, 0.0, True), (1e9, 0.0, False), (0.0, 1e9, False)])
def test_the_ordered_factorization_is_used_for_costly_fill_in(costly, filled, said, monkeypatch, rng):
    s = on("ordered", monkeypatch, rng)
    monkeypatch.setattr(ordered, "COSTLY", costly)
    monkeypatch.setattr(ordered, "FILLED", filled)
    s.a["ordered"][...] = 7.0
    s.a["active"][0, 2] = 0.0
    some, others = call(mark_ordered, s.m, s.d)
    assert (bool(some), bool(others)) == (said, not said)
    np.testing.assert_array_equal(s.a["ordered"][0], np.where(np.arange(8) == 2, 7.0, said))
