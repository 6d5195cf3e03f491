"""Computes gyroscopic derivatives of separate free bodies, by a 6 x 6 system per body.

Integrators that omit the rates of Coriolis forces to keep their system symmetric restore them here at low cost:
a tree whose only joint is free is a rigid body, and its six DoFs are not coupled with others.

The scratch field `block` holds the 6 x 6 matrix of one body by rows: entry (r, c) is block[6 r + c].  Its DoFs are
three translations in world axes, then three rotations about body axes; dof is the first of them.  The solver writes
dof_touched: 1 at the first DoF of a tree, in worlds where constraint rows or implicit servos act on the tree.  The
kernels take it as `touched`, and skip worlds where it is not 0; touched=0.0 means all worlds.
Source: MuJoCo, chapter Computation, gyroscopic derivatives for free bodies.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.sparse.unsymmetric import dense_rows, factor_unsymmetric, solve_unsymmetric


@kernel
def _load_block(m, d, M, dof):
    """block <- M of the six DoFs from dof on, both halves; M has the lower triangle."""
    for e in range(36):
        d.block[e] = 0.0
    for r in range(6):
        number = m.M_rownnz[dof + r]
        diagonal = m.M_rowadr[dof + r] + number - 1
        for c in range(r + 1):
            # entry (r, c) is r - c positions before the diagonal; a simple body's row has only the diagonal
            if r - c < number:
                d.block[6 * r + c] = M[diagonal - r + c]
                d.block[6 * c + r] = M[diagonal - r + c]


@kernel
def _load_implicit_block(m, d, dof):
    """block <- M - h qDeriv of the six DoFs from dof on, whose rows of qDeriv are full and contiguous: 36 entries."""
    h = timestep(m)
    start = m.D_rowadr[dof]
    _load_block(m, d, d.M, dof)
    for e in range(36):
        d.block[e] = fma(-h, d.qDeriv[start + e], d.block[e])


@kernel
def composite_inertia(m, d, i):
    """Returns the inertia of all bodies of the tree of body i, which move as one, about its centre of mass."""
    I = d.cinert[i]
    # the bodies of a tree have consecutive ids
    for b in range(i + 1, i + m.tree_bodynum[m.body_treeid[i]]):
        I = I + d.cinert[b]
    return I


@kernel
def is_single_free_body(m, i):
    """Returns whether body i, with the bodies fixed to it, is a tree whose only joint is free."""
    j = m.body_jntadr[i]
    return m.body_jntnum[i] == 1 and is_free_joint(m.jnt_type[j]) and m.tree_dofnum[m.body_treeid[i]] == 6


@kernel
def has_single_free_body(m):
    """Returns whether the model has a separate free body."""
    found = 0
    for i in range(1, m.nbody):
        if is_single_free_body(m, i):
            found = 1
    return found


@kernel
def gyroscopic_mode(m, i):
    """Returns the gyroscopic mode of body i; that of the option if the body has none (-1)."""
    mode = m.body_gyroscopic[i]
    return mode if mode >= 0 else m.opt_gyroscopic


@kernel
def bias_rate(m, d, i, w, axis):
    """Returns the derivative of the bias of free body i by its angular velocity w along an axis: (force, moment).

    With offset s of the centre of mass from the body's origin and inertia I about the centre of mass, in world axes,
    the bias is the force f = m w x (w x s) and the moment s x f + w x I w.  In the derivative each factor w is replaced
    by the axis in turn.  If the torque w x I w is implicit or off (gyroscopic.py), it has no rate here.
    """
    I = composite_inertia(m, d, i)
    s = d.subtree_com[i] - d.xpos[i]
    df = I.mass * (cross(axis, cross(w, s)) + cross(w, cross(axis, s)))
    moment = cross(s, df)
    if gyroscopic_mode(m, i) == GYRO_EXPLICIT:
        Iw = rotational_momentum(I, w)
        moment = moment + (cross(axis, Iw) + cross(w, rotational_momentum(I, axis)))
    return df, moment


@kernel
def _add_bias_rates(m, d, i, dof):
    """block += h d(bias) / d qvel of free body i, in the columns of its rotations.

    Rotational DoF k changes the angular velocity along axis k of the body.  The bias is independent of the linear
    velocity.
    """
    h = timestep(m)
    R = d.xmat[i]
    w = R @ Vec3(d.qvel[dof + 3 : dof + 6])
    for k in range(3):
        axis = R.columns[k]
        df, moment = bias_rate(m, d, i, w, axis)
        _add_to_column(d, 3 + k, h, df)  # rows 0 to 2 of column 3 + k
        _add_to_column(d, 21 + k, h, R.T @ moment)  # rows 3 to 5: 21 = 6 * 3 + 3


@kernel
def _add_to_column(d, first, h, x):
    """block += h x for three values x down a column, whose first entry is block[first]."""
    d.block[first] = fma(h, x[0], d.block[first])
    d.block[first + 6] = fma(h, x[1], d.block[first + 6])
    d.block[first + 12] = fma(h, x[2], d.block[first + 12])


@kernel
def _multiply_block(d, dof, touched, x, y):
    """y <- block x for the six DoFs from dof on, in worlds where `touched` is 0."""
    for r in range(6):
        product = 0.0
        for c in range(6):
            product = fma(d.block[6 * r + c], x[dof + c], product)
        y[dof + r] = where(touched == 0.0, product, y[dof + r])


@kernel
def _solve_block(d, dof, touched, x):
    """x <- block^-1 block_x for the six DoFs from dof on, in worlds where `touched` is 0.

    block and block_inverse <- the factor of block.
    """
    factor_unsymmetric(dense_rows(6), dense=1, A=d.block, inverse=d.block_inverse)
    solve_unsymmetric(dense_rows(6), dense=1, A=d.block, inverse=d.block_inverse, x=d.block_x)
    for r in range(6):
        x[dof + r] = where(touched == 0.0, d.block_x[r], x[dof + r])


@kernel
def multiply_free_bodies(m, d, x, y):
    """y <- (M - h qDeriv) x in the rows of separate free bodies, with their gyroscopic derivatives; writes block."""
    for i in range(1, m.nbody):
        if is_single_free_body(m, i):
            dof = m.jnt_dofadr[m.body_jntadr[i]]
            _load_implicit_block(m, d, dof)  # writes block
            _add_bias_rates(m, d, i, dof)
            _multiply_block(d, dof, touched=0.0, x=x, y=y)


@kernel
def solve_free_bodies(m, d):
    """qacc_step <- (M - h qDeriv)^-1 force of separate free bodies, with their gyroscopic derivatives.

    The force is qfrc_smooth + qfrc_constraint.   Writes: qacc_step of these bodies; block.
    """
    for i in range(1, m.nbody):
        if is_single_free_body(m, i):
            dof = m.jnt_dofadr[m.body_jntadr[i]]
            _load_implicit_block(m, d, dof)  # writes block
            _add_bias_rates(m, d, i, dof)
            for r in range(6):
                d.block_x[r] = d.qfrc_smooth[dof + r] + d.qfrc_constraint[dof + r]
            _solve_block(d, dof, touched=0.0, x=d.qacc_step)


# ---- under the integrator `discrete` ---------------------------------------------------------------------------------
@kernel
def solve_untouched_bodies(m, d, M, force, x):
    """x <- (M + h d(bias) / d qvel)^-1 force at separate free bodies, in worlds where dof_touched is 0.

    M: the metric Mhat, with the pattern of the inertia matrix.
    Reads:  dof_touched.   Writes: x (nv,) at these bodies; block.
    """
    for i in range(1, m.nbody):
        if is_single_free_body(m, i):
            dof = m.jnt_dofadr[m.body_jntadr[i]]
            touched = d.dof_touched[dof]
            if any_(touched == 0.0):
                _load_block(m, d, M, dof)
                _add_bias_rates(m, d, i, dof)
                for r in range(6):
                    d.block_x[r] = force[dof + r]
                _solve_block(d, dof, touched, x)


@kernel
def multiply_untouched_bodies(m, d, M, x, y):
    """y <- (M + h d(bias) / d qvel) x at separate free bodies, in worlds where dof_touched is 0.

    M: the metric Mhat, with the pattern of the inertia matrix.   Writes: y (nv,) at these bodies; block.
    """
    for i in range(1, m.nbody):
        if is_single_free_body(m, i):
            dof = m.jnt_dofadr[m.body_jntadr[i]]
            touched = d.dof_touched[dof]
            if any_(touched == 0.0):
                _load_block(m, d, M, dof)
                _add_bias_rates(m, d, i, dof)
                _multiply_block(d, dof, touched, x, y)
