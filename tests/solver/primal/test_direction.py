"""The direction of Newton's step, and cases without one."""

import numpy as np
import pytest

from featherlane.engine.solver.hessian.equation import select_factorization
from featherlane.engine.solver.primal.direction import search_direction
from featherlane.engine.solver.primal.line_search import FAR
from featherlane.engine.solver.primal.problem import evaluate
from oracles.uncompiled import call
from scenes.touching import basis_rows, go_to, present, touching, vectors

EXACT = 1e-9  # relative: an equation whose matrix has a condition number of 1e5


def ready(cone):
    s = touching(cone)
    call(select_factorization, s.m, s.d)
    return s


def test_a_direction_solves_newtons_equation(rng):
    """Also, the predicted decrease is half of the slope."""
    s = ready("elliptic")
    a = s.a["qacc_smooth"][: s.nv] + vectors(s, rng, 5.0)
    go_to(s, a)
    s.a["primal.live"][...] = 1.0
    call(evaluate, s.m, s.d)
    promise, fall = call(search_direction, s.m, s.d)
    for lane, p in enumerate(s.problems):
        g, H = p.gradient(a[:, lane]), p.hessian(a[:, lane])
        expected = -np.linalg.solve(H, g)
        assert np.abs(s.a["primal.search"][: s.nv, lane] - expected).max() <= EXACT * np.abs(expected).max()
        assert np.abs(s.a["primal.Mv"][: s.nv, lane] - p.M @ expected).max() <= EXACT * np.abs(p.M @ expected).max()
        assert abs(promise[lane] + 0.5 * g @ expected) <= EXACT * abs(g @ expected)
        assert abs(fall[lane] + g @ expected) <= EXACT * abs(g @ expected)


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_finished_worlds_do_not_change_a_direction_or_its_rows(cone, rng):
    """All but the world with the fewest contacts have finished."""
    s, found = ready(cone), []
    a = s.a["qacc_smooth"][: s.nv] + vectors(s, rng, 5.0)
    of_world = np.bincount([lane for _, lane in present(s)])
    live = [int(of_world.argmin())]
    for finished in (False, True):
        go_to(s, a)
        s.a["primal.live"][...] = 1.0
        if finished:
            s.a["primal.live"][...] = np.isin(np.arange(s.width), live)
        call(evaluate, s.m, s.d)
        s.a["primal.con_z"][...] = np.nan
        call(search_direction, s.m, s.d)
        n = s.a["primal.nslot"][0]
        rows = [row for k, lane in present(s) if lane in live for row in basis_rows(s, k)]
        found.append((n, s.a["primal.search"][: s.nv, live].copy(), s.a["primal.con_z"][rows][:, live].copy()))
    (n, p, z), (fewer, q, y) = found
    assert fewer < n == s.a["ncon_slot"][0]
    assert np.array_equal(p, q) and np.array_equal(z, y) and np.isfinite(z).all()


def test_a_failed_factorization_falls_back_to_the_gradient(rng):
    s = ready("pyramidal")
    a = s.a["qacc_smooth"][: s.nv] + vectors(s, rng)
    go_to(s, a)
    s.a["primal.live"][...] = 1.0
    call(evaluate, s.m, s.d)
    # of no real body, in a world where nothing touches the ball
    s.a["M"][:, -1] *= -1.0
    s.a["primal.grad"][:, -1] = 0.0
    s.a["primal.grad"][s.model.tree_dofadr[1] + np.arange(3), -1] = 1.0
    promise, fall = call(search_direction, s.m, s.d)
    expected = -s.a["primal.grad"][: s.nv, -1] / s.a["M"][s.model.M_rowadr + s.model.M_rownnz - 1, -1]
    downhill = (s.a["primal.search"][: s.nv] * s.a["primal.grad"][: s.nv]).sum(0) < 0
    newton_step = -np.linalg.solve(s.problems[0].hessian(a[:, 0]), s.problems[0].gradient(a[:, 0]))
    assert np.abs(s.a["primal.search"][: s.nv, 0] - newton_step).max() <= EXACT * np.abs(newton_step).max()
    assert downhill[:-1].all() and promise[0] < FAR <= promise[-1]
    np.testing.assert_allclose(s.a["primal.search"][: s.nv, -1], expected, rtol=1e-12)
    np.testing.assert_allclose(fall[-1], -expected @ s.a["primal.grad"][: s.nv, -1], rtol=1e-12)
