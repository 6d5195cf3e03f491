"""Directions of the primal-dual Newton method; `test_coulomb.py` checks the results of whole solves."""

import numpy as np

from featherlane.engine.solver.primal.primal_dual import set_direction
from featherlane.engine.solver.primal.problem import evaluate
from oracles.uncompiled import call
from scenes.touching import each, touching, vectors

EXACT = 1e-10  # relative: sums of a hundred terms


def test_a_direction_has_the_products_with_inertia_and_jacobian(rng):
    s = touching("elliptic")
    call(evaluate, s.m, s.d)
    chosen, x = np.arange(s.a["qacc"].shape[1]) % 2 == 0, vectors(s, rng)
    s.a["krylov.x"][: s.nv] = x
    call(set_direction, s.m, s.d, chosen, s.d.krylov.x)
    expected = np.where(chosen, x, 0.0)
    np.testing.assert_array_equal(s.a["primal.search"][: s.nv], expected)
    products = each(s, expected, lambda p, v: p.M @ v)
    assert np.abs(s.a["primal.Mv"][: s.nv].T - products).max() <= EXACT * np.abs(products).max()
    rows = s.a["primal.con_z"].copy()
    assert np.abs(rows[:, chosen]).max() > 0.0
    assert not rows[:, ~chosen].any()
