"""Contacts between two bodies of one tree: H += J^T W J, with J of the dofs that are above one of the two only.

The dofs above both bodies must cancel, which body stiffnesses do not achieve.  Bodies of two trees are in
between_trees.py.  There the contacts of a pair are summed as a 6x6 stiffness first.  Here this would not pay: two
bodies of a robot that touch have few dofs that are above only one, so a 6x6 costs more than the contact's rows.

J has one column per dof, `count` columns by descending dofs: column a belongs to dof hessian.pair_dof[a].  Its rows
along the basis (n, mu_1 t_1, mu_2 t_2) are hessian.pair_J[a], those along the contact's rotation axes hessian.pair_J[nv
+ a].  con_basis[k], con_basis[ANGULAR, k]: these vectors; primal.con_y[k], con_y[ANGULAR, k]: J a - aref along them.
W is the second derivative of the contact's cost in its basis, 3x3 or with rotation axes 6x6.  Of an elliptic cone it is

    W = w n n^T - e (n t^T + t n^T) + q t t^T + b I,

with n the normal, t = y / T the direction of slip, I over the directions other than n, and T the length of y along
them.  In the code t has the parts t along the tangents and u about the rotation axes.  `cone_weights` returns
((w, e, q, b), 1 / T).  `pyramid_weights` returns the weights (nn, n1, 11, n2, 22) of pairs of n and the tangents 1, 2;
`angular_edges_weights` returns (c, w), those of n with rotation axis i, and of rotation axis i with itself.
body_lastdof[b] is the last dof that moves body b.  The arms of `pushed_body_arm` and `other_arm` are the contact point,
relative to the com of the tree.
con_body, con_dim: the contact's bodies, its number of directions; con_D: 1 / R of its rows.
H_ij is hessian.H[rowadr[i] + offset of j].  Row i of column a has the entries of columns a, a + 1, ..., as their dofs
descend.  H has one of two layouts (`has_block_rows`).  In the first one, each row has a list of blocks of dofs:
`find_offset` returns (e, offset of a dof), and e is the block at which the search for the next dof begins, at first
`diagonal_block`.  In the second one, each row has the ancestors of its dof, as M has; there is no list, and e is 0.
"""

from featherlane.engine.prelude import *
from featherlane.engine.solver.hessian.entries.pattern import diagonal_block, find_offset, has_block_rows
from featherlane.engine.solver.rows.cone import cone_weights
from featherlane.engine.solver.rows.pyramid import angular_edges_weights, pyramid_weights
from featherlane.engine.solver.rows.rows import ANGULAR, other_arm, pushed_body_arm


@kernel
def store_pair_column(m, d, k, a, dof, r, sign):
    """Computes column a of J: the basis rows of the velocity at arm r per unit velocity of the dof.

    sign: 1 for a dof above the pushed body, -1 for one above the other body.
    Writes: hessian.pair_dof[a], pair_J[a], and pair_J[nv + a] if the contact has rotation axes.
    """
    S = d.cdof[dof]
    velocity = sign * (S.linear + cross(S.angular, r))
    n, t1, t2 = d.con_basis[k].rows
    d.hessian.pair_dof[a] = dof
    d.hessian.pair_J[a][0] = dot(n, velocity)
    if d.con_dim[k] > 1:
        d.hessian.pair_J[a][1] = dot(t1, velocity)
        d.hessian.pair_J[a][2] = dot(t2, velocity)
    if d.con_dim[k] > 3:
        d.hessian.pair_J[m.nv + a] = d.con_basis[ANGULAR, k] @ (sign * S.angular)


