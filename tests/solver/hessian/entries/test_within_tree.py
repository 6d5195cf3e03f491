"""Contacts between two bodies of one tree: H += J^T W J, and nothing at the dofs above both."""

import numpy as np
import pytest

from featherlane.engine.model.enums import PYRAMIDAL
from featherlane.engine.solver.hessian.entries.within_tree import (
    add_normal_pair,
    add_pair,
    add_wide_pair,
    store_pair_jacobian,
)
from featherlane.engine.solver.rows.rows import prepare_contacts
from oracles.hessians import basis_weights, dense_hessian
from oracles.uncompiled import call
from scenes.factorizations import on
from scenes.touching import contact_jacobian, go_to, near, present

EXACT = 1e-11  # relative: sums of a few products


def pairs(s):
    """Yields (slot, world) of contacts between two bodies of one tree."""
    tree = s.model.body_treeid
    for k, lane in present(s):
        b, other = s.a["con_body"][2 * k : 2 * k + 2]
        if other > 0 and tree[b] == tree[other]:
            yield k, lane


def dims_of(s, k):
    """Returns the dimensions that the contact may take: it has friction only if it had friction before."""
    return (1, 3, 4, 6) if s.a["con_dim"][k] > 1 or s.m.opt_cone == PYRAMIDAL else (1,)


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("way", ["paths", "blocks"])
def test_a_pair_adds_the_stiffness_of_its_rows(way, cone, monkeypatch, rng):
    s, seen = on(way, monkeypatch, rng, cone), set()
    for size in (5.0, 100.0):
        s.point, slots = near(s, rng, size), {k for k, _ in pairs(s)}
        for k, dim in [(slot, dim) for slot in slots for dim in dims_of(s, slot)]:
            s.a["con_dim"][k], s.a["primal.con_y"][...] = dim, 0.0
            call(prepare_contacts, s.m, s.d)
            go_to(s, s.point)
            s.a["hessian.H"][...] = 0.0
            wide = dim > 3 or s.m.opt_cone != PYRAMIDAL
            call(add_normal_pair if dim == 1 else add_wide_pair if wide else add_pair, s.m, s.d, k)
            for lane in (w for slot, w in pairs(s) if slot == k):
                J = contact_jacobian(s, lane, k)
                expected = np.tril(J.T @ basis_weights(s, k, lane) @ J)
                got = dense_hessian(s.w, lane)
                assert np.abs(got - expected).max() <= EXACT * max(1.0, np.abs(expected).max())
                seen |= {dim} if expected.any() else set()
    assert seen == {1, 3, 4, 6}


def test_columns_are_dofs_above_one_body_only(monkeypatch, rng):
    s = on("paths", monkeypatch, rng)
    for k, lane in pairs(s):
        count = call(store_pair_jacobian, s.m, s.d, k)
        dofs = s.a["hessian.pair_dof"][:count]
        J = contact_jacobian(s, lane, k)
        assert [*dofs] == sorted({*dofs.tolist()}, reverse=True)
        others = np.ones(s.nv, bool)
        others[dofs] = False
        assert np.abs(J[:, others]).max() < 1e-14
        dim = s.a["con_dim"][k]
        got = s.a["hessian.pair_J"][: 3 * count, lane].reshape(count, 3)[:, : min(dim, 3)]
        assert np.abs(got - J[: min(dim, 3), dofs].T).max() < EXACT
        if dim > 3:
            turns = s.a["hessian.pair_J"][3 * s.nv : 3 * (s.nv + count), lane].reshape(count, 3)[:, : dim - 3]
            assert np.abs(turns - J[3:, dofs].T).max() < EXACT
