"""Computes the joint-space inertia matrix M: composite rigid bodies, L^T D L, solve and multiply.

M is stored by rows of its lower triangle: row i holds the ancestors of dof i, ascending, itself last.  So the row of an
ancestor is a prefix of the row of its descendant, and factorisation and solve touch no entry outside the pattern.
Row i starts at M_rowadr[i] and has M_rownnz[i] entries, whose DoFs are in M_colind; the last one is M_ii.
`reflected_armature` is the inertia that actuators add to a DoF, `add_tendon_armature` adds that of tendons to M.
A simple DoF (dof_simplenum[i] > 0) has a constant diagonal entry of M, dof_M0[i], and no other entries.
JACOBIAN is the layout of the record jr, whose field jac_M is the dense matrix.
`TreeRows` holds a pattern, `System` the arguments of an elimination.  `factor_columns` computes A <- L^T D L and, with
reduce=1, f <- L^-T f; `reduce_columns` x <- L^-T x; `expand_columns` x <- L^-1 D^-1 x, for up to `most` rows at a time:
4 if x[i] is a value, 2 if it is a row of values.
Source: Featherstone, Rigid Body Dynamics Algorithms, sec. 6.2 to 6.5.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.actuator.reflected import reflected_armature
from featherlane.engine.dynamics.body.jacobian import JACOBIAN
from featherlane.engine.dynamics.sparse.half_solve import half_solve_column
from featherlane.engine.dynamics.sparse.tree_factor import (
    System,
    expand_columns,
    factor_columns,
    multiply_symmetric,
    reduce_columns,
    unlisted_rows,
)
from featherlane.engine.dynamics.tendon.force import add_tendon_armature


@kernel
def is_free_joint_dof(m, i):
    """Returns whether DoF i belongs to a free joint."""
    return is_free_joint(m.jnt_type[m.dof_jntid[i]])


@kernel
def _compute_row(m, d, i, f, start, diagonal):
    """M_ij <- S_j^T f for the ancestors j of DoF i.  f = I^c S_i is the force per unit acceleration of DoF i.

    start, diagonal: addresses in M of the row's first entry and of M_ii, which is not written.
    """
    first = start
    if diagonal - start >= 3 and is_free_joint_dof(m, m.M_colind[start]):
        # the first three DoFs translate along world axes, so S_j^T f is a component of f
        d.M[start : start + 3] = f.translation
        first = start + 3
    for e in range(first, diagonal):
        d.M[e] = dot(d.cdof[m.M_colind[e]], f)


@kernel
def _compute_row_pair(m, d, i, f, f_parent, start, start_parent, nshared):
    """Computes the first nshared entries of rows i and i - 1, its parent: their columns are the same ancestors j.

    M_ij = S_j^T f with f = I^c S_i, and M_i-1,j = S_j^T f_parent with f_parent = I^c S_i-1.  Each S_j is read once for
    both rows, which takes a quarter less time.  start, start_parent: addresses of rows i and i - 1 in M.
    """
    first = 0
    if nshared >= 3 and is_free_joint_dof(m, m.M_colind[start_parent]):
        # the first three DoFs translate along world axes, so S_j^T f is a component of f
        d.M[start : start + 3] = f.translation
        d.M[start_parent : start_parent + 3] = f_parent.translation
        first = 3
    for c in range(first, nshared):
        S = d.cdof[m.M_colind[start_parent + c]]
        d.M[start + c] = dot(S, f)
        d.M[start_parent + c] = dot(S, f_parent)


@kernel
def armature(m, i):
    """Returns the armature of DoF i, of the joint and its actuators, which is added to M_ii."""
    return m.dof_armature[i] + reflected_armature(m, i)


@kernel
def _compute_rows_of_body(m, d, b, I):
    """Computes M's rows of the DoFs of body b, whose composite inertia is I, from the last DoF to the first.

    M_ij = S_j^T f with f = I S_i for each ancestor j of i, M_ii = S_i^T f + armature.  Two rows are computed at a time.
    """
    first = m.body_dofadr[b]
    i = first + m.body_dofnum[b] - 1
    while i >= first:
        start = m.M_rowadr[i]
        nancestors = m.M_rownnz[i] - 1
        if m.dof_simplenum[i] > 0:
            d.M[start] = m.dof_M0[i]  # the row's only entry
            i -= 1
        else:
            S = d.cdof[i]
            f = I @ S
            d.M[start + nancestors] = dot(S, f) + armature(m, i)
            if i > first:
                # the previous DoF is the parent: M_i,i-1, then M_i-1,i-1, then the common ancestors of both
                start_parent = m.M_rowadr[i - 1]
                S_parent = d.cdof[i - 1]
                f_parent = I @ S_parent
                d.M[start + nancestors - 1] = dot(S_parent, f)
                d.M[start_parent + nancestors - 1] = dot(S_parent, f_parent) + armature(m, i - 1)
                _compute_row_pair(m, d, i, f, f_parent, start, start_parent, nshared=nancestors - 1)
                i -= 2
            else:
                _compute_row(m, d, i, f, start, diagonal=start + nancestors)
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
    # children before their parents
    for i in range(m.nbody - 1, 0, -1):
        p = m.body_parentid[i]
        # a body without children (lastchild 0) has the composite inertia cinert
        I = d.crb[i] if m.body_lastchild[i] > 0 else d.cinert[i]
        # crb of a leaf is stored only if all outputs are requested: a step does not read it
        if d.want_all:
            d.crb[i] = I
        if p > 0:  # the world has no DoFs
            # p's last child comes first here, so it finds no sum in crb[p]
            sum_so_far = d.cinert[p] if m.body_lastchild[p] == i else d.crb[p]
            d.crb[p] = sum_so_far + I
        _compute_rows_of_body(m, d, i, I)
    add_tendon_armature(m, d)


@stage(jr=JACOBIAN)
def dense_inertia(m, d, jr):
    """Computes jac_M, the dense inertia matrix with both triangles.

    Reads:  M.
    Writes: jac_M (jac_nv, jac_nv) [kg, kg m, kg m^2].   Cost: O(nv^2).
    """
    n = jr.jac_nv
    for k in range(n * n):
        jr.jac_M[k] = 0.0
    for i in range(n):
        for e in inertia_entries(m, i):
            j = m.M_colind[e]
            # jac_M is dense by rows: entry (i, j) at n i + j
            jr.jac_M[n * i + j], jr.jac_M[n * j + i] = d.M[e], d.M[e]


@kernel
def inertia_rows(m):
    """Returns M's pattern as TreeRows: the descendants of a DoF directly follow it."""
    return unlisted_rows(n=m.nv, adr=m.M_rowadr, nnz=m.M_rownnz, col=m.M_colind, below=m.M_below)


