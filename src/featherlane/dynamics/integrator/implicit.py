"""Implements the integrator `implicit`: all velocity derivatives of smooth forces, and a nonsymmetric factorization.

M - h qDeriv has M's pattern in both triangles.  Elimination from the last DoF to the first preserves the pattern: row
and column of DoF k contain only its ancestors, whose mutual entries are in the pattern.
Source: Featherstone, Rigid Body Dynamics Algorithms, sec. 6.5 (the symmetric case); MuJoCo mj_implicit.
"""

from featherlane.prelude import *
from featherlane.dynamics.integrator.integrate import advance_state
from featherlane.dynamics.integrator.velocity_derivative import smooth_vel
from featherlane.dynamics.sparse.outer import FULL, diagonal_address


@kernel
def _entry(m, i, c, j):
    """Returns the address of entry (i, j) of two DoFs on one path to the root, where j has index c on that path."""
    return m.D_rowadr[i] + c if j <= i else diagonal_address(m, i, FULL) + j - i


@kernel
def factor_lu(m, A, inverse):
    """Factors A = U L in place, L with a unit diagonal; inverse = 1 / diagonal of U.

    From the last k to the first: L_kj = A_kj / A_kk; A_ij -= U_ik L_kj for all i, j above k.
    """
    for k in range(m.nv - 1, -1, -1):
        a, above = m.D_rowadr[k], m.D_diag[k]
        D = A[a + above]
        p = 1.0 / where(fabs(D) < MINVAL, MINVAL, D)  # may be negative
        inverse[k] = p
        for c in range(above):
            A[a + c] = A[a + c] * p
        for r in range(above):
            i = m.D_colind[a + r]
            u = A[diagonal_address(m, i, FULL) + k - i]
            for c in range(above):
                e = _entry(m, i, c, m.D_colind[a + c])
                A[e] = fma(-u, A[a + c], A[e])


@kernel
def solve_lu(m, A, inverse, x):
    """x <- L^-1 U^-1 x."""
    for k in range(m.nv - 1, -1, -1):
        a = m.D_rowadr[k]
        y = x[k] * inverse[k]
        x[k] = y
        for c in range(m.D_diag[k]):
            i = m.D_colind[a + c]
            x[i] = fma(-A[diagonal_address(m, i, FULL) + k - i], y, x[i])
    for k in range(m.nv):
        a, y = m.D_rowadr[k], x[k]
        for c in range(m.D_diag[k]):
            y = fma(-A[a + c], x[m.D_colind[a + c]], y)
        x[k] = y


@kernel
def _implicit_matrix(m, d):
    """qLU <- M - h qDeriv."""
    h = timestep(m)
    for k in range(m.nD):
        d.qLU[k] = -(h * d.qDeriv[k])
    for i in range(m.nv):
        a, number = m.M_rowadr[i], m.M_rownnz[i]
        # a simple body has only its diagonal: the last entry is on the diagonal in both patterns
        first = diagonal_address(m, i, FULL) + 1 - number
        for c in range(number):
            d.qLU[first + c] = d.qLU[first + c] + d.M[a + c]
        for c in range(number - 1):
            j = m.M_colind[a + c]
            e = diagonal_address(m, j, FULL) + i - j
            d.qLU[e] = d.qLU[e] + d.M[a + c]


@kernel
def implicit_reads_inertia(m):
    """Returns True: M is needed in every step."""
    return True


@kernel
def implicit_acceleration(m, d):
    """qacc_step <- (M - h D)^-1 (qfrc_smooth + qfrc_constraint)."""
    smooth_vel(m, d)
    _implicit_matrix(m, d)
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
    implicit_acceleration(m, d)
    advance_state(m, d, d.qacc_step)
