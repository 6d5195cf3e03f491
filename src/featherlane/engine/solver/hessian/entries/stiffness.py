"""Contacts as stiffnesses of bodies: K_b = sum of w_ab q_a q_b^T over the basis wrenches q of the contacts on body b.

A wrench of the basis is (r x u, u) for a direction u at arm r, and (v, 0) for a rotation axis v.  A contact without
torsional and rolling friction has no rotation axes.  It is a 3x3 stiffness F of its point, which adds X F X^T with
X = ([r], 1), and [r] the matrix of r x.  Rotation axes add

    [[A + p (r x s)^T + (r x s) p^T,  p s^T], [s p^T,  0]]

with a symmetric A on the rotation.  p s^T is the mixed second derivative by rotation and translation: p is a
combination of the rotation axes, s one of the directions.  The contact's basis is (n, u, v): normal and both tangents,
scaled by friction, in con_basis[k]; its rotation axes are in con_basis[ANGULAR, k].  primal.con_y[k] and con_y[ANGULAR,
k] are y = J a - aref along them.
T is the length of y along the directions other than n, and t = y / T along these directions.  `cone_weights` returns
((w, e, q, b), 1 / T) of an elliptic cone, whose cost has the second derivative w n n^T - e (n t^T + t n^T) + q t t^T
+ b I, with I over these directions.  `angular_edges_weights` returns (c, w) of a pyramid: the weights of n with axis i,
and of axis i with itself.
body_reached[b] is REACHED if a contact acts on b or below it, STIFF if also K_b is not 0.
The blocks of K_b are aa (rotations), al (rotation, translation) and ll (translations), see spatial/stiffness.py.
UPPER lists (i, j) of the six different entries of a symmetric 3x3 matrix.
The composition toward the root is that of composite inertias (Featherstone, RBDA, sec. 6.2).
"""

from featherlane.engine.prelude import *
from featherlane.engine.solver.hessian.entries.pattern import changes_body
from featherlane.engine.solver.rows.cone import cone_weights
from featherlane.engine.solver.rows.laws import one_sided_weight
from featherlane.engine.solver.rows.pyramid import angular_edges_weights, pyramid_weights
from featherlane.engine.solver.rows.rows import ANGULAR, REACHED, STIFF
from featherlane.engine.spatial.stiffness import UPPER


@kernel
def clear_stiffness(m, d):
    """Marks the stiffness of bodies as zero, in body_reached; `begin_stiffness` clears the stored values.

    Bodies whose stiffness is kept from the last assembly (`changes_body`) are left out.
    """
    for b in range(m.nbody):
        if d.body_reached[b] == STIFF and changes_body(m, d, b):
            d.body_reached[b] = REACHED


@kernel
def has_stiffness(d, b):
    """Checks whether one of the added contacts has a stiffness on body b or below it."""
    return d.body_reached[b] == STIFF


@kernel
def begin_stiffness(d, b):
    """Sets K_b = 0 if no contact has been added to body b yet."""
    if d.body_reached[b] != STIFF:
        d.body_reached[b] = STIFF
        d.hessian.body_K[b] = zeros(21)


@kernel
def add_stiffness_at_arm(d, b, r, F):
    """Adds X F X^T = [[ [r] F [r]^T, [r] F ], [ ([r] F)^T, F ]] to K_b, for a 3x3 stiffness F at arm r."""
    f = F.rows  # also its columns: F is symmetric
    g = tuple(cross(r, f[c]) for c in range(3))  # columns of G = [r] F: r x column c of F
    a = tuple(cross(r, Vec3(g[c][i] for c in range(3))) for i in range(3))  # rows of G [r]^T: r x row i of G
    G = tuple(g[c][i] for i in range(3) for c in range(3))  # by rows, as K.al
    K = join(tuple(a[i][j] for i, j in UPPER), G, F)
    # part by part: the sum of whole rows does not fit into registers, which takes 1 % of the step of a hand
    for e in unrolled(range(21)):
        d.hessian.body_K[b][e] += K[e]


