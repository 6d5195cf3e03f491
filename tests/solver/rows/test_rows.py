"""Rows in body space: J v and J^T f without a Jacobian, against MuJoCo's point Jacobians."""

import numpy as np
import pytest

from featherlane.engine.solver.rows.rows import (
    ANGULAR,
    PAIRED,
    REACHED,
    add_contact_force,
    add_contact_moment,
    body_forces_to_dofs,
    clear_body_forces,
    compute_angular_rows,
    compute_body_motions,
    compute_contact_rows,
    list_live_slots,
    list_slots,
    moving_body,
    prepare_contacts,
)
from oracles.uncompiled import call, record
from scenes.touching import basis_rows, contact_jacobian, present, touching, vectors

EXACT = 1e-12  # relative to values near 1: products along a chain


@pytest.fixture(scope="module")
def s():
    return touching()


def test_the_scene_has_contacts_of_every_kind(s):
    kinds = set()
    for k, _ in present(s):
        b, other = s.a["con_body"][2 * k : 2 * k + 2]
        where = "ground" if other == 0 else "tree" if s.model.body_treeid[b] == s.model.body_treeid[other] else "trees"
        kinds.add((where, int(s.a["con_dim"][k])))
    assert kinds >= {("ground", n) for n in (1, 3, 4, 6)} | {("tree", 1), ("trees", 1), ("trees", 6), ("tree", 4)}


def test_rows_of_contacts_equal_those_of_their_points(s, rng):
    v = vectors(s, rng)
    w = record(s.width, con_motion=np.full((6 * s.mj.nbody, s.width), np.nan), v=v)
    call(compute_body_motions, s.m, s.d, w.v, w.con_motion)
    for k in range(s.a["ncon_slot"][0]):
        call(compute_contact_rows, s.d, k, w.con_motion, s.d.primal.con_y)
        if s.a["con_dim"][k] > 3:
            call(compute_angular_rows, s.d, k, w.con_motion, s.d.primal.con_y)
    for k, lane in present(s):
        expected = contact_jacobian(s, lane, k) @ v[:, lane]
        assert np.abs(s.a["primal.con_y"][basis_rows(s, k), lane] - expected).max() < EXACT


def test_contact_forces_are_mapped_to_dofs_by_the_transpose(s, rng):
    f, out = rng.normal(size=(s.a["ncon_slot"][0], 6, s.width)), rng.normal(size=(s.nv, s.width))
    f *= s.a["con_present"][: len(f), None]
    d, expected, r = s.d, out.copy(), record(s.width, out=out)
    s.a["con_wrench"][...] = np.nan
    call(clear_body_forces, s.m, d)
    for k in range(len(f)):
        n, u, v = d.con_basis[k].rows
        dim, F = s.a["con_dim"][k], f[k, 0] * n
        if dim > 1:
            F = F + f[k, 1] * u + f[k, 2] * v
        call(add_contact_force, d, k, F)
        if dim > 3:
            n, u, v = d.con_basis[ANGULAR, k].rows
            M = f[k, 3] * n + f[k, 4] * u + f[k, 5] * v
            call(add_contact_moment, d, k, M)
    for k, lane in present(s):
        expected[:, lane] += contact_jacobian(s, lane, k).T @ f[k, : s.a["con_dim"][k], lane]
    call(body_forces_to_dofs, s.m, d, r.out)
    assert np.abs(r.out.array - expected).max() < EXACT


def test_bodies_are_marked_by_contacts_on_them_or_their_descendants(s):
    m, a, parent = s.model, s.a, s.model.body_parentid
    a["body_reached"][...] = 77
    call(prepare_contacts, s.m, s.d)
    stiff, reached = set(), set()
    for k in range(a["ncon_slot"][0]):
        b, other = a["con_body"][2 * k : 2 * k + 2]
        one_tree = other > 0 and m.body_treeid[b] == m.body_treeid[other]
        for c in (b, other):
            while c > 0:
                reached.add(c)
                stiff |= set() if one_tree else {c}
                c = parent[c]
    marks = a["body_reached"][: s.mj.nbody]
    assert {*np.flatnonzero(marks)} == reached
    assert {*np.flatnonzero(marks == REACHED)} == stiff
    assert (marks[list(reached - stiff)] == PAIRED).all()


def test_slots_of_finished_worlds_only_are_left_out(s):
    slots, lengths = [*range(s.a["ncon_slot"][0])], []
    for live in range(s.width):
        s.a["primal.live"][...] = np.arange(s.width) == live
        call(list_live_slots, s.d)
        listed = s.a["primal.slot"][: s.a["primal.nslot"][0]].tolist()
        assert listed == [k for k, lane in present(s) if lane == live]
        lengths.append(len(listed))
    assert 0 < sorted(lengths)[1] < len(slots)
    call(list_slots, s.d)
    assert s.a["primal.slot"][: s.a["primal.nslot"][0]].tolist() == slots


def test_a_body_that_cannot_move_is_the_world():
    m = record(1, body_lastdof=[-1, -1, 0, 4])
    assert [call(moving_body, m, b) for b in range(4)] == [0, 0, 2, 3]
