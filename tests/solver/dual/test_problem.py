"""The dual problem at a point: forces of the primal problem, their acceleration, and the duality gap."""

import numpy as np
import pytest

from featherlane.engine.solver.dual.problem import (
    accelerate_by_forces,
    add_row_forces,
    basis_force,
    clear_overflow_forces,
    dual_gap,
    evaluate_at_forces,
    force_count,
    forces_at_rows,
    has_edges,
    regularisation_or_zero,
    row_products,
    store_dual_forces,
    store_whitened_force,
    whiten_constraint_force,
)
from featherlane.engine.solver.dual.rows import make_blocks
from featherlane.engine.solver.primal.problem import evaluate, store_primal_forces
from oracles.uncompiled import call
from scenes.touching import each, go_to, near, touching

EXACT = 1e-10  # relative: products with J and a solve with M
STORED = "row_force", "con_force"


@pytest.fixture(scope="module", params=["pyramidal", "elliptic"])
def s(request):
    s = touching(request.param, solver="pgs")
    call(make_blocks, s.m, s.d)
    return s


def close(a, b):
    assert np.abs(a - b).max() <= EXACT * np.abs(b).max()


def forces_near(s, rng, size=20.0):
    """Returns the forces of a point, and that point."""
    a = near(s, rng, size)
    go_to(s, a)
    call(evaluate, s.m, s.d)
    call(forces_at_rows, s.m, s.d)
    return a


def test_forces_at_a_point_equal_those_of_the_primal_problem(s, rng):
    forces_near(s, rng)
    call(store_primal_forces, s.m, s.d)
    expected = [s.a[name].copy() for name in STORED]
    for name in STORED:
        s.a[name][...] = np.nan
    call(store_dual_forces, s.m, s.d)
    sizes = s.a["nrow"][0], 6 * s.a["ncon_slot"][0]
    for name, x, n in zip(STORED, expected, sizes, strict=True):
        close(s.a[name][:n], x[:n])


def test_whitened_force_sums_of_both_methods_agree(s, rng):
    """z = Y^T f = D^-1/2 L^-T J^T f, and |z|^2 = f^T A f."""
    a = forces_near(s, rng)
    call(store_whitened_force, s.m, s.d)
    z = s.a["dual.z"][: s.nv].copy()
    call(whiten_constraint_force, s.m, s.d)
    close(s.a["dual.z"][: s.nv], z)
    pull = each(s, a, lambda p, x: p.J.T @ p.force(x))
    power = [y @ np.linalg.solve(p.M, y) for p, y in zip(s.problems, pull, strict=True)]
    close((z * z).sum(0), np.array(power))


def test_the_acceleration_of_forces(s, rng):
    a = forces_near(s, rng)
    s.a["qfrc_constraint"][...] = np.nan
    cost, norm = call(evaluate_at_forces, s.m, s.d)
    pull = each(s, a, lambda p, x: p.J.T @ p.force(x))
    expected = np.array([p.a0 + np.linalg.solve(p.M, y) for p, y in zip(s.problems, pull, strict=True)]).T
    close(s.a["qfrc_constraint"][: s.nv].T, pull)
    close(s.a["qacc"][: s.nv], expected)
    close(s.a["primal.Ma"][: s.nv].T, each(s, expected, lambda p, x: p.M @ x))
    close(cost, each(s, expected, lambda p, x: p.cost(x)))
    close(norm, each(s, expected, lambda p, x: np.linalg.norm(p.gradient(x))))
    call(accelerate_by_forces, s.m, s.d)
    close(s.a["qacc"][: s.nv], expected)


def test_the_gap_is_the_sum_of_both_costs(s, rng):
    for size in (1.0, 100.0):
        a = forces_near(s, rng, size)
        cost, _ = call(evaluate_at_forces, s.m, s.d)
        gap, dual = call(dual_gap, s.m, s.d), []
        for p, x in zip(s.problems, a.T, strict=True):
            f = p.force(x)
            y = p.J.T @ f
            dual.append(0.5 * (y @ np.linalg.solve(p.M, y) + f @ (p.R * f)) + f @ (p.J @ p.a0 - p.aref))
        assert np.abs(gap - (cost + dual)).max() <= EXACT * np.abs(cost).max()
        assert (gap > 0).all()


def test_rows_times_z_and_back(s, rng):
    """y . z, z += f y of each row, one by one and three at once."""
    a, d = s.a, s.d
    for q in (0, a["ndofrow"][0] + 1, *range(a["nrow"][0], a["dual.ndual"][0])):
        k, n = q - a["nrow"][0], a["dual.dofnum"][q]
        dim = a["con_dim"][k] if k >= 0 else 1
        Y = a["dual.Y"][a["dual.rowadr"][q] :][: dim * n].reshape(dim, n, s.width)
        at = a["dual.dof"][a["dual.dofadr"][q] :][:n]
        z, f = rng.normal(size=(s.nv, s.width)), rng.normal(size=(dim, s.width))
        a["dual.z"][: s.nv] = z
        dots = np.einsum("cnw,nw->cw", Y, z[at])
        for c in range(dim):
            close(call(row_products, d, q, c, 1)[0], dots[c])
            if c + 3 <= dim:
                close(np.array(call(row_products, d, q, c, 3)), dots[c : c + 3])
        for c in range(dim):
            call(add_row_forces, d, q, c, (f[c],), 1)
        z[at] += np.einsum("cnw,cw->nw", Y, f)
        close(a["dual.z"][: s.nv], z)
        if dim >= 3:
            call(add_row_forces, d, q, dim - 3, tuple(f[dim - 3 :]), 3)
            z[at] += np.einsum("cnw,cw->nw", Y[dim - 3 :], f[dim - 3 :])
            close(a["dual.z"][: s.nv], z)


def test_edges_are_forces_and_their_sums_act(s, rng):
    s.a["dual.f"][...] = rng.normal(size=s.a["dual.f"].shape)
    first = s.a["nrow"][0]
    for k in range(s.a["ncon_slot"][0]):
        dim, f = s.a["con_dim"][k], s.a["dual.f"][10 * (first + k) :][:10]
        pyramid = dim > 1 and s.m.opt_cone == 0
        assert call(has_edges, s.m, s.d, k) == pyramid
        assert call(force_count, s.m, s.d, k) == (2 * (dim - 1) if pyramid else dim)
        for c in range(dim):
            expected = f[c] if not pyramid else f[: 2 * dim - 2].sum(0) if c == 0 else f[2 * c - 2] - f[2 * c - 1]
            close(call(basis_force, s.m, s.d, k, c), expected)


def test_blocks_beyond_the_capacity_have_no_force(s, rng):
    s.a["dual.f"][...] = 1.0
    whole = s.a["dual.ndual"][0]
    s.a["dual.ndual"][0] = whole - 2
    call(clear_overflow_forces, s.m, s.d)
    s.a["dual.ndual"][0] = whole
    assert (s.a["dual.f"][: 10 * (whole - 2)] == 1).all() and not s.a["dual.f"][10 * (whole - 2) : 10 * whole].any()


def test_absent_rows_have_no_regularisation():
    np.testing.assert_array_equal(call(regularisation_or_zero, np.array([0.0, 4.0])), [0.0, 0.25])
