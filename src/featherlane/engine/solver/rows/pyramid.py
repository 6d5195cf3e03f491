"""The pyramidal friction cone: edges n + mu_i t_i and n - mu_i t_i, which can only push and share one D.

In the contact's basis (n, mu_1 t_1, mu_2 t_2, and for dimensions 4 and 6 the rotation axes mu_3 n, mu_4 t_1, mu_5 t_2)
with y = J a - aref, the edges are y_0 + y_i and y_0 - y_i, and the cost is D / 2 times the squares of their negative
parts.  con_y[k] has y along n and the tangents, con_y[ANGULAR, k] about the rotation axes; con_z has v = J p of a step
in the same layout.  Rotation axes have separate functions, so that contacts of dimension 3, the most frequent ones, are
not slowed down.
Source: MuJoCo documentation, Computation, "Friction cones".
"""

from featherlane.engine.prelude import *
from featherlane.engine.solver.rows.laws import one_sided_switch, one_sided_weight
from featherlane.engine.solver.rows.rows import ANGULAR


# ---- force and cost ------------------------------------------------------------------------------------------------
@kernel
def pyramid_force(D, y):
    """Returns (Vec3 of forces along the basis n, mu_1 t_1, mu_2 t_2; cost) of four edges that only push.

    Edge e has x_e = min(y_0 +- y_i, 0), force -D x_e along n +- its direction, and cost D x_e^2 / 2.
    """
    # x_e of the edges n + and - mu_1 t_1, then n + and - mu_2 t_2
    plus1 = fmin(y[0] + y[1], 0.0)
    minus1 = fmin(y[0] - y[1], 0.0)
    plus2 = fmin(y[0] + y[2], 0.0)
    minus2 = fmin(y[0] - y[2], 0.0)
    squares = fma(plus1, plus1, minus1 * minus1) + fma(plus2, plus2, minus2 * minus2)
    normal_force = -(D * ((plus1 + minus1) + (plus2 + minus2)))
    return Vec3(normal_force, D * (minus1 - plus1), D * (minus2 - plus2)), (0.5 * D) * squares


@kernel
def edge_pair_force(D, y, y_i):
    """Returns (force along n, force along direction i, cost) of the two edges n + i and n - i.

    i: a direction of the basis other than n.  y, y_i: J a - aref along n and along i.
    """
    plus = fmin(y + y_i, 0.0)
    minus = fmin(y - y_i, 0.0)
    return -(D * (plus + minus)), D * (minus - plus), (0.5 * D) * fma(plus, plus, minus * minus)


@kernel
def angular_edges_force(d, k, con_y):
    """Returns (force along n, moments about the rotation axes, cost) of the angular edges of contact k."""
    D, y, y_angular = d.con_D[k], con_y[k][0], con_y[ANGULAR, k]
    force, moment0, cost = edge_pair_force(D, y, y_angular[0])
    moment1, moment2 = 0.0, 0.0
    if d.con_dim[k] > 4:  # dimension 4 has only the spin about the normal
        force1, moment1, cost1 = edge_pair_force(D, y, y_angular[1])
        force2, moment2, cost2 = edge_pair_force(D, y, y_angular[2])
        force, cost = force + (force1 + force2), cost + (cost1 + cost2)
    return force, Vec3(moment0, moment1, moment2), cost


# ---- along a line --------------------------------------------------------------------------------------------------
@kernel
def add_push_slope(x, v, g, h):
    """Returns (g, h) plus the first and second derivative of min(x, 0)^2 / 2 along dx = v."""
    return fma(fmin(x, 0.0), v, g), fma(where(x < 0.0, v, 0.0), v, h)


@kernel
def pyramid_slope(d, k, a):
    """Returns (g, h), first and second derivative by the step length a of contact k's cost over D: edges n +- t_i.

    g = sum of x v, h = sum of v^2 over the edges with x < 0, x = J (qacc + a p) - aref and v = J p of an edge.  Without
    friction, they are those of its single row.  Angular edges are not included.
    """
    v, v1, v2 = d.primal.con_z[k]
    y, y1, y2 = fma(a, d.primal.con_z[k], d.primal.con_y[k])
    if d.con_dim[k] > 1:
        g, h = add_push_slope(y + y1, v + v1, g=0.0, h=0.0)
        g, h = add_push_slope(y - y1, v - v1, g, h)
        g, h = add_push_slope(y + y2, v + v2, g, h)
        g, h = add_push_slope(y - y2, v - v2, g, h)
    else:
        g, h = add_push_slope(y, v, g=0.0, h=0.0)
    return g, h


