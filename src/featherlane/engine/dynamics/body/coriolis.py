"""Computes the Coriolis matrix C(q, v) of rigid bodies: C v are the Coriolis and centrifugal forces.

With the motion axes S, their rates dS/dt, the velocity v_i of body i, its inertia I_i and

    B_i x = 1/2 (v_i x* I_i x - I_i (v_i x x) + x x* I_i v_i),

the matrix is C = sum over bodies J_i^T (I_i dJ_i/dt + B_i J_i).  Inertias and B refer to one point of the tree and add
up to those of composite bodies, I^c and B^c.  So for DoF k of body b and each DoF j from the root to k

    C_jk = S_j . (I^c_b dS_k/dt + B^c_b S_k)     C_kj = dS_j/dt . (I^c_b S_k) + S_j . (B^c_b^T S_k)

Since B + B^T is the rate of I, the rate of the mass matrix is C + C^T: dM/dt - 2 C is skew-symmetric.
2 B is the matrix B of `rne_derivative.py`, whose `inertia_rate` returns it as InertiaRate.
Source: Echeandia, Wensing, Numerical methods to compute the Coriolis matrix and Christoffel symbols for rigid-body
systems (J. Comput. Nonlinear Dyn. 16, 2021); here about a fixed point in world axes.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.body.jacobian import JACOBIAN, axis_rate
from featherlane.engine.dynamics.body.rne_derivative import (
    inertia_rate,
    transposed_velocity_force,
    velocity_force,
)


@stage(jr=JACOBIAN)
def coriolis_matrix(m, d, jr):
    """Computes jac_C, the Coriolis matrix C with C qvel = Coriolis and centrifugal forces of the bodies.

    Armature of joints is constant and adds nothing.  Armature of spatial tendons is not included.
    Source: Echeandia, Wensing 2021.
    Reads:  qvel, cdof, cdof_dot, cinert, cvel.
    Writes: jac_C (jac_nv, jac_nv) [kg/s, kg m/s, kg m^2/s]; jac_crb, jac_crb_rate.
    Frame: world axes at the tree's com.   Cost: O(nv depth).
    """
    n = jr.jac_nv
    clear(jr.jac_C, n * n)
    for i in range(m.nbody):
        jr.jac_crb[i] = d.cinert[i]
        jr.jac_crb_rate[i] = inertia_rate(d.cinert[i], d.cvel[i])
    # children before their parents
    for i in range(m.nbody - 1, 0, -1):
        I, parent = jr.jac_crb[i], m.body_parentid[i]
        if parent > 0:  # the world has no DoFs
            jr.jac_crb[parent] += I
            jr.jac_crb_rate[parent] += jr.jac_crb_rate[i]
        for k in body_dofs(m, i):
            S_k = d.cdof[k]
            # f = I dS_k/dt + B S_k; jac_crb_rate contains 2 B
            f = fma(0.5, velocity_force(jr.jac_crb_rate[i], S_k.angular), I @ axis_rate(m, d, k))
            IS = I @ S_k
            BtS = 0.5 * transposed_velocity_force(jr.jac_crb_rate[i], S_k)  # B^T S_k has only an angular part
            j = m.dof_parentid[k]
            while j >= 0:
                S_j = d.cdof[j]
                jr.jac_C[n * j + k] = dot(S_j, f)
                jr.jac_C[n * k + j] = dot(axis_rate(m, d, j), IS) + dot(S_j.angular, BtS)
                j = m.dof_parentid[j]
            jr.jac_C[n * k + k] = dot(S_k, f)
