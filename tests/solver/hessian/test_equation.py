"""The interface to H: assembly, factor and kept parts of each factorization, and two factorizations in one tile."""

import numpy as np
import pytest

from featherlane.engine.dynamics.sparse.tree_factor import PANEL
from featherlane.engine.lanes.record import Rows
from featherlane.engine.solver.hessian.equation import (
    assemble_hessian,
    factor_hessian,
    forget_pattern,
    keep_factor,
    leaves_out,
    select_factorization,
    solve_first,
    solve_hessian,
    starts_from_inertia,
    substitute,
    substitute_columns,
)
from featherlane.engine.spatial.types import Vec4
from oracles.uncompiled import call, record
from scenes.factorizations import PATTERNS, assert_solution, dense, on
from scenes.touching import CHAIN, go_to, near, touching, vectors

BALL = '<body pos="0.15 0 0.13"><freejoint/><geom size="0.04" conaffinity="1"/></body></worldbody>'


def solves(s, f, x):
    for lane in range(s.width):
        assert_solution(dense(s, lane), x[: s.nv, lane], f[:, lane])


def two_ways(rng):
    """Returns a long tree in all worlds; in some a ball lies on it: these need H, the others use recursion."""
    s = touching("elliptic", xml=CHAIN.replace("</worldbody>", BALL), forward_dynamics="aba")
    s.point = near(s, rng)
    go_to(s, s.point)
    call(select_factorization, s.m, s.d)
    s.a["primal.live"][...] = 1.0
    assert 0 < s.a["hessian.coupled"].sum() < s.width
    return s


@pytest.fixture(params=[*PATTERNS, "recursion and H"])
def s(request, monkeypatch, rng):
    return two_ways(rng) if request.param == "recursion and H" else on(request.param, monkeypatch, rng)


def test_a_first_solve_and_all_that_follow(s, rng):
    call(assemble_hessian, s.m, s.d)
    assert s.a["hessian.kept"][0] == 0
    f = vectors(s, rng)
    s.a["primal.search"][: s.nv] = f
    call(solve_first, s.m, s.d)
    solves(s, f, s.a["primal.search"])
    assert s.a["hessian.kept"][0] == (s.a["hessian.pattern"][0] != PATTERNS["ordered"])
    for _ in range(2):
        f = vectors(s, rng)
        x = record(s.width, x=f).x
        call(substitute, s.m, s.d, x)
        solves(s, f, x.array)
        assert s.a["hessian.kept"][0] == 1


def test_columns_together_are_bitwise_equal_to_single_columns(s, rng):
    call(assemble_hessian, s.m, s.d)
    columns = [vectors(s, rng) for _ in range(PANEL)]
    X = Rows(np.stack(columns, 1).reshape(-1, s.width), "X", Vec4)
    call(substitute_columns, s.m, s.d, X)
    for c, f in enumerate(columns):
        x = record(s.width, x=f).x
        call(substitute, s.m, s.d, x)
        np.testing.assert_array_equal(X.array[c : PANEL * s.nv : PANEL], x.array[: s.nv])


def test_a_factor_is_kept_without_a_right_hand_side(s, rng):
    call(assemble_hessian, s.m, s.d)
    s.a["primal.search"][...] = np.nan
    call(keep_factor, s.m, s.d)
    assert s.a["hessian.kept"][0] == 1
    f = vectors(s, rng)
    s.a["qvec"][: s.nv] = f
    call(solve_hessian, s.m, s.d)
    solves(s, f, s.a["qvec"])


def test_a_standalone_factorization_uses_the_current_rows(s, rng):
    s.a["hessian.kept"][0] = 1
    call(factor_hessian, s.m, s.d)
    if s.a["con_overflow"][0] == 0:
        f = vectors(s, rng)
        s.a["qvec"][: s.nv] = f
        call(solve_hessian, s.m, s.d)
        solves(s, f, s.a["qvec"])
    assert s.a["hessian.kept"][0] == 1 - s.a["con_overflow"][0] == 1


def test_the_inertia_is_computed_if_the_step_omitted_it(rng):
    s = two_ways(rng)
    s.d.want_all, s.a["M"][...] = 0, np.nan
    call(factor_hessian, s.m, s.d)
    f = vectors(s, rng)
    s.a["qvec"][: s.nv] = f
    call(solve_hessian, s.m, s.d)
    solves(s, f, s.a["qvec"])


def test_a_factorization_that_does_not_fit_all_worlds_is_unchanged(rng):
    s = two_ways(rng)
    s.a["hessian.kept"][0], s.a["con_overflow"][0] = 1, 1
    call(factor_hessian, s.m, s.d)
    assert s.a["hessian.kept"][0] == 0


def test_the_inertia_is_read_if_a_matrix_exists(monkeypatch, rng):
    for way, read in (("recursion", False), ("tree", True), ("blocks", True)):
        s = on(way, monkeypatch, rng)
        assert call(starts_from_inertia, s.m, s.d) == read
    assert call(starts_from_inertia, (s := two_ways(rng)).m, s.d)


def test_omitted_entries_are_reported(monkeypatch, rng):
    for way in ("tree", "blocks", "ordered", "apart"):
        s = on(way, monkeypatch, rng)
        assert (call(leaves_out, s.d) == (way == "apart")).all()
    s = on("ordered", monkeypatch, rng)
    s.a["ordered"][0, 2] = 2.0
    np.testing.assert_array_equal(call(leaves_out, s.d), np.arange(8) == 2)


def test_a_pattern_can_be_forgotten(monkeypatch, rng):
    s = on("paths", monkeypatch, rng)
    forget_pattern(s.a)
    assert s.a["hessian.pattern"][0] == 0
    call(select_factorization, s.m, s.d)
    assert s.a["hessian.pattern"][0] == PATTERNS["paths"]
