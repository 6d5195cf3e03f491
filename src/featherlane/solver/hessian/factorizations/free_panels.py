"""Contacts of free bodies in the panels of one world: P^T F P on the diagonal, -P_t^T F P_u between two bodies t and u.

P is the velocity of the contact point per unit velocity of a body's dofs, and F the contact's 3x3 stiffness.  The turns
of a contact, with the angular velocity R per unit dof, add R^T A R + R^T p s^T P + P^T s p^T R (stiffness.py).
A row of a panel is one vector of eight columns: the dofs of a body from the last one on, and two zeros.
"""

from featherlane.prelude import *
from featherlane.solver.hessian.entries.pattern import in_panel, is_free_body
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
def angular_rows(d, t):
    """Returns R of free body t."""
    A = eights(d.panel.axes)
    return Vec3(A[FREE * t + c] for c in range(3))


@kernel
def point_rows(d, t, r, place):
    """Returns P of free body t for a point at arm r, and stores it at a place in panel.rows."""
    A, P = eights(d.panel.axes), eights(d.panel.rows)
    p = Vec3(A[FREE * t + 3 + c] for c in range(3)) + cross(angular_rows(d, t), r)
    for c in unrolled(range(3)):
        P[3 * place + c] = p[c]
    return p


@kernel
def weighted_rows(d, lane, k, t, p):
    """Returns F P + s p^T R and, for a contact with turns, A R + p s^T P of contact k on free body t."""
    f, g = read_lane(d.hessian.con_F, k, lane) @ p, p
    if d.con_dim[k] > 3:
        a, s = read_lane(d.hessian.con_p, k, lane), read_lane(d.hessian.con_s, k, lane)
        R = angular_rows(d, t)
        f, g = fma(dot(a, R), s, f), fma(dot(s, p), a, read_lane(d.hessian.con_A, k, lane) @ R)
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
    b, other = d.con_body[k, 0], d.con_body[k, 1]
    t = m.body_treeid[b]
    p = point_rows(d, t, read_lane(d.con_arm, 2 * k, lane), 0)
    own = weighted_rows(d, lane, k, t, p)
    add_block(d, 1.0, k, t, 0, 0, own)
    if other > 0:
        u = m.body_treeid[other]
        p = point_rows(d, u, read_lane(d.con_arm, 2 * k + 1, lane), 1)
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
            F = read_lane(d.hessian.con_F, k, lane)
            if any_((F.xx + F.yy + F.zz > 0.0) & (read_lane(d.con_D, k, lane) > 0.0)):
                add_contact(m, d, lane, k)
