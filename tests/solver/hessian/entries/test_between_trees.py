"""Contacts between bodies of two trees: the coupling of one tree's dofs with the other's is J^T W J."""

import numpy as np
import pytest

from featherlane.engine.model.enums import PYRAMIDAL
from featherlane.engine.solver.hessian.entries.between_trees import (
    add_angular_coupling,
    add_point_stiffness,
    clear_couplings,
    count_dofs_above,
    is_free_translation,
    subtract_coupling,
    within_tree,
)
from featherlane.engine.solver.hessian.entries.stiffness import (
    add_outer,
    angular_edges_normal_weight,
    angular_stiffness,
    cone_stiffness,
    normal_stiffness,
    pyramid_stiffness,
)
from featherlane.engine.solver.rows.rows import prepare_contacts
from oracles.hessians import basis_weights, dense_hessian
from oracles.uncompiled import call, record
from scenes.factorizations import on
from scenes.touching import contact_jacobian, go_to, near, present

EXACT = 1e-11  # relative: sums of a few products


def joins(s, k):
    b, other = s.a["con_body"][2 * k : 2 * k + 2]
    return other > 0 and s.model.body_treeid[b] != s.model.body_treeid[other]


def add(s, k):
    if s.a["con_dim"][k] == 1:
        F = call(normal_stiffness, s.d, k)
    elif s.m.opt_cone == PYRAMIDAL:
        F = call(pyramid_stiffness, s.d, k)
    else:
        F = call(cone_stiffness, s.m, s.d, k)
    if s.a["con_dim"][k] > 3:
        if s.m.opt_cone == PYRAMIDAL:
            F = call(add_outer, call(angular_edges_normal_weight, s.d, k), s.d.con_basis[k].rows[0], F)
        call(add_angular_coupling, s.m, s.d, k, *call(angular_stiffness, s.m, s.d, k))
    call(add_point_stiffness, s.m, s.d, k, F)


def dims_of(s, k):
    """Returns the dimensions that the contact may take: it has friction only if it had friction before."""
    return (1, 3, 4, 6) if s.a["con_dim"][k] > 1 or s.m.opt_cone == PYRAMIDAL else (1,)


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("way", ["paths", "blocks", "ordered"])
def test_couplings_between_trees_equal_those_of_the_rows(way, cone, monkeypatch, rng):
    s, dims = on(way, monkeypatch, rng, cone), set()
    tree = s.model.dof_treeid
    for size in (5.0, 100.0):
        s.point = near(s, rng, size)
        slots = {k for k, _ in present(s) if joins(s, k)}
        for k, dim in [(slot, dim) for slot in slots for dim in dims_of(s, slot)]:
            s.a["con_dim"][k], s.a["primal.con_y"][...] = dim, 0.0
            call(prepare_contacts, s.m, s.d)
            go_to(s, s.point)
            s.a["hessian.coupling_K"][...] = np.nan
            s.a["hessian.H"][...] = 0.0
            call(clear_couplings, s.m, s.d)
            add(s, k)
            for c in range(s.a["hessian.ncoupling"][0]):
                call(subtract_coupling, s.m, s.d, c)
            for lane in (w for slot, w in present(s) if slot == k):
                J = contact_jacobian(s, lane, k)
                expected = np.tril(J.T @ basis_weights(s, k, lane) @ J) * (tree[:, None] != tree)
                got = dense_hessian(s.w, lane)
                assert np.abs(got - expected).max() <= EXACT * max(1.0, np.abs(expected).max())
                dims |= {dim} if expected.any() else set()
    assert dims == {1, 3, 4, 6}


def test_contacts_are_within_a_tree_or_between_two(monkeypatch, rng):
    s = on("paths", monkeypatch, rng)
    for k in range(s.a["ncon_slot"][0]):
        if s.a["con_body"][2 * k + 1] > 0:
            assert call(within_tree, s.m, s.d, k) == (not joins(s, k))


def test_translations_are_the_first_dofs_of_free_joints(monkeypatch, rng):
    s = on("paths", monkeypatch, rng)
    free = {int(s.model.jnt_dofadr[j]) + c for j in np.flatnonzero(s.mj.jnt_type == 0) for c in range(3)}
    assert {j for j in range(s.nv) if call(is_free_translation, s.m, j)} == free


def test_dofs_of_a_block_above_a_tip():
    m = record(1, block_dofadr=[0, 6], block_dofnum=[6, 3])
    assert [call(count_dofs_above, m, 0, tip) for tip in (2, 5, 8)] == [3, 6, 6]
    assert [call(count_dofs_above, m, 1, tip) for tip in (6, 8, 12)] == [1, 3, 3]