@kernel
def pyramid_stiffness(d, k):
    """Returns F of a friction pyramid: sum of w_ab a b^T over the vectors a, b of the basis (n, u, v).

    w: the weights of the edges that push, with w_uv = 0.
    """
    n, u, v = d.con_basis[k].rows
    w_nn, w_nu, w_uu, w_nv, w_vv = pyramid_weights(d.con_D[k], d.primal.con_y[k])
    # F = P n^T + Pu u^T + Pv v^T, with P = w_nn n + w_nu u + w_nv v, Pu = w_nu n + w_uu u, Pv = w_nv n + w_vv v
    Pu, Pv = fma(w_nu, n, w_uu * u), fma(w_nv, n, w_vv * v)
    tangential = fma(w_nu, u, w_nv * v)
    P = fma(w_nn, n, tangential)
    return Sym3(fma(P[i], n[j], fma(Pu[i], u[j], Pv[i] * v[j])) for i, j in UPPER)


@kernel
def normal_stiffness(d, k):
    """Returns F of a contact without friction: w n n^T, with w = D if it pushes, else 0."""
    n = d.con_basis[k].rows[0]
    wn = one_sided_weight(d.con_D[k], d.primal.con_y[k][0]) * n
    return Sym3(wn[i] * n[j] for i, j in UPPER)


@kernel
def cone_stiffness(m, d, k):
    """Returns F of an elliptic cone: w n n^T - e (n t^T + t n^T) + q t t^T + b (u u^T + v v^T).

    t = (y_1 u + y_2 v) / T is the direction of slip along the tangents; w, e, q, b, 1 / T are those of `cone_weights`.
    """
    n, u, v = d.con_basis[k].rows
    (w, e, q, b), inverse_T = cone_weights(m, d, k)
    t = fma(d.primal.con_y[k][1] * inverse_T, u, d.primal.con_y[k][2] * inverse_T * v)
    # F = g n^T + s t^T + b u u^T + b v v^T, with g = w n - e t, s = q t - e n
    g, s = fma(w, n, -e * t), fma(q, t, -e * n)
    bu, bv = b * u, b * v
    return Sym3(fma(g[i], n[j], fma(s[i], t[j], fma(bu[i], u[j], bv[i] * v[j]))) for i, j in UPPER)


@stage
def add_cone_stiffness(m, d, k, side):
    """Adds the stiffness of an elliptic contact to K_b of one of its bodies, without its rotation axes.

    Reads:  con_* of slot k.   Writes: hessian.body_K of body `side` of the contact [kg, kg m, kg m^2].
    """
    add_stiffness_at_arm(d, d.con_body[k, side], d.con_arm[k, side], cone_stiffness(m, d, k))


@kernel
def add_outer(w, a, x):
    """Returns x + w a a^T for a symmetric 3x3 x."""
    wa = w * a
    return Sym3(fma(wa[UPPER[e][0]], a[UPPER[e][1]], x[e]) for e in range(6))


@kernel
def angular_stiffness(m, d, k):
    """Returns (A, p, s), the second derivative of a contact's cost by rotations about its axes r_i.

    A = sum of w_i r_i r_i^T + q p p^T: rotation with rotation.  p s^T: rotation with translation.

    Pyramid:  p = sum of c_i r_i and s = n, with c_i = w_ni and w_i = w_ii of `angular_edges_weights`; q = 0.
    Cone:     p = sum of (y_i / T) r_i and s = q t - e n, with w_i = b and e, q, b of `cone_weights`.
    """
    r0, r1, r2 = d.con_basis[ANGULAR, k].rows
    n, u, v = d.con_basis[k].rows
    if has_pyramids(m):
        c, w = angular_edges_weights(d, k)
        s = n
        q = 0.0
    else:
        (_, e, q, b), inverse_T = cone_weights(m, d, k)
        c = inverse_T * d.primal.con_y[ANGULAR, k]
        w = Vec3(b, b, b)
        t = fma(d.primal.con_y[k][1] * inverse_T, u, d.primal.con_y[k][2] * inverse_T * v)
        s = fma(q, t, -e * n)
    p = fma(c[0], r0, fma(c[1], r1, c[2] * r2))
    A = add_outer(q, p, zeros(6))
    return add_outer(w[0], r0, add_outer(w[1], r1, add_outer(w[2], r2, A))), p, s


