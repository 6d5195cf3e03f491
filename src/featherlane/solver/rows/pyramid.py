"""The pyramidal friction cone: edges n + mu_i t_i and n - mu_i t_i, which can only push and share one D.

In the contact's basis (n, mu_1 t_1, mu_2 t_2, and for dimensions 4 and 6 the turns mu_3 n, mu_4 t_1, mu_5 t_2) with
y = J a - aref, the edges are y_0 + y_i and y_0 - y_i, and the cost is D / 2 times the squares of their negative parts.
Turns have separate functions, so that contacts of dimension 3, the most frequent ones, are not slowed down.
Source: MuJoCo documentation, Computation, "Friction cones".
"""

from featherlane.prelude import *
from featherlane.solver.rows.rows import TURN


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
    return Vec3(-(D * ((x1 + x2) + (x3 + x4))), D * (x2 - x1), D * (x4 - x3)), (0.5 * D) * c


@kernel
def edges(D, y, u):
    """Returns (force along n, along one other direction of the basis, cost) of the edges y + u and y - u."""
    x1, x2 = fmin(y + u, 0.0), fmin(y - u, 0.0)
    return -(D * (x1 + x2)), D * (x2 - x1), (0.5 * D) * fma(x1, x1, x2 * x2)


@kernel
def turning_pyramid(d, k, con_y):
    """Returns (force along n, moments along the turns, cost) of the turning edges of contact k."""
    D, y, u = d.con_D[k], con_y[k][0], con_y[TURN, k]
    f, t, c = edges(D, y, u[0])
    t1, t2 = 0.0, 0.0
    if d.con_dim[k] > 4:
        f1, t1, c1 = edges(D, y, u[1])
        f2, t2, c2 = edges(D, y, u[2])
        f, c = f + (f1 + f2), c + (c1 + c2)
    return f, Vec3(t, t1, t2), c


# ---- along a line --------------------------------------------------------------------------------------------------
@kernel
def push_slope(x, v, g, h):
    """Adds the derivatives of half the square of the negative part of x along dx = v."""
    return fma(fmin(x, 0.0), v, g), fma(where(x < 0.0, v, 0.0), v, h)


@kernel
def turning_slope(d, k, a):
    """Returns the derivatives, over D, of the cost of the turning edges, at step length a."""
    y, v = fma(a, d.primal.con_z[k][0], d.primal.con_y[k][0]), d.primal.con_z[k][0]
    w = d.primal.con_z[TURN, k]
    u = fma(a, w, d.primal.con_y[TURN, k])
    g, h = push_slope(y + u[0], v + w[0], 0.0, 0.0)
    g, h = push_slope(y - u[0], v - w[0], g, h)
    if d.con_dim[k] > 4:
        for i in unrolled(range(1, 3)):
            g, h = push_slope(y + u[i], v + w[i], g, h)
            g, h = push_slope(y - u[i], v - w[i], g, h)
    return g, h


@kernel
def edge_switches(y, v, a):
    """Returns 1 if a pyramid edge starts or stops pushing between y and y + a v, else 0."""
    return fabs(where(y < 0.0, 1.0, 0.0) - where(fma(a, v, y) < 0.0, 1.0, 0.0))


@kernel
def turning_switches(d, k, a):
    """Returns how many turning edges start or stop pushing along the step."""
    y, v = d.primal.con_y[k][0], d.primal.con_z[k][0]
    u, w = d.primal.con_y[TURN, k], d.primal.con_z[TURN, k]
    n = edge_switches(y + u[0], v + w[0], a) + edge_switches(y - u[0], v - w[0], a)
    if d.con_dim[k] > 4:
        for i in unrolled(range(1, 3)):
            n = n + (edge_switches(y + u[i], v + w[i], a) + edge_switches(y - u[i], v - w[i], a))
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
    D, y, u = d.con_D[k], d.primal.con_y[k][0], d.primal.con_y[TURN, k]
    p, q = where(y + u[0] < 0.0, D, 0.0), where(y - u[0] < 0.0, D, 0.0)
    p1, q1, p2, q2 = zeros(4)
    if d.con_dim[k] > 4:
        p1, q1 = where(y + u[1] < 0.0, D, 0.0), where(y - u[1] < 0.0, D, 0.0)
        p2, q2 = where(y + u[2] < 0.0, D, 0.0), where(y - u[2] < 0.0, D, 0.0)
    return Vec3(p - q, p1 - q1, p2 - q2), Vec3(p + q, p1 + q1, p2 + q2)


@kernel
def smallest_edge(d, k):
    """Returns the smallest of a contact's edges: if it is not negative, none pushes."""
    y = d.primal.con_y[k]
    widest = fmax(fabs(y[1]), fabs(y[2]))
    if d.con_dim[k] > 3:
        u = fabs(d.primal.con_y[TURN, k])
        widest = fmax(widest, fmax(u[0], fmax(u[1], u[2])))
    return y[0] - widest
