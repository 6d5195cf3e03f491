"""The joint-space inertia matrix M: composite rigid bodies, L^T D L, solve and multiply.

M is stored by rows of its lower triangle: row i holds the ancestors of dof i, ascending, itself last.  So the row of an
ancestor is a prefix of the row of its descendant, and factorisation and solve touch no entry outside the pattern.
Source: Featherstone, Rigid Body Dynamics Algorithms, sec. 6.2 to 6.5.
"""

from __future__ import annotations

from featherlane.lanes import kernel, sqrt, stage
from featherlane.spatial.inertia import inert_add, inert_mul
from featherlane.spatial.motion import dot6
from featherlane.spatial.vector import load6, load10, store10

from .reflected import reflected_armature
from .tree_factor import factor_rows, multiply_rows, solve_lt_rows, solve_rows
from .tree_factor import factor_rows, multiply_rows, solve_lt_rows, solve_rows


@stage
def crb(m, d):
    """Composite-rigid-body inertias and the joint-space inertia matrix.

    I^c_i = I_i + sum over children I^c_j;  M_ij = S_j^T I^c_i S_i for each ancestor dof j of i.  Where a body is
    simple its rows are the constants dof_M0.
    Source: Featherstone sec. 6.2, eq. 6.13-6.14; MuJoCo mj_crb.
    Reads:  cinert (nbody, 10) [kg m^2, kg m, kg], cdof (nv, 6).   Writes: crb (nbody, 10), M (nC,) [kg, kg m, kg m^2].
    Frame: world axes at the tree's com, rotation first.           Cost: O(nv * depth).
    """
    for i in range(m.nbody):
        store10(d.crb, 10 * i, load10(d.cinert, 10 * i))
    for i in range(m.nbody - 1, 0, -1):
        p = m.body_parentid[i]
        if p > 0:
            store10(d.crb, 10 * p, inert_add(load10(d.crb, 10 * p), load10(d.crb, 10 * i)))
    for i in range(m.nv):
        a = m.M_rowadr[i]
        if m.dof_simplenum[i] > 0:
            d.M[a] = m.dof_M0[i]
        else:
            S = load6(d.cdof, 6 * i)
            f = inert_mul(load10(d.crb, 10 * m.dof_bodyid[i]), S)
            last = a + m.M_rownnz[i] - 1
            for k in range(a, last):
                d.M[k] = dot6(load6(d.cdof, 6 * m.M_colind[k]), f)
            d.M[last] = dot6(S, f) + (m.dof_armature[i] + reflected_armature(m, d, i))


@kernel
def factor(m, LD, inverse):
    """L^T D L of a matrix with M's pattern, in place, and 1 / D."""
    factor_rows(m.nv, m.M_rowadr, m.M_rownnz, m.M_colind, LD, inverse)


@kernel
def solve(m, LD, inverse, x):
    """x <- L^-1 D^-1 L^-T x."""
    solve_rows(m.nv, m.M_rowadr, m.M_rownnz, m.M_colind, LD, inverse, x)


@kernel
def multiply(m, M, x, y):
    """y <- M x for a symmetric matrix with M's pattern."""
    multiply_rows(m.nv, m.M_rowadr, m.M_rownnz, m.M_colind, M, x, y)


@stage
def factor_m(m, d):
    """M = L^T D L on the pattern of the tree, without fill.

    Source: Featherstone sec. 6.5, table 6.3; MuJoCo mj_factorM.
    Reads:  M (nC,).   Writes: qLD (nC,): L below the diagonal, D on it; qLDiagInv (nv,) = 1 / D.
    Cost:   O(nv * depth^2).
    """
    for k in range(m.nC):
        d.qLD[k] = d.M[k]
    factor(m, d.qLD, d.qLDiagInv)


@stage
def solve_m(m, d):
    """qvec <- M^-1 qvec.

    Source: Featherstone sec. 6.5, table 6.5; MuJoCo mj_solveM.
    Reads:  qLD, qLDiagInv, qvec.   Writes: qvec (nv,).   Cost: O(nv * depth).
    """
    solve(m, d.qLD, d.qLDiagInv, d.qvec)


@stage
def half_solve(m, d):
    """qvec <- D^-1/2 L^-T qvec, so that its square is qvec^T M^-1 qvec.

    Source: MuJoCo mj_solveM2.
    Reads:  qLD, qLDiagInv, qvec.   Writes: qvec (nv,).   Cost: O(nv * depth).
    """
    solve_lt_rows(m.nv, m.M_rowadr, m.M_rownnz, m.M_colind, d.qLD, d.qvec)
    for k in range(m.nv):
        d.qvec[k] = d.qvec[k] * sqrt(d.qLDiagInv[k])


@stage
def mul_m(m, d):
    """qproduct <- M qvec.

    Source: MuJoCo mj_mulM.
    Reads:  M, qvec.   Writes: qproduct (nv,).   Cost: O(nv * depth).
    """
    multiply_rows(m.nv, m.M_rowadr, m.M_rownnz, m.M_colind, d.M, d.qvec, d.qproduct)
