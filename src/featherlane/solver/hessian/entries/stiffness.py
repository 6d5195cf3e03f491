"""Contacts as stiffnesses of bodies: K_b = sum of w_ab q_a q_b^T over the basis wrenches q of the contacts on body b.

A wrench of the basis is (r x u, u) for a direction u at arm r, and (v, 0) for a turn v.  A contact without turns is a
3x3 stiffness F of its point; its turns add a symmetric A on the rotation, and p s^T between rotation and translation:

    K_b += q F q^T with q = ([r], 1),   and  [[A + p (r x s)^T + (r x s) p^T,  p s^T], [s p^T,  0]].

The composition toward the root is that of composite inertias (Featherstone, RBDA, sec. 6.2).
"""

from featherlane.prelude import *
from featherlane.solver.rows.cone import cone_weights
from featherlane.solver.rows.pyramid import edge_weights, turning_weights
from featherlane.solver.rows.rows import REACHED, STIFF, turn_index

UPPER = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))  # rows and columns of (xx, xy, xz, yy, yz, zz)


@kernel
def clear_stiffness(m, d):
    """Clears the stiffness of all bodies."""
    for b in range(m.nbody):
        if d.body_reached[b] == STIFF:
            d.body_reached[b] = REACHED


@kernel
def has_stiffness(d, b):
    """Checks whether one of the added contacts has a stiffness on body b or below it."""
    return d.body_reached[b] == STIFF


@kernel
def begin_stiffness(d, b):
    """Sets K_b = 0, before the first contact on body b."""
    if d.body_reached[b] != STIFF:
        d.body_reached[b] = STIFF
        for c in range(21):
            d.hessian.body_K[21 * b + c] = 0.0


@kernel
def symmetric(F):
    """Returns the rows of a symmetric 3x3 matrix (xx, xy, xz, yy, yz, zz)."""
    return (F[0], F[1], F[2]), (F[1], F[3], F[4]), (F[2], F[4], F[5])


@kernel
def add_stiffness_at_arm(d, b, r, F):
    """Adds the 6x6 of a 3x3 stiffness F = (xx, xy, xz, yy, yz, zz) at arm r to K_b; order aa (6), al (9), ll (6)."""
    f, o = symmetric(F), 21 * b
    g = tuple(cross(r, f[c]) for c in range(3))  # columns of G = [r] F
    a = tuple(cross(r, tuple(g[c][i] for c in range(3))) for i in range(3))
    K = join(tuple(a[i][j] for i, j in UPPER), tuple(g[c][i] for i in range(3) for c in range(3)), F)
    for e in unrolled(range(21)):
        d.hessian.body_K[o + e] = d.hessian.body_K[o + e] + K[e]


@kernel
def combine(s, a, t, b):
    """Returns s a + t b for vectors."""
    return tuple(fma(s, a[i], t * b[i]) for i in range(3))


@kernel
def contact_stiffness(d, k):
    """Returns F = sum of w_ab u_a u_b^T over the contact's basis, as (xx, xy, xz, yy, yz, zz)."""
    n, u, v = d.con_basis[k].rows[0], d.con_basis[k].rows[1], d.con_basis[k].rows[2]
    nn, n1, w11, n2, w22 = edge_weights(d.con_D[k], load3(d.primal.con_y, 3 * k))
    p1, p2, q = combine(n1, n, w11, u), combine(n2, n, w22, v), combine(n1, u, n2, v)
    p = axpy3(nn, n, q)
    return tuple(fma(p[i], n[j], fma(p1[i], u[j], p2[i] * v[j])) for i, j in UPPER)


@kernel
def normal_stiffness(d, k):
    """Returns F of a contact without friction: w n n^T."""
    n = d.con_basis[k].rows[0]
    p = where(d.primal.con_y[3 * k] < 0.0, d.con_D[k], 0.0) * n
    return tuple(p[i] * n[j] for i, j in UPPER)


@kernel
def cone_stiffness(m, d, k):
    """Returns F of an elliptic cone: w n n^T - e (n t^T + t n^T) + q t t^T + b (u u^T + v v^T)."""
    n, u, v = d.con_basis[k].rows[0], d.con_basis[k].rows[1], d.con_basis[k].rows[2]
    (w, e, q, b), inverse = cone_weights(m, d, k)
    t = combine(d.primal.con_y[3 * k + 1] * inverse, u, d.primal.con_y[3 * k + 2] * inverse, v)
    c, s = combine(w, n, -e, t), combine(q, t, -e, n)
    x, y = b * u, b * v
    return tuple(fma(c[i], n[j], fma(s[i], t[j], fma(x[i], u[j], y[i] * v[j]))) for i, j in UPPER)


