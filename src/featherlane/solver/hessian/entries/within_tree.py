"""Contacts between two bodies of one tree: H += J^T W J, with J of the dofs that are above one of the two only.

The dofs above both bodies must cancel, which body stiffnesses do not achieve.  Bodies of two trees are in
between_trees.py.  There the contacts of a pair are summed as a 6x6 stiffness first.  Here this would not pay: two
bodies of a robot that touch have few dofs that are above only one, so a 6x6 costs more than the contact's rows.
"""

from featherlane.prelude import *
from featherlane.solver.hessian.entries.pattern import diagonal_block, find_place, has_block_rows
from featherlane.solver.rows.cone import cone_weights
from featherlane.solver.rows.pyramid import edge_weights, turning_weights
from featherlane.solver.rows.rows import TURN, other_arm, pushed_body_arm


@kernel
def pair_column(m, d, k, count, dof, r, sign):
    """Computes one column: the basis rows of the velocity at arm r per unit velocity of the dof."""
    s = d.cdof[dof]
    x = sign * (s.linear + cross(s.angular, r))
    n, u, v = d.con_basis[k].rows
    d.hessian.pair_dof[count] = dof
    d.hessian.pair_J[count][0] = dot(n, x)
    if d.con_dim[k] > 1:
        d.hessian.pair_J[count][1] = dot(u, x)
        d.hessian.pair_J[count][2] = dot(v, x)
    if d.con_dim[k] > 3:
        d.hessian.pair_J[m.nv + count] = d.con_basis[TURN, k] @ (sign * s.angular)


@kernel
def pair_jacobian(m, d, k):
    """Computes the columns of a contact between two moving bodies: dofs above only one, descending; returns the number.

    hessian.pair_dof[c] is the dof; hessian.pair_J[c] its three basis rows, hessian.pair_J[m.nv + c] those of the turns.
    """
    j, i = m.body_lastdof[d.con_body[k, 0]], m.body_lastdof[d.con_body[k, 1]]
    r, r_other = pushed_body_arm(d, k), other_arm(d, k)
    plus, minus = 1.0, -1.0
    count = 0
    while i != j:
        if i > j:
            pair_column(m, d, k, count, i, r_other, minus)
            i = m.dof_parentid[i]
        else:
            pair_column(m, d, k, count, j, r, plus)
            j = m.dof_parentid[j]
        count += 1
    return count


@kernel
def add_pair(m, d, k):
    """Adds J^T W J to H for a contact with friction between two moving bodies."""
    count, blocks = pair_jacobian(m, d, k), has_block_rows(d)
    nn, n1, w11, n2, w22 = edge_weights(d.con_D[k], d.primal.con_y[k])
    for a in range(count):
        i = d.hessian.pair_dof[a]
        h, e = d.hessian.rowadr[i], diagonal_block(m, d, i) if blocks else 0
        x, y, z = d.hessian.pair_J[a]
        gx = fma(nn, x, fma(n1, y, n2 * z))
        gy = fma(n1, x, w11 * y)
        gz = fma(n2, x, w22 * z)
        for b in range(a, count):
            e, place = find_place(m, d, blocks, e, d.hessian.pair_dof[b])
            u = h + place
            p, q, r = d.hessian.pair_J[b]
            d.hessian.H[u] = fma(gx, p, fma(gy, q, fma(gz, r, d.hessian.H[u])))


@kernel
def add_normal_pair(m, d, k):
    """Adds J^T W J to H for a contact without friction."""
    count, blocks = pair_jacobian(m, d, k), has_block_rows(d)
    w = where(d.primal.con_y[k][0] < 0.0, d.con_D[k], 0.0)
    for a in range(count):
        i = d.hessian.pair_dof[a]
        h, e = d.hessian.rowadr[i], diagonal_block(m, d, i) if blocks else 0
        g = w * d.hessian.pair_J[a][0]
        for b in range(a, count):
            e, place = find_place(m, d, blocks, e, d.hessian.pair_dof[b])
            u = h + place
            d.hessian.H[u] = fma(g, d.hessian.pair_J[b][0], d.hessian.H[u])


