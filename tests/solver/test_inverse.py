"""Forces of all rows at a given acceleration equal the definition."""

import numpy as np
import pytest

from featherlane.engine.solver.inverse import constraint_forces
from oracles.uncompiled import call
from scenes.touching import each, near, touching

EXACT = 1e-10  # relative: sums of a hundred products
STORED = "row_force", "con_force"


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_forces_equal_those_of_the_definition(cone, rng):
    s = touching(cone)
    a = near(s, rng)
    s.a["qacc"][: s.nv] = a
    for name in STORED:
        s.a[name][...] = 7.0
    call(constraint_forces, s.m, s.d, 0)
    expected = each(s, a, lambda p, x: p.J.T @ p.force(x)).T
    assert np.abs(s.a["qfrc_constraint"][: s.nv] - expected).max() <= EXACT * np.abs(expected).max()
    assert all((s.a[name] == 7.0).all() for name in STORED)
    call(constraint_forces, s.m, s.d, 1)
    assert np.abs(s.a["qfrc_constraint"][: s.nv] - expected).max() <= EXACT * np.abs(expected).max()
    n = s.a["nrow"][0]
    for lane, p in enumerate(s.problems):
        f = p.force(a[:, lane])
        mine = s.a["row_force"][:n, lane][np.isin(s.a["row_type"][:n], (0, 2))]
        assert np.abs(np.sort(mine) - np.sort(f[np.isin(p.type, (0, 2))])).max() <= EXACT * np.abs(f).max()
    assert (s.a["con_force"][: 6 * s.a["ncon_slot"][0] : 6] >= 0).all()
    np.testing.assert_array_equal(s.a["qacc"][: s.nv], a)


@pytest.mark.parametrize("solver", ["newton", "pgs"])
def test_a_solver_in_forces_finds_them_block_by_block(solver, rng):
    s = touching(solver=solver)
    s.a["qacc"][: s.nv] = near(s, rng)
    s.a["dual.f"][...] = 7.0
    for store in (0, 1):
        call(constraint_forces, s.m, s.d, store)
        kept = (s.a["dual.f"] == 7.0).all()
        assert kept == (store == 0 or solver == "newton")
    if solver == "pgs":
        n = s.a["nrow"][0]
        np.testing.assert_array_equal(s.a["dual.f"][: 10 * n : 10], s.a["row_force"][:n])


@pytest.mark.parametrize("counts", [(2, 0, 0), (0, 2, 0), (0, 0, 2), (2, 2, 0), (1, 1, 2), (0, 0, 0)])
def test_any_row_has_forces_and_tiles_without_rows_have_none(counts):
    s = touching(width=1)
    contacts, one, general = counts
    at = s.a["ndofrow"][0] - one  # the last one-dof rows, then the first general rows
    for name, a in s.a.items():
        if name.startswith("row_") and name not in ("row_dof", "row_J"):
            a[: one + general] = a[at : at + one + general].copy()
    s.a["ncon_slot"][0], s.a["ndofrow"][0], s.a["nrow"][0] = contacts, one, one + general
    s.a["qfrc_constraint"][...] = 7.0
    call(constraint_forces, s.m, s.d, 0)
    x = s.a["qfrc_constraint"][: s.nv]
    assert x.any() == any(counts) and not (x == 7.0).any()


def test_a_world_without_rows_has_positive_zeros(rng):
    s = touching()
    for name in ("con_D", "con_Dt", "con_slip", "row_D"):
        s.a[name][:, 3] = 0.0
    s.a["qacc"][: s.nv] = near(s, rng)
    call(constraint_forces, s.m, s.d, 0)
    x = s.a["qfrc_constraint"][: s.nv, 3]
    assert not x.any() and not np.signbit(x).any()