@kernel
def store_pair_jacobian(m, d, k):
    """Computes J of contact k between two moving bodies, for the dofs above only one; returns the number of columns.

    Writes: hessian.pair_dof, pair_J, see the top of this file.
    """
    i_pushed, i_other = m.body_lastdof[d.con_body[k, 0]], m.body_lastdof[d.con_body[k, 1]]
    r = pushed_body_arm(d, k)
    r_other = other_arm(d, k)
    count = 0
    # go up both branches, always from the higher dof, until they meet
    while i_other != i_pushed:
        if i_other > i_pushed:
            store_pair_column(m, d, k, count, i_other, r_other, sign=-1.0)
            i_other = m.dof_parentid[i_other]
        else:
            store_pair_column(m, d, k, count, i_pushed, r, sign=1.0)
            i_pushed = m.dof_parentid[i_pushed]
        count += 1
    return count


@kernel
def add_pair(m, d, k):
    """Adds J^T W J to H for a contact of dimension 3 with a friction pyramid, between two moving bodies.

    H_ij += (W J_i) . J_j, with W of the pushing edges: weights nn, n1, 11, n2, 22 of products of basis vectors.
    """
    count = store_pair_jacobian(m, d, k)  # writes hessian.pair_dof, pair_J
    has_blocks = has_block_rows(d)
    w_nn, w_n1, w_11, w_n2, w_22 = pyramid_weights(d.con_D[k], d.primal.con_y[k])
    for a in range(count):
        i = d.hessian.pair_dof[a]
        row = d.hessian.rowadr[i]
        e = diagonal_block(m, d, i) if has_blocks else 0
        Jn_a, J1_a, J2_a = d.hessian.pair_J[a]
        # W J_i, with w_12 = 0
        WJn = fma(w_nn, Jn_a, fma(w_n1, J1_a, w_n2 * J2_a))
        WJ1 = fma(w_n1, Jn_a, w_11 * J1_a)
        WJ2 = fma(w_n2, Jn_a, w_22 * J2_a)
        for b in range(a, count):
            e, offset = find_offset(m, d, has_blocks, e, d.hessian.pair_dof[b])
            entry = row + offset
            Jn_b, J1_b, J2_b = d.hessian.pair_J[b]
            d.hessian.H[entry] = fma(WJn, Jn_b, fma(WJ1, J1_b, fma(WJ2, J2_b, d.hessian.H[entry])))


@kernel
def add_normal_pair(m, d, k):
    """Adds J^T W J to H for a contact without friction: H_ij += w J_i J_j, with the normal row only."""
    count = store_pair_jacobian(m, d, k)  # writes hessian.pair_dof, pair_J
    has_blocks = has_block_rows(d)
    w = where(d.primal.con_y[k][0] < 0.0, d.con_D[k], 0.0)  # D in worlds in which the contact pushes
    for a in range(count):
        i = d.hessian.pair_dof[a]
        row = d.hessian.rowadr[i]
        e = diagonal_block(m, d, i) if has_blocks else 0
        wJ = w * d.hessian.pair_J[a][0]
        for b in range(a, count):
            e, offset = find_offset(m, d, has_blocks, e, d.hessian.pair_dof[b])
            entry = row + offset
            d.hessian.H[entry] = fma(wJ, d.hessian.pair_J[b][0], d.hessian.H[entry])


@kernel
def cone_matrix_weights(m, d, k):
    """Returns the weights of an elliptic contact, for `multiply_cone_matrix`: (w, e, q, b), t, u.

    t = (y_1, y_2) / T: direction of slip along the tangents.  u = y / T about the rotation axes.
    """
    (w, e, q, b), inverse_T = cone_weights(m, d, k)
    t = (d.primal.con_y[k][1] * inverse_T, d.primal.con_y[k][2] * inverse_T)
    return (w, e, q, b), t, inverse_T * d.primal.con_y[ANGULAR, k]


@kernel
def multiply_cone_matrix(d, k, weights, x, y):
    """Returns (f, g) = W (x, y) for an elliptic contact.

    x and f are along n and the tangents, y and g about the rotation axes.

    With s = t . x + u . y along the direction of slip:
        f_n = w x_n - e s,   f_i = (q s - e x_n) t_i + b x_i,   g_i = (q s - e x_n) u_i + b y_i.
    g of a contact without rotation axes is not used.
    """
    (w, e, q, b), t, u = weights
    s = fma(t[0], x[1], t[1] * x[2])
    if d.con_dim[k] > 3:
        s = s + dot(u, y)
    slip = fma(q, s, -(e * x[0]))
    f = Vec3(fma(w, x[0], -(e * s)), fma(slip, t[0], b * x[1]), fma(slip, t[1], b * x[2]))
    return f, fma(slip, u, b * y)