@stage
def add_cone_stiffness(m, d, k, side):
    """Adds the stiffness of an elliptic contact to K_b of one of its bodies, without its turns.

    Reads:  con_* of slot k.   Writes: hessian.body_K of body `side` of the contact [kg, kg m, kg m^2].
    """
    add_stiffness_at_arm(d, d.con_body[2 * k + side], load3(d.con_arm, 6 * k + 3 * side), cone_stiffness(m, d, k))


@kernel
def outer(w, a, x):
    """Returns x + w a a^T for a symmetric 3x3 x."""
    b = scale3(w, a)
    return tuple(fma(b[UPPER[e][0]], a[UPPER[e][1]], x[e]) for e in range(6))


@kernel
def turning_stiffness(m, d, k):
    """Returns (A, p, s) of a contact's turns r_i: A = sum of w_i r_i r_i^T + q p p^T; p s^T couples translations."""
    o = 9 * turn_index(d, k)
    r0, r1, r2 = load3(flat(d.con_basis), o), load3(flat(d.con_basis), o + 3), load3(flat(d.con_basis), o + 6)
    n = d.con_basis[k].rows[0]
    if has_pyramids(m):
        c, w = turning_weights(d, k)
        p, s, q = axpy3(c[0], r0, combine(c[1], r1, c[2], r2)), n, 0.0
    else:
        (_, e, q, b), inverse = cone_weights(m, d, k)
        y0, y1, y2 = scale3(inverse, load3(d.primal.con_y, 3 * turn_index(d, k)))
        t1, t2 = d.primal.con_y[3 * k + 1] * inverse, d.primal.con_y[3 * k + 2] * inverse
        t = combine(t1, d.con_basis[k].rows[1], t2, d.con_basis[k].rows[2])
        p, s, w = axpy3(y0, r0, combine(y1, r1, y2, r2)), combine(q, t, -e, n), (b, b, b)
    A = outer(q, p, zeros(6))
    return outer(w[0], r0, outer(w[1], r1, outer(w[2], r2, A))), p, s


@kernel
def turning_weight(d, k):
    """Returns the weight that the turns of a pyramid add along its normal."""
    _, w = turning_weights(d, k)
    return w[0] + (w[1] + w[2])


@kernel
def add_turning(d, b, r, A, p, s):
    """Adds [[A + p x^T + x p^T, p s^T], [s p^T, 0]] to K_b, with x = r x s."""
    x, o = cross(r, s), 21 * b
    for e in unrolled(range(6)):
        i, j = UPPER[e]
        K = fma(2.0 * p[i], x[i], A[e]) if i == j else fma(p[i], x[j], fma(x[i], p[j], A[e]))
        d.hessian.body_K[o + e] = d.hessian.body_K[o + e] + K
    for i in range(3):
        for c in unrolled(range(3)):
            d.hessian.body_K[o + 6 + 3 * c + i] = fma(p[c], s[i], d.hessian.body_K[o + 6 + 3 * c + i])


@stage
def add_turns(m, d, k, side):
    """Adds the stiffness of a contact's turns to K_b of one of its bodies.

    Reads:  con_* of slot k.   Writes: hessian.body_K of body `side` of the contact [kg, kg m, kg m^2].
    """
    b, r = d.con_body[2 * k + side], load3(d.con_arm, 6 * k + 3 * side)
    if has_pyramids(m):
        n = d.con_basis[k].rows[0]
        add_stiffness_at_arm(d, b, r, outer(turning_weight(d, k), n, zeros(6)))
    A, p, s = turning_stiffness(m, d, k)
    add_turning(d, b, r, A, p, s)


@kernel
def compose_stiffness(m, d):
    """Computes K^c_parent += K^c_child, from the leaves to the root."""
    for k in range(m.nbody - 1):
        b = m.nbody - 1 - k
        p = m.body_parentid[b]
        if p > 0 and has_stiffness(d, b):
            if has_stiffness(d, p):
                for c in range(21):
                    d.hessian.body_K[21 * p + c] = d.hessian.body_K[21 * p + c] + d.hessian.body_K[21 * b + c]
            else:
                d.body_reached[p] = STIFF
                for c in range(21):
                    d.hessian.body_K[21 * p + c] = d.hessian.body_K[21 * b + c]


@kernel
def stiffness_times(d, b, s):
    """Returns K_b s for a motion vector s."""
    K, o = d.hessian.body_K, 21 * b
    k, g, f = symmetric(load6(K, o)), load9(K, o + 6), symmetric(load6(K, o + 15))
    a, l = (s[0], s[1], s[2]), (s[3], s[4], s[5])
    moment = tuple(dot3(k[i], a) + dot3(tuple(g[3 * i + c] for c in range(3)), l) for i in range(3))
    return join(moment, tuple(dot3(tuple(g[i + 3 * c] for c in range(3)), a) + dot3(f[i], l) for i in range(3)))