@kernel
def angular_edges_normal_weight(d, k):
    """Returns the weight that the angular edges of a pyramid add to n n^T."""
    _, w = angular_edges_weights(d, k)
    return w[0] + (w[1] + w[2])


@kernel
def point_stiffness(m, d, k):
    """Returns the 3x3 stiffness F of contact k's point, with what angular edges of a pyramid add along n."""
    if d.con_dim[k] == 1:
        F = normal_stiffness(d, k)
    elif has_pyramids(m):
        F = pyramid_stiffness(d, k)
    else:
        F = cone_stiffness(m, d, k)
    if d.con_dim[k] > 3 and has_pyramids(m):
        F = add_outer(angular_edges_normal_weight(d, k), d.con_basis[k].rows[0], F)
    return F


@kernel
def add_angular_stiffness(d, b, r, A, p, s):
    """Adds [[A + p x^T + x p^T, p s^T], [s p^T, 0]] to K_b, with x = r x s, for a contact's rotation axes at arm r."""
    x = cross(r, s)
    # entries of A + p x^T + x p^T on and above the diagonal, by rows
    rotation = (
        fma(2.0 * p.x, x.x, A.xx),
        fma(p.x, x.y, fma(x.x, p.y, A.xy)),
        fma(p.x, x.z, fma(x.x, p.z, A.xz)),
        fma(2.0 * p.y, x.y, A.yy),
        fma(p.y, x.z, fma(x.y, p.z, A.yz)),
        fma(2.0 * p.z, x.z, A.zz),
    )
    for e in unrolled(range(6)):
        d.hessian.body_K[b][e] += rotation[e]
    for e in unrolled(range(9)):  # the rows of p s^T follow these 6
        d.hessian.body_K[b][6 + e] = fma(p[e // 3], s[e % 3], d.hessian.body_K[b][6 + e])


@stage
def add_rotation_axes(m, d, k, side):
    """Adds the stiffness of a contact's rotation axes to K_b of one of its bodies.

    Reads:  con_* of slot k.   Writes: hessian.body_K of body `side` of the contact [kg, kg m, kg m^2].
    """
    b, r = d.con_body[k, side], d.con_arm[k, side]
    # the edges n + r_i and n - r_i of axis r_i also push along n: they add a weight to n n^T
    if has_pyramids(m):
        n = d.con_basis[k].rows[0]
        add_stiffness_at_arm(d, b, r, add_outer(angular_edges_normal_weight(d, k), n, zeros(6)))
    A, p, s = angular_stiffness(m, d, k)
    add_angular_stiffness(d, b, r, A, p, s)


@kernel
def compose_stiffness(m, d):
    """Computes K^c_parent += K^c_child, from the leaves to the root."""
    for k in range(m.nbody - 1):
        b = m.nbody - 1 - k  # from the last body to the first: children before their parents
        parent = m.body_parentid[b]
        # the world has no dofs and needs none
        if parent > 0 and has_stiffness(d, b) and changes_body(m, d, b):
            if has_stiffness(d, parent):
                for e in unrolled(range(21)):  # part by part, as in `add_stiffness_at_arm`
                    d.hessian.body_K[parent][e] += d.hessian.body_K[b][e]
            else:  # the first stiffness of the parent: its stored value is not valid
                d.body_reached[parent] = STIFF
                d.hessian.body_K[parent] = d.hessian.body_K[b]
