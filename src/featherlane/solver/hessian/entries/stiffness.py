"""Contacts as stiffnesses of bodies: K_b = sum of w_ab q_a q_b^T over the basis wrenches q of the contacts on body b.

A wrench of the basis is (r x u, u) for a direction u at arm r, and (v, 0) for a turn v.  A contact without turns is a
3x3 stiffness F of its point; its turns add a symmetric A on the rotation, and p s^T between rotation and translation:

    K_b += q F q^T with q = ([r], 1),   and  [[A + p (r x s)^T + (r x s) p^T,  p s^T], [s p^T,  0]].

The composition toward the root is that of composite inertias (Featherstone, RBDA, sec. 6.2).
"""

from featherlane.prelude import *
from featherlane.solver.rows.cone import cone_weights
from featherlane.solver.rows.pyramid import edge_weights, turning_weights
from featherlane.solver.rows.rows import REACHED, STIFF, turn


@kernel
def clear_stiffness(m, d):
    """No stiffness on any body."""
    for b in range(m.nbody):
        if d.body_reached[b] == STIFF:
            d.body_reached[b] = REACHED


@kernel
def has_stiffness(d, b):
    """Does a stiffness act on body b or below it, of the contacts that were added?"""
    return d.body_reached[b] == STIFF


@kernel
def begin_stiffness(d, b):
    """K_b <- 0, before the first contact on body b."""
    if d.body_reached[b] != STIFF:
        d.body_reached[b] = STIFF
        for c in range(21):
            d.hessian.body_K[21 * b + c] = zero(d)


@kernel
def add_stiffness(d, b, r, F):
    """K_b += the 6x6 of a 3x3 stiffness F = (xx, xy, xz, yy, yz, zz) at arm r; order aa (6), al (9), ll (6)."""
    fx, fy, fz = (F[0], F[1], F[2]), (F[1], F[3], F[4]), (F[2], F[4], F[5])
    gx, gy, gz = cross(r, fx), cross(r, fy), cross(r, fz)  # columns of G = [r] F
    a0 = cross(r, (gx[0], gy[0], gz[0]))
    a1 = cross(r, (gx[1], gy[1], gz[1]))
    a2 = cross(r, (gx[2], gy[2], gz[2]))
    o = 21 * b
    d.hessian.body_K[o] = d.hessian.body_K[o] + a0[0]
    d.hessian.body_K[o + 1] = d.hessian.body_K[o + 1] + a0[1]
    d.hessian.body_K[o + 2] = d.hessian.body_K[o + 2] + a0[2]
    d.hessian.body_K[o + 3] = d.hessian.body_K[o + 3] + a1[1]
    d.hessian.body_K[o + 4] = d.hessian.body_K[o + 4] + a1[2]
    d.hessian.body_K[o + 5] = d.hessian.body_K[o + 5] + a2[2]
    d.hessian.body_K[o + 6] = d.hessian.body_K[o + 6] + gx[0]
    d.hessian.body_K[o + 7] = d.hessian.body_K[o + 7] + gy[0]
    d.hessian.body_K[o + 8] = d.hessian.body_K[o + 8] + gz[0]
    d.hessian.body_K[o + 9] = d.hessian.body_K[o + 9] + gx[1]
    d.hessian.body_K[o + 10] = d.hessian.body_K[o + 10] + gy[1]
    d.hessian.body_K[o + 11] = d.hessian.body_K[o + 11] + gz[1]
    d.hessian.body_K[o + 12] = d.hessian.body_K[o + 12] + gx[2]
    d.hessian.body_K[o + 13] = d.hessian.body_K[o + 13] + gy[2]
    d.hessian.body_K[o + 14] = d.hessian.body_K[o + 14] + gz[2]
    for c in range(6):
        d.hessian.body_K[o + 15 + c] = d.hessian.body_K[o + 15 + c] + F[c]


@kernel
def combine(s, a, t, b):
    """s a + t b for vectors."""
    return fma(s, a[0], t * b[0]), fma(s, a[1], t * b[1]), fma(s, a[2], t * b[2])


