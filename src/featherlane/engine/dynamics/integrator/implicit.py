"""Implements the integrator `implicit`: all velocity derivatives of smooth forces, and an unsymmetric factorization.

M - h qDeriv has M's pattern in both triangles: FULL in sparse/outer.py, where diagonal_address(m, i, FULL) is the
address of entry (i, i).  `factor_unsymmetric` and `solve_unsymmetric` describe its rows and solve the system.
Source: MuJoCo mj_implicit.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.integrator.integrate import advance_state
from featherlane.engine.dynamics.integrator.velocity_derivative import smooth_vel
from featherlane.engine.dynamics.sparse.outer import FULL, diagonal_address
from featherlane.engine.dynamics.sparse.unsymmetric import FullRows, factor_unsymmetric, solve_unsymmetric


@kernel
def _rows(m):
    """Returns the pattern of qDeriv."""
    return FullRows(n=m.nv, adr=m.D_rowadr, diag=m.D_diag, col=m.D_colind)


@kernel
def _assemble_implicit_matrix(m, d):
    """qLU <- M - h qDeriv: M_ij is added to entries (i, j) and (j, i)."""
    h = timestep(m)
    for e in range(m.nD):
        d.qLU[e] = -(h * d.qDeriv[e])
    for i in range(m.nv):
        row_M, number = m.M_rowadr[i], m.M_rownnz[i]
        # up to its diagonal, row i of qLU has the columns of M's row i: both are added entry by entry
        first = diagonal_address(m, i, FULL) + 1 - number
        for c in range(number):
            d.qLU[first + c] = d.qLU[first + c] + d.M[row_M + c]
        for c in range(number - 1):
            j = m.M_colind[row_M + c]
            # dofs from j to i descend from j, so row j has all these columns: (j, i) is i - j behind (j, j)
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
    factor_unsymmetric(_rows(m), dense=0, A=d.qLU, inverse=d.qHDiagInv)
    for i in range(m.nv):
        d.qacc_step[i] = d.qfrc_smooth[i] + d.qfrc_constraint[i]
    solve_unsymmetric(_rows(m), dense=0, A=d.qLU, inverse=d.qHDiagInv, x=d.qacc_step)


@kernel
def implicit_again(m, d, x):
    """qacc_step <- (M - h D)^-1 x, with the factor of `implicit_acceleration`."""
    for i in range(m.nv):
        d.qacc_step[i] = x[i]
    solve_unsymmetric(_rows(m), dense=0, A=d.qLU, inverse=d.qHDiagInv, x=d.qacc_step)


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
