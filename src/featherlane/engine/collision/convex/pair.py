"""Computes signed distance, nearest points and contact points of any two convex shapes.

Separated shapes: the distance of their cores (gjk), less the radii.  Overlapping cores: the depth of the origin
in their difference (epa), which is the least distance by which one of them has to move until they only touch.

The shapes are those of `shapes.*`: sphere, capsule, ellipsoid, cylinder, box, the hull of a mesh, and PRISM: six
vertices `shapes.prism` in the frame (`shapes.pos`, `shapes.mat`) of the shape that has this type.  For a curved shape
the search uses a coarse tolerance, and Newton's method computes the remaining digits (refine_normal).

The result is convex.dist, the signed distance; convex.normal, from the first to the second shape; convex.witness, the
nearest point on each.  Until `shapes_to_world` it belongs to the cores, in the first shape's frame.  facet.kind is the
facet of the difference at which the search ended, NO_FACET if there is none.
m1 and d1 are the model and the data of one world.  The core of a sphere is its centre, that of a capsule its segment;
any other shape is its own core.  Shapes have a contact if their distance is at most shapes.limit - shapes.slack; the
slack is an overlap that rounding of poses may make, 0 for queries.
gjk.state is APART, FAR (beyond the limit) or OVERLAP.  BY_DIRECTION and BY_SEARCH are methods that the cache counts
(result_cache.py).
gjk.gap and epa.gap are the allowed differences of the bounds at the end of the two searches; gjk.reach is the largest
distance that matters.  support.dir is the first direction of the search.  simplex.* are the simplex.count points of its
final simplex.  convex.strategy is 0 if `refine_normal` found nothing better than the search.  facet.apart is 1 if the
cores are separated.  manifold.* are the contact points.

Imported kernels:

    core_limit, core_radius        distance of the cores up to which there is a contact; radius around a core
    look_from_first(d1)            writes convex.pos and convex.mat, the second pose in the frame of the first
    is_apart_as_before, is_proved  whether the cached direction, or the cached proof, holds; a proof writes convex.*
    remember_apart, keep_proof     cache a direction, or the facet of the result
    settle_on_facet                sets facet.* of the simplex, and derives convex.* from it; NO_FACET if there is none
    touch_along_lines(m1, d1)      whether both cores touch with more than a point
    move_to_common_point(m1, d1)   moves convex.witness to a point that both touching features have in common
    contact_points(m1, d1)         writes manifold.* from convex.*
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.convex.common_point import move_to_common_point, touch_along_lines
from featherlane.engine.collision.convex.epa import EXACT, epa
from featherlane.engine.collision.convex.facet import NO_FACET
from featherlane.engine.collision.convex.facet_cache import is_proved, keep_proof
from featherlane.engine.collision.convex.gjk import APART, FAR, gjk
from featherlane.engine.collision.convex.manifold import contact_points
from featherlane.engine.collision.convex.normal_refinement import refine_normal
from featherlane.engine.collision.convex.result_cache import (
    BY_DIRECTION,
    BY_SEARCH,
    count_method,
    is_apart_as_before,
    remember_apart,
)
from featherlane.engine.collision.convex.separate_facet import settle_on_facet
from featherlane.engine.collision.convex.support import core_limit, core_radius, is_curved, look_from_first

NO_DISTANCE = 1e30  # distance beyond the limit

# gaps at which searches end: of polytopes, of curved shapes before Newton's method, and after it failed
GJK_EXACT = 1e-14
GJK_ROUGH, EPA_ROUGH = 1e-7, 1e-7
EPA_FINE = 1e-10


@kernel
def first_witness(d1):
    """Returns the first core's nearest point, in its frame: sum_k weight_k first_k over the points of the simplex."""
    point = d1.simplex.weight[0] * d1.simplex.first[0]
    for k in range(1, d1.simplex.count[0]):
        point = fma(d1.simplex.weight[k], d1.simplex.first[k], point)
    return point


@kernel
def vertices_of_simplex(d1, side):
    """Returns a core's vertex indices of the simplex's two or three points; of two points, the second is repeated."""
    vertex1, vertex2 = d1.simplex.vertex[0, side], d1.simplex.vertex[1, side]
    vertex3 = d1.simplex.vertex[2, side] if d1.simplex.count[0] == 3 else vertex2
    return vertex1, vertex2, vertex3


@kernel
def search(m1, d1):
    """Computes distance, normal and the first core's nearest point by support points, in the first shape's frame.

    Reads: gjk.gap, epa.gap.  Writes: convex.dist (NO_DISTANCE beyond the limit), convex.normal, convex.witness[0],
    facet.*, gjk.*, simplex.*.
    """
    d1.gjk.reach[0] = core_limit(d1)
    offset = d1.convex.pos[0]
    # the first direction: towards the second shape's centre
    d1.support.dir[0] = offset if dot(offset, offset) > 0.0 else Vec3(1.0, 0.0, 0.0)
    gjk(m1, d1)  # writes gjk.state, gjk.nearest, simplex.*
    if d1.gjk.state[0] == FAR:
        d1.convex.dist[0] = NO_DISTANCE
    elif d1.gjk.state[0] == APART:
        # gjk.nearest is the point a - b of the difference, so the normal points from a to b
        normal, length = normalize3(-d1.gjk.nearest[0])
        d1.facet.kind[0], d1.facet.apart[0] = NO_FACET, 1
        if d1.simplex.count[0] > 1:
            # derives the result from the facet that the simplex spans, if there is one
            settle_on_facet(m1, d1, vertices_of_simplex(d1, side=0), vertices_of_simplex(d1, side=1), normal)
        if d1.facet.kind[0] == NO_FACET:
            d1.convex.dist[0] = length
            d1.convex.normal[0] = normal
            d1.convex.witness[0] = first_witness(d1)
        # a proof is cached only for pairs with a contact
        if length <= d1.gjk.reach[0]:
            keep_proof(m1, d1)
    else:
        epa(m1, d1)  # writes convex.*, facet.*, simplex.*
        keep_proof(m1, d1)


