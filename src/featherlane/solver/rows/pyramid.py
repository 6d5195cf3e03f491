"""The pyramidal friction cone: edges n + mu_i t_i and n - mu_i t_i, which can only push and share one D.

In the contact's basis (n, mu_1 t_1, mu_2 t_2, and for dimensions 4 and 6 the turns mu_3 n, mu_4 t_1, mu_5 t_2) with
y = J a - aref, the edges are y_0 + y_i and y_0 - y_i, and the cost is D / 2 times the squares of their negative parts.
Turns have separate functions, so that contacts of dimension 3, the most frequent ones, are not slowed down.
Source: MuJoCo documentation, Computation, "Friction cones".
"""

from featherlane.prelude import *
from featherlane.solver.rows.rows import turn_index


# ---- force and cost ------------------------------------------------------------------------------------------------
@kernel
def one_sided_row(D, x):
    """Returns (force, cost) of a row that only pushes: a limit, a contact without friction."""
    x = fmin(x, 0.0)
    f = -(D * x)
    return f, -(0.5 * f) * x


@kernel
def pyramid(D, y):
    """Returns (forces along the basis n, mu_1 t_1, mu_2 t_2), cost: four edges that only push."""
    x1, x2, x3, x4 = fmin(y[0] + y[1], 0.0), fmin(y[0] - y[1], 0.0), fmin(y[0] + y[2], 0.0), fmin(y[0] - y[2], 0.0)
    c = fma(x1, x1, x2 * x2) + fma(x3, x3, x4 * x4)
    return (-(D * ((x1 + x2) + (x3 + x4))), D * (x2 - x1), D * (x4 - x3)), (0.5 * D) * c


@kernel
def edges(D, y, u):
    """Returns (force along n, along one other direction of the basis, cost) of the edges y + u and y - u."""
    x1, x2 = fmin(y + u, 0.0), fmin(y - u, 0.0)
    return -(D * (x1 + x2)), D * (x2 - x1), (0.5 * D) * fma(x1, x1, x2 * x2)


@kernel
def turning_pyramid(d, k, con_y):
    """Returns (force along n, moments along the turns, cost) of the turning edges of contact k."""
    D, y, r = d.con_D[k], con_y[3 * k], 3 * turn_index(d, k)
    f, t, c = edges(D, y, con_y[r])
    t1, t2 = 0.0, 0.0
    if d.con_dim[k] > 4:
        f1, t1, c1 = edges(D, y, con_y[r + 1])
        f2, t2, c2 = edges(D, y, con_y[r + 2])
        f, c = f + (f1 + f2), c + (c1 + c2)
    return f, (t, t1, t2), c


# ---- along a line --------------------------------------------------------------------------------------------------
@kernel
def push_slope(x, v, g, h):
    """Adds the derivatives of half the square of the negative part of x along dx = v."""
    return fma(fmin(x, 0.0), v, g), fma(where(x < 0.0, v, 0.0), v, h)


@kernel
def turning_slope(d, k, a):
    """Returns the derivatives, over D, of the cost of the turning edges, at step length a."""
    y, v = fma(a, d.primal.con_z[3 * k], d.primal.con_y[3 * k]), d.primal.con_z[3 * k]
    r, g, h = 3 * turn_index(d, k), 0.0, 0.0
    for i in range(d.con_dim[k] - 3):
        w = d.primal.con_z[r + i]
        u = fma(a, w, d.primal.con_y[r + i])
        g, h = push_slope(y + u, v + w, g, h)
        g, h = push_slope(y - u, v - w, g, h)
    return g, h


@kernel
def edge_switches(y, v, a):
    """Returns 1 if a pyramid edge starts or stops pushing between y and y + a v, else 0."""
    return fabs(where(y < 0.0, 1.0, 0.0) - where(fma(a, v, y) < 0.0, 1.0, 0.0))


@kernel
def turning_switches(d, k, a):
    """Returns how many turning edges start or stop pushing along the step."""
    y, v, r = d.primal.con_y[3 * k], d.primal.con_z[3 * k], 3 * turn_index(d, k)
    n = 0.0
    for i in range(d.con_dim[k] - 3):
        u, w = d.primal.con_y[r + i], d.primal.con_z[r + i]
        n = n + (edge_switches(y + u, v + w, a) + edge_switches(y - u, v - w, a))
    return n


# ---- second derivatives --------------------------------------------------------------------------------------------
@kernel
def edge_weights(D, y):
    """Returns weights of a contact's basis products (nn, n1, 11, n2, 22): D for each pyramid edge that pushes."""
    w1 = where(y[0] + y[1] < 0.0, D, 0.0)
    w2 = where(y[0] - y[1] < 0.0, D, 0.0)
    w3 = where(y[0] + y[2] < 0.0, D, 0.0)
    w4 = where(y[0] - y[2] < 0.0, D, 0.0)
    return (w1 + w2) + (w3 + w4), w1 - w2, w1 + w2, w3 - w4, w3 + w4


@kernel
def turning_weights(d, k):
    """Returns (n4, n5, n6), (44, 55, 66) of the turning edges; their part of nn is the sum of the latter."""
    D, y, r = d.con_D[k], d.primal.con_y[3 * k], 3 * turn_index(d, k)
    p, q = where(y + d.primal.con_y[r] < 0.0, D, 0.0), where(y - d.primal.con_y[r] < 0.0, D, 0.0)
    p1, q1, p2, q2 = zeros(4)
    if d.con_dim[k] > 4:
        p1, q1 = where(y + d.primal.con_y[r + 1] < 0.0, D, 0.0), where(y - d.primal.con_y[r + 1] < 0.0, D, 0.0)
        p2, q2 = where(y + d.primal.con_y[r + 2] < 0.0, D, 0.0), where(y - d.primal.con_y[r + 2] < 0.0, D, 0.0)
    return (p - q, p1 - q1, p2 - q2), (p + q, p1 + q1, p2 + q2)


@kernel
def least_edge(d, k):
    """Returns the smallest of a contact's edges: if it is not negative, none pushes."""
    widest = fmax(fabs(d.primal.con_y[3 * k + 1]), fabs(d.primal.con_y[3 * k + 2]))
    if d.con_dim[k] > 3:
        r = 3 * turn_index(d, k)
        widest = fmax(
            widest, fmax(fabs(d.primal.con_y[r]), fmax(fabs(d.primal.con_y[r + 1]), fabs(d.primal.con_y[r + 2])))
        )
    return d.primal.con_y[3 * k] - widest
