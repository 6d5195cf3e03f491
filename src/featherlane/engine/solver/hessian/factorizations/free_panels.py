"""Contacts of free bodies in the panels of one world: P^T F P on the diagonal, -P_t^T F P_u between two bodies t and u.

P is the velocity of the contact point per unit velocity of a body's dofs, and F the contact's 3x3 stiffness.  The
rotation axes of a contact, with the angular velocity R per unit dof, add R^T A R + R^T p s^T P + P^T s p^T R
(stiffness.py).  Layout: a row of a panel is one vector of eight columns, the dofs of a body from the last one on, and
two zeros.  P and R are three such vectors each, one per component; `eights` reads a field as vectors of eight.
panel.axes has six vectors per tree, R and then the linear velocities; panel.rows has P of the two bodies of a contact
(sides 0 and 1).  FREE = 6: dofs of a free body.  ROW = 8: numbers of a vector.  AXES = 48: those of a tree in
panel.axes.  POINT_ROWS = 24: those of P in panel.rows.
lane: the world;  graph.position[t]: number of tree t in the elimination order;  panel.adr[t]: start of its panel;
graph.col, colstart: the trees in a row of the factor and their first columns, rownnz[t] of them from rowadr[t] on.
Contact k acts on bodies con_body[k] (the second is 0 if it does not move) at arms con_arm, and has rotation axes if
con_dim[k] > 3.  `in_panel`: it acts on free bodies only.  primal.slot[: nslot] lists the contacts of worlds that the
solver continues.
Tree t has the dofs from tree_dofadr[t] on; `is_free_body`: it is a free body.  ngraph: number of trees.
"""

from featherlane.engine.prelude import *
from featherlane.engine.solver.hessian.entries.pattern import in_panel, is_free_body
from featherlane.engine.solver.hessian.factorizations.panel import FREE

ROW = 8  # numbers of a vector: columns
POINT_ROWS = 24  # numbers of P: three vectors
AXES = 48  # number of values of a tree's axes: six vectors


@kernel
def store_axes(m, d, lane):
    """Copies the axes of one world's free bodies to panel.axes: component c of tree t's dofs is vector 6 t + c."""
    for t in range(d.ngraph):
        if is_free_body(m, t):
            last = m.tree_dofadr[t] + FREE - 1
            for c in range(FREE):
                # component c of the dofs, the last dof first, then zeros; cdof has six numbers per dof
                for i in range(FREE):
                    d.panel.axes[AXES * t + ROW * c + i] = read_lane(flat(d.cdof), 6 * (last - i) + c, lane)
                for i in range(FREE, ROW):
                    d.panel.axes[AXES * t + ROW * c + i] = 0.0


@kernel
def find_column(d, t, u):
    """Returns the first column of tree u in the panel of tree t, -1 if the panel has no columns of u."""
    e = d.graph.rowadr[t]
    end = e + d.graph.rownnz[t]
    while e < end and d.graph.col[e] != u:
        e += 1
    return d.graph.colstart[e] if e < end else -1


@kernel
def angular_velocity_rows(d, t):
    """Returns R of free body t: three vectors, the components of its dofs' rotation axes."""
    axes = eights(d.panel.axes)
    return Vec3(axes[FREE * t + c] for c in range(3))


@kernel
def store_point_rows(d, t, r, side):
    """Returns P of free body t for a point at arm r: P = linear axes + R x r.

    Stores it on side 0 or 1 in panel.rows.
    """
    axes, rows = eights(d.panel.axes), eights(d.panel.rows)
    P = Vec3(axes[FREE * t + 3 + c] for c in range(3)) + cross(angular_velocity_rows(d, t), r)
    for c in unrolled(range(3)):
        rows[3 * side + c] = P[c]
    return P


