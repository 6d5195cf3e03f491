"""The no-slip solver: friction is solved without its regularization, all other forces stay."""

import numpy as np
import pytest

from featherlane.engine.model.enums import FRICTION_DOF, FRICTION_TENDON
from featherlane.engine.solver.dual.noslip import noslip, regularisation_cost
from featherlane.engine.solver.dual.pgs import pgs
from featherlane.engine.solver.dual.problem import basis_force, force_count, has_edges
from featherlane.engine.solver.dual.rows import make_blocks
from oracles.uncompiled import call
from scenes.touching import basis_rows, contact_jacobian, go_to, present, scalar_jacobian, touching

EXACT = 1e-9  # relative to the forces: rounding of a solve
FRICTION = FRICTION_DOF, FRICTION_TENDON
SWEPT = 1e-5  # relative to the accelerations: error after thousands of sweeps


def solved(cone, **options):
    s = touching(cone, solver="pgs", iterations=2000, noslip_iterations=3000, noslip_tolerance=0.0, **options)
    s.w.run(make_blocks)
    s.w.run(pgs)
    s.before = {name: s.a[name].copy() for name in ("dual.f", "row_force", "con_force", "qacc")}
    return s


@pytest.fixture(scope="module", params=["pyramidal", "elliptic"])
def s(request):
    s = solved(request.param)
    s.a["active"][0, 5] = 0.0
    s.w.run(noslip)
    s.after = {name: s.a[name].copy() for name in s.before}
    a = s.a["qacc"][: s.nv].copy()
    go_to(s, a)
    return s


def test_normal_forces_limits_and_equalities_stay(s):
    scale = EXACT * np.abs(s.before["con_force"]).max()
    n = 6 * s.a["ncon_slot"][0]
    assert np.abs(s.after["con_force"][:n:6] - s.before["con_force"][:n:6]).max() < scale
    held = ~np.isin(s.a["row_type"][: s.a["nrow"][0]], FRICTION)
    np.testing.assert_array_equal(s.after["row_force"][: len(held)][held], s.before["row_force"][: len(held)][held])


def test_an_inactive_world_keeps_its_forces(s):
    for name in ("dual.f", "con_force", "row_force"):
        assert np.abs(s.after[name][:, 5] - s.before[name][:, 5]).max() <= EXACT * np.abs(s.before[name][:, 5]).max()
    assert np.abs(s.after["con_force"] - s.before["con_force"]).max() > 1e-3


def test_the_acceleration_equals_that_of_the_forces(s):
    scalar = scalar_jacobian(s)
    for lane in range(s.width):
        p = s.problems[lane]
        pull = sum(J[:, lane] * f for J, f in zip(scalar, s.a["row_force"][:, lane], strict=False))
        for k, w in present(s):
            if w == lane:
                mu = np.array([1.0, *s.a["con_friction"][5 * k : 5 * k + 5, lane]])[: s.a["con_dim"][k]]
                f = s.a["con_force"][6 * k : 6 * k + len(mu), lane]
                pull = pull + contact_jacobian(s, lane, k).T @ (f / mu)
        expected = p.a0 + np.linalg.solve(p.M, pull)
        assert np.abs(s.a["qacc"][: s.nv, lane] - expected).max() <= EXACT * np.abs(expected).max()
        assert np.abs(s.a["qfrc_constraint"][: s.nv, lane] - pull).max() <= EXACT * np.abs(pull).max()