@kernel
def shapes_to_world(d1):
    """Converts the result in convex.* from cores to shapes, and from the first shape's frame to world axes.

    The witness points are point + radius1 normal and point + (dist - radius2) normal; `point` is the first core's
    nearest point, and dist the distance of the cores.
    """
    radius1, radius2 = core_radius(d1, side=0), core_radius(d1, side=1)
    mat, dist = d1.shapes.mat[0], d1.convex.dist[0]
    normal = mat @ d1.convex.normal[0]
    point = mat @ d1.convex.witness[0] + d1.shapes.pos[0]
    d1.convex.dist[0] = dist - (radius1 + radius2)
    d1.convex.normal[0] = normal
    d1.convex.witness[0] = fma(radius1, normal, point)
    d1.convex.witness[1] = fma(dist - radius2, normal, point)


@kernel
def closest_from_pose(m1, d1):
    """Computes the result of `closest`, given the second shape's pose in the frame of the first.

    Reads: convex.pos, convex.mat, shapes.*.  Writes: convex.*, facet.*.
    """
    curved = is_curved(d1)
    d1.gjk.gap[0], d1.epa.gap[0] = (GJK_ROUGH, EPA_ROUGH) if curved else (GJK_EXACT, EXACT)
    search(m1, d1)
    if curved and d1.convex.dist[0] < NO_DISTANCE:
        refine_normal(m1, d1)
        # strategy 0: refine_normal found nothing better.  Searches again with finer tolerances
        if d1.convex.strategy[0] == 0:
            d1.gjk.gap[0], d1.epa.gap[0] = GJK_EXACT, EPA_FINE
            search(m1, d1)
            if d1.convex.dist[0] < NO_DISTANCE:
                refine_normal(m1, d1)
    if d1.convex.dist[0] < NO_DISTANCE:
        # shapes that touch along lines or faces have no unique nearest points; a known facet determines them
        touch_in_lines = d1.facet.kind[0] == NO_FACET and touch_along_lines(m1, d1)
        shapes_to_world(d1)
        if touch_in_lines:
            move_to_common_point(m1, d1)


@stage
def closest(m1, d1):
    """Computes signed distance, normal and nearest points of the two shapes.

    The depth is the least displacement that separates the shapes; the normal points along it from the first shape to
    the second.  Distances above shapes.limit are returned as NO_DISTANCE, without a normal or points.
    Source: MuJoCo mjc_ccd, with its cores of round shapes; search and tolerances are Featherlane's (see gjk, epa).
    Reads:  shapes.*, shapes.prism.
    Writes: convex.dist [m], convex.normal (3,), convex.witness [m], world axes; shapes.slack, 0.
    Scratch: convex.*, support.*, gjk.*, epa.*, facet.*, feature.*, recall.*.
    """
    # without the pair's cache entry, and without slack
    d1.recall.pair[0], d1.shapes.slack[0] = 0, 0.0
    look_from_first(d1)
    closest_from_pose(m1, d1)


@stage
def convex(m1, d1):
    """Computes contact points of two convex shapes, if their distance is at most the limit less the slack.

    Reads:  shapes.*, shapes.prism; recall.pair, recall.key: the pair's cache entry.
    Writes: manifold.*, and that entry.
    Scratch: epa.corner_point, epa.side, convex.*, support.*, the rest of what `closest` writes.
    """
    d1.manifold.count[0] = 0
    limit = d1.shapes.limit[0] - d1.shapes.slack[0]
    # the cached direction, then the cached proof, then a search
    if is_apart_as_before(m1, d1):
        count_method(d1, BY_DIRECTION)
    else:
        look_from_first(d1)
        if is_proved(m1, d1):
            shapes_to_world(d1)
        else:
            count_method(d1, BY_SEARCH)
            closest_from_pose(m1, d1)  # writes convex.*, in world axes
            # caches a direction from the first to the second shape, in the frame of the first: the normal.  A search
            # that ends with NO_DISTANCE has no normal: minus its last nearest point a - b is used instead
            if d1.convex.dist[0] == NO_DISTANCE:
                remember_apart(m1, d1, -d1.gjk.nearest[0])
            elif d1.convex.dist[0] > limit:
                remember_apart(m1, d1, d1.shapes.mat[0].T @ d1.convex.normal[0])
        if d1.convex.dist[0] <= limit:
            contact_points(m1, d1)
