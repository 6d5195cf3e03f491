"""Computes the distance of two signed distance fields (SDFs), or of a field and a primitive shape, one world at a time.

Overlapping shapes have the depth of their deepest contact (`field_pair`).  For others, a point on each surface moves
along its surface towards the other point, by gradient descent with steps of Barzilai and Borwein, and returns to the
surface by Newton's method.  Fields thus matter near their surfaces only, where they are accurate.  On a primitive shape
with an exact field, which may have edges, the point is instead the nearest one to the other point.  Eight starting
points are computed at once; the result is the nearest pair of points.
Source: MuJoCo mj_geomDistance.  Deviation: MuJoCo finds no distance of SDF geoms that do not overlap.
"""

from featherlane.prelude import *
from featherlane.collision.convex.support import look_from_first
from featherlane.collision.pairs.field_pair import LANES, NOWHERE, field_jets, field_pair, halton

MOVES = 80  # of the two points along their surfaces
FIRST_FACTOR, LEAST_FACTOR, GREATEST_FACTOR = 0.5, 0.05, 1e8  # step lengths, relative to the gradient
LONGEST, DECAY = 0.2, 0.85  # step length, relative to the diagonal of the larger box; its factor after each move
FAR_RETURNS, RETURNS = 10, 3  # Newton's steps to a surface, from a starting point and after a move
LEAST_SLOPE = 0.1  # of a field, in Newton's method
STILL = 1e-8  # gradient at which a search ends, relative to the distance
ON_SURFACE = 1e-8  # m: largest field at a point of a surface


@kernel
def onto_surface(m1, d1, side, x, steps):
    """Moves eight points to the surface of one shape; returns (points, unit normals, absolute values of the field)."""
    jet, k = eights(d1.descent.jet), 0
    normal, value = x, x[0]
    while k <= steps:
        eights(d1.descent.trial)[0:3] = x
        field_jets(m1, d1, side, 1)
        value = jet[4 * side]
        normal, slope = normalize3(Vec3(jet[4 * side + 1 : 4 * side + 4]))
        if k < steps:
            x = fma(-value / fmax(slope, LEAST_SLOPE), normal, x)
        k += 1
    return x, normal, fabs(value)


@kernel
def place_starts(d1, first):
    """Sets descent.trial to eight members of the Halton sequence, in the boxes of the two shapes alternately."""
    R, p = d1.convex.mat[0], d1.convex.pos[0]
    for i in range(LANES):
        side, index = i % 2, (first + i) // 2 + 1
        box, sample = d1.shapes.box[side], Vec3(halton(index, 2), halton(index, 3), halton(index, 5))
        x, y, z = 2.0 * sample
        at = fma(Vec3(x - 1.0, y - 1.0, z - 1.0), box.half, box.centre)
        if side == 0:
            at = R.T @ (at - p)
        d1.descent.trial[0, i], d1.descent.trial[1, i], d1.descent.trial[2, i] = at


@kernel
def approach(m1, d1, longest):
    """Searches the nearest points of the surfaces from descent.trial.

    Writes: descent.dist (8,), the least distance of each search, NOWHERE if it did not reach the surfaces;
            descent.corner (6, 8), the points there.
    """
    x, corner, dist = Vec3(eights(d1.descent.trial)[0:3]), eights(d1.descent.corner), eights(d1.descent.dist)
    b, nb, fb = onto_surface(m1, d1, 1, x, FAR_RETURNS)
    a, na, fa = onto_surface(m1, d1, 0, b, FAR_RETURNS)
    is_exact = d1.shapes.field[0, 0] != ELLIPSOID and d1.shapes.field[0, 0] <= BOX
    alive, none = x[0] == x[0], where(x[0] == x[0], 0.0, x[0])
    factor, step = none + FIRST_FACTOR, Vec6(none, none, none, none, none, none)
    before = step
    dist[0] = none + NOWHERE
    for _ in range(MOVES):
        gap = b - a
        length = norm3(gap)
        nearer = alive & (fa <= ON_SURFACE) & (fb <= ON_SURFACE) & (length < dist[0])
        dist[0] = where(nearer, length, dist[0])
        corner[0:6] = where(nearer, Vec6(join(a, b)), Vec6(corner[0:6]))
        along, other = dot(gap, na) * na - gap, gap - dot(gap, nb) * nb
        if is_exact:
            along = Vec3(none, none, none)
        slope = Vec6(join(along, other))
        steep = none
        for k in unrolled(range(6)):
            steep = fma(slope[k], slope[k], steep)
        alive = alive & (steep > (STILL * length) * (STILL * length))
        if not any_(alive):
            break
        moved, turned = none, none
        for k in unrolled(range(6)):
            moved = fma(step[k], step[k], moved)
            turned = fma(step[k], slope[k] - before[k], turned)
        curved = turned > 0.0
        quotient = clip(moved / where(curved, turned, 1.0), LEAST_FACTOR, GREATEST_FACTOR)
        factor = where(curved, quotient, factor)
        factor = fmin(factor, longest / sqrt(where(alive, steep, 1.0)))
        longest = DECAY * longest  # at the edges of a surface the gradient jumps: steps become shorter there
        step, before = -(factor * slope), slope
        b, nb, fb = onto_surface(m1, d1, 1, b + Vec3(step[3:6]), RETURNS)
        a = a + Vec3(step[0:3])
        if is_exact:
            a = b
        a, na, fa = onto_surface(m1, d1, 0, a, RETURNS)


@kernel
def keep_deepest(d1):
    """Stores the deepest of the manifold's contacts as the result."""
    best = 0
    for i in range(d1.manifold.count[0]):
        if d1.manifold.dist[i] < d1.manifold.dist[best]:
            best = i
    dist, normal, pos = d1.manifold.dist[best], d1.manifold.normal[best], d1.manifold.pos[best]
    d1.convex.dist[0] = dist
    d1.convex.normal[0] = normal
    d1.convex.witness[0] = fma(-0.5 * dist, normal, pos)
    d1.convex.witness[1] = fma(0.5 * dist, normal, pos)


@kernel
def keep_nearest(d1):
    """Stores the nearest of eight pairs of points as the result, if it is nearer than the one before."""
    R, origin = d1.shapes.mat[1], d1.shapes.pos[1]
    for i in range(LANES):
        if d1.descent.dist[i] < d1.convex.dist[0]:
            d1.convex.dist[0] = d1.descent.dist[i]
            for side in unrolled(range(2)):
                x = Vec3(d1.descent.corner[3 * side + k, i] for k in range(3))
                d1.convex.witness[side] = R @ x + origin


@stage
def field_distance(m1, d1):
    """Computes the signed distance of two shapes with signed distance fields, and their nearest points.

    Reads:  shapes.*, opt_sdf_initpoints, opt_sdf_iterations.
    Writes: convex.dist [m], convex.normal, convex.witness (2, 3) [m].
    Scratch: manifold.*, convex.*, descent.*.
    Frame: world.   Cost: O(opt_sdf_initpoints MOVES).
    """
    field_pair(m1, d1)
    if d1.manifold.count[0] > 0:
        keep_deepest(d1)
    else:
        look_from_first(d1)
        longest = LONGEST * 2.0 * fmax(norm3(d1.shapes.box[0].half), norm3(d1.shapes.box[1].half))
        d1.convex.dist[0] = NOWHERE
        for first in range(0, max(1, m1.opt_sdf_initpoints), LANES):
            place_starts(d1, first)
            approach(m1, d1, longest)
            keep_nearest(d1)
        normal, _ = normalize3(d1.convex.witness[1] - d1.convex.witness[0])
        d1.convex.normal[0] = normal
