"""The entries of H, on every pattern: the second derivative of the cost by definition."""

import numpy as np
import pytest

from featherlane.engine.model.enums import PYRAMIDAL
from featherlane.engine.solver.hessian.entries.assembly import assemble_entries, is_pushing
from oracles.hessians import basis_weights, dense_hessian
from oracles.uncompiled import call
from scenes.factorizations import dense, on
from scenes.touching import XML, go_to, near, present

EXACT = 1e-11  # relative to the largest entry: sums of some hundred products


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("way", ["tree", "paths", "blocks", "apart"])
def test_h_is_the_second_derivative(way, cone, monkeypatch, rng):
    s = on(way, monkeypatch, rng, cone)
    for size in (1.0, 50.0):
        s.point = near(s, rng, size)
        go_to(s, s.point)
        s.a["hessian.H"][...] = np.nan  # no entry of an earlier one remains
        call(assemble_entries, s.m, s.d)
        for lane in range(s.width):
            expected = np.tril(dense(s, lane))
            got = dense_hessian(s.w, lane)
            assert np.abs(got - expected).max() <= EXACT * np.abs(expected).max()


def test_branches_of_an_odd_number_of_dofs(monkeypatch, rng):
    """Rows are processed two at a time if possible."""
    s = on("paths", monkeypatch, rng, xml=XML.replace('<joint name="e"', '<joint type="slide"/><joint name="e"'))
    call(assemble_entries, s.m, s.d)
    for lane in range(s.width):
        expected = np.tril(dense(s, lane))
        assert np.abs(dense_hessian(s.w, lane) - expected).max() <= EXACT * np.abs(expected).max()


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_contacts_with_a_stiffness_push(cone, monkeypatch, rng):
    s = on("paths", monkeypatch, rng, cone)
    said = {k: call(is_pushing, s.m, s.d, k) for k in range(s.a["ncon_slot"][0])}
    for k, lane in present(s):
        assert said[k][lane] == basis_weights(s, k, lane).any()
    for k, mask in said.items():
        assert not mask[s.a["con_D"][k] == 0].any()
    assert s.m.opt_cone == PYRAMIDAL or any(mask.any() for mask in said.values())


@pytest.mark.parametrize("way", ["tree", "paths", "blocks"])
def test_contacts_count_for_active_worlds_only(way, monkeypatch, rng):
    """Contacts of converged worlds need not be included; the other worlds' entries keep their bits."""
    s = on(way, monkeypatch, rng)
    call(assemble_entries, s.m, s.d)
    whole, alone = s.a["hessian.H"].copy(), present(s)[-1]
    live = np.arange(s.width) == alone[1]
    s.a["primal.live"][0] = live
    call(assemble_entries, s.m, s.d)
    np.testing.assert_array_equal(s.a["hessian.H"][:, live], whole[:, live])
    s.a["primal.live"][...] = 0.0
    call(assemble_entries, s.m, s.d)
    assert not np.array_equal(s.a["hessian.H"][:, live], whole[:, live])
    for k in range(s.a["ncon_slot"][0]):
        assert not call(is_pushing, s.m, s.d, k).any()
