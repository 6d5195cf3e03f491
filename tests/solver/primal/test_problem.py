"""The primal problem at a point: cost, gradient, forces, and active-set changes of a step."""

import numpy as np
import pytest

from featherlane.engine.model.enums import PYRAMIDAL
from featherlane.engine.solver.primal.problem import (
    advance_rows,
    evaluate,
    find_switching_worlds,
    step_along,
    store_primal_forces,
    trace_of_inertia,
)
from oracles.uncompiled import call
from scenes.touching import CHAIN, each, go_along, go_to, near, touching, vectors

EXACT = 1e-10  # relative: sums of a hundred terms, with J, D and aref of MuJoCo's


@pytest.fixture(scope="module", params=["pyramidal", "elliptic"])
def s(request):
    return touching(request.param)


def close(a, b):
    assert np.abs(a - b).max() <= EXACT * np.abs(b).max()


def test_cost_and_gradient_equal_those_of_the_definition(s, rng):
    a = near(s, rng)
    go_to(s, a)
    cost, norm = call(evaluate, s.m, s.d)
    gradient = each(s, a, lambda p, x: p.gradient(x))
    close(cost, each(s, a, lambda p, x: p.cost(x)))
    close(s.a["primal.grad"][: s.nv].T, gradient)
    close(norm, np.linalg.norm(gradient, axis=1))
    close(s.a["qfrc_constraint"][: s.nv].T, each(s, a, lambda p, x: p.J.T @ p.force(x)))


def test_a_step_moves_the_point_and_its_rows(s, rng):
    lengths = rng.uniform(0, 1, s.width)
    a, p = near(s, rng), vectors(s, rng, 5.0)
    go_to(s, a)
    go_along(s, p)
    call(advance_rows, s.m, s.d, lengths)
    close(s.a["qacc"][: s.nv], a + lengths * p)
    cost, _ = call(evaluate, s.m, s.d)
    close(cost, each(s, a + lengths * p, lambda problem, x: problem.cost(x)))


def test_a_step_of_length_0_moves_nothing():
    x = call(step_along, np.array([0.0, 0.0, 2.0]), np.array([np.inf, np.nan, 3.0]), np.array([1.0, 2.0, 4.0]))
    np.testing.assert_array_equal(x, [1.0, 2.0, 10.0])


def test_a_step_that_switches_no_row_is_exact(s, rng):
    """For a slipping cone that hardly rotates, up to a fraction of the rotation's square."""
    straight, seen = (1e-7 if s.m.opt_cone == PYRAMIDAL else 1e-4), []
    for length in (1e-6, 1e-3, 0.1):
        a, p = near(s, rng), vectors(s, rng, 5.0)
        go_to(s, a)
        go_along(s, p)
        switched = call(find_switching_worlds, s.m, s.d, np.full(s.width, length))
        bend = length * each(s, np.vstack([a, p]), lambda q, x: q.hessian(x[: q.nv]) @ x[q.nv :])
        fall = each(s, a + length * p, lambda q, x: q.gradient(x)) - each(s, a, lambda q, x: q.gradient(x))
        off = np.abs(fall - bend).max(axis=1) / np.abs(bend).max(axis=1)
        assert (switched | (off <= straight)).all()
        seen += [*switched]
    assert any(seen) and not all(seen)


def test_stored_forces_are_the_rows(s, rng):
    a = near(s, rng)
    go_to(s, a)
    call(store_primal_forces, s.m, s.d)
    call(evaluate, s.m, s.d)
    for lane, p in enumerate(s.problems):
        f, joint = p.force(a[:, lane]), np.isin(p.type, (0, 2))
        scale = np.abs(f).max()
        n = s.a["nrow"][0]
        mine, kind = s.a["row_force"][:n, lane], s.a["row_type"][:n]
        assert np.abs(np.sort(mine[np.isin(kind, (0, 2))]) - np.sort(f[joint])).max() <= EXACT * scale
        assert abs(mine[0] - f[p.type == 1][0]) <= EXACT * scale
        assert abs(mine[kind == 3].sum() - f[p.type == 3].sum()) <= EXACT * scale
        total = sum(s.a["con_force"][6 * k, lane] for k in range(s.a["ncon_slot"][0]))
        normal = f[[at.start for at, *_ in p.cones]].sum() + f[(p.type == 5) | (p.type == 6)].sum()
        assert abs(total - normal) <= EXACT * scale * 10


def test_the_scale_of_a_problem_is_the_trace_of_its_inertia(s):
    close(call(trace_of_inertia, s.m, s.d), np.array([np.trace(p.M) for p in s.problems]))


def test_without_a_computed_inertia_the_scale_is_the_models():
    s = touching(width=1, xml=CHAIN, forward_dynamics="aba")
    close(call(trace_of_inertia, s.m, s.d), s.nv * s.mj.stat.meaninertia)