@kernel
def contact_stiffness(d, k):
    """F = sum of w_ab u_a u_b^T over the contact's basis, as (xx, xy, xz, yy, yz, zz)."""
    n, u, v = load3(d.con_basis, 9 * k), load3(d.con_basis, 9 * k + 3), load3(d.con_basis, 9 * k + 6)
    nn, n1, w11, n2, w22 = edge_weights(d.con_D[k], load3(d.primal.con_y, 3 * k))
    p1, p2 = combine(n1, n, w11, u), combine(n2, n, w22, v)
    q = combine(n1, u, n2, v)
    p = (fma(nn, n[0], q[0]), fma(nn, n[1], q[1]), fma(nn, n[2], q[2]))
    return (
        fma(p[0], n[0], fma(p1[0], u[0], p2[0] * v[0])),
        fma(p[0], n[1], fma(p1[0], u[1], p2[0] * v[1])),
        fma(p[0], n[2], fma(p1[0], u[2], p2[0] * v[2])),
        fma(p[1], n[1], fma(p1[1], u[1], p2[1] * v[1])),
        fma(p[1], n[2], fma(p1[1], u[2], p2[1] * v[2])),
        fma(p[2], n[2], fma(p1[2], u[2], p2[2] * v[2])),
    )


@kernel
def normal_stiffness(d, k):
    """The same for a contact without friction: w n n^T."""
    n = load3(d.con_basis, 9 * k)
    p = scale3(where(d.primal.con_y[3 * k] < 0.0, d.con_D[k], 0.0), n)
    return p[0] * n[0], p[0] * n[1], p[0] * n[2], p[1] * n[1], p[1] * n[2], p[2] * n[2]


@kernel
def cone_stiffness(d, k):
    """The same for an elliptic cone: w n n^T - e (n t^T + t n^T) + q t t^T + b (u u^T + v v^T)."""
    n, u, v = load3(d.con_basis, 9 * k), load3(d.con_basis, 9 * k + 3), load3(d.con_basis, 9 * k + 6)
    (w, e, q, b), inverse = cone_weights(d, k)
    t = combine(d.primal.con_y[3 * k + 1] * inverse, u, d.primal.con_y[3 * k + 2] * inverse, v)
    c, s = combine(w, n, -e, t), combine(q, t, -e, n)
    x, y = scale3(b, u), scale3(b, v)
    return (
        fma(c[0], n[0], fma(s[0], t[0], fma(x[0], u[0], y[0] * v[0]))),
        fma(c[0], n[1], fma(s[0], t[1], fma(x[0], u[1], y[0] * v[1]))),
        fma(c[0], n[2], fma(s[0], t[2], fma(x[0], u[2], y[0] * v[2]))),
        fma(c[1], n[1], fma(s[1], t[1], fma(x[1], u[1], y[1] * v[1]))),
        fma(c[1], n[2], fma(s[1], t[2], fma(x[1], u[2], y[1] * v[2]))),
        fma(c[2], n[2], fma(s[2], t[2], fma(x[2], u[2], y[2] * v[2]))),
    )


@stage
def add_cone(m, d, k, side):
    """K_b += the stiffness of an elliptic contact on one of its bodies, its turns left out.

    Reads:  con_* of slot k.   Writes: hessian.body_K of body `side` of the contact [kg, kg m, kg m^2].
    """
    add_stiffness(d, d.con_body[2 * k + side], load3(d.con_arm, 6 * k + 3 * side), cone_stiffness(d, k))


@kernel
def outer(w, a, x):
    """x + w a a^T for a symmetric 3x3 x."""
    b = scale3(w, a)
    return (
        fma(b[0], a[0], x[0]),
        fma(b[0], a[1], x[1]),
        fma(b[0], a[2], x[2]),
        fma(b[1], a[1], x[3]),
        fma(b[1], a[2], x[4]),
        fma(b[2], a[2], x[5]),
    )


