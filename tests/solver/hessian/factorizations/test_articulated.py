"""Newton's system by articulated bodies: the worlds that use it, and agreement with a dense solve."""

import numpy as np
import pytest

from featherlane.engine.solver.hessian.factorizations.articulated import (
    assemble_articulated,
    expand_articulated,
    factor_articulated,
    is_local_row,
    mark_coupled,
    reduce_articulated,
    takes_matrix,
    takes_recursion,
)
from featherlane.engine.solver.rows.rows import prepare_contacts
from oracles.uncompiled import call, record
from scenes.factorizations import assert_solution, dense, on
from scenes.touching import go_to, near, vectors


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_the_recursion_solves_like_a_dense_matrix(cone, monkeypatch, rng):
    """Covers limits of balls that couple their dofs, and several right-hand sides."""
    s = on("recursion", monkeypatch, rng, cone)
    for size in (1.0, 100.0):
        s.point = near(s, rng, size)
        go_to(s, s.point)
        call(assemble_articulated, s.m, s.d)
        for k in range(3):
            f = vectors(s, rng)
            s.a["primal.search"][: s.nv] = f
            call(reduce_articulated if k else factor_articulated, s.m, s.d)
            call(expand_articulated, s.m, s.d)
            for lane in range(s.width):
                assert_solution(dense(s, lane), s.a["primal.search"][: s.nv, lane], f[:, lane])
    balls = s.a["row_dofnum"][: s.a["nrow"][0]] == 3
    assert balls.any() and np.abs(s.a["row_force"]).max() >= 0


def test_worlds_with_rows_between_branches_use_the_matrix(monkeypatch, rng):
    s = on("recursion", monkeypatch, rng)
    call(mark_coupled, s.m, s.d)
    assert not s.a["hessian.coupled"].any()
    assert call(takes_recursion, s.m, s.d) and not call(takes_matrix, s.m, s.d)
    k = next(k for k in range(s.a["ncon_slot"][0]) if (s.a["con_D"][k] > 0).any())
    s.a["con_body"][2 * k + 1] = 1
    call(mark_coupled, s.m, s.d)
    np.testing.assert_array_equal(s.a["hessian.coupled"][0], s.a["con_D"][k] > 0)
    mixed = s.a["hessian.coupled"][0].any() and not s.a["hessian.coupled"][0].all()
    assert call(takes_matrix, s.m, s.d) and call(takes_recursion, s.m, s.d) == (not s.a["hessian.coupled"][0].all())
    s.a["active"][0] = s.a["hessian.coupled"][0] == 0
    assert call(takes_recursion, s.m, s.d) == mixed and not call(takes_matrix, s.m, s.d)
    s.a["active"][0] = 1.0
    call(prepare_contacts, s.m, s.d)
    # a row of several joints, in two worlds
    k = s.a["ndofrow"][0]
    s.a["row_dofnum"][k], s.a["row_type"][k] = 2, 0
    s.a["row_present"][k] = np.arange(8) < 2
    call(mark_coupled, s.m, s.d)
    np.testing.assert_array_equal(s.a["hessian.coupled"][0], np.arange(8) < 2)
    s = on("tree", monkeypatch, rng)
    assert call(takes_matrix, s.m, s.d) and not call(takes_recursion, s.m, s.d)


def test_local_rows_act_on_one_dof_or_one_ball():
    d = record(1, row_dofnum=[1, 3, 3, 2], row_type=[0, 3, 0, 3])
    assert [call(is_local_row, None, d, k) for k in range(4)] == [True, True, False, False]