@kernel
def angular_edges_slope(d, k, a):
    """Returns (g, h) of `pyramid_slope` for the angular edges: n +- rotation axis i."""
    y = fma(a, d.primal.con_z[k][0], d.primal.con_y[k][0])
    v = d.primal.con_z[k][0]
    v_angular = d.primal.con_z[ANGULAR, k]
    y_angular = fma(a, v_angular, d.primal.con_y[ANGULAR, k])
    g, h = add_push_slope(y + y_angular[0], v + v_angular[0], g=0.0, h=0.0)
    g, h = add_push_slope(y - y_angular[0], v - v_angular[0], g, h)
    if d.con_dim[k] > 4:  # dimension 4 has only the spin about the normal
        for i in unrolled(range(1, 3)):
            g, h = add_push_slope(y + y_angular[i], v + v_angular[i], g, h)
            g, h = add_push_slope(y - y_angular[i], v - v_angular[i], g, h)
    return g, h


@kernel
def pyramid_switch(y, v, a):
    """Returns how many edges n + and - tangent start or stop pushing along the step of length a."""
    n = one_sided_switch(y[0] + y[1], v[0] + v[1], a) + one_sided_switch(y[0] - y[1], v[0] - v[1], a)
    return n + one_sided_switch(y[0] + y[2], v[0] + v[2], a) + one_sided_switch(y[0] - y[2], v[0] - v[2], a)


@kernel
def angular_edges_switch(d, k, a):
    """Returns how many angular edges start or stop pushing along the step of length a."""
    y, v = d.primal.con_y[k][0], d.primal.con_z[k][0]
    y_angular, v_angular = d.primal.con_y[ANGULAR, k], d.primal.con_z[ANGULAR, k]
    n = one_sided_switch(y + y_angular[0], v + v_angular[0], a) + one_sided_switch(
        y - y_angular[0], v - v_angular[0], a
    )
    if d.con_dim[k] > 4:  # dimension 4 has only the spin about the normal
        for i in unrolled(range(1, 3)):
            plus = one_sided_switch(y + y_angular[i], v + v_angular[i], a)
            n = n + (plus + one_sided_switch(y - y_angular[i], v - v_angular[i], a))
    return n


# ---- second derivatives --------------------------------------------------------------------------------------------
@kernel
def pyramid_weights(D, y):
    """Returns the weights (nn, n1, 11, n2, 22) of the second derivative of the cost over basis vectors n, 1, 2.

    1 and 2 are the scaled tangents.  Each edge n +- i that pushes adds D (n +- i) (n +- i)^T, and n1 is the weight of
    n 1^T + 1 n^T.  The edges of two tangents are separate, so there is no weight 12.
    """
    # D of the edges n + 1, n - 1, n + 2, n - 2 if they push, else 0
    plus1 = one_sided_weight(D, y[0] + y[1])
    minus1 = one_sided_weight(D, y[0] - y[1])
    plus2 = one_sided_weight(D, y[0] + y[2])
    minus2 = one_sided_weight(D, y[0] - y[2])
    return (plus1 + minus1) + (plus2 + minus2), plus1 - minus1, plus1 + minus1, plus2 - minus2, plus2 + minus2


@kernel
def angular_edges_weights(d, k):
    """Returns (c, w) of the angular edges: c_i: weight of n with axis i, w_i: of axis i with itself.

    See `pyramid_weights`.  The angular edges add the sum of w_i to the weight of n with itself.
    """
    D, y, y_angular = d.con_D[k], d.primal.con_y[k][0], d.primal.con_y[ANGULAR, k]
    # plus, minus: D of the edges n + axis i and n - axis i that push, else 0
    plus0 = one_sided_weight(D, y + y_angular[0])
    minus0 = one_sided_weight(D, y - y_angular[0])
    plus1, minus1, plus2, minus2 = zeros(4)
    if d.con_dim[k] > 4:  # dimension 4 has only the spin about the normal
        plus1 = one_sided_weight(D, y + y_angular[1])
        minus1 = one_sided_weight(D, y - y_angular[1])
        plus2 = one_sided_weight(D, y + y_angular[2])
        minus2 = one_sided_weight(D, y - y_angular[2])
    return Vec3(plus0 - minus0, plus1 - minus1, plus2 - minus2), Vec3(plus0 + minus0, plus1 + minus1, plus2 + minus2)


@kernel
def smallest_edge(d, k):
    """Returns the smallest y_0 - |y_i| of contact k over directions i: if it is not negative, no edge pushes."""
    y = d.primal.con_y[k]
    largest = fmax(fabs(y[1]), fabs(y[2]))  # |y_i|
    if d.con_dim[k] > 3:
        sizes = fabs(d.primal.con_y[ANGULAR, k])
        largest = fmax(largest, fmax(sizes[0], fmax(sizes[1], sizes[2])))
    return y[0] - largest
