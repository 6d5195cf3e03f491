"""General rows as slots of a tile: a slot exists if any world has the row; it holds zeros for the other worlds.

A row has one Jacobian entry per dof, in ascending order.  Rows with the same dofs are contiguous.
"""

from featherlane.prelude import *


@kernel
def place_rows_at(d, k, size, o, n, kind, ident):
    """Assigns the n dofs in genrow_dof from entry o on to rows k .. k + size - 1, of type `kind` (mjtConstraint).

    ident: id of the equality, joint or tendon.  Entries are stored row by row: row k + r begins at entry o + r n.
    """
    for r in range(size):
        d.genrow_dofadr[k + r] = o + r * n
        d.genrow_dofnum[k + r] = n
        d.genrow_rownum[k + r] = size - r
        d.genrow_type[k + r] = kind
        d.genrow_id[k + r] = ident
        # the first row's dofs are already stored; the others have the same
        for e in range(n if r > 0 else 0):
            d.genrow_dof[o + r * n + e] = d.genrow_dof[o + e]


@kernel
def general_velocity(d, k):
    """Returns J v of row k."""
    first, v = d.genrow_dofadr[k], 0.0
    for e in range(first, first + d.genrow_dofnum[k]):
        v = fma(d.genrow_J[e], d.qvel[d.genrow_dof[e]], v)
    return v


@kernel
def store_general_row(d, k, present, pos, margin, D, aref, bounds):
    """Writes the fields of row k, whose Jacobian is already stored; zeros in worlds outside the mask `present`.

    pos, margin: position error and margin; D = 1 / R; aref: reference acceleration; bounds: least and greatest force.
    """
    d.genrow_present[k] = where(present, 1.0, 0.0)
    d.genrow_pos[k] = where(present, pos, 0.0)
    d.genrow_margin[k] = where(present, margin, 0.0)
    d.genrow_vel[k] = where(present, general_velocity(d, k), 0.0)
    d.genrow_D[k] = where(present, D, 0.0)
    d.genrow_aref[k] = where(present, aref, 0.0)
    d.genrow_lo[k] = where(present, bounds[0], 0.0)
    d.genrow_hi[k] = where(present, bounds[1], 0.0)


@kernel
def row_parameters(m, kind, i):
    """Returns (solref, solimp) of a general row of type `kind`; i: its equality, joint or tendon."""
    tendon = m.tendon[i]
    if kind == EQUALITY:
        solref, solimp = m.eq_solref[i], m.eq_solimp[i]
    elif kind == LIMIT_JOINT:
        solref, solimp = m.jnt_solref[i], m.jnt_solimp[i]
    elif kind == LIMIT_TENDON:
        solref, solimp = tendon.solref_lim, tendon.solimp_lim
    else:
        solref, solimp = tendon.solref_fri, tendon.solimp_fri
    return solref, solimp
