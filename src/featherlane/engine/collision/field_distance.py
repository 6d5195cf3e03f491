"""Computes the distance of two signed distance fields (SDFs), or of a field and a primitive shape, one world at a time.

Overlapping shapes have the depth of their deepest contact (`field_pair`).  For others, a point on each surface moves
along its surface towards the other point, by gradient descent with steps of Barzilai and Borwein, and returns to the
surface by Newton's method.  Fields thus matter near their surfaces only, where they are accurate.  On a primitive shape
with an exact field, which may have edges, the point is instead the nearest one to the other point.  Eight starting
points are computed at once; the result is the nearest pair of points.
The eight points are in the frame of the second shape.  descent.trial (3, 8) holds points at which fields are evaluated,
descent.jet (2, 4, 8) the value and gradient of the first and of the second shape's field there.  `eights(field)` is a
field as rows of eight values.
LANES is the number of points, eight.
m1 and d1 are the model and the data of one world.  shapes.*[side] has the pose of each shape, its field and its
bounding box; convex.mat and convex.pos are the second shape's pose in the frame of the first.  The result is
convex.dist, convex.normal and the nearest points convex.witness; manifold.* are the contacts of overlapping
shapes.  NOWHERE is larger than any distance.

Imported kernels:

    field_pair(m1, d1)               writes manifold.*, the contacts of overlapping shapes
    field_jets(m1, d1, side, exact)  writes descent.jet of this side at descent.trial; exact: inside a box, 1: the
                                     distance to the nearest face, 0: MuJoCo's field
    halton(index, base)              member of the Halton sequence, in [0, 1)

Source: MuJoCo mj_geomDistance.  Deviation: MuJoCo finds no distance of SDF geoms that do not overlap.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.convex.support import look_from_first
from featherlane.engine.collision.pairs.field_pair import LANES, NOWHERE, field_jets, field_pair, halton

MOVES = 80  # of the two points along their surfaces
FIRST_FACTOR, LEAST_FACTOR, GREATEST_FACTOR = 0.5, 0.05, 1e8  # step lengths, relative to the gradient
LONGEST, DECAY = 0.2, 0.85  # step length, relative to the diagonal of the larger box; its factor after each move
FAR_RETURNS, RETURNS = 10, 3  # Newton's steps to a surface, from a starting point and after a move
LEAST_SLOPE = 0.1  # of a field, in Newton's method
STILL = 1e-8  # gradient at which a search ends, relative to the distance
ON_SURFACE = 1e-8  # m: largest field at a point of a surface


@kernel
def onto_surface(m1, d1, side, points, steps):
    """Moves eight points to the surface of one shape by Newton's method; returns (points, unit normals, |field|).

    A step moves a point by -field / |gradient| along the unit gradient.  The returned normals and fields are those at
    the returned points.

    Args:
        side: 0 the first shape, 1 the second.
        steps: number of Newton steps.
    """
    # row 4 side is the field's value, the next three rows its gradient
    jet = eights(d1.descent.jet)
    step = 0
    normal, value = points, points[0]
    while step <= steps:
        eights(d1.descent.trial)[0:3] = points
        field_jets(m1, d1, side, exact=1)  # writes descent.jet: the fields at descent.trial
        value = jet[4 * side]
        normal, slope = normalize3(Vec3(jet[4 * side + 1 : 4 * side + 4]))
        if step < steps:
            points = fma(-value / fmax(slope, LEAST_SLOPE), normal, points)
        step += 1
    return points, normal, fabs(value)


@kernel
def store_starts(d1, first):
    """Sets descent.trial to eight members of the Halton sequence, in the boxes of the two shapes alternately.

    first: number of the sequence's members that were used before, of both boxes together.
    """
    mat, pos = d1.convex.mat[0], d1.convex.pos[0]
    for lane in range(LANES):
        # even lanes sample the first box, odd lanes the second; members are numbered from 1 for each box
        side = lane % 2
        index = (first + lane) // 2 + 1
        box = d1.shapes.box[side]
        sample = Vec3(halton(index, 2), halton(index, 3), halton(index, 5))
        # a sample in [0, 1)^3 is mapped to the box: centre + (2 sample - 1) half; then, for the first shape's box, from
        # the first shape's frame to the second's
        x, y, z = 2.0 * sample
        point = fma(Vec3(x - 1.0, y - 1.0, z - 1.0), box.half, box.centre)
        point = mat.T @ (point - pos) if side == 0 else point
        d1.descent.trial[0, lane], d1.descent.trial[1, lane], d1.descent.trial[2, lane] = point


@kernel
def approach(m1, d1, longest):
    """Searches the nearest points of the surfaces by eight gradient descents from descent.trial.

    The objective is half of |gap|^2, gap = point2 - point1.  Its gradient is projected on the tangents of the surfaces:
    slope1 = (gap . n1) n1 - gap,  slope2 = gap - (gap . n2) n2.  The step is -factor slope.  The factor is that of
    Barzilai and Borwein, |step|^2 / (step . change of slope), if the curvature along the step is positive, else that of
    the step before.  If the first shape is a primitive shape with an exact field, its point is instead computed from
    point2, as the nearest one, and slope1 is 0.

    longest: maximum length of the first step [m].

    Writes: descent.dist (8,), the least distance of each search, NOWHERE if it did not reach the surfaces;
            descent.corner (6, 8), the points there.
    """
    # descent.corner holds the nearest pair of points of each search, three coordinates of either
    start = Vec3(eights(d1.descent.trial)[0:3])
    nearest, dist = eights(d1.descent.corner), eights(d1.descent.dist)
    point2, normal2, field2 = onto_surface(m1, d1, 1, start, FAR_RETURNS)
    point1, normal1, field1 = onto_surface(m1, d1, 0, point2, FAR_RETURNS)
    # kinds of fields up to BOX are primitive shapes; the field of an ellipsoid is a distance to first order only
    is_exact = d1.shapes.field[0, 0] != ELLIPSOID and d1.shapes.field[0, 0] <= BOX
    # a start is NaN only if a pose is not finite, and is not searched; zero has a lane for each search
    alive = start[0] == start[0]
    zero = where(start[0] == start[0], 0.0, start[0])
    factor = zero + FIRST_FACTOR
    step = Vec6(zero, zero, zero, zero, zero, zero)
    slope_before = step
    dist[0] = zero + NOWHERE
    for _ in range(MOVES):
        gap = point2 - point1
        length = norm3(gap)
        # keeps the nearest pair of points on both surfaces so far
        nearer = alive & (field1 <= ON_SURFACE) & (field2 <= ON_SURFACE) & (length < dist[0])
        dist[0] = where(nearer, length, dist[0])
        nearest[0:6] = where(nearer, Vec6(join(point1, point2)), Vec6(nearest[0:6]))
        slope1 = dot(gap, normal1) * normal1 - gap
        slope2 = gap - dot(gap, normal2) * normal2
        if is_exact:
            # an exact shape has no gradient: its nearest point is computed from point2
            slope1 = Vec3(zero, zero, zero)
        slope = Vec6(join(slope1, slope2))
        slope_squared = zero
        for c in unrolled(range(6)):
            slope_squared = fma(slope[c], slope[c], slope_squared)
        # a search ends where the slope is small compared with the distance
        alive = alive & (slope_squared > (STILL * length) * (STILL * length))
        if not any_(alive):
            break
        # the factor of the next step
        step_squared, step_change = zero, zero
        for c in unrolled(range(6)):
            step_squared = fma(step[c], step[c], step_squared)
            step_change = fma(step[c], slope[c] - slope_before[c], step_change)
        curved = step_change > 0.0
        quotient = clip(step_squared / where(curved, step_change, 1.0), LEAST_FACTOR, GREATEST_FACTOR)
        factor = where(curved, quotient, factor)
        factor = fmin(factor, longest / sqrt(where(alive, slope_squared, 1.0)))
        longest = DECAY * longest  # at the edges of a surface the gradient jumps: steps become shorter there
        step = -(factor * slope)
        slope_before = slope
        point2, normal2, field2 = onto_surface(m1, d1, 1, point2 + Vec3(step[3:6]), RETURNS)
        # of an exact shape, the surface point nearest to point2
        point1 = point2 if is_exact else point1 + Vec3(step[0:3])
        point1, normal1, field1 = onto_surface(m1, d1, 0, point1, RETURNS)


@kernel
def keep_deepest(d1):
    """Stores the deepest of the manifold's contacts in convex.*.

    A contact's position is the middle of its nearest points, which are thus pos - dist / 2 normal on the first shape
    and pos + dist / 2 normal on the second.
    """
    deepest = 0
    for k in range(d1.manifold.count[0]):
        if d1.manifold.dist[k] < d1.manifold.dist[deepest]:
            deepest = k
    dist, normal, pos = d1.manifold.dist[deepest], d1.manifold.normal[deepest], d1.manifold.pos[deepest]
    d1.convex.dist[0] = dist
    d1.convex.normal[0] = normal
    d1.convex.witness[0] = fma(-0.5 * dist, normal, pos)
    d1.convex.witness[1] = fma(0.5 * dist, normal, pos)


@kernel
def keep_nearest(d1):
    """Stores the nearest of the eight pairs of points in convex.*, in world axes, if it is nearer than convex.dist."""
    mat, origin = d1.shapes.mat[1], d1.shapes.pos[1]
    for lane in range(LANES):
        if d1.descent.dist[lane] < d1.convex.dist[0]:
            d1.convex.dist[0] = d1.descent.dist[lane]
            for side in unrolled(range(2)):
                # rows 0 to 2 hold the point on the first shape, rows 3 to 5 that on the second
                point = Vec3(d1.descent.corner[3 * side + c, lane] for c in range(3))
                d1.convex.witness[side] = mat @ point + origin


@stage
def field_distance(m1, d1):
    """Computes the signed distance of two shapes with signed distance fields, and their nearest points.

    Reads:  shapes.*, opt_sdf_initpoints, opt_sdf_iterations.
    Writes: convex.dist [m], convex.normal, convex.witness (2, 3) [m].
    Scratch: manifold.*, convex.*, descent.*.
    Frame: world.   Cost: O(opt_sdf_initpoints MOVES).
    """
    field_pair(m1, d1)  # contacts of overlapping shapes, in manifold.*
    if d1.manifold.count[0] > 0:
        keep_deepest(d1)
    else:
        look_from_first(d1)  # writes convex.pos and convex.mat, the second pose in the first frame
        longest = LONGEST * 2.0 * fmax(norm3(d1.shapes.box[0].half), norm3(d1.shapes.box[1].half))
        d1.convex.dist[0] = NOWHERE
        for first in range(0, max(1, m1.opt_sdf_initpoints), LANES):
            store_starts(d1, first)  # writes descent.trial
            approach(m1, d1, longest)  # writes descent.dist and descent.corner
            keep_nearest(d1)
        normal, _ = normalize3(d1.convex.witness[1] - d1.convex.witness[0])
        d1.convex.normal[0] = normal
