"""Tests whether a geom lies in the line of sight of a contact within the step, one world at a time.

Pairs are swept separately, so a fast geom would also get a contact with what lies behind its first obstacle.  Three
segments are tested: the path of each contact point from the start of the step to the impact, and the line between the
two points at impact.  A geom that may touch the moving one, and does not touch it yet, hides a contact if it meets a
segment.
Source: MuJoCo 4.0.1, chapter "Speculative contacts", sec. "Line-of-sight raycasting"; the tested segments and the
    margins at their ends were found by experiment with 4.0.1.
"""

from featherlane.prelude import *
from featherlane.collision.broad.box_tree import is_listed, may_touch
from featherlane.collision.mixing import margin_and_gap
from featherlane.collision.rays.ray_mesh import meet_mesh
from featherlane.collision.rays.shapes import meet_shape
from featherlane.collision.slot import load_shape
from featherlane.collision.sweep.impact import measure

END = 1e-5  # part of the segment at either end, and height over a plane [m], that do not count
SHORTEST = 1e-30  # squared length below which a segment is a point


@kernel
def is_in_sphere(m, d, k, lane, centre, half):
    """Returns whether a segment about a centre comes near geom k's bounding sphere; true for planes."""
    r, v = read_lane(m.geom_rbound, k, lane), read_lane(d.geom_xpos, k, lane) - centre
    return r <= 0.0 or dot(v, v) <= (half + r) * (half + r)


@kernel
def may_hide(m, g, other, k):
    """Returns whether geom k may touch geom g and does not move with either of the pair's bodies."""
    a, b, c = tuple(m.body_weldid[m.geom_bodyid[i]] for i in (g, other, k))
    free = m.geom_type[k] == PLANE or SPHERE <= m.geom_type[k] <= MESH
    free = free and k not in (g, other) and c != a and (b == 0 or c != b)
    return free and (is_listed(m.named_geom, m.nnamed, min(g, k), max(g, k)) or may_touch(m, g, k))


@kernel
def meets_segment(m, d, k, lane, p, q):
    """Returns whether the segment from p to q meets geom k."""
    load_shape(m, d, 0, k, lane)
    R, c, v = d.shapes.mat[0], d.shapes.pos[0], q - p
    p, v, met = R.T @ (p - c), R.T @ v, 0
    if m.geom_type[k] == PLANE:
        z, end = p[2], p[2] + v[2]
        if z * end <= 0.0 and (fabs(z) > END or fabs(end) > END):
            met = 1
    else:
        n, length = normalize3(v)
        p, length = fma(END, v, p), (1.0 - 2.0 * END) * length
        if m.geom_type[k] == MESH:
            d.line.point[0] = p
            d.line.direction[0] = n
            d.line.distance[0], d.line.hit[0] = length, 0
            meet_mesh(m, d)
            met = d.line.hit[0]
        else:
            hit, x, _ = meet_shape(m.geom_type[k], p, n, d.shapes.size[0])
            if hit & (x <= length):
                met = 1
    return met != 0


@kernel
def explicit_pair(m, g, h):
    """Returns the index of the explicit pair of two geoms, or -1."""
    found = -1
    for e in range(m.npair):
        if (m.pair_geom1[e] == g and m.pair_geom2[e] == h) or (m.pair_geom1[e] == h and m.pair_geom2[e] == g):
            found = e
            break
    return found


@kernel
def is_touching(m, d, g, k, lane):
    """Returns whether two geoms are within their margin at the start of the step."""
    touch = False
    if m.geom_type[g] != PLANE or m.geom_type[k] != PLANE:
        margin, _ = margin_and_gap(m, explicit_pair(m, g, k), g, k)
        d.narrow.limit[0] = margin
        first, second = g, k
        if m.geom_type[k] == PLANE:
            first, second = k, g
        load_shape(m, d, 0, first, lane)
        load_shape(m, d, 1, second, lane)
        limit = read_lane(d.narrow.limit, 0, lane) + d.sweep.tolerance[0]
        d.shapes.limit[0] = limit
        measure(m, d)
        touch = d.convex.dist[0] <= limit
    return touch


@stage
def look(m, d, g, other, lane):
    """Tests whether a geom hides the end of the segment in sweep.line from its start, for geom g of a swept pair.

    Reads:  sweep.line (2, 3) [m], sweep.tolerance; geom_xpos, geom_xmat.
    Writes: sweep.hidden: 1 or unchanged.
    Scratch: shapes.*, line.*, narrow.limit, what `closest` writes.
    Cost:   O(ngeom).
    """
    p, q = d.sweep.line[0], d.sweep.line[1]
    v = q - p
    if dot(v, v) >= SHORTEST:
        centre, half = fma(0.5, v, p), 0.5 * norm3(v)
        for k in range(m.ngeom):
            if (
                may_hide(m, g, other, k)
                and not (m.nvariant > 0 and read_lane(m.geom_variant, k, lane) == ABSENT_GEOM)
                and is_in_sphere(m, d, k, lane, centre, half)
                and meets_segment(m, d, k, lane, p, q)
                and not is_touching(m, d, g, k, lane)
            ):
                d.sweep.hidden[0] = 1
                break
