"""Forces of the dual solvers on a scene with all kinds of rows: the blocks, a start, and admissible forces."""

import numpy as np

from featherlane.engine.solver.dual.pgs import dual_cost, start_forces
from featherlane.engine.solver.dual.problem import force_count, has_edges
from featherlane.engine.solver.dual.rows import make_blocks
from oracles.uncompiled import call
from scenes.touching import touching, vectors

EXACT = 1e-10  # relative: sums of a hundred products


def ready(cone, **options):
    s = touching(cone, solver="pgs", **options)
    call(make_blocks, s.m, s.d)
    s.first = s.a["nrow"][0]
    return s


def admissible(s, slack=1e-12):
    a = s.a
    for k in range(s.first):
        assert (a["dual.f"][10 * k] >= a["row_lo"][k]).all() and (a["dual.f"][10 * k] <= a["row_hi"][k]).all()
    for k in range(a["ncon_slot"][0]):
        n = call(force_count, s.m, s.d, k)
        f = a["dual.f"][10 * (s.first + k) :][:n]
        if call(has_edges, s.m, s.d, k) or n == 1:
            assert (f >= 0).all()
        else:
            assert (np.linalg.norm(f[1:], axis=0) <= f[0] + slack * np.abs(f).max()).all()


def started(s, rng):
    """Starts from forces near the optimum: some are at a bound, others not."""
    best = np.array([p.minimum() for p in s.problems]).T
    s.a["qacc_warmstart"][: s.nv] = best + vectors(s, rng, 0.1)
    call(start_forces, s.m, s.d)
    assert (call(dual_cost, s.m, s.d) < 0).all()


def gains(before, after, fall):
    """Returns whether the cost fell by the reported amount."""
    return (np.abs(before - after - fall) <= EXACT * np.abs(before)).all()
