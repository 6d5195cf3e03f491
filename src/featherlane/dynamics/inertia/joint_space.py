"""Computes the joint-space inertia matrix M: composite rigid bodies, L^T D L, solve and multiply.

M is stored by rows of its lower triangle: row i holds the ancestors of dof i, ascending, itself last.  So the row of an
ancestor is a prefix of the row of its descendant, and factorisation and solve touch no entry outside the pattern.
Source: Featherstone, Rigid Body Dynamics Algorithms, sec. 6.2 to 6.5.
"""

from featherlane.prelude import *
from featherlane.dynamics.actuator.reflected import reflected_armature
from featherlane.dynamics.body.jacobian import JACOBIAN
from featherlane.dynamics.sparse.tree_factor import (
    System,
    TreeRows,
    expand_columns,
    factor_columns,
    multiply_rows,
    solve_lt_columns,
)
from featherlane.dynamics.sparse.tree_panel import expand_panel, multiply_panel, reduce_panel
from featherlane.dynamics.tendon.force import add_tendon_armature


@kernel
def is_of_free(m, i):
    """Returns whether DoF i belongs to a free joint."""
    return is_free_joint(m.jnt_type[m.dof_jntid[i]])


@kernel
def _row(m, d, i, f, a, last):
    """Computes row i of M from the force f that moves the composite body with unit acceleration of DoF i."""
    start = a
    if last - a >= 3 and is_of_free(m, m.M_colind[a]):
        # translation axes are world axes: no product
        d.M[a : a + 3] = f.translation
        start = a + 3
    for k in range(start, last):
        d.M[k] = dot(d.cdof[m.M_colind[k]], f)


@kernel
def _row_pair(m, d, i, f, g, a, b, above):
    """Computes rows i and i - 1, its parent: each S_j is read once for both, which takes a quarter less time."""
    start = 0
    if above >= 3 and is_of_free(m, m.M_colind[b]):
        d.M[a : a + 3] = f.translation
        d.M[b : b + 3] = g.translation
        start = 3
    for c in range(start, above):
        S = d.cdof[m.M_colind[b + c]]
        d.M[a + c] = dot(S, f)
        d.M[b + c] = dot(S, g)


@kernel
def _armature(m, i):
    """Returns the armature on the diagonal."""
    return m.dof_armature[i] + reflected_armature(m, i)


@kernel
def _rows_of_body(m, d, b, I):
    """Computes M's rows of the DoFs of body b, whose composite inertia is I."""
    first = m.body_dofadr[b]
    i = first + m.body_dofnum[b] - 1
    while i >= first:
        a, above = m.M_rowadr[i], m.M_rownnz[i] - 1
        if m.dof_simplenum[i] > 0:
            d.M[a] = m.dof_M0[i]
            i -= 1
        else:
            S = d.cdof[i]
            f = I @ S
            d.M[a + above] = dot(S, f) + _armature(m, i)
            if i > first:
                # the previous DoF is the parent
                c = m.M_rowadr[i - 1]
                T = d.cdof[i - 1]
                g = I @ T
                d.M[a + above - 1] = dot(T, f)
                d.M[c + above - 1] = dot(T, g) + _armature(m, i - 1)
                _row_pair(m, d, i, f, g, a, c, above - 1)
                i -= 2
            else:
                _row(m, d, i, f, a, a + above)
                i -= 1


@stage
def crb(m, d):
    """Computes composite-rigid-body inertias and the joint-space inertia matrix.

    I^c_i = I_i + sum over children I^c_j;  M_ij = S_j^T I^c_i S_i for each ancestor DoF j of i.  If a body is
    simple its rows are the constants dof_M0.  Armature of tendons is added on M's pattern: M += J^T a J.  M is the
    lower triangle by rows on the tree's pattern (`model.M_rowadr`, `M_rownnz`, `M_colind`); `full_m` shows it dense.
    Source: Featherstone sec. 6.2, eq. 6.13-6.14; MuJoCo mj_makeM.
    Reads:  cinert (nbody, 10) [kg m^2, kg m, kg], cdof (nv, 6), ten_J (nJten,).
    Writes: crb (nbody, 10), M (nC,) [kg, kg m, kg m^2].
    Frame: world axes at the tree's com, rotation first.   Cost: O(nv * depth).
    """
    d.crb[0] = d.cinert[0]
    for i in range(m.nbody - 1, 0, -1):
        p = m.body_parentid[i]
        # a parent's sum begins with its last child; a leaf is its own
        I = d.crb[i] if m.body_lastchild[i] > 0 else d.cinert[i]
        if d.want_all:
            d.crb[i] = I
        if p > 0:
            rest = d.cinert[p] if m.body_lastchild[p] == i else d.crb[p]
            d.crb[p] = rest + I
        _rows_of_body(m, d, i, I)
    add_tendon_armature(m, d)


