"""Contacts of free bodies in the panels of one world: P^T F P on the diagonal, -P_t^T F P_u between two bodies t and u.

P is the velocity of the contact point per unit velocity of a body's dofs, and F the contact's 3x3 stiffness.  The turns
of a contact, with the angular velocity R per unit dof, add R^T A R + R^T p s^T P + P^T s p^T R (stiffness.py).
A row of a panel is one vector of eight columns: the dofs of a body from the last one on, and two zeros.
"""

from featherlane.prelude import *
from featherlane.solver.hessian.entries.pattern import in_panel, is_free_body
from featherlane.solver.hessian.entries.stiffness import symmetric
from featherlane.solver.hessian.factorizations.panel import FREE

AXES = 48  # number of values of a tree's axes: six components, eight columns


@kernel
def load_axes(m, d, lane):
    """Copies the axes of one world's free bodies: component c of tree t's dofs, the last one first, at 48 t + 8 c."""
    for t in range(d.ngraph):
        if is_free_body(m, t):
            last = m.tree_dofadr[t] + FREE - 1
            for c in range(FREE):
                for i in range(FREE):
                    d.panel.axes[AXES * t + 8 * c + i] = read_lane(flat(d.cdof), 6 * (last - i) + c, lane)
                for i in range(FREE, 8):
                    d.panel.axes[AXES * t + 8 * c + i] = 0.0


@kernel
def panel_column(d, t, u):
    """Returns the first column of tree u in the panel of t, -1 if it has none."""
    e = d.graph.rowadr[t]
    end = e + d.graph.rownnz[t]
    while e < end and d.graph.col[e] != u:
        e += 1
    return d.graph.colplace[e] if e < end else -1


@kernel
def load_lane(rows, o, lane, n):
    """Returns n numbers of one world."""
    return tuple(read_lane(rows, o + c, lane) for c in range(n))


@kernel
def angular_rows(d, t):
    """Returns R of free body t."""
    A = eights(d.panel.axes)
    return tuple(A[FREE * t + c] for c in range(3))


@kernel
def point_rows(d, t, r, place):
    """Returns P of free body t for a point at arm r, and stores it at a place in panel.rows."""
    A, P = eights(d.panel.axes), eights(d.panel.rows)
    p = add3(tuple(A[FREE * t + 3 + c] for c in range(3)), cross(angular_rows(d, t), r))
    for c in unrolled(range(3)):
        P[3 * place + c] = p[c]
    return p


@kernel
def times(F, rows):
    """Returns the rows F P for three rows P."""
    return tuple(dot3(F[i], rows) for i in range(3))


@kernel
def weighted_rows(d, lane, k, t, p):
    """Returns F P + s p^T R and, for a contact with turns, A R + p s^T P of contact k on free body t."""
    K, o = d.hessian.con_K, 18 * k
    f, g = times(symmetric(load_lane(K, o, lane, 6)), p), p
    if d.con_dim[k] > 3:
        a, R = load_lane(K, o + 12, lane, 3), angular_rows(d, t)
        s = load_lane(K, o + 15, lane, 3)
        along, turn = dot3(s, p), dot3(a, R)
        g = times(symmetric(load_lane(K, o + 6, lane, 6)), R)
        f, g = tuple(fma(s[i], turn, f[i]) for i in range(3)), tuple(fma(a[i], along, g[i]) for i in range(3))
    return f, g


@kernel
def add_block(d, sign, k, t, place, column, weighted):
    """Adds sign (P_t^T f + R_t^T g) to the six rows of free body t, at a column of its panel.

    The last three rows are those of the translations, for which P is the unit matrix and R is zero.
    """
    E, P, R = eights(d.panel.values), d.panel.rows, d.panel.axes
    (f, g), q = weighted, (d.panel.adr[t] + FREE * column) // 8
    for i in unrolled(range(3)):
        y = E[q + i]
        for c in unrolled(range(3)):
            y = fma(sign * P[24 * place + 8 * c + i], f[c], y)
        if d.con_dim[k] > 3:
            for c in unrolled(range(3)):
                y = fma(sign * R[AXES * t + 8 * c + i], g[c], y)
        E[q + i] = y
    for i in unrolled(range(3, FREE)):
        E[q + i] = fma(sign, f[5 - i], E[q + i])


@kernel
def add_contact(m, d, lane, k):
    """Adds contact k of one world to its panels."""
    b, other = d.con_body[2 * k], d.con_body[2 * k + 1]
    t = m.body_treeid[b]
    p = point_rows(d, t, load_lane(d.con_arm, 6 * k, lane, 3), 0)
    own = weighted_rows(d, lane, k, t, p)
    add_block(d, 1.0, k, t, 0, 0, own)
    if other > 0:
        u = m.body_treeid[other]
        p = point_rows(d, u, load_lane(d.con_arm, 6 * k + 3, lane, 3), 1)
        its = weighted_rows(d, lane, k, u, p)
        add_block(d, 1.0, k, u, 1, 0, its)
        if d.graph.place[t] < d.graph.place[u]:
            column = panel_column(d, t, u)
            if column >= 0:
                add_block(d, -1.0, k, t, 0, column, its)
        else:
            column = panel_column(d, u, t)
            if column >= 0:
                add_block(d, -1.0, k, u, 1, column, own)


@kernel
def add_contacts(m, d, lane):
    """Adds the pushing contacts of one world's free bodies to its panels."""
    for e in range(d.primal.nslot[0]):
        k = d.primal.slot[e]
        if in_panel(m, d, k):
            F = load_lane(d.hessian.con_K, 18 * k, lane, 6)
            if any_((F[0] + F[3] + F[5] > 0.0) & (read_lane(d.con_D, k, lane) > 0.0)):
                add_contact(m, d, lane, k)
