"""Rows of tendons as general rows: friction loss, length limits, and equalities of lengths.

    friction loss    no error, a force between -loss and loss
    limits           length - lower side, upper side - length, where that is less than the margin
    equality         (L_1 - L_1(0)) - (a_0 + a_1 y + a_2 y^2 + a_3 y^3 + a_4 y^4) = 0 with y = L_2 - L_2(0)

The Jacobian is that of the lengths.  A length that does not depend on any dof has no row.
Names: i, j: tendons; k: a general row (fields row_*, row.py); adr: its first entry in row_dof and row_J;
    ten_J: the Jacobian of all lengths, row i from ten_J_rowadr[i] on, with ten_J_rownnz[i] entries at ten_J_colind;
    K, B, imp: stiffness, damping and impedance d of aref = -B v - K d r, r: position error less the margin;
    A: estimate of J M^-1 J^T (impedance.py); D: `inverse_regularisation`, d / ((1 - d) A).
    `loss_parameters` returns (D, B) of friction loss; `limit_reference` returns (stiffness, damping, d) with
    aref = -damping v - stiffness r, where under the integrator `discrete` the row acts at the end of the step.
Source: MuJoCo's documentation, "Computation", sec. "Constraint model".
"""

from __future__ import annotations

from featherlane.engine.prelude import *
from featherlane.engine.constraint.diagonal import chosen_diagonal, wants_exact
from featherlane.engine.constraint.end_of_step import limit_reference
from featherlane.engine.constraint.friction_loss import loss_parameters
from featherlane.engine.constraint.general import assign_rows, coupling_error, row_product, store_row
from featherlane.engine.constraint.impedance import UNBOUNDED, inverse_regularisation, shortest_timeconst
from featherlane.engine.dynamics.awake import sleeping, tendon_awake


@kernel
def store_tendon_jacobian(m, d, adr, i, sign, present):
    """Writes entries from adr on: sign times row i of the tendons' Jacobian.

    Returns (number of entries, mask of worlds of `present` in which an entry is not 0).  All other worlds have no row:
    the length depends on no dof in this state, and D would be unbounded.
    """
    first, n = m.ten_J_rowadr[i], m.ten_J_rownnz[i]
    nonzero = false_mask(d)
    for e in range(n):
        J = d.ten_J[first + e]
        d.row_dof[adr + e] = m.ten_J_colind[first + e]
        d.row_J[adr + e] = where(present, sign * J, 0.0)
        nonzero = nonzero | (J != 0.0)
    return n, present & nonzero


@kernel
def tendon_inverse_inertia(m, d, k, i):
    """Returns A = J M^-1 J^T: of tendon i in qpos0, or with `diagexact` of general row k in this state."""
    return chosen_diagonal(m, d, k, m.tendon_invweight0[i])


# ---- friction loss ---------------------------------------------------------------------------------------------------
@kernel
def write_tendon_friction(m, d, k, adr, i, present):
    """Writes row k: the friction loss |f| <= frictionloss along tendon i, aref = -B J v; returns its number of entries.

    adr: its first entry.
    present: mask of worlds that have the row.
    """
    n, present = store_tendon_jacobian(m, d, adr, i, sign=1.0, present=present)
    assign_rows(d, k, size=1, adr=adr, n=n, kind=FRICTION_TENDON, ident=i)
    solref, solimp = m.tendon_solref_fri[i], m.tendon_solimp_fri[i]
    A = tendon_inverse_inertia(m, d, k, i)
    D, B = loss_parameters(m, solref, solimp, shortest_timeconst(m), A)
    v = row_product(d, k, d.qvel)
    loss = m.tendon_frictionloss[i]
    store_row(d, k, present, error=(0.0, 0.0), vel=v, D=D, aref=-(B * v), bounds=(-loss, loss))
    return n


@kernel
def write_tendon_frictions(m, d, k, adr):
    """Writes rows from k on, entries from adr on: friction loss of tendons.  Returns the next row and next entry."""
    for i in range(m.ntendon):
        present = m.tendon_frictionloss[i] > 0.0
        if sleeping(m):  # a sleeping tendon has no rows
            present = present & tendon_awake(m, d, i)
        # a length that depends on no dof has no row
        if m.ten_J_rownnz[i] > 0 and any_(present):
            adr += write_tendon_friction(m, d, k, adr, i, present)
            k += 1
    return k, adr


# ---- limits ----------------------------------------------------------------------------------------------------------
@kernel
def write_tendon_limit(m, d, k, adr, i, sign, dist, present):
    """Writes row k, its entries from adr on: a limit of tendon i.  Returns the number of entries.

    sign: +1 for the lower side, -1 for the upper one; dist: distance to the limit [m]; present: mask of worlds that
    have the row.
    """
    n, present = store_tendon_jacobian(m, d, adr, i, sign, present)
    assign_rows(d, k, size=1, adr=adr, n=n, kind=LIMIT_TENDON, ident=i)
    margin, solref, solimp = m.tendon_margin[i], m.tendon_solref_lim[i], m.tendon_solimp_lim[i]
    r = dist - margin
    v = row_product(d, k, d.qvel)
    stiffness, damping, imp = limit_reference(m, solref, solimp, r, shortest_timeconst(m))
    D = inverse_regularisation(imp, tendon_inverse_inertia(m, d, k, i))
    aref = -fma(damping, v, stiffness * r)
    store_row(d, k, present, (dist, margin), v, D, aref, bounds=(0.0, UNBOUNDED))  # the limit only pushes
    return n


