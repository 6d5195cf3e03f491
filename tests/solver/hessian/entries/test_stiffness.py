"""Contacts as stiffnesses of bodies: S^T K S is J^T W J, and sums accumulate towards the root."""

import numpy as np
import pytest

from featherlane.engine.model.enums import PYRAMIDAL
from featherlane.engine.solver.hessian.entries.stiffness import (
    add_cone_stiffness,
    add_rotation_axes,
    add_stiffness_at_arm,
    begin_stiffness,
    clear_stiffness,
    compose_stiffness,
    has_stiffness,
    normal_stiffness,
    pyramid_stiffness,
)
from featherlane.engine.solver.rows.rows import prepare_contacts
from featherlane.engine.spatial.types import Motion
from oracles.hessians import basis_weights
from oracles.uncompiled import call
from scenes.touching import contact_jacobian, go_to, near, present, touching

EXACT = 1e-11  # relative: products of a few values, with lever arms from the tree's com


@pytest.fixture(scope="module", params=["pyramidal", "elliptic"])
def s(request):
    return touching(request.param)


def chain(model, i):
    found = []
    while i >= 0:
        found.append(int(i))
        i = model.dof_parentid[i]
    return found


def is_below(s, c, b):
    while c > 0 and c != b:
        c = s.model.body_parentid[c]
    return c == b


def full(s, b):
    """Returns body_K of body b as (6, 6, width)."""
    K = s.a["hessian.body_K"][21 * b : 21 * b + 21]
    symmetric = np.array([0, 1, 2, 1, 3, 4, 2, 4, 5])
    aa, al, ll = (K[at].reshape(3, 3, -1) for at in (symmetric, np.arange(6, 15), 15 + symmetric))
    return np.concatenate([np.concatenate([aa, al], 1), np.concatenate([al.transpose(1, 0, 2), ll], 1)])


def add(s, k):
    """Adds the stiffness of contact k to the body that it pushes."""
    b, r, dim = s.a["con_body"][2 * k], s.d.con_arm[k, 0], s.a["con_dim"][k]
    if dim == 1:
        call(add_stiffness_at_arm, s.d, b, r, call(normal_stiffness, s.d, k))
    elif s.m.opt_cone == PYRAMIDAL:
        call(add_stiffness_at_arm, s.d, b, r, call(pyramid_stiffness, s.d, k))
    else:
        call(add_cone_stiffness, s.m, s.d, k, 0)
    if dim > 3:
        call(add_rotation_axes, s.m, s.d, k, 0)


def test_a_contacts_stiffness_is_that_of_its_rows(s, rng):
    """On the dofs above its body: S_i^T K S_j = J_i^T W J_j."""
    dims = set()
    for size in (5.0, 50.0):
        go_to(s, near(s, rng, size))
        for k in range(s.a["ncon_slot"][0]):
            b = s.a["con_body"][2 * k]
            if s.a["con_body"][2 * k + 1] > 0:
                continue
            s.a["hessian.body_K"][21 * b : 21 * b + 21] = 0.0
            add(s, k)
            dofs = chain(s.model, s.model.body_lastdof[b])
            S = s.a["cdof"][[6 * i + c for i in dofs for c in range(6)]].reshape(-1, 6, s.width)
            got = np.einsum("iaw,abw,jbw->ijw", S, full(s, b), S)
            for lane in (w for slot, w in present(s) if slot == k):
                J = contact_jacobian(s, lane, k)[:, dofs]
                expected = J.T @ basis_weights(s, k, lane) @ J
                assert np.abs(got[..., lane] - expected).max() <= EXACT * max(1.0, np.abs(expected).max())
                dims |= {int(s.a["con_dim"][k])} if expected.any() else set()
    assert dims == {1, 3, 4, 6}


def test_a_stiffness_times_a_motion(s, rng):
    s.a["hessian.body_K"][...] = rng.normal(size=s.a["hessian.body_K"].shape)
    v = rng.normal(size=(6, s.width))
    got = np.array(s.d.hessian.body_K[2] @ Motion(tuple(v)))
    np.testing.assert_allclose(got, np.einsum("abw,bw->aw", full(s, 2), v), atol=1e-13)


def test_a_body_has_the_sum_of_the_stiffnesses_below_it(s, rng):
    call(prepare_contacts, s.m, s.d)
    K, n = rng.normal(size=s.a["hessian.body_K"].shape), s.mj.nbody
    slots = s.a["con_body"][: 2 * s.a["ncon_slot"][0] : 2]
    for own in (set(slots.tolist()), set(slots[:2].tolist()), set()):  # repeatable, for the currently active contacts
        s.a["hessian.body_K"][...] = np.nan
        call(clear_stiffness, s.m, s.d)
        for b in own:
            call(begin_stiffness, s.d, b)
            assert not s.a["hessian.body_K"][21 * b : 21 * b + 21].any()
            call(begin_stiffness, s.d, b)
            s.a["hessian.body_K"][21 * b : 21 * b + 21] += K[21 * b : 21 * b + 21]
        call(compose_stiffness, s.m, s.d)
        for b in range(1, n):
            below = [c for c in own if is_below(s, c, b)]
            assert call(has_stiffness, s.d, b) == bool(below)
            if below:
                expected = sum(K[21 * c : 21 * c + 21] for c in below)
                np.testing.assert_allclose(s.a["hessian.body_K"][21 * b : 21 * b + 21], expected, atol=1e-13)
