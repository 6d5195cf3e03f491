"""Prepares the touching scene before its Hessian is computed, for each factorization that a tile may use."""

from __future__ import annotations

import mujoco
import numpy as np

from featherlane.engine.solver.hessian import capacity
from featherlane.engine.solver.hessian.choice import select_factorization
from featherlane.engine.solver.hessian.entries.pattern import APART, BLOCKS, ORDERED, PATHS, TREE
from featherlane.engine.solver.hessian.factorizations import ordered
from oracles.hessians import basis_weights
from oracles.uncompiled import call
from scenes.touching import CHAIN, XML, contact_jacobian, go_to, near, present, touching

PATTERNS = {"tree": TREE, "paths": PATHS, "blocks": BLOCKS, "ordered": ORDERED, "apart": APART, "recursion": TREE}

SOLVED = 1e-12  # relative to the terms of H x: rounding of the factorization


def on(way, monkeypatch, rng, cone="elliptic", xml=None):
    """Returns the scene at a point where rows push, slip and separate, with the pattern of a factorization."""
    monkeypatch.setattr(capacity, "PATH_DOFS", 128 if way == "paths" else 0)
    if way == "ordered":
        monkeypatch.setattr(capacity, "MANY_TREES", 1)
        monkeypatch.setattr(ordered, "COSTLY", 0.0)
        monkeypatch.setattr(ordered, "FILLED", 0.0)
    alone, chain = way == "apart", way in ("tree", "recursion")
    options = {"forward_dynamics": "aba" if way == "recursion" else "crb"}
    s = touching(cone, 1 if alone else 8, xml or (CHAIN if chain else XML), **options)
    if alone:
        monkeypatch.setattr(capacity, "HESSIAN_LIMIT", int(s.model.chain_rownnz.sum()))
        s = touching(cone, 1, XML, **options)
    s.point = near(s, rng)
    for k in range(s.a["nfrictionrow"][0]):  # inside its bounds in some worlds
        s.point[s.a["row_dof"][k], ::2] = (s.a["row_aref"][k] / s.a["row_J"][k])[::2]
    go_to(s, s.point)
    call(select_factorization, s.m, s.d)
    s.a["primal.live"][...] = 1.0
    return s


def dense(s, lane):
    """Returns H of one world by definition, (nv, nv).

    If trees are solved separately it lacks the entries between them, and between the two bodies of contacts in a tree.
    """
    H, tree = s.problems[lane].hessian(s.point[:, lane]), s.model.dof_treeid
    if s.a["hessian.pattern"][0] != APART:
        return H
    for k, w in present(s):
        b, other = s.a["con_body"][2 * k : 2 * k + 2]
        if w == lane and other > 0 and s.model.body_treeid[b] == s.model.body_treeid[other]:
            H = H - contact_jacobian(s, lane, k).T @ basis_weights(s, k, lane) @ contact_jacobian(s, lane, k)
            for one in (b, other):
                J = one_body(s, lane, k, one)
                H = H + J.T @ basis_weights(s, k, lane) @ J
    return np.where(tree[:, None] == tree, H, 0.0)


def one_body(s, lane, k, body):
    """Returns rows of contact k as if the other body were fixed."""
    a, jacp, jacr = s.a, np.zeros((3, s.nv)), np.zeros((3, s.nv))
    mujoco.mj_jac(s.mj, s.data[lane], jacp, jacr, a["con_pos"][3 * k : 3 * k + 3, lane].copy(), body)
    frame = a["con_frame"][9 * k : 9 * k + 9, lane].reshape(3, 3)
    scale = np.array([1.0, *a["con_friction"][5 * k : 5 * k + 5, lane]])[:, None]
    return (scale * np.vstack([frame @ jacp, frame @ jacr]))[: a["con_dim"][k]]


def assert_solution(H, x, f, bound=SOLVED):
    """Asserts that H x = f but for rounding errors; the bound is relative to the sum of the magnitudes of all terms."""
    assert (np.abs(H @ x - f) <= bound * (np.abs(H) @ np.abs(x) + np.abs(f))).all()


def solves(s, f):
    """Asserts that search solves H x = f in every world that takes part."""
    for lane in np.flatnonzero(s.a["active"][0]):
        assert_solution(dense(s, lane), s.a["primal.search"][: s.nv, lane], f[:, lane])
