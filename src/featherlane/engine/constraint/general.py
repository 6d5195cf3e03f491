"""General rows as slots of a tile: a slot exists if any world has the row; it holds zeros for the other worlds.

A row has one Jacobian entry per dof, in ascending order.  Rows with the same dofs are contiguous.
"""

from featherlane.engine.prelude import *


@kernel
def row_entries(d, k):
    """Returns the range of the entries of scalar row k in row_dof and row_J."""
    return range(d.row_dofadr[k], d.row_dofadr[k] + d.row_dofnum[k])


@kernel
def assign_dof_row(d, k, i, kind, ident):
    """Assigns dof i to the one-dof row k, of type `kind` (mjtConstraint); ident: id of the dof or joint.

    One-dof rows come first: entry k is that of row k.
    """
    d.row_dofadr[k] = k
    d.row_dofnum[k], d.row_rownum[k] = 1, 1
    d.row_dof[k], d.row_type[k], d.row_id[k] = i, kind, ident


@kernel
def assign_rows(d, k, size, adr, n, kind, ident):
    """Assigns the n dofs in row_dof from entry adr on to rows k .. k + size - 1, of type `kind` (mjtConstraint).

    ident: id of the equality, joint or tendon.  Entries are stored row by row: row k + r begins at entry adr + r n.
    """
    for r in range(size):
        d.row_dofadr[k + r] = adr + r * n
        d.row_dofnum[k + r] = n
        d.row_rownum[k + r] = size - r  # number of rows with these dofs from row k + r on
        d.row_type[k + r] = kind
        d.row_id[k + r] = ident
        # the first row's dofs are already stored; the next rows get copies
        for e in range(n if r > 0 else 0):
            d.row_dof[adr + r * n + e] = d.row_dof[adr + e]


@kernel
def row_parameters(m, kind, ident):
    """Returns (solref, solimp) of a scalar row of type `kind` (mjtConstraint); ident: its dof, joint, tendon, equality.

    A row of any other type is the limit of joint `ident`.
    """
    if kind == EQUALITY:
        solref, solimp = m.eq_solref[ident], m.eq_solimp[ident]
    elif kind == FRICTION_DOF:
        solref, solimp = m.dof_solref[ident], m.dof_solimp[ident]
    elif kind == FRICTION_TENDON:
        solref, solimp = m.tendon_solref_fri[ident], m.tendon_solimp_fri[ident]
    elif kind == LIMIT_TENDON:
        solref, solimp = m.tendon_solref_lim[ident], m.tendon_solimp_lim[ident]
    else:
        solref, solimp = m.jnt_solref[ident], m.jnt_solimp[ident]
    return solref, solimp


@kernel
def row_product(d, k, v):
    """Returns J v of scalar row k, of a joint-space vector v."""
    x = 0.0
    for e in row_entries(d, k):
        x = fma(d.row_J[e], v[d.row_dof[e]], x)
    return x


@kernel
def add_joint_force(d, k, f, out):
    """Adds J^T f of scalar row k to a joint-space vector."""
    for e in row_entries(d, k):
        i = d.row_dof[e]
        out[i] = fma(d.row_J[e], f, out[i])


@kernel
def store_row(d, k, present, error, vel, D, aref, bounds):
    """Writes the fields of row k, whose Jacobian is already stored; zeros in worlds outside the mask `present`.

    error: (position error, margin); vel: J qvel; D = 1 / R; aref: reference acceleration; bounds: least and greatest
    force.
    """
    d.row_present[k] = where(present, 1.0, 0.0)
    d.row_pos[k] = where(present, error[0], 0.0)
    d.row_margin[k] = where(present, error[1], 0.0)
    d.row_vel[k] = where(present, vel, 0.0)
    d.row_D[k] = where(present, D, 0.0)
    d.row_aref[k] = where(present, aref, 0.0)
    d.row_lo[k] = where(present, bounds[0], 0.0)
    d.row_hi[k] = where(present, bounds[1], 0.0)


@kernel
def coupling_error(m, e, x, y):
    """Returns (error, slope) of equality e of two joints or tendons; slope: prescribed derivative of x by y.

        error = x - (a_0 + a_1 y + a_2 y^2 + a_3 y^3 + a_4 y^4),    slope = a_1 + 2 a_2 y + 3 a_3 y^2 + 4 a_4 y^3
    x, y: displacements of the first and the second object from qpos0.  Without a second object, error = x - a_0.
    """
    first = NEQDATA * e  # eq_data: a_0 .. a_4
    error = x - m.eq_data[first]
    slope = 0.0
    if m.eq_obj2id[e] >= 0:
        a1, a2, a3, a4 = m.eq_data[first + 1 : first + 5]
        # the polynomial without a_0, and its derivative, by Horner's scheme
        error = error - y * fma(y, fma(y, fma(y, a4, a3), a2), a1)
        slope = fma(y, fma(y, fma(y, 4.0 * a4, 3.0 * a3), 2.0 * a2), a1)
    return error, slope
