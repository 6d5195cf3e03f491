"""Derivatives of smooth forces by velocity, as far as implicit integration needs them."""

from __future__ import annotations

from featherlane.lanes import any_, fabs, fma, kernel, real, where
from featherlane.spatial.vector import (
    add3,
    cross,
    load3,
    load9,
    mat_mul,
    mat_mul_vec,
    mat_t_mul_vec,
    scale3,
    store3,
    sub3,
)

from .actuation import force_rate, is_disabled
from .flags import DISABLE_ACTUATION, DISABLE_DAMPER, FREE, joint_dofs
from .reflected import damping


@kernel
def polynomial_rate(b, c, e, v):
    """d/dv of v (b + c |v| + e v^2)."""
    s = fabs(v)
    return fma(s, fma(3.0 * e, s, 2.0 * c), b)


@kernel
def damping_rate(m, d, i):
    """-d(damping force) / d qvel of dof i: b + 2 c |v| + 3 e v^2."""
    b, c, e = damping(m, d, i)
    return polynomial_rate(b, c, e, d.qvel[i])


@kernel
def add_actuator_rates(m, d):
    """qH -= h moment^T (d force / d velocity) moment, where M's pattern has the entry."""
    h = m.opt_timestep[0]
    for i in range(m.nactuator):
        if not is_disabled(m, i):
            s = -(h * force_rate(m, d, i))
            j, o = m.actuator_trnid[2 * i], 6 * m.actuator_outadr[i]
            v = m.jnt_dofadr[j]
            for r in range(joint_dofs(m.jnt_type[j])):
                last = m.M_rowadr[v + r] + m.M_rownnz[v + r] - 1
                for c in range(r + 1):
                    if r - c < m.M_rownnz[v + r]:
                        product = d.actuator_moment[o + r] * d.actuator_moment[o + c]
                        d.qH[last - r + c] = fma(s, product, d.qH[last - r + c])


@kernel
def add_diagonal_actuator_rates(m, d):
    """The same for the diagonal in qHDiagInv, where actuators act on slides and hinges only."""
    h = m.opt_timestep[0]
    for i in range(m.nactuator):
        if not is_disabled(m, i):
            v, g = m.jnt_dofadr[m.actuator_trnid[2 * i]], d.actuator_moment[6 * m.actuator_outadr[i]]
            d.qHDiagInv[v] = fma(-(h * force_rate(m, d, i)), g * g, d.qHDiagInv[v])


# ---- free bodies that stand alone ----------------------------------------------------------------------


@kernel
def _load_block(m, d, M, v):
    """block <- M of the six dofs from v on."""
    zero = real(d, 0.0)
    for k in range(36):
        d.block[k] = zero
    for r in range(6):
        number = m.M_rownnz[v + r]
        last = m.M_rowadr[v + r] + number - 1
        for c in range(r + 1):
            if r - c < number:
                d.block[6 * r + c] = M[last - r + c]
                d.block[6 * c + r] = M[last - r + c]


@kernel
def _fill_block(m, d, j):
    """block <- M - h D for the six dofs of free joint j, without gyroscopic terms."""
    h, v = m.opt_timestep[0], m.jnt_dofadr[j]
    _load_block(m, d, d.M, v)
    if not (m.opt_disableflags & DISABLE_DAMPER):
        for r in range(6):
            d.block[7 * r] = fma(h, damping_rate(m, d, v + r), d.block[7 * r])
    if not (m.opt_disableflags & DISABLE_ACTUATION):
        for i in range(m.nactuator):
            if m.actuator_trnid[2 * i] == j and not is_disabled(m, i):
                s, o = -(h * force_rate(m, d, i)), 6 * m.actuator_outadr[i]
                for r in range(6):
                    for c in range(6):
                        product = d.actuator_moment[o + r] * d.actuator_moment[o + c]
                        d.block[6 * r + c] = fma(s, product, d.block[6 * r + c])