def test_contacts_slip_only_at_the_friction_limit(s):
    """y = J a - aref along friction is 0 inside the bounds, and opposite to the force on them."""
    part = np.arange(s.width) != 5
    for k in np.flatnonzero(np.isin(s.a["row_type"][: s.a["nrow"][0]], FRICTION)):
        f, y, hi = (s.a[name][k] for name in ("row_force", "primal.row_x", "row_hi"))
        assert (np.abs(f) <= hi).all()
        inside = (np.abs(f) < hi * (1 - 1e-9)) & part
        assert (np.abs(y[inside]) < 100 * SWEPT).all() and (y * f <= 1e-2)[~inside & part].all()
    stuck = slid = 0
    for k, lane in present(s):
        dim = s.a["con_dim"][k]
        if dim == 1 or lane == 5:
            continue
        f = np.array([call(basis_force, s.m, s.d, k, c)[lane] for c in range(dim)])
        y, scale = s.a["primal.con_y"][basis_rows(s, k), lane], 1.0 + np.abs(s.a["qacc"][:, lane]).max()
        if f[0] <= 1e-9:
            continue
        if call(has_edges, s.m, s.d, k):
            q = 10 * (s.a["nrow"][0] + k)
            pairs = s.a["dual.f"][q : q + 2 * dim - 2 : 2, lane] + s.a["dual.f"][q + 1 : q + 2 * dim - 2 : 2, lane]
            rim = np.abs(f[1:]) >= pairs * (1 - 1e-9)
            assert (np.abs(f[1:]) <= pairs * (1 + 1e-9)).all()
            assert (np.abs(y[1:][~rim]) < SWEPT * scale).all()
            assert (y[1:] * f[1:])[rim].max(initial=0) <= SWEPT * scale
        else:
            length = np.linalg.norm(f[1:])
            rim = np.array([length > f[0] * (1 - 1e-6)])
            assert length <= f[0] * (1 + 1e-9)
            multiplier = max(0.0, -(y[1:] @ f[1:]) / max(length, 1e-9) ** 2) if rim[0] else 0.0
            assert np.abs(y[1:] + multiplier * f[1:]).max() < 1e3 * SWEPT * scale
        stuck, slid = stuck + (~rim).sum(), slid + rim.sum()
    assert stuck > 1 and slid > 1


def test_the_improvement_of_the_first_sweep_includes_regularization(rng):
    """The regularization costs 1/2 f R f, summed over all forces."""
    for cone in ("pyramidal", "elliptic"):
        s = touching(cone, solver="pgs")
        s.a["dual.f"][...] = rng.normal(size=s.a["dual.f"].shape)
        first, expected = s.a["nrow"][0], np.zeros(s.width)
        for q in range(first):
            D = s.a["row_D"][q]
            expected += np.divide(0.5 * s.a["dual.f"][10 * q] ** 2, D, where=D > 0, out=np.zeros(s.width))
        for k, lane in present(s):
            n, D = call(force_count, s.m, s.d, k), s.a["con_D"][k, lane]
            across = D if call(has_edges, s.m, s.d, k) else s.a["con_Dt"][k, lane]
            f = s.a["dual.f"][10 * (first + k) : 10 * (first + k) + n, lane]
            expected[lane] += 0.5 * (f[0] ** 2 / D + (f[1:] ** 2).sum() / across if n > 1 else f[0] ** 2 / D)
        np.testing.assert_allclose(call(regularisation_cost, s.m, s.d), expected, rtol=1e-12)


def test_sweeps_stop_if_the_improvement_is_below_the_tolerance():
    moved = {}
    for count, tolerance in ((1, 0.0), (1000, 1e9), (1000, 0.0)):
        s = solved("pyramidal")
        s.model.opt.noslip_iterations, s.model.opt.noslip_tolerance = count, tolerance
        s.w.rows.refresh()
        s.w.run(noslip)
        moved[count, tolerance] = s.a["qacc"][: s.nv].copy()
    one, few, all_ = moved.values()
    np.testing.assert_array_equal(few, one)
    assert np.abs(all_ - one).max() > 1e-6


def test_noslip_starts_from_the_row_forces_of_a_primal_solver():
    s, other = solved("elliptic"), touching("elliptic", solver="newton", noslip_iterations=3000, noslip_tolerance=0.0)
    s.w.run(noslip)
    other.w.run(make_blocks)
    best = np.array([p.minimum() for p in other.problems]).T
    go_to(other, best)
    pull = [p.J.T @ p.force(x) for p, x in zip(other.problems, best.T, strict=True)]
    other.a["qfrc_constraint"][: s.nv] = np.array(pull).T
    other.w.run(noslip)
    assert np.abs(other.a["qacc"] - s.a["qacc"]).max() < 1e-4 * np.abs(s.a["qacc"]).max()