@kernel
def cone_matrix(m, d, k):
    """Returns the weights of an elliptic contact, for `weighted_cone`: w, e, q, b, and t = y_i / T along the basis."""
    (w, e, q, b), inverse = cone_weights(m, d, k)
    t = (d.primal.con_y[k][1] * inverse, d.primal.con_y[k][2] * inverse)
    return (w, e, q, b), t, inverse * d.primal.con_y[TURN, k]


@kernel
def weighted_cone(d, k, weights, x, y):
    """Returns W (x, y) for an elliptic contact: x along n and the tangents, y along the turns."""
    (w, e, q, b), t, u = weights
    along = fma(t[0], x[1], t[1] * x[2])
    if d.con_dim[k] > 3:
        along = along + dot(u, y)
    c = fma(q, along, -(e * x[0]))
    f = Vec3(fma(w, x[0], -(e * along)), fma(c, t[0], b * x[1]), fma(c, t[1], b * x[2]))
    return f, fma(c, u, b * y)


@kernel
def pyramid_matrix(d, k):
    """Returns the weights of a pyramid with turns, for `weighted_pyramid`."""
    nn, n1, w11, n2, w22 = edge_weights(d.con_D[k], d.primal.con_y[k])
    c, w = turning_weights(d, k)
    return (nn + (w[0] + (w[1] + w[2])), n1, w11, n2, w22), c, w


@kernel
def weighted_pyramid(weights, x, y):
    """Returns W (x, y) for a pyramid with turns."""
    (nn, n1, w11, n2, w22), c, w = weights
    along = fma(nn, x[0], fma(n1, x[1], fma(n2, x[2], dot(c, y))))
    f = Vec3(along, fma(n1, x[0], w11 * x[1]), fma(n2, x[0], w22 * x[2]))
    return f, Vec3(fma(c[i], x[0], w[i] * y[i]) for i in range(3))


@kernel
def pair_columns(m, d, k, a):
    """Returns column a of J: the rows along n and the tangents, those along the turns."""
    y = Vec3(zeros(3))
    if d.con_dim[k] > 3:
        y = d.hessian.pair_J[m.nv + a]
    return d.hessian.pair_J[a], y


@kernel
def add_pair_row(m, d, k, count, a, f, g):
    """Adds J_a^T W J to H, given W J_a: f along n and the tangents, g along the turns."""
    i, blocks = d.hessian.pair_dof[a], has_block_rows(d)
    h, e = d.hessian.rowadr[i], diagonal_block(m, d, i) if blocks else 0
    for b in range(a, count):
        e, place = find_place(m, d, blocks, e, d.hessian.pair_dof[b])
        u = h + place
        z = d.hessian.H[u]
        if d.con_dim[k] > 3:
            z = z + dot(g, d.hessian.pair_J[m.nv + b])
        d.hessian.H[u] = z + dot(f, d.hessian.pair_J[b])


@stage
def add_wide_pair(m, d, k):
    """Adds J^T W J to H for a contact with an elliptic cone or with turns.

    Reads:  con_* of slot k, cdof, the pattern of hessian.
    Writes: hessian.H (nH,) [kg, kg m, kg m^2].
    Scratch: hessian.pair_J, hessian.pair_dof.
    """
    count = pair_jacobian(m, d, k)
    if has_pyramids(m):
        pyramid = pyramid_matrix(d, k)
        for a in range(count):
            x, y = pair_columns(m, d, k, a)
            f, g = weighted_pyramid(pyramid, x, y)
            add_pair_row(m, d, k, count, a, f, g)
    else:
        cone = cone_matrix(m, d, k)
        for a in range(count):
            x, y = pair_columns(m, d, k, a)
            f, g = weighted_cone(d, k, cone, x, y)
            add_pair_row(m, d, k, count, a, f, g)
