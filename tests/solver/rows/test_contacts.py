"""All contacts of a tile: one cost, whose derivatives are the forces on bodies and the slopes along a line."""

import numpy as np
import pytest

from featherlane.engine.model.enums import ELLIPTIC
from featherlane.engine.solver.rows.contacts import (
    add_contact_costs,
    add_contact_rounding,
    add_contact_slopes,
    apply_contact_forces,
    count_contact_switches,
    store_contact_forces,
)
from featherlane.engine.solver.rows.rows import body_forces_to_dofs, clear_body_forces
from oracles.uncompiled import call, record, typed
from scenes.touching import basis_rows, contact_jacobian, present, touching, vectors

DIFFERENCE = 1e-6  # relative: central differences of a cost, over 1e-5 of accelerations near 1
EXACT = 1e-12  # relative: a few products


@pytest.fixture(scope="module", params=["pyramidal", "elliptic"])
def s(request):
    return touching(request.param)


def along(s, v):
    """Returns con_y of J v for active contacts, from MuJoCo's Jacobians; (rows, width)."""
    y = np.zeros_like(s.a["primal.con_y"])
    for k, lane in present(s):
        y[basis_rows(s, k), lane] = contact_jacobian(s, lane, k) @ v[:, lane]
    return y


def cost_at(s, y):
    return call(add_contact_costs, s.m, s.d, typed(y, "primal.con_y", {"nconmax": s.d.nconmax}), np.zeros(s.width))


def enter(s, rng):
    """Returns rows y at which contacts separate, stick and slip, and a direction; both in J's range."""
    v, y = vectors(s, rng), along(s, vectors(s, rng))
    n = s.a["ncon_slot"][0]
    y[: 3 * n : 3] -= 0.3
    s.a["primal.con_y"][...], s.a["primal.con_z"][...] = y, along(s, v)
    for k in range(n):
        s.a["primal.con_y"][3 * k, s.a["con_D"][k] == 0] = 0.0
    return v


def test_forces_on_the_dofs_are_the_negative_gradient_of_the_cost(s, rng):
    v = enter(s, rng)
    y, z, e = s.a["primal.con_y"].copy(), s.a["primal.con_z"], 1e-5
    out = record(s.width, out=np.zeros((s.nv, s.width))).out
    call(clear_body_forces, s.m, s.d)
    cost = call(apply_contact_forces, s.m, s.d, 2.0)
    call(body_forces_to_dofs, s.m, s.d, out)
    np.testing.assert_allclose(cost - 2.0, cost_at(s, y), rtol=EXACT)
    power = -(cost_at(s, y + e * z) - cost_at(s, y - e * z)) / (2 * e)
    assert np.abs((out.array * v).sum(0) - power).max() < DIFFERENCE * np.abs(power).max()
    assert cost[-1] == 2.0 and not out.array[:, -1].any()  # no contact there


def test_stored_forces_act_along_the_frame(s, rng):
    """force . rows without friction's scale = the power that the cost loses."""
    enter(s, rng)
    s.a["con_force"][...] = np.nan
    call(store_contact_forces, s.m, s.d)
    y, z, e = s.a["primal.con_y"], s.a["primal.con_z"], 1e-5
    for k, lane in present(s):
        dim, at = s.a["con_dim"][k], basis_rows(s, k)
        scale = np.array([1.0, *s.a["con_friction"][5 * k : 5 * k + dim - 1, lane]])
        one = np.zeros_like(y)
        one[at, lane] = z[at, lane]
        power = -(cost_at(s, y + e * one) - cost_at(s, y - e * one))[lane] / (2 * e)
        f = s.a["con_force"][6 * k : 6 * k + 6, lane]
        assert abs(f[:dim] / scale @ z[at, lane] - power) <= DIFFERENCE * max(1.0, np.abs(f).max())
        assert not f[dim:].any()


def test_slopes_are_derivatives_of_the_cost(s, rng):
    enter(s, rng)
    y, z, a, e = s.a["primal.con_y"], s.a["primal.con_z"], 0.4, 1e-6
    g, h = call(add_contact_slopes, s.m, s.d, a, 1.0, 2.0)
    expected = (cost_at(s, y + (a + e) * z) - cost_at(s, y + (a - e) * z)) / (2 * e)
    assert np.abs(g - 1.0 - expected).max() < DIFFERENCE * np.abs(expected).max()
    up, down = (call(add_contact_slopes, s.m, s.d, a + t, 0.0, 0.0)[0] for t in (e, -e))
    assert np.abs(h - 2.0 - (up - down) / (2 * e)).max() < 1e-4 * np.abs(h).max()


def test_a_step_without_contact_switches_is_exact(s, rng):
    """One contact at a time; a slipping elliptic one may rotate slightly."""
    enter(s, rng)
    names, pyramids, seen = ("con_D", "con_Dt", "con_slip"), s.m.opt_cone != ELLIPTIC, []
    kept = {name: s.a[name].copy() for name in names}
    for k in range(s.a["ncon_slot"][0]):
        for name in names:
            s.a[name][...] = 0.0
            s.a[name][k] = kept[name][k]
        for a in (1e-5, 0.1, 2.0):
            n = call(count_contact_switches, s.m, s.d, a)
            (g, h), (after, _) = (call(add_contact_slopes, s.m, s.d, t, 0.0, 0.0) for t in (0.0, a))
            off = np.abs(g + a * h - after) / np.maximum(np.abs(g) + np.abs(after), 1e-30)
            if pyramids or s.a["con_dim"][k] == 1:
                np.testing.assert_array_equal(n > 0, off > 1e-9)
            else:
                assert (n > 0)[off > 1e-3].all() and (off[n == 0] < 1e-5).all()
            seen += [*(n > 0)]
        assert not call(count_contact_switches, s.m, s.d, 0.0).any()
    for name in names:
        s.a[name][...] = kept[name]
    assert any(seen) and not all(seen)


def test_rounding_covers_every_term_of_the_slope(s, rng):
    """|d cost / da| is at most the sum of the absolute values of its terms, in each of a pyramid's ten edges."""
    enter(s, rng)
    a, edges = s.a, 1 if s.m.opt_cone == ELLIPTIC else 10
    for reach in (0.0, 1.0):
        size = call(add_contact_rounding, s.m, s.d, reach, 0.0)
        for t in (0.0, reach):
            assert (np.abs(call(add_contact_slopes, s.m, s.d, t, 0.0, 0.0)[0]) <= edges * size * (1 + EXACT)).all()
        most = np.zeros(s.width)
        for k, lane in present(s):
            at = basis_rows(s, k)
            D = max(a["con_D"][k, lane], a["con_Dt"][k, lane] if edges == 1 and len(at) > 1 else 0)
            y, z = np.abs(a["primal.con_y"][at, lane]), np.abs(a["primal.con_z"][at, lane])
            far = np.abs(a["primal.con_y"][at, lane] + reach * a["primal.con_z"][at, lane])
            pushes = a["primal.con_y"][3 * k, lane] < y[1:].sum()
            pushes |= a["primal.con_y"][3 * k, lane] + reach * a["primal.con_z"][3 * k, lane] < far[1:].sum()
            most[lane] += pushes * D * z.sum() * (y.sum() + reach * z.sum())
        np.testing.assert_allclose(size, most, rtol=EXACT)
    assert size[-1] == 0.0
