"""Computes accelerations in O(n) with Featherstone's articulated-body algorithm, without the inertia matrix.

`aba` computes accelerations from forces, including the bias.  A step already has the bias force, so it uses
`articulated_solve`, the same recursion at rest: (M + diagonal) x = f, which also supports implicit damping.  Each model
uses this method or the factor of M, as selected by `uses_articulated`.

A body with several DoFs is treated as a chain of massless bodies, one DoF each, so every division is by a scalar.  All
quantities of a tree refer to its centre of mass in world axes, so that parent and child add without transforms.

Symbols are Featherstone's, for body i and its DoF k with axis S = cdof[k]; each is stored in one field:

    IA_i   aba_inertia   articulated inertia, 21 values per body        U = IA S,   D = S^T U + armature
    pA_i   cfrc[i]       articulated bias force                         u = (tau - S^T pA) / D
    a_i    cacc[i]       acceleration                                   (U / D)_k is stored in aba_axis[k]

In the code `inverse` is 1 / D, so `u` is already divided by D.  cinert[i] is I_i, cvel[i] the velocity of the body,
cdof_dot[k] is dS/dt; `reflected_armature` is the inertia that actuators add to a DoF.
`world_acceleration` is -g, the acceleration of body 0, which is equivalent to gravity.  `add_xfrc` adds
J^T xfrc_applied to forces of the DoFs.  `clamped_pivot` returns a pivot D, or MINVAL if rounding has made it less;
`is_singular` returns the mask of worlds in which D is zero up to rounding.
A body i has the DoFs from body_dofadr[i] on, body_dofnum[i] of them.  Body 0 is the world.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.actuator.reflected import reflected_armature
from featherlane.engine.dynamics.body.newton_euler import world_acceleration
from featherlane.engine.dynamics.body.xfrc import add_xfrc
from featherlane.engine.dynamics.inertia.joint_space import multiply_joint_space
from featherlane.engine.dynamics.sparse.packed_factor import symmetric_index, triangle_index
from featherlane.engine.dynamics.sparse.tree_factor import clamped_pivot, is_singular
from featherlane.engine.model.integrator import has_metric, reads_inertia

# an articulated inertia is a full symmetric 6 x 6 matrix: its lower triangle by rows, 21 values; IA_i starts at SIZE i
SIZE = 21
LONG = 128  # DoFs from which the recursion over bodies solves columns faster than the factor of M


@kernel
def store_rigid(d, i):
    """aba_inertia of body i <- its rigid-body inertia I_i, as a full 6 x 6 matrix: the initial IA_i."""
    I = d.cinert[i]
    start = SIZE * i
    A = d.aba_inertia
    # row r of the lower triangle has r + 1 entries; first the rotational inertia about the tree's com
    A[start] = I.Ixx
    A[start + 1 : start + 3] = I.Ixy, I.Iyy
    A[start + 3 : start + 6] = I.Ixz, I.Iyz, I.Izz
    # linear rows: m (v - c x w), so the lower left block is -[m c]x
    A[start + 6 : start + 10] = 0.0, I.mz, -I.my, I.mass
    A[start + 10 : start + 15] = -I.mz, 0.0, I.mx, 0.0, I.mass
    A[start + 15 : start + 21] = I.my, -I.mx, 0.0, 0.0, 0.0, I.mass


@kernel
def multiply_packed(A, start, x):
    """Returns A x for the packed symmetric 6 x 6 matrix that starts at A[start]."""
    return Force(_row_times(A, start, x, r) for r in range(6))


@kernel
def _row_times(A, start, x, r):
    """Returns row r of the packed symmetric matrix that starts at A[start], times x."""
    row = tuple(A[start + symmetric_index(r, c)] for c in range(6))
    left = fma(row[0], x[0], fma(row[1], x[1], row[2] * x[2]))
    right = fma(row[3], x[3], fma(row[4], x[4], row[5] * x[5]))
    return left + right


@kernel
def uses_articulated(m):
    """Returns whether the model uses the articulated-body method, by option or by operation counts at load time.

    The integrator `discrete` and the LCP contact model solve in a metric other than M, for which there is no
    recursion over bodies.  There is none for the armature of tendons either: a model with tendons uses the factor of M.
    """
    is_chosen = m.opt_forward_dynamics == ABA or (m.opt_forward_dynamics == AUTO and m.articulated_pays == 1)
    return is_chosen and not has_metric(m) and m.opt_contact_model == CONVEX and m.ntendon == 0


def recurses(m) -> bool:
    """Returns whether a call that solves many right-hand sides, such as a derivative, uses the articulated-body method.

    Its time is linear in the DoFs, but the factor of M solves four columns at once and is faster for models of up to
    LONG DoFs, such as humanoid_CMU in `benchmarks/derivatives.py --dm-control`.
    """
    return bool(uses_articulated(m)) and m.nv > LONG


@kernel
def needs_factor(m, d):
    """Returns whether each step computes the factor of M in qLD: for requested outputs, or for exact diagonals."""
    return d.want_all or m.opt_enableflags & ENABLE_DIAGEXACT != 0


@kernel
def needs_inertia(m, d):
    """Returns whether M is computed in each step, with or without constraint rows."""
    return needs_factor(m, d) or reads_inertia(m) or not uses_articulated(m)


@kernel
def subtract_outer(d, start, k, U, inverse):
    """IA -= U U^T / D for the articulated inertia that starts at aba_inertia[start]; inverse is 1 / D.

    aba_axis[k] <- U / D of DoF k, for the outward pass.
    """
    U_over_D = inverse * Force(U)
    for r in unrolled(range(6)):
        for c in unrolled(range(r + 1)):
            e = start + triangle_index(r, c)
            d.aba_inertia[e] = fma(-U_over_D[r], U[c], d.aba_inertia[e])
    d.aba_axis[k] = U_over_D


@kernel
def add_to_parent(d, i, p):
    """Adds articulated inertia (aba_inertia) and bias force (cfrc) of body i to those of its parent p."""
    for e in range(SIZE):
        d.aba_inertia[SIZE * p + e] = d.aba_inertia[SIZE * p + e] + d.aba_inertia[SIZE * i + e]
    d.cfrc[p] += d.cfrc[i]


@kernel
def solve_inward(m, d, extra, x, moving):
    """Eliminates all DoFs from the leaves to the root: IA and U / D of each DoF, and u in x.

    D = S^T IA S + armature,  u = (x - S^T pA) / D,  pA += U u;  IA and pA of a child are added to its parent.
    moving=1: bodies have velocities.  After the elimination of a DoF, pA += IA c with c = dS/dt qvel.  `extra` is not
        used, and the result is 0.
    moving=0: bodies are at rest.  `extra` (nv,) is added to the armature.  The result is 1 in worlds with a singular
        pivot: D is compared with the diagonal of M at qpos0, because M of the present state is not computed.
    """
    singular = 0.0
    for i in range(m.nbody - 1, 0, -1):
        first, parent = m.body_dofadr[i], m.body_parentid[i]
        # from the body's last DoF to its first
        for k in range(first + m.body_dofnum[i] - 1, first - 1, -1):
            S, pA = d.cdof[k], d.cfrc[i]
            armature = m.dof_armature[k] + reflected_armature(m, k)
            if not moving:
                armature = armature + extra[k]
            U = multiply_packed(d.aba_inertia, SIZE * i, S)
            inverse = 1.0 / clamped_pivot(dot(S, U) + armature)
            subtract_outer(d, SIZE * i, k, U, inverse)
            if not moving:
                singular = where(is_singular(d, inverse, m.dof_M0[k]), 1.0, singular)
            u = (x[k] - dot(S, pA)) * inverse
            x[k] = u
            if moving:
                pA = pA + multiply_packed(d.aba_inertia, SIZE * i, d.qvel[k] * d.cdof_dot[k])
            d.cfrc[i] = fma(u, U, pA)
        # the world needs no articulated inertia
        if parent > 0:
            add_to_parent(d, i, parent)
    return singular


@kernel
def solve_dof_outward(d, k, x, acc):
    """x_k <- u - (U / D)^T a with u in x_k; returns a + S_k x_k.

    acc, a: acceleration before DoF k, on the side of the root; the result is that behind it.
    """
    qacc = x[k] - dot(d.aba_axis[k], acc)
    x[k] = qacc
    return fma(qacc, d.cdof[k], acc)


@kernel
def solve_outward(m, d, x, moving):
    """Computes the accelerations x from u in x, from the root to the leaves; cacc[0] is that of the world.

    The acceleration `a` of a body begins as that of its parent.  For each of its DoFs:
        a += c  (moving=1 only, c = dS/dt qvel);   x = u - (U / D)^T a;   a += S x.
    """
    for i in range(1, m.nbody):
        acc = d.cacc[m.body_parentid[i]]
        for k in body_dofs(m, i):
            if moving:
                acc = fma(d.qvel[k], d.cdof_dot[k], acc)
            acc = solve_dof_outward(d, k, x, acc)
        d.cacc[i] = acc


@kernel
def articulated_solve(m, d, extra, x):
    """x <- (M + diag(extra))^-1 x by the articulated-body recursion at rest.

    extra: (nv,) values added to M's diagonal.  x: (nv,) forces, replaced by accelerations; holds u between the passes.
    Returns 1 in worlds with a singular pivot D, else 0.
    Source: Featherstone, Rigid Body Dynamics Algorithms, sec. 7.3, table 7.1, with v = 0 and without gravity.
    Reads:  cinert, cdof.   Writes: x (nv,); cacc, cfrc (p), aba_inertia (IA), aba_axis (U / D).   Cost: O(nv).
    """
    for i in range(1, m.nbody):
        store_rigid(d, i)
        d.cfrc[i] = zeros(6)  # no bias force
    singular = solve_inward(m, d, extra, x, moving=0)
    d.cacc[0] = zeros(6)
    solve_outward(m, d, x, moving=0)
    return singular


@kernel
def articulated_multiply(m, d, x, y):
    """y <- M x by the recursive Newton-Euler algorithm at rest, with the accelerations x of the DoFs.

    Outward: a = a of the parent + sum of S_k x_k.  Inward: f = I a + f of the children, y_k = S_k^T f + armature x_k.
    Reads:  cinert, cdof.   Writes: y (nv,); cacc, cfrc.   Cost: O(nv).
    """
    d.cacc[0] = zeros(6)
    for i in range(1, m.nbody):
        acc, first = d.cacc[m.body_parentid[i]], m.body_dofadr[i]
        for k in range(first, first + m.body_dofnum[i]):
            acc = fma(x[k], d.cdof[k], acc)
        d.cacc[i] = acc
        d.cfrc[i] = d.cinert[i] @ acc
    # children before their parents
    for i in range(m.nbody - 1, 0, -1):
        f, parent, first = d.cfrc[i], m.body_parentid[i], m.body_dofadr[i]
        # the force on the world is not needed
        if parent > 0:
            d.cfrc[parent] += f
        for k in range(first, first + m.body_dofnum[i]):
            armature = m.dof_armature[k] + reflected_armature(m, k)
            y[k] = fma(armature, x[k], dot(d.cdof[k], f))


@kernel
def inertia_times(m, d, x, y):
    """y <- M x, by the method of the model."""
    if uses_articulated(m):
        articulated_multiply(m, d, x, y)
    else:
        multiply_joint_space(m, d.M, x, y)


@stage
def aba(m, d):
    """Computes qacc_smooth from forces, by the articulated-body algorithm: M^-1 (tau - C) without M.

    With v_i, which is cvel, the initial bias force of body i is pA_i = v x* I v; `solve_inward` and `solve_outward` do
    the rest, with moving=1.
    Source: Featherstone, Rigid Body Dynamics Algorithms, sec. 7.3, table 7.1; armature adds to D.
    Reads:  qvel, qfrc_passive, qfrc_applied, qfrc_actuator, xfrc_applied, cdof, cdof_dot, cinert, cvel, opt_gravity.
    Writes: qacc_smooth (nv,) [m/s^2, rad/s^2]; cacc, cfrc, aba_inertia, aba_axis.
    Frame: world axes at the tree's com.   Cost: O(nv).
    Note:   for a simple body other methods use the constant dof_M0; here M is computed, equal up to rounding.
    """
    tau = d.qacc_smooth  # which the inward pass replaces by u, and the outward pass by qacc
    for k in range(m.nv):
        tau[k] = (d.qfrc_passive[k] + d.qfrc_applied[k]) + d.qfrc_actuator[k]
    add_xfrc(m, d, tau)
    for i in range(1, m.nbody):
        vel = d.cvel[i]
        store_rigid(d, i)  # IA_i = I_i
        d.cfrc[i] = cross_force(vel, d.cinert[i] @ vel)  # pA_i
    solve_inward(m, d, extra=tau, x=tau, moving=1)  # extra is not used with moving=1
    d.cacc[0] = world_acceleration(m)
    solve_outward(m, d, tau, moving=1)
