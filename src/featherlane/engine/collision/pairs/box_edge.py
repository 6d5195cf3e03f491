"""Computes the nearest points of two box edges that are in contact.

The products plain_* are not fused, so that they round as MuJoCo's (box_frame.py).

d1 is the data of one world; shapes.*[side] has the pose and the half sides of each box.  Contact points are stored in
manifold.*: their number manifold.count, then pos, dist and normal.
Source: MuJoCo 4.0.1 mjc_BoxBox.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.pairs.box_frame import plain_mat_mul_vec, plain_mat_t_mul_vec, unit_vector

EITHER = 1e-9  # component of a direction below which both sides of a box count as equally far


@kernel
def farthest_coordinate(n, size, take_other):
    """Returns the coordinate, along one of a box's axes, of the side that is farthest along a direction: +-size.

    n: component of the direction along the axis; size: half side; take_other: 1 selects the opposite side if both
    are equally far.
    """
    side = where(n >= 0.0, size, -size)
    return -side if (take_other == 1) & (fabs(n) < EITHER) else side


@kernel
def farthest_edge(n, size, k, take_other):
    """Returns the middle of the edge parallel to axis k that is farthest along n, in the box's frame.

    n: direction in the box's frame; size: half sides; take_other: 1 selects another one of equally far edges.
    """
    x = farthest_coordinate(n[0], size[0], take_other) if k != 0 else 0.0
    y = farthest_coordinate(n[1], size[1], take_other) if k != 1 else 0.0
    z = farthest_coordinate(n[2], size[2], take_other) if k != 2 else 0.0
    return Vec3(x, y, z)


@kernel
def nearest_on_edges(e, u, v, half1, half2):
    """Returns coordinates s and t of the nearest points s u and e + t v of two edges, |s| <= half1, |t| <= half2.

    u, v: unit directions; e: vector from the middle of the first edge to that of the second.
    On the lines: s = (u.e - (u.v) (v.e)) / (1 - (u.v)^2).  s is clipped, then t is computed from s and clipped, then s
    from t.  s starts at 0 for parallel edges.
    """
    uv, ue, ve = plain_dot3(u, v), plain_dot3(u, e), plain_dot3(v, e)
    sine2 = 1.0 - uv * uv
    s = where(sine2 < MINVAL, 0.0, (ue - uv * ve) / fmax(sine2, MINVAL))
    s = clip(s, -half1, half1)
    t = clip(uv * s - ve, -half2, half2)
    return clip(ue + uv * t, -half1, half1), t


@kernel
def edge_point(d1, R, p, n, i, j, slack):
    """Stores the contact point halfway between an edge along axis i of box 1 and an edge along axis j of box 2.

    Args:
        R, p: the second box's pose in the frame of the first.
        n: unit vector of the separating axis, in the frame of the first box.
        slack: largest distance of a contact [m].

    Reads: shapes.*.   Writes: manifold.*.
    """
    # n points to the second box
    n = n if plain_dot3(n, p) >= 0.0 else -n
    n_in_2 = plain_mat_t_mul_vec(R, n)
    size1, size2 = d1.shapes.size[0], d1.shapes.size[1]
    u = unit_vector(i)
    v = R.columns[j]

    # the closest of four pairs of edges: the bits of k are take_other for each box
    least_squared = 1e10
    point1, point2 = u, v
    for k in range(4):
        middle1 = farthest_edge(n, size1, i, k >> 1)
        # the second box's edge farthest along -n is opposite to the one farthest along n
        middle2 = p - plain_mat_mul_vec(R, farthest_edge(n_in_2, size2, j, k & 1))
        s, t = nearest_on_edges(middle2 - middle1, u, v, size1[i], size2[j])
        trial1, trial2 = middle1 + s * u, middle2 + t * v
        between = trial2 - trial1
        squared = plain_dot3(between, between)
        if squared < least_squared:
            least_squared, point1, point2 = squared, trial1, trial2

    dist = plain_dot3(point2 - point1, n)
    if dist <= slack:
        R1 = d1.shapes.mat[0]
        d1.manifold.count[0] = 1
        d1.manifold.dist[0] = dist
        d1.manifold.pos[0] = R1 @ (0.5 * (point1 + point2)) + d1.shapes.pos[0]
        d1.manifold.normal[0] = R1 @ n
