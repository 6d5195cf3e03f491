"""The inertia of a step under the LCP contact model, and the acceleration due to forces.

Joint damping acts at the end of the step, as under Euler: Mh = M + h B, B the rates of the damping forces, and

    v' = v + h Mh^-1 (f + J^T x).

With Mh = L^T D L a row J of the Jacobian becomes y = J L^-1 D^-1/2, so that J Mh^-1 J^T = Y Y^T, and with z = Y^T x

    J^T x = L^T D^1/2 z,      Mh^-1 J^T x = L^-1 D^-1/2 z.

So the mapping back to the dofs needs no Jacobian, for any rows.
Symbols: r: a row of the LCP;  i, j: dofs.   Layout: qH holds the rows of L: row i at M_rowadr[i], at the columns
    M_colind, its last entry is the diagonal.  Row r of Y: lcp.Y[rowadr[r] + k] at column lcp.col[coladr[r] + k].
    FAR: 1e30; a number that is not smaller counts as out of range.   `expand_columns`: x <- L^-1 D^-1 x, in place.
Source: MuJoCo, chapter Computation, numerical integration (Euler); Featherstone, RBDA, sec. 6.5.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.inertia.joint_space import factor_and_solve, inertia_rows
from featherlane.engine.dynamics.integrator.integrate import store_damped_diagonal
from featherlane.engine.dynamics.sparse.tree_factor import expand_columns
from featherlane.engine.solver.primal.line_search import FAR
from featherlane.engine.solver.vectors import clear_vector, copy_vector


@kernel
def factor_step_inertia(m, d):
    """Computes the factor of Mh in qH and qHDiagInv, qacc_step = Mh^-1 f, and lcp.scale = D^-1/2.

    Reads:  M (nC,), qfrc_smooth (nv,), qvel.   Writes: qH (nC,), qHDiagInv, qacc_step, lcp.scale (nv,).
    """
    copy_vector(m, d.qfrc_smooth, d.qacc_step)
    # qHDiagInv is first the diagonal of Mh, then 1 / D;  qacc_step is first f, then Mh^-1 f
    if m.opt_disableflags & (DISABLE_EULERDAMP | DISABLE_DAMPER):  # no damping at the end of the step: Mh = M
        for i in range(m.nv):
            d.qHDiagInv[i] = d.M[m.M_rowadr[i] + m.M_rownnz[i] - 1]
    else:
        store_damped_diagonal(m, d, articulated=0)  # writes qHDiagInv = diagonal of M + h B
    # Mh is M with the diagonal in qHDiagInv, not its own (own_diagonal=0); writes qH, and qHDiagInv = 1 / D
    factor_and_solve(m, d.M, d.qH, d.qHDiagInv, d.qacc_step, own_diagonal=0)
    for i in range(m.nv):
        d.lcp.scale[i] = sqrt(d.qHDiagInv[i])


@kernel
def sum_solution_rows(m, d):
    """Computes lcp.z = Y^T x, row by row: z_i += Y_ri x_r for each entry of row r."""
    clear_vector(m, d.lcp.z)
    for r in range(d.lcp.n[0]):
        column, entry, x = d.lcp.coladr[r], d.lcp.rowadr[r], d.lcp.x[r]
        for k in range(d.lcp.colnum[r]):
            i = d.lcp.col[column + k]
            d.lcp.z[i] = fma(d.lcp.Y[entry + k], x, d.lcp.z[i])


@kernel
def accelerate_by_rows(m, d):
    """Computes qfrc_constraint = L^T D^1/2 z and qacc = Mh^-1 f + L^-1 D^-1/2 z, so that v' = v + h qacc.

    In a world with an acceleration that is not below FAR, every constraint force becomes FAR.  This replaces
    NaNs that could depend on the other worlds: if Mh is singular, a row that this world lacks may have added 0 * inf.
    """
    for i in range(m.nv):
        # (D^1/2 z)_i, since lcp.scale = D^-1/2
        scaled = d.lcp.z[i] / d.lcp.scale[i]
        d.qacc[i] = scaled
        d.qfrc_constraint[i] = scaled
    # qfrc_constraint = L^T (D^1/2 z)
    for i in range(m.nv):
        rowadr, scaled = m.M_rowadr[i], d.qacc[i]
        for entry in range(rowadr, rowadr + m.M_rownnz[i] - 1):  # entries before the diagonal, which is 1 in L
            j = m.M_colind[entry]
            d.qfrc_constraint[j] = fma(d.qH[entry], scaled, d.qfrc_constraint[j])
    # qacc = L^-1 D^-1 (D^1/2 z)
    expand_columns(inertia_rows(m), d.qH, d.qHDiagInv, d.qacc, most=4)  # most: rows at once, for speed
    broken = false_mask(d)  # worlds with an acceleration that is out of range
    for i in range(m.nv):
        # absent rows may have changed the sign of a zero: + 0 restores it
        d.qacc[i] = (d.qacc_step[i] + d.qacc[i]) + 0.0
        broken = broken | not_(fabs(d.qacc[i]) < FAR)
    for i in range(m.nv):
        d.qfrc_constraint[i] = where(broken, FAR, d.qfrc_constraint[i] + 0.0)
