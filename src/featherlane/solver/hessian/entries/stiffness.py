"""Contacts as stiffnesses of bodies: K_b = sum of w_ab q_a q_b^T over the basis wrenches q of the contacts on body b.

A wrench of the basis is (r x u, u) for a direction u at arm r, and (v, 0) for a turn v.  A contact without turns is a
3x3 stiffness F of its point; its turns add a symmetric A on the rotation, and p s^T between rotation and translation:

    K_b += q F q^T with q = ([r], 1),   and  [[A + p (r x s)^T + (r x s) p^T,  p s^T], [s p^T,  0]].

The composition toward the root is that of composite inertias (Featherstone, RBDA, sec. 6.2).
"""

from featherlane.prelude import *
from featherlane.solver.rows.cone import cone_weights
from featherlane.solver.rows.pyramid import edge_weights, turning_weights
from featherlane.solver.rows.rows import REACHED, STIFF, TURN
from featherlane.spatial.stiffness import UPPER
from featherlane.spatial.types import Stiffness


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
        d.hessian.body_K[b] = zeros(21)


@kernel
def add_stiffness_at_arm(d, b, r, F):
    """Adds the 6x6 of a 3x3 stiffness F at arm r to K_b: [r] F [r]^T, [r] F and F."""
    f = F.rows
    g = tuple(cross(r, f[c]) for c in range(3))  # columns of G = [r] F
    a = tuple(cross(r, Vec3(g[c][i] for c in range(3))) for i in range(3))
    G = tuple(g[c][i] for i in range(3) for c in range(3))
    d.hessian.body_K[b] += Stiffness(join(tuple(a[i][j] for i, j in UPPER), G, F))


@kernel
def contact_stiffness(d, k):
    """Returns F = sum of w_ab u_a u_b^T over the contact's basis."""
    n, u, v = d.con_basis[k].rows
    nn, n1, w11, n2, w22 = edge_weights(d.con_D[k], d.primal.con_y[k])
    p1, p2, q = fma(n1, n, w11 * u), fma(n2, n, w22 * v), fma(n1, u, n2 * v)
    p = fma(nn, n, q)
    return Sym3(fma(p[i], n[j], fma(p1[i], u[j], p2[i] * v[j])) for i, j in UPPER)


@kernel
def normal_stiffness(d, k):
    """Returns F of a contact without friction: w n n^T."""
    n = d.con_basis[k].rows[0]
    p = where(d.primal.con_y[k][0] < 0.0, d.con_D[k], 0.0) * n
    return Sym3(p[i] * n[j] for i, j in UPPER)


@kernel
def cone_stiffness(m, d, k):
    """Returns F of an elliptic cone: w n n^T - e (n t^T + t n^T) + q t t^T + b (u u^T + v v^T)."""
    n, u, v = d.con_basis[k].rows
    (w, e, q, b), inverse = cone_weights(m, d, k)
    t = fma(d.primal.con_y[k][1] * inverse, u, d.primal.con_y[k][2] * inverse * v)
    c, s = fma(w, n, -e * t), fma(q, t, -e * n)
    x, y = b * u, b * v
    return Sym3(fma(c[i], n[j], fma(s[i], t[j], fma(x[i], u[j], y[i] * v[j]))) for i, j in UPPER)


@stage
def add_cone_stiffness(m, d, k, side):
    """Adds the stiffness of an elliptic contact to K_b of one of its bodies, without its turns.

    Reads:  con_* of slot k.   Writes: hessian.body_K of body `side` of the contact [kg, kg m, kg m^2].
    """
    add_stiffness_at_arm(d, d.con_body[k, side], d.con_arm[k, side], cone_stiffness(m, d, k))


@kernel
def outer(w, a, x):
    """Returns x + w a a^T for a symmetric 3x3 x."""
    b = w * a
    return Sym3(fma(b[UPPER[e][0]], a[UPPER[e][1]], x[e]) for e in range(6))


@kernel
def turning_stiffness(m, d, k):
    """Returns (A, p, s) of a contact's turns r_i: A = sum of w_i r_i r_i^T + q p p^T; p s^T couples translations."""
    r0, r1, r2 = d.con_basis[TURN, k].rows
    n, u, v = d.con_basis[k].rows
    if has_pyramids(m):
        c, w = turning_weights(d, k)
        s, q = n, 0.0
    else:
        (_, e, q, b), inverse = cone_weights(m, d, k)
        c, w = inverse * d.primal.con_y[TURN, k], Vec3(b, b, b)
        t = fma(d.primal.con_y[k][1] * inverse, u, d.primal.con_y[k][2] * inverse * v)
        s = fma(q, t, -e * n)
    p = fma(c[0], r0, fma(c[1], r1, c[2] * r2))
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
    x, K = cross(r, s), d.hessian.body_K[b]
    aa = Sym3(
        fma(2.0 * p.x, x.x, A.xx),
        fma(p.x, x.y, fma(x.x, p.y, A.xy)),
        fma(p.x, x.z, fma(x.x, p.z, A.xz)),
        fma(2.0 * p.y, x.y, A.yy),
        fma(p.y, x.z, fma(x.y, p.z, A.yz)),
        fma(2.0 * p.z, x.z, A.zz),
    )
    al = tuple(fma(p[i], s[c], K.al[3 * i + c]) for i in range(3) for c in range(3))
    d.hessian.body_K[b] = join(K.aa + aa, al, K.ll)


@stage
def add_turns(m, d, k, side):
    """Adds the stiffness of a contact's turns to K_b of one of its bodies.

    Reads:  con_* of slot k.   Writes: hessian.body_K of body `side` of the contact [kg, kg m, kg m^2].
    """
    b, r = d.con_body[k, side], d.con_arm[k, side]
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
                d.hessian.body_K[p] += d.hessian.body_K[b]
            else:
                d.body_reached[p] = STIFF
                d.hessian.body_K[p] = d.hessian.body_K[b]
