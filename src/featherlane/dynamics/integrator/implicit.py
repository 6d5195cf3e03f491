"""Implements the integrator `implicit`: all velocity derivatives of smooth forces, and a nonsymmetric factorization.

M - h qDeriv has M's pattern in both triangles.  Elimination from the last DoF to the first preserves the pattern: row
and column of DoF k contain only its ancestors, whose mutual entries are in the pattern.

Row i of such a matrix (nD,) starts at D_rowadr[i]: first the D_diag[i] ancestors, then the diagonal, then the
descendants, each in ascending order (columns in D_colind).  The descendants are the DoFs that directly follow i, so
entry (i, k) of a descendant k is k - i places after the diagonal.
FULL is this pattern in sparse/outer.py.

diagonal_address(m, i, FULL) is the address of entry (i, i).

Source: Featherstone, Rigid Body Dynamics Algorithms, sec. 6.5 (the symmetric case); MuJoCo mj_implicit.
"""

from featherlane.prelude import *
from featherlane.dynamics.integrator.integrate import advance_state
from featherlane.dynamics.integrator.velocity_derivative import smooth_vel
from featherlane.dynamics.sparse.outer import FULL, diagonal_address


@kernel
def _address(m, i, c, j):
    """Returns the address of entry (i, j) of two DoFs on one path to the root, where j has index c on that path."""
    return m.D_rowadr[i] + c if j <= i else diagonal_address(m, i, FULL) + j - i


@kernel
def factor_lu(m, A, inverse):
    """Factors A = U L in place, L with a unit diagonal; inverse <- 1 / diagonal of U.

    From the last k to the first: L_kj = A_kj / A_kk; A_ij -= U_ik L_kj for all i, j above k.
    """
    for k in range(m.nv - 1, -1, -1):
        row_k, nancestors = m.D_rowadr[k], m.D_diag[k]
        A_kk = A[row_k + nancestors]
        inverse_k = 1.0 / where(fabs(A_kk) < MINVAL, MINVAL, A_kk)  # may be negative
        inverse[k] = inverse_k
        for c in range(nancestors):
            A[row_k + c] = A[row_k + c] * inverse_k
        for r in range(nancestors):
            i = m.D_colind[row_k + r]
            U_ik = A[diagonal_address(m, i, FULL) + k - i]
            for c in range(nancestors):
                e = _address(m, i, c, m.D_colind[row_k + c])
                A[e] = fma(-U_ik, A[row_k + c], A[e])


@kernel
def solve_lu(m, A, inverse, x):
    """x <- L^-1 U^-1 x, with the factors of `factor_lu` in A and 1 / U_kk in `inverse`.

    From the last k: x_k /= U_kk, x_i -= U_ik x_k for ancestors i.  From the first k: x_k -= sum of L_ki x_i.
    """
    for k in range(m.nv - 1, -1, -1):
        row_k = m.D_rowadr[k]
        x_k = x[k] * inverse[k]
        x[k] = x_k
        for c in range(m.D_diag[k]):
            i = m.D_colind[row_k + c]
            x[i] = fma(-A[diagonal_address(m, i, FULL) + k - i], x_k, x[i])
    for k in range(m.nv):
        row_k, x_k = m.D_rowadr[k], x[k]
        for c in range(m.D_diag[k]):
            x_k = fma(-A[row_k + c], x[m.D_colind[row_k + c]], x_k)
        x[k] = x_k


@kernel
def _assemble_implicit_matrix(m, d):
    """qLU <- M - h qDeriv: M_ij is added to entries (i, j) and (j, i)."""
    h = timestep(m)
    for e in range(m.nD):
        d.qLU[e] = -(h * d.qDeriv[e])
    for i in range(m.nv):
        row_M, number = m.M_rowadr[i], m.M_rownnz[i]
        # the last entry of M's row is on the diagonal; a simple body's row has only this one
        first = diagonal_address(m, i, FULL) + 1 - number
        for c in range(number):
            d.qLU[first + c] = d.qLU[first + c] + d.M[row_M + c]
        for c in range(number - 1):
            j = m.M_colind[row_M + c]
            ji = diagonal_address(m, j, FULL) + i - j
            d.qLU[ji] = d.qLU[ji] + d.M[row_M + c]


@kernel
def implicit_reads_inertia(m):
    """Returns True: M is needed in every step."""
    return True


@kernel
def implicit_acceleration(m, d):
    """qacc_step <- (M - h D)^-1 (qfrc_smooth + qfrc_constraint).

    Writes: qDeriv (D) by `smooth_vel`; qLU, qHDiagInv: the factors of M - h D, which `implicit_again` reads.
    """
    smooth_vel(m, d)  # writes qDeriv
    _assemble_implicit_matrix(m, d)  # writes qLU
    factor_lu(m, d.qLU, d.qHDiagInv)
    for i in range(m.nv):
        d.qacc_step[i] = d.qfrc_smooth[i] + d.qfrc_constraint[i]
    solve_lu(m, d.qLU, d.qHDiagInv, d.qacc_step)


@kernel
def implicit_again(m, d, x):
    """qacc_step <- (M - h D)^-1 x, with the factor of `implicit_acceleration`."""
    for i in range(m.nv):
        d.qacc_step[i] = x[i]
    solve_lu(m, d.qLU, d.qHDiagInv, d.qacc_step)


@stage
def implicit(m, d):
    """Integrates implicitly in the velocity with all derivatives of smooth forces: (M - h D) qacc* = M qacc.

    D = d (qfrc_actuator + qfrc_passive - qfrc_bias) / d qvel, including Coriolis forces, is stored in qDeriv by
    `smooth_vel`, the factors of M - h D in qLU.
    Source: MuJoCo mj_implicit with the integrator implicit; chapter Computation, integrators.
    Reads:  qvel, qpos, act_dot, M, qfrc_smooth, qfrc_constraint and what `smooth_vel` reads.
    Writes: qvel, qpos, time, act, history, plastic, qacc_warmstart; qDeriv, qLU (nD,), qHDiagInv, qacc_step; what
            `smooth_vel` writes.
    Cost:   O(nv * depth^2).
    """
    implicit_acceleration(m, d)  # writes qacc_step (qacc*)
    advance_state(m, d, d.qacc_step)