@kernel
def pyramid_matrix_weights(d, k):
    """Returns the weights of a pyramid with rotation axes, for `multiply_pyramid_matrix`: (nn, n1, 11, n2, 22), c, w.

    nn to 22: weights of pairs of n and the tangents 1, 2.  c_i: weight of n with axis i.  w_i: weight of axis i with
    itself.
    """
    w_nn, w_n1, w_11, w_n2, w_22 = pyramid_weights(d.con_D[k], d.primal.con_y[k])  # of the tangents' edges
    c, w = angular_edges_weights(d, k)
    # the edges n + r_i and n - r_i of axis r_i also push along n: they add w_1 + w_2 + w_3 to nn
    return (w_nn + (w[0] + (w[1] + w[2])), w_n1, w_11, w_n2, w_22), c, w


@kernel
def multiply_pyramid_matrix(weights, x, y):
    """Returns (f, g) = W (x, y) for a pyramid with rotation axes; arguments as in `multiply_cone_matrix`."""
    (w_nn, w_n1, w_11, w_n2, w_22), c, w = weights
    f_n = fma(w_nn, x[0], fma(w_n1, x[1], fma(w_n2, x[2], dot(c, y))))
    f = Vec3(f_n, fma(w_n1, x[0], w_11 * x[1]), fma(w_n2, x[0], w_22 * x[2]))
    return f, Vec3(fma(c[i], x[0], w[i] * y[i]) for i in range(3))


@kernel
def pair_jacobian_column(m, d, k, a):
    """Returns column a of J: (rows along n and the tangents, rows about the rotation axes or 0)."""
    axis_rows = Vec3(zeros(3))
    if d.con_dim[k] > 3:
        axis_rows = d.hessian.pair_J[m.nv + a]
    return d.hessian.pair_J[a], axis_rows


@kernel
def add_pair_row(m, d, k, count, a, f, g):
    """Adds (W J_a) . J_b to the entry of columns a and b of J, for all columns b from a on.

    f, g: W J_a along n and the tangents, and about the rotation axes.  count: number of columns.
    """
    i = d.hessian.pair_dof[a]
    has_blocks = has_block_rows(d)
    row = d.hessian.rowadr[i]
    e = diagonal_block(m, d, i) if has_blocks else 0
    for b in range(a, count):
        e, offset = find_offset(m, d, has_blocks, e, d.hessian.pair_dof[b])
        entry = row + offset
        x = d.hessian.H[entry]
        if d.con_dim[k] > 3:
            x = x + dot(g, d.hessian.pair_J[m.nv + b])
        d.hessian.H[entry] = x + dot(f, d.hessian.pair_J[b])


@stage
def add_wide_pair(m, d, k):
    """Adds J^T W J to H for a contact with an elliptic cone or with rotation axes.

    Reads:  con_* of slot k, cdof, the pattern of hessian.
    Writes: hessian.H (nH,) [kg, kg m, kg m^2].
    Scratch: hessian.pair_J, hessian.pair_dof.
    """
    count = store_pair_jacobian(m, d, k)  # writes hessian.pair_dof, pair_J
    if has_pyramids(m):
        pyramid = pyramid_matrix_weights(d, k)
        for a in range(count):
            x, y = pair_jacobian_column(m, d, k, a)
            f, g = multiply_pyramid_matrix(pyramid, x, y)
            add_pair_row(m, d, k, count, a, f, g)
    else:
        cone = cone_matrix_weights(m, d, k)
        for a in range(count):
            x, y = pair_jacobian_column(m, d, k, a)
            f, g = multiply_cone_matrix(d, k, cone, x, y)
            add_pair_row(m, d, k, count, a, f, g)