@kernel
def _add_gyroscopic(m, d, i, v):
    """block += h d(bias) / d qvel of free body i.

    With angular velocity w, offset s of the centre of mass and inertia I about it, in world axes, the bias is the force
    f = m w x (w x s) and the moment s x f + w x I w; turning changes w by a body axis.
    """
    h, mass = m.opt_timestep[0], m.body_mass[i]
    R, X, moments = load9(d.xmat, 9 * i), load9(d.ximat, 9 * i), load3(m.body_inertia, 3 * i)
    s = sub3(load3(d.xipos, 3 * i), load3(d.xpos, 3 * i))
    w = mat_mul_vec(R, load3(d.qvel, v + 3))
    ws, momentum = cross(w, s), _inertia_times(X, moments, w)
    for k in range(3):
        axis = (d.xmat[9 * i + k], d.xmat[9 * i + 3 + k], d.xmat[9 * i + 6 + k])
        df = scale3(mass, add3(cross(axis, ws), cross(w, cross(axis, s))))
        turned = add3(cross(axis, momentum), cross(w, _inertia_times(X, moments, axis)))
        dm = mat_t_mul_vec(R, add3(cross(s, df), turned))
        _add_to_column(d, 3 + k, h, df)
        _add_to_column(d, 21 + k, h, dm)


@kernel
def _add_to_column(d, a, h, x):
    """block += h x down a column, from entry a on."""
    d.block[a] = fma(h, x[0], d.block[a])
    d.block[a + 6] = fma(h, x[1], d.block[a + 6])
    d.block[a + 12] = fma(h, x[2], d.block[a + 12])


@kernel
def _inertia_times(X, moments, x):
    """X diag(moments) X^T x."""
    y = mat_t_mul_vec(X, x)
    return mat_mul_vec(X, (moments[0] * y[0], moments[1] * y[1], moments[2] * y[2]))


@kernel
def _quarter(d, r, c):
    """The 3 x 3 matrix at row r, column c of the block."""
    a = 6 * r + c
    b = d.block
    return b[a], b[a + 1], b[a + 2], b[a + 6], b[a + 7], b[a + 8], b[a + 12], b[a + 13], b[a + 14]


@kernel
def _inverse(A):
    """(inverse, mask of worlds where it exists) of a 3 x 3 matrix, by cofactors: no pivot can vanish."""
    c0 = fma(A[4], A[8], -(A[5] * A[7]))
    c1 = fma(A[5], A[6], -(A[3] * A[8]))
    c2 = fma(A[3], A[7], -(A[4] * A[6]))
    det = fma(A[0], c0, fma(A[1], c1, A[2] * c2))
    exists = det != 0.0
    s = 1.0 / where(exists, det, 1.0)
    return (
        s * c0,
        s * fma(A[2], A[7], -(A[1] * A[8])),
        s * fma(A[1], A[5], -(A[2] * A[4])),
        s * c1,
        s * fma(A[0], A[8], -(A[2] * A[6])),
        s * fma(A[2], A[3], -(A[0] * A[5])),
        s * c2,
        s * fma(A[1], A[6], -(A[0] * A[7])),
        s * fma(A[0], A[4], -(A[1] * A[3])),
    ), exists


@kernel
def _solve_block(d, f, g):
    """(x, y, mask) with block (x, y) = (f, g): the linear part first, then its Schur complement."""
    B, C = _quarter(d, 0, 3), _quarter(d, 3, 0)
    P, first = _inverse(_quarter(d, 0, 0))
    E, CP = _quarter(d, 3, 3), mat_mul(C, P)
    F = mat_mul(CP, B)
    S = (
        E[0] - F[0],
        E[1] - F[1],
        E[2] - F[2],
        E[3] - F[3],
        E[4] - F[4],
        E[5] - F[5],
        E[6] - F[6],
        E[7] - F[7],
        E[8] - F[8],
    )
    Q, second = _inverse(S)
    y = mat_mul_vec(Q, sub3(g, mat_mul_vec(CP, f)))
    x = mat_mul_vec(P, sub3(f, mat_mul_vec(B, y)))
    return x, y, first & second


