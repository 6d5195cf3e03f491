"""Steps of the proximal-point method; `test_coulomb.py` checks the results of whole solves."""

import numpy as np

from featherlane.engine.solver.primal.problem import evaluate
from featherlane.engine.solver.primal.proximal import try_step, undo_step
from oracles.uncompiled import call
from scenes.touching import touching, vectors

POINT = ("qacc", "primal.Ma", "primal.row_x", "primal.con_y")


def test_a_full_step_is_taken_and_taken_back(rng):
    s = touching("elliptic")
    call(evaluate, s.m, s.d)
    live = np.arange(s.a["qacc"].shape[1]) % 2 == 0
    before = {name: s.a[name].copy() for name in POINT}
    step = s.a["primal.search"][: s.nv] = vectors(s, rng)
    step = step.copy()
    call(try_step, s.m, s.d, live)
    np.testing.assert_array_equal(s.a["qacc"][: s.nv], before["qacc"][: s.nv] + np.where(live, step, 0.0))
    back = live & (np.arange(len(live)) % 4 == 0)
    call(undo_step, s.m, s.d, back)
    stays = live & ~back
    assert stays.any() and back.any()
    for name in POINT:
        np.testing.assert_array_equal(s.a[name][:, ~stays], before[name][:, ~stays])
    np.testing.assert_array_equal(s.a["qacc"][: s.nv, stays], (before["qacc"][: s.nv] + step)[:, stays])
