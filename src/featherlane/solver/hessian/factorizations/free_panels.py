"""Contacts of free bodies in the panels of one world: diagonal blocks S^T K S, and -S_t^T K S_u between two bodies.

K is the stiffness of a body (stiffness.py) or between two (between_trees.py), S the 6x6 matrix of a free joint's axes.
A row of a panel is one vector of eight columns, the dofs of a body from the last one on:

    row r of K S_u = sum over c of K_rc (row c of S_u),    row i of S_t^T K S_u = sum over r of S_t,ri (row r of K S_u).
"""

from featherlane.prelude import *
from featherlane.solver.hessian.entries.couplings import coupling_tips
from featherlane.solver.hessian.entries.pattern import in_panel
from featherlane.solver.hessian.entries.stiffness import has_stiffness

FREE = 6  # dofs of a free body
AXES = 48  # numbers of a tree's axes: six components, eight columns
# places of a body's stiffness [[aa, al], [al^T, ll]] in its 21 numbers
SYMMETRIC = (
    (0, 1, 2, 6, 7, 8),
    (1, 3, 4, 9, 10, 11),
    (2, 4, 5, 12, 13, 14),
    (6, 9, 12, 15, 16, 17),
    (7, 10, 13, 16, 18, 19),
    (8, 11, 14, 17, 19, 20),
)


@kernel
def load_axes(m, d, lane):
    """Copies the axes of one world's free bodies: component c of tree t's dofs, the last one first, at 48 t + 8 c."""
    for t in range(d.ngraph):
        if in_panel(m, d, t):
            last = m.tree_dofadr[t] + FREE - 1
            for c in range(FREE):
                for i in range(FREE):
                    d.panel.axes[AXES * t + 8 * c + i] = read_lane(d.cdof, 6 * (last - i) + c, lane)
                for i in range(FREE, 8):
                    d.panel.axes[AXES * t + 8 * c + i] = 0.0


@kernel
def weighted_axes(weights, axes):
    """Returns the sum of weights times axes, of six."""
    y = weights[0] * axes[0]
    for c in unrolled(range(1, FREE)):
        y = fma(weights[c], axes[c], y)
    return y


@kernel
def add_product(d, sign, t, q, n, u):
    """Adds sign S_t^T u to the six rows of tree t's panel at q, n apart, both in eights; u: six rows of K S_u.

    The last rows are those of the translations, whose axes are unit vectors.
    """
    P, s = eights(d.panel.values), d.panel.axes
    for i in unrolled(range(3)):
        y = P[q + i * n]
        for c in unrolled(range(FREE)):
            y = fma(sign * s[AXES * t + 8 * c + i], u[c], y)
        P[q + i * n] = y
    for i in unrolled(range(3, FREE)):
        P[q + i * n] = fma(sign, u[8 - i], P[q + i * n])


@kernel
def add_body(m, d, lane, t):
    """Adds S^T K S to the diagonal block of tree t."""
    body = m.dof_bodyid[m.tree_dofadr[t]]
    if has_stiffness(d, body):
        A, o = eights(d.panel.axes), 21 * body
        S = tuple(A[FREE * t + c] for c in range(FREE))
        u = tuple(
            weighted_axes(tuple(read_lane(d.hessian.body_K, o + SYMMETRIC[r][c], lane) for c in range(FREE)), S)
            for r in range(FREE)
        )
        add_product(d, 1.0, t, d.panel.adr[t] // 8, d.panel.width[t] // 8, u)


@kernel
def subtract_between(d, lane, k, t, u, column, down, across):
    """Subtracts S_t^T K S_u of coupling k at a column of tree t's panel; K's entries are `down` and `across` apart."""
    A, o = eights(d.panel.axes), 36 * k
    S = tuple(A[FREE * u + c] for c in range(FREE))
    v = tuple(
        weighted_axes(tuple(read_lane(d.hessian.coupling_K, o + r * down + c * across, lane) for c in range(FREE)), S)
        for r in range(FREE)
    )
    add_product(d, -1.0, t, (d.panel.adr[t] + column) // 8, d.panel.width[t] // 8, v)


@kernel
def panel_column(d, t, u):
    """Returns the first column of tree u in the panel of t, -1 if it has none."""
    e = d.graph.rowadr[t]
    end = e + d.graph.rownnz[t]
    while e < end and d.graph.col[e] != u:
        e += 1
    return d.graph.colplace[e] if e < end else -1


@kernel
def add_free_bodies(m, d, lane):
    """Adds the contacts of one world's free bodies to its panels."""
    for t in range(d.ngraph):
        if in_panel(m, d, t):
            add_body(m, d, lane, t)
    for k in range(d.hessian.ncoupling[0]):
        tip, other = coupling_tips(d, k)
        t, u = m.dof_treeid[tip], m.dof_treeid[other]
        if in_panel(m, d, t) and in_panel(m, d, u):
            if d.graph.place[t] < d.graph.place[u]:
                column = panel_column(d, t, u)
                if column >= 0:
                    subtract_between(d, lane, k, t, u, column, FREE, 1)
            else:
                column = panel_column(d, u, t)
                if column >= 0:
                    subtract_between(d, lane, k, u, t, column, 1, FREE)