@kernel
def _is_free_tree(m, i):
    """Is body i a tree whose only joint is free?"""
    j = m.body_jntadr[i]
    return m.body_jntnum[i] == 1 and m.jnt_type[j] == FREE and m.tree_dofnum[m.body_treeid[i]] == 6


@kernel
def _multiply_block(d, v, mask, x, y):
    """y <- block x for the six dofs from v on."""
    for r in range(6):
        s = real(d, 0.0)
        for c in range(6):
            s = fma(d.block[6 * r + c], x[v + c], s)
        y[v + r] = where(mask, s, y[v + r])


@kernel
def multiply_free_bodies(m, d, x, y):
    """y <- (M - h D) x in the rows of free bodies that stand alone, with their gyroscopic derivatives."""
    for i in range(1, m.nbody):
        if _is_free_tree(m, i):
            alone = m.body_subtreemass[i] == m.body_mass[i]
            if any_(alone):
                v = m.jnt_dofadr[m.body_jntadr[i]]
                _fill_block(m, d, m.body_jntadr[i])
                _add_gyroscopic(m, d, i, v)
                _multiply_block(d, v, alone, x, y)


@kernel
def solve_free_bodies(m, d):
    """qacc_step of free bodies that stand alone, with their gyroscopic derivatives.

    A body stands alone where its tree has no other dof and no other mass.
    """
    for i in range(1, m.nbody):
        if _is_free_tree(m, i):
            alone = m.body_subtreemass[i] == m.body_mass[i]
            if any_(alone):
                v = m.jnt_dofadr[m.body_jntadr[i]]
                _fill_block(m, d, m.body_jntadr[i])
                _add_gyroscopic(m, d, i, v)
                f = add3(load3(d.qfrc_smooth, v), load3(d.qfrc_constraint, v))
                g = add3(load3(d.qfrc_smooth, v + 3), load3(d.qfrc_constraint, v + 3))
                x, y, solved = _solve_block(d, f, g)
                solved = solved & alone
                old, turning = load3(d.qacc_step, v), load3(d.qacc_step, v + 3)
                store3(d.qacc_step, v, _choose(solved, x, old))
                store3(d.qacc_step, v + 3, _choose(solved, y, turning))


@kernel
def _untouched(m, d, i, v):
    """Mask: body i stands alone and nothing acts on it that `discrete` solves for."""
    return (m.body_subtreemass[i] == m.body_mass[i]) & (d.dof_touched[v] == 0.0)


@kernel
def solve_untouched_bodies(m, d, M, force, x):
    """x <- (M + h d(bias) / d qvel)^-1 force at free bodies that stand alone and are not touched; M is a metric."""
    for i in range(1, m.nbody):
        if _is_free_tree(m, i):
            v = m.jnt_dofadr[m.body_jntadr[i]]
            alone = _untouched(m, d, i, v)
            if any_(alone):
                _load_block(m, d, M, v)
                _add_gyroscopic(m, d, i, v)
                y, z, solved = _solve_block(d, load3(force, v), load3(force, v + 3))
                store3(x, v, _choose(solved & alone, y, load3(x, v)))
                store3(x, v + 3, _choose(solved & alone, z, load3(x, v + 3)))


@kernel
def multiply_untouched_bodies(m, d, M, x, y):
    """y <- (M + h d(bias) / d qvel) x at the same bodies."""
    for i in range(1, m.nbody):
        if _is_free_tree(m, i):
            v = m.jnt_dofadr[m.body_jntadr[i]]
            alone = _untouched(m, d, i, v)
            if any_(alone):
                _load_block(m, d, M, v)
                _add_gyroscopic(m, d, i, v)
                _multiply_block(d, v, alone, x, y)


@kernel
def _choose(mask, a, b):
    """a where the mask holds, else b, component by component."""
    return where(mask, a[0], b[0]), where(mask, a[1], b[1]), where(mask, a[2], b[2])