@kernel
def write_tendon_limits(m, d, k, adr):
    """Writes the limits l - lower >= 0 and upper - l >= 0 of tendon lengths l that are within the margin in any world.

    Rows from k on, entries from adr on.
    Returns the next row and the next entry.
    """
    for i in range(m.ntendon):
        if m.tendon_limited[i] != 0 and m.ten_J_rownnz[i] > 0:  # without entries no dof changes the length
            for side in range(2):
                sign = 1.0 - 2.0 * side  # +1 for the lower side, -1 for the upper one
                dist = sign * (d.ten_length[i] - m.tendon_range[i][side])  # length - lower, or upper - length
                near = dist < m.tendon_margin[i]
                if sleeping(m):  # a sleeping tendon has no rows
                    near = near & tendon_awake(m, d, i)
                if any_(near):
                    adr += write_tendon_limit(m, d, k, adr, i, sign, dist, near)
                    k += 1
    return k, adr


# ---- equality --------------------------------------------------------------------------------------------------------
@kernel
def tendon_dof(m, i, c):
    """Returns the c-th dof of tendon i; nv after the end, and for i = -1."""
    return m.ten_J_colind[m.ten_J_rowadr[i] + c] if i >= 0 and c < m.ten_J_rownnz[i] else m.nv


@kernel
def store_difference_jacobian(m, d, adr, i, j, slope, present):
    """Writes entries from adr on: row i of the tendons' Jacobian minus slope times row j (-1: none), dofs ascending.

    Returns (number of entries, mask of worlds of `present` in which an entry is not 0): these worlds have the row.
    """
    n = 0  # entries written
    at_i, at_j = 0, 0  # positions in rows i and j
    nonzero = false_mask(d)
    dof_i, dof_j = tendon_dof(m, i, c=0), tendon_dof(m, j, c=0)
    # merge the dofs of both rows, which ascend
    while dof_i < m.nv or dof_j < m.nv:
        J = 0.0
        d.row_dof[adr + n] = min(dof_i, dof_j)
        if dof_i <= dof_j:
            J = d.ten_J[m.ten_J_rowadr[i] + at_i]
        if dof_j <= dof_i:
            J = fma(-slope, d.ten_J[m.ten_J_rowadr[j] + at_j], J)
        d.row_J[adr + n] = where(present, J, 0.0)
        nonzero = nonzero | (J != 0.0)
        n += 1
        at_i, at_j = at_i + (1 if dof_i <= dof_j else 0), at_j + (1 if dof_j <= dof_i else 0)
        dof_i, dof_j = tendon_dof(m, i, at_i), tendon_dof(m, j, at_j)
    return n, present & nonzero


@kernel
def equality_moves(m, e):
    """Returns whether one of the lengths of equality e depends on a dof in any state."""
    j = m.eq_obj2id[e]
    return m.ten_J_rownnz[m.eq_obj1id[e]] > 0 or (j >= 0 and m.ten_J_rownnz[j] > 0)


@kernel
def tendon_equality_error(m, d, e):
    """Returns (error, slope) of equality e of two tendons, by `coupling_error` of both changes of length."""
    i, j = m.eq_obj1id[e], m.eq_obj2id[e]
    x = d.ten_length[i] - m.tendon_length0[i]
    return coupling_error(m, e, x, d.ten_length[j] - m.tendon_length0[j] if j >= 0 else 0.0)


@kernel
def write_tendon_equality(m, d, k, adr, e, present):
    """Writes the Jacobian of row k, entries from adr on, for equality e of two tendons, or of one and a constant.

    present: mask of worlds in which e is active.
    Returns (error, A, number of entries, mask of worlds that have the row); the caller stores the error and D.
    """
    i, j = m.eq_obj1id[e], m.eq_obj2id[e]
    error, slope = tendon_equality_error(m, d, e)
    n, present = store_difference_jacobian(m, d, adr, i, j, slope, present)
    assign_rows(d, k, size=1, adr=adr, n=n, kind=EQUALITY, ident=e)
    A = tendon_inverse_inertia(m, d, k, i)  # with `diagexact` that of the row
    if j >= 0 and not wants_exact(m):
        A = A + m.tendon_invweight0[j]  # the estimate is the sum over both tendons
    return error, A, n, present


def tendon_capacity(model) -> tuple[int, int]:
    """Returns the maximum numbers of friction loss rows (editable between steps), limit rows, and their entries."""
    sides = 1 + 2 * (model.tendon_limited != 0)
    return int(sides.sum()), int((sides * model.ten_J_rownnz).sum())


def crossings(model) -> int:
    """Returns the maximum number of branch pairs coupled by rows of tendons and by metric rows of actuators."""
    rows = [(2 + 2 * int(model.tendon_limited[i]), _dofs(model, i)) for i in range(model.ntendon)]
    rows += [(1, _moment_dofs(model, q)) for q in range(model.nout)]
    rows += [(1, equality_dofs(model, e)) for e in range(model.neq) if model.eq_type[e] == EQ_TENDON]
    pairs = 0
    for count, dofs in rows:
        above = {int(model.dof_parentid[i]) for i in dofs}
        tips = len(dofs - above)  # an upper bound: dofs that are separated on one branch count, too
        pairs += count * (tips * (tips - 1) // 2)
    return pairs


def equality_dofs(model, e: int) -> set[int]:
    """Returns the dofs of the tendons of equality e."""
    return set().union(*(_dofs(model, int(i)) for i in (model.eq_obj1id[e], model.eq_obj2id[e]) if i >= 0))


def _moment_dofs(model, q: int) -> set[int]:
    """Returns the dofs of output q."""
    first = int(model.moment_rowadr[q])
    return {int(dof) for dof in model.moment_colind[first : first + int(model.moment_rownnz[q])]}


def _dofs(model, i: int) -> set[int]:
    """Returns the dofs of tendon i."""
    first = int(model.ten_J_rowadr[i])
    return {int(dof) for dof in model.ten_J_colind[first : first + int(model.ten_J_rownnz[i])]}
