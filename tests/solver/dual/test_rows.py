"""The rows of the dual problem: whitened, block by block, Y Y^T = J M^-1 J^T."""

import numpy as np
import pytest

from featherlane.engine.constraint.chains import sort_descending
from featherlane.engine.dynamics.sparse.packed_factor import symmetric_index
from featherlane.engine.model.enums import FRICTION_DOF, FRICTION_TENDON
from featherlane.engine.solver.dual.rows import (
    all_fit,
    contact_block,
    dual_capacity,
    make_blocks,
    report_full_blocks,
)
from featherlane.engine.solver.rows.rows import basis_value
from oracles.uncompiled import call, record
from scenes.touching import XML, basis_rows, contact_jacobian, present, scalar_jacobian, touching

EXACT = 1e-11  # relative: J M^-1 J^T of a chain of bodies


# branches with an even and an odd number of dofs: rows are whitened by pairs of a dof and its parent
ODD = XML.replace('<joint name="e"', '<joint type="slide"/><joint name="e"')


@pytest.fixture(scope="module", params=[("pyramidal", XML), ("elliptic", ODD)], ids=["pyramidal", "elliptic, odd"])
def s(request):
    cone, xml = request.param
    s = touching(cone, xml=xml, solver="pgs")
    call(make_blocks, s.m, s.d)
    return s


def dense_rows(s, lane):
    """Returns Y of every block of one world: (rows, nv) by block, zero at dofs outside of the block."""
    a, found = s.a, []
    for q in range(a["dual.ndual"][0]):
        n, o, row = a["dual.dofnum"][q], a["dual.dofadr"][q], a["dual.rowadr"][q]
        k = q - a["nrow"][0]
        Y = np.zeros((a["con_dim"][k] if k >= 0 else 1, s.nv))
        dofs = a["dual.dof"][o : o + n]
        assert list(dofs) == sorted({*dofs.tolist()}, reverse=True)
        for c in range(len(Y)):
            Y[c, dofs] = a["dual.Y"][row + c * n : row + (c + 1) * n, lane]
        found.append(Y)
    return found


def jacobians(s, lane):
    """Returns J of every block of one world; None for an inactive contact."""
    there = {k for k, w in present(s) if w == lane}
    contacts = [contact_jacobian(s, lane, k) if k in there else None for k in range(s.a["ncon_slot"][0])]
    return [*(J[None, :, lane] for J in scalar_jacobian(s)), *contacts]


def test_the_matrix_of_the_dual_problem_equals_that_of_the_definition(s):
    for lane in range(s.width):
        kept = [(Y, J) for Y, J in zip(dense_rows(s, lane), jacobians(s, lane), strict=True) if J is not None]
        Y, J = (np.vstack(x) for x in zip(*kept, strict=True))
        A = J @ np.linalg.solve(s.problems[lane].M, J.T)
        assert np.abs(Y @ Y.T - A).max() <= EXACT * np.abs(A).max()
    assert call(all_fit, s.d)


def test_each_block_has_its_own_part_of_the_matrix(s):
    for lane in range(s.width):
        for q, Y in enumerate(dense_rows(s, lane)):
            for c in range(len(Y)):
                for e in range(len(Y)):
                    x = s.a["dual.A"][21 * q + call(symmetric_index, c, e), lane]
                    assert abs(x - Y[c] @ Y[e]) <= EXACT * max(1.0, abs(x))


def test_blocks_contain_exactly_their_dofs(s):
    """A block's dofs are those of J and those above them."""
    adr = row = 0
    for q in range(s.a["dual.ndual"][0]):
        assert (s.a["dual.dofadr"][q], s.a["dual.rowadr"][q]) == (adr, row)
        k = q - s.a["nrow"][0]
        adr += s.a["dual.dofnum"][q]
        row += s.a["dual.dofnum"][q] * (s.a["con_dim"][k] if k >= 0 else 1)
    assert not s.a["dual.mark"].any()
    for q, J in enumerate(jacobians(s, 0)):
        above = set() if J is None else {*np.flatnonzero(np.abs(J).max(0)).tolist()}
        for i in [*above]:
            while i >= 0:
                above.add(int(i))
                i = s.model.dof_parentid[i]
        o, n = s.a["dual.dofadr"][q], s.a["dual.dofnum"][q]
        listed = {*s.a["dual.dof"][o : o + n].tolist()}
        assert above == listed if q < s.a["nrow"][0] else above <= listed


def test_a_friction_only_pass_has_friction_blocks_only():
    s = touching(noslip_iterations=3)
    call(make_blocks, s.m, s.d)
    a = s.a
    full = [*np.isin(a["row_type"][: a["nrow"][0]], (FRICTION_DOF, FRICTION_TENDON))]
    full += [*(a["con_dim"][: a["ncon_slot"][0]] > 1)]
    np.testing.assert_array_equal(a["dual.dofnum"][: a["dual.ndual"][0]] > 0, full)
    assert 0 < sum(full) < len(full)


@pytest.mark.parametrize("room", ["ndualdofmax", "ndualYmax"])
def test_blocks_beyond_the_capacity_are_omitted_and_reported(room):
    s = touching(solver="pgs", width=8)
    call(make_blocks, s.m, s.d)
    whole = s.a["dual.ndual"][0]
    used = s.a["dual.dofadr"] if room == "ndualdofmax" else s.a["dual.rowadr"]
    last = int(used[whole - 1]) + (s.nv if room == "ndualdofmax" else 6 * s.nv)
    for size, fit in ((last, whole), (last - 1, whole - 1), (0, 0)):
        setattr(s.d, room, size)
        call(make_blocks, s.m, s.d)
        assert s.a["dual.ndual"][0] == fit and call(all_fit, s.d) == (fit == whole)
    call(report_full_blocks, s.d)
    assert s.a["con_overflow"][0] == 1 and not s.a["warning"].any()
    s.a["con_overflow"][0], s.a["active"][0, 1:] = 0, 0.0
    call(report_full_blocks, s.d)
    assert s.a["con_overflow"][0] == 0
    np.testing.assert_array_equal(s.a["warning"][1], [1, *[0] * 7])


def test_the_capacity_covers_all_possible_rows(s):
    rows = {"ndofrowmax": 5, "nrowmax": 9}
    size = dual_capacity(s.model, 6, rows, 0)
    nv, chain = s.nv, max(s.model.chain_rownnz)
    assert size["ndualmax"] == 15
    assert size["ndualdofmax"] >= 5 * chain + 4 * nv + 6 * min(2 * chain, nv) + nv
    assert size["ndualYmax"] >= 5 * chain + 4 * nv + 6 * 6 * min(2 * chain, nv) + 6 * nv
    assert dual_capacity(s.model, 7, rows, 0)["ndualmax"] == 16


def test_indices_of_contact_values(s):
    for k in (0, 3):
        assert call(contact_block, s.d, k) == s.a["nrow"][0] + k
        y = [call(basis_value, s.d, s.d.primal.con_y, k, c) for c in range(s.a["con_dim"][k])]
        np.testing.assert_array_equal(y, s.a["primal.con_y"][basis_rows(s, k)])


def test_dofs_are_sorted_and_triangles_packed():
    d = record(1, dofs=[9, 3, 1, 8, 4, 2, 5])
    call(sort_descending, d.dofs, 1, 5)
    assert [*d.dofs.array] == [9, 8, 4, 3, 2, 1, 5]
    places = {(c, e): call(symmetric_index, c, e) for c in range(6) for e in range(6)}
    assert {*places.values()} == set(range(21)) and all(places[c, e] == places[e, c] for c, e in places)