@kernel
def stiffness_products(d, lane, k, t, P):
    """Returns (f, g) of contact k on free body t: f = F P + s p^T R and g = A R + p s^T P.

    Without rotation axes, f = F P, and g is not used.
    F, A, p and s are those of one world, lane `lane` of hessian.con_F, con_A, con_p and con_s.
    """
    f = read_lane(d.hessian.con_F, k, lane) @ P
    g = P  # any three vectors: without rotation axes g is not used
    if d.con_dim[k] > 3:
        p, s = read_lane(d.hessian.con_p, k, lane), read_lane(d.hessian.con_s, k, lane)
        R = angular_velocity_rows(d, t)
        f = fma(dot(p, R), s, f)
        g = fma(dot(s, P), p, read_lane(d.hessian.con_A, k, lane) @ R)
    return f, g


@kernel
def add_block(d, sign, k, t, side, column, products):
    """Adds sign (P_t^T f + R_t^T g) to the six rows of free body t, at a column of its panel.

    Row i is the body's dof 5 - i: three rotations, then three translations, for which P is the unit matrix and R is 0.
    side: 0 or 1, of P_t in panel.rows.  products: (f, g) of `stiffness_products`, for the body of the columns.
    """
    panel = eights(d.panel.values)
    P, R = d.panel.rows, d.panel.axes
    f, g = products
    # vector of row 0: a tree's columns begin at a multiple of eight, and a group of eight has FREE rows
    first_row = (d.panel.adr[t] + FREE * column) // ROW
    for i in unrolled(range(3)):
        x = panel[first_row + i]
        for c in unrolled(range(3)):
            x = fma(sign * P[POINT_ROWS * side + ROW * c + i], f[c], x)
        if d.con_dim[k] > 3:
            for c in unrolled(range(3)):
                x = fma(sign * R[AXES * t + ROW * c + i], g[c], x)
        panel[first_row + i] = x
    for i in unrolled(range(3, FREE)):  # dof 5 - i is the translation along axis 5 - i
        panel[first_row + i] = fma(sign, f[5 - i], panel[first_row + i])


@kernel
def add_contact(m, d, lane, k):
    """Adds contact k of one world to its panels: to the diagonal blocks of its bodies' trees t and u, and between them.

    The block between them is in the panel of the tree that is eliminated first.
    """
    pushed, other = d.con_body[k, 0], d.con_body[k, 1]
    t = m.body_treeid[pushed]
    # con_arm: two arms per contact, that of the pushed body first
    P = store_point_rows(d, t, read_lane(d.con_arm, 2 * k, lane), side=0)
    products_t = stiffness_products(d, lane, k, t, P)
    add_block(d, sign=1.0, k=k, t=t, side=0, column=0, products=products_t)
    if other > 0:
        u = m.body_treeid[other]
        P = store_point_rows(d, u, read_lane(d.con_arm, 2 * k + 1, lane), side=1)
        products_u = stiffness_products(d, lane, k, u, P)
        add_block(d, sign=1.0, k=k, t=u, side=1, column=0, products=products_u)
        # without couplings between trees, a panel has columns of its own tree only
        if d.graph.position[t] < d.graph.position[u]:
            column = find_column(d, t, u)
            if column >= 0:
                add_block(d, sign=-1.0, k=k, t=t, side=0, column=column, products=products_u)
        else:
            column = find_column(d, u, t)
            if column >= 0:
                add_block(d, sign=-1.0, k=k, t=u, side=1, column=column, products=products_t)


@kernel
def add_contacts(m, d, lane):
    """Adds the pushing contacts of one world's free bodies to its panels."""
    for e in range(d.primal.nslot[0]):
        k = d.primal.slot[e]
        if in_panel(m, d, k):
            F = read_lane(d.hessian.con_F, k, lane)
            # F, positive semidefinite, is 0 if no row pushes: then so is its trace.  con_D is 0 in worlds without k
            if any_((F.xx + F.yy + F.zz > 0.0) & (read_lane(d.con_D, k, lane) > 0.0)):
                add_contact(m, d, lane, k)