@kernel
def factor(m, source, LD, inverse):
    """LD <- L^T D L of `source`, a matrix with M's pattern, which may be LD itself; inverse (nv,) <- 1 / D."""
    # reduce=0: no column is solved, so f is not used
    system = System(source=source, A=LD, inverse=inverse, f=inverse, inertia=1, own_diagonal=1, reduce=0)
    factor_columns(inertia_rows(m), system)


@kernel
def solve_factored(m, LD, inverse, x):
    """x <- L^-1 D^-1 L^-T x; LD: L below the diagonal, D on it; inverse (nv,): 1 / D."""
    reduce_columns(inertia_rows(m), LD, x)
    expand_columns(inertia_rows(m), LD, inverse, x, most=4)


@kernel
def solve_columns(m, LD, inverse, X):
    """Applies `solve_factored` to a panel X of four columns, a field of Vec4 rows."""
    reduce_columns(inertia_rows(m), LD, X)
    expand_columns(inertia_rows(m), LD, inverse, X, most=2)


@kernel
def factor_and_solve(m, source, LD, inverse, x, own_diagonal):
    """LD, inverse <- factor of `source`, and x <- source^-1 x; bitwise identical to `factor` and `solve_factored`.

    own_diagonal: 1 takes the diagonal of the matrix from `source`, 0 from `inverse`, which is then replaced by 1 / D.
    """
    # reduce=1: also x <- L^-T x
    system = System(source=source, A=LD, inverse=inverse, f=x, inertia=1, own_diagonal=own_diagonal, reduce=1)
    factor_columns(inertia_rows(m), system)
    expand_columns(inertia_rows(m), LD, inverse, x, most=4)


@kernel
def multiply_joint_space(m, M, x, y):
    """y <- M x for a symmetric matrix with M's pattern; x and y are columns or panels of columns."""
    multiply_symmetric(inertia_rows(m), M, x, y)


@stage
def factor_m(m, d):
    """Factors M = L^T D L on the pattern of the tree, without fill.

    Source: Featherstone sec. 6.5, table 6.3; MuJoCo mj_factorM.
    Reads:  M (nC,).
    Writes: qLD (nC,): L below the diagonal, D on it; qLDiagInv (nv,) = 1 / D.
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
    """qvec <- D^-1/2 L^-T qvec; the squared length of the result is qvec^T M^-1 qvec.

    Source: MuJoCo mj_solveM2.
    Reads:  qLD, qLDiagInv, qvec.   Writes: qvec (nv,).   Cost: O(nv * depth).
    """
    half_solve_column(inertia_rows(m), d.qLD, d.qLDiagInv, d.qvec)


@stage
def mul_m(m, d):
    """qproduct <- M qvec.

    Source: MuJoCo mj_mulM.
    Reads:  M, qvec.   Writes: qproduct (nv,).   Cost: O(nv * depth).
    """
    multiply_joint_space(m, d.M, d.qvec, d.qproduct)