@kernel
def turning_stiffness(m, d, k):
    """(A, p, s) of a contact's turns r_i: A = sum of w_i r_i r_i^T + q p p^T; p s^T between them and translations."""
    o = 9 * turn(d, k)
    r0, r1, r2 = load3(d.con_basis, o), load3(d.con_basis, o + 3), load3(d.con_basis, o + 6)
    n = load3(d.con_basis, 9 * k)
    if m.opt_cone == PYRAMIDAL:
        c, w = turning_weights(d, k)
        p, s, q = axpy3(c[0], r0, combine(c[1], r1, c[2], r2)), n, zero(d)
    else:
        (_, e, q, b), inverse = cone_weights(d, k)
        y0, y1, y2 = scale3(inverse, load3(d.primal.con_y, 3 * turn(d, k)))
        t1, t2 = d.primal.con_y[3 * k + 1] * inverse, d.primal.con_y[3 * k + 2] * inverse
        t = combine(t1, load3(d.con_basis, 9 * k + 3), t2, load3(d.con_basis, 9 * k + 6))
        p, s, w = axpy3(y0, r0, combine(y1, r1, y2, r2)), combine(q, t, -e, n), (b, b, b)
    A = outer(q, p, zeros(d, 6))
    return outer(w[0], r0, outer(w[1], r1, outer(w[2], r2, A))), p, s


@kernel
def turning_weight(d, k):
    """What the turns of a pyramid add along its normal."""
    _, w = turning_weights(d, k)
    return w[0] + (w[1] + w[2])


@kernel
def add_turning(d, b, r, A, p, s):
    """K_b += [[A + p x^T + x p^T, p s^T], [s p^T, 0]] with x = r x s."""
    x, o = cross(r, s), 21 * b
    d.hessian.body_K[o] = d.hessian.body_K[o] + fma(2.0 * p[0], x[0], A[0])
    d.hessian.body_K[o + 1] = d.hessian.body_K[o + 1] + fma(p[0], x[1], fma(x[0], p[1], A[1]))
    d.hessian.body_K[o + 2] = d.hessian.body_K[o + 2] + fma(p[0], x[2], fma(x[0], p[2], A[2]))
    d.hessian.body_K[o + 3] = d.hessian.body_K[o + 3] + fma(2.0 * p[1], x[1], A[3])
    d.hessian.body_K[o + 4] = d.hessian.body_K[o + 4] + fma(p[1], x[2], fma(x[1], p[2], A[4]))
    d.hessian.body_K[o + 5] = d.hessian.body_K[o + 5] + fma(2.0 * p[2], x[2], A[5])
    for i in range(3):
        d.hessian.body_K[o + 6 + i] = fma(p[0], s[i], d.hessian.body_K[o + 6 + i])
        d.hessian.body_K[o + 9 + i] = fma(p[1], s[i], d.hessian.body_K[o + 9 + i])
        d.hessian.body_K[o + 12 + i] = fma(p[2], s[i], d.hessian.body_K[o + 12 + i])


@stage
def add_turns(m, d, k, side):
    """K_b += what the turns of a contact add on one of its bodies.

    Reads:  con_* of slot k.   Writes: hessian.body_K of body `side` of the contact [kg, kg m, kg m^2].
    """
    b, r = d.con_body[2 * k + side], load3(d.con_arm, 6 * k + 3 * side)
    if m.opt_cone == PYRAMIDAL:
        n = load3(d.con_basis, 9 * k)
        add_stiffness(d, b, r, outer(turning_weight(d, k), n, zeros(d, 6)))
    A, p, s = turning_stiffness(m, d, k)
    add_turning(d, b, r, A, p, s)


@kernel
def compose_stiffness(m, d):
    """K^c_parent += K^c_child, from the leaves to the root."""
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
    """K_b s for a motion vector s."""
    o = 21 * b
    k0, k1, k2, k3, k4, k5 = load6(d.hessian.body_K, o)
    g0, g1, g2 = load3(d.hessian.body_K, o + 6)
    g3, g4, g5 = load3(d.hessian.body_K, o + 9)
    g6, g7, g8 = load3(d.hessian.body_K, o + 12)
    f0, f1, f2, f3, f4, f5 = load6(d.hessian.body_K, o + 15)
    a, l = (s[0], s[1], s[2]), (s[3], s[4], s[5])
    return (
        dot3((k0, k1, k2), a) + dot3((g0, g1, g2), l),
        dot3((k1, k3, k4), a) + dot3((g3, g4, g5), l),
        dot3((k2, k4, k5), a) + dot3((g6, g7, g8), l),
        dot3((g0, g3, g6), a) + dot3((f0, f1, f2), l),
        dot3((g1, g4, g7), a) + dot3((f1, f3, f4), l),
        dot3((g2, g5, g8), a) + dot3((f2, f4, f5), l),
    )