@stage(jr=JACOBIAN)
def dense_inertia(m, d, jr):
    """Computes the dense inertia matrix, both halves.

    Reads:  M.
    Writes: jac_M (jac_nv, jac_nv) [kg, kg m, kg m^2].   Cost: O(nv^2).
    """
    n = jr.jac_nv
    for k in range(n * n):
        jr.jac_M[k] = 0.0
    for i in range(n):
        for k in range(m.M_rowadr[i], m.M_rowadr[i] + m.M_rownnz[i]):
            j = m.M_colind[k]
            jr.jac_M[n * i + j], jr.jac_M[n * j + i] = d.M[k], d.M[k]


@kernel
def inertia_rows(m):
    """Returns M's pattern, where descendants directly follow each row."""
    return TreeRows(m.nv, m.M_rowadr, m.M_rownnz, m.M_colind, m.M_below, m.M_below, m.M_below)


@kernel
def factor(m, source, LD, inverse):
    """LD <- L^T D L of a matrix with M's pattern, which may be LD itself, and 1 / D."""
    factor_columns(inertia_rows(m), listed=0, system=System(source, LD, inverse, inverse, 1), own=1, reduce=0)


@kernel
def solve_factored(m, LD, inverse, x):
    """x <- L^-1 D^-1 L^-T x."""
    solve_lt_columns(inertia_rows(m), LD, x)
    expand_columns(inertia_rows(m), LD, inverse, x)


@kernel
def solve_columns(m, LD, inverse, X):
    """Applies `solve_factored` to a panel of columns."""
    reduce_panel(inertia_rows(m), listed=0, L=LD, X=X)
    expand_panel(inertia_rows(m), LD, inverse, X)


@kernel
def factor_and_solve(m, source, LD, inverse, x, own):
    """Factors and solves in one sweep, bitwise identical to both; own: 0 takes the diagonal from `inverse`."""
    factor_columns(inertia_rows(m), listed=0, system=System(source, LD, inverse, x, 1), own=own, reduce=1)
    expand_columns(inertia_rows(m), LD, inverse, x)


@kernel
def multiply_joint_space(m, M, x, y):
    """y <- M x for a symmetric matrix with M's pattern."""
    multiply_rows(inertia_rows(m), M, x, y)


@kernel
def multiply_columns(m, M, X, Y):
    """Applies `multiply_joint_space` to a panel of columns."""
    multiply_panel(inertia_rows(m), M, X, Y)


@stage
def factor_m(m, d):
    """Factors M = L^T D L on the pattern of the tree, without fill.

    Source: Featherstone sec. 6.5, table 6.3; MuJoCo mj_factorM.
    Reads:  M (nC,).
    Writes: qLD (nC,): L below the diagonal, D on it; qLDiagInv (nv,) = 1 / D.
    .
    Cost:   O(nv * depth^2).
    """
    factor(m, d.M, d.qLD, d.qLDiagInv)


@stage
def solve_m(m, d):
    """qvec <- M^-1 qvec.

    Source: Featherstone sec. 6.5, table 6.5; MuJoCo mj_solveM.
    Reads:  qLD, qLDiagInv, qvec.   Writes: qvec (nv,).   Cost: O(nv * depth).
    """
    solve_factored(m, d.qLD, d.qLDiagInv, d.qvec)


@stage
def half_solve(m, d):
    """qvec <- D^-1/2 L^-T qvec, so that its square is qvec^T M^-1 qvec.

    Source: MuJoCo mj_solveM2.
    Reads:  qLD, qLDiagInv, qvec.   Writes: qvec (nv,).   Cost: O(nv * depth).
    """
    solve_lt_columns(inertia_rows(m), d.qLD, d.qvec)
    for k in range(m.nv):
        d.qvec[k] = d.qvec[k] * sqrt(d.qLDiagInv[k])


@stage
def mul_m(m, d):
    """qproduct <- M qvec.

    Source: MuJoCo mj_mulM.
    Reads:  M, qvec.   Writes: qproduct (nv,).   Cost: O(nv * depth).
    """
    multiply_rows(inertia_rows(m), d.M, d.qvec, d.qproduct)
