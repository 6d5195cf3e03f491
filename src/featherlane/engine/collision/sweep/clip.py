"""Computes the contact points of two shapes at impact, on either shape, as MuJoCo's polygon clipping does.

The polygon of one shape, a face or an edge, is cut by the planes through the edges of the other's face, along that
face's normal.  Of more than four corners, those of a quadrilateral of nearly largest area are kept.  A plane cuts
nothing.  Each corner has a point on its own shape and one on the other.  MuJoCo widens both shapes for this by half of
the limit, along the normals of faces, and narrows them afterwards along the contact's normal; so the points of inclined
faces are shifted.

m1 and d1 are the model and the data of one world; shapes.limit is the distance up to which a point counts.
All points are in contact coordinates: two tangents and the normal, from the first shape to the second.  Polygons are
stored in clip.buffer (polygon.py).  Features are stored in feature.*[side]: `load_corner`, and feature.count, which is
POINT, SEGMENT, DISC or the number of corners (feature.py).
FACE and EDGE are the cosines above which a face, and below which an edge, is in contact; ON_EDGE [m]: a point outside
by less is on it.
shapes.*[side] has the type, the size and the pose of each shape; convex.dist, convex.normal (from the first to the
second shape) and the nearest points convex.witness are those at impact.  feature.axes has the contact's axes as rows.

Imported kernels:

    find_feature(m1, d1, side, least_cosine)     writes feature.* of `side`: POINT, an edge or a face
    set_box_face(d1, side, corner, axis)         sets feature.* to a box's face across an axis, with this corner
    load_polygon(d1, side)                       copies a feature to polygon 0; number of its corners
    cut_by_face(d1, side, count)                 (polygon, count) of polygon 0 cut by the face of `side`
    face_normal, pointing_outward                unit normal of a face; its sign away from the shape of `side`
    keep_near, keep_quadrilateral                number of corners near a plane; of four of nearly largest area
    core_support(m1, d1, side, u)                (point, vertex): farthest point along u, in the shape's frame

Source: MuJoCo 4.0.1, chapter "Computation", sec. "Multi-contact"; measured on its contacts.
Deviation: where two edges cross, an edge is tested with the faces at the other edge for boxes only.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.convex.feature import (
    EDGE,
    FACE,
    ON_EDGE,
    POINT,
    SEGMENT,
    find_feature,
    load_corner,
    set_box_face,
)
from featherlane.engine.collision.convex.manifold import set_contact_axes
from featherlane.engine.collision.convex.support import core_support
from featherlane.engine.collision.sweep.polygon import (
    capsule_axis,
    cut_by_face,
    face_normal,
    keep_farthest_two,
    keep_near,
    keep_quadrilateral,
    load_polygon,
    pointing_outward,
    polygon_corner,
)

POINTS = 4  # maximum contact points of a swept pair


# ---- points on both shapes -------------------------------------------------------------------------------------------
@kernel
def store_impact(d1, side, k, point):
    """Stores contact point k of a shape in sweep.impact, in world axes; `point` has contact coordinates."""
    d1.sweep.impact[side, k] = d1.feature.axes[0].T @ point + d1.feature.origin[0]


@kernel
def store_corners(d1, polygon, count, side, point, normal, along):
    """Stores the corners of shape `side`'s polygon as contact points, with their points on the other shape's plane.

    MuJoCo widens both shapes by half of the limit along `along`, and narrows them by the same length along the
    contact's normal.  So the first shape's points are shifted by half of the limit times (along - normal), the second
    shape's points by the opposite.

    Args:
        polygon, count: the polygon, and its number of corners.
        point, normal: point and outward normal of the other shape's plane.
        along: unit vector from the first to the second shape: the normal of the polygon, or, for an edge or with a
            plane, normal or -normal.

    Writes: sweep.impact, manifold.count.
    """
    half_limit = 0.5 * d1.shapes.limit[0]
    shift_of_first = Vec3(half_limit * along[0], half_limit * along[1], half_limit * (along[2] - 1.0))
    # the other shape is the first shape if side = 1, else the second
    shift_of_other = (2.0 * side - 1.0) * shift_of_first
    for i in range(count):
        own_point = polygon_corner(d1, polygon, i)
        # the other shape's point is the corner's projection on its plane.  This shape's point is the projection of that
        # point on the plane through the corner that is orthogonal to `along`
        height = dot(own_point - point, normal)
        other_point = fma(-height, normal, own_point)
        own_point = fma(height * dot(normal, along), along, other_point)
        # both are shifted, in opposite directions.  A capsule's line was moved by half of the limit along the normal
        # (`load_polygon`): it is moved back instead
        if d1.shapes.type[side] == CAPSULE:
            own_point = Vec3(own_point.x, own_point.y, own_point.z + (2.0 * side - 1.0) * half_limit)
        else:
            own_point = own_point - shift_of_other
        store_impact(d1, side, i, own_point)
        store_impact(d1, 1 - side, i, other_point + shift_of_other)
    d1.manifold.count[0] = count


@kernel
def store_corners_within(d1, polygon, count, side, point, normal, along):
    """Stores at most four corners (POINTS) within the limit above the other shape's plane; none if no corner is.

    If the feature is an edge, the two corners that are farthest apart are stored.

    Args:
        polygon, count: the polygon, a feature of the shape of `side`, and its number of corners.
        point, normal: point and outward normal of the other shape's plane.
        along: unit vector from the first to the second shape, as in `store_corners`.

    Writes: sweep.impact, manifold.count.
    """
    is_edge = d1.feature.count[side] == SEGMENT
    limit = d1.shapes.limit[0]
    if d1.shapes.type[side] == CAPSULE:
        limit = 0.5 * limit  # its line is already moved by half of the limit
    count = keep_near(d1, polygon, count, point, normal, limit)
    if is_edge and count > 2:
        count = keep_farthest_two(d1, polygon, count)
    elif count > POINTS:
        count = keep_quadrilateral(d1, polygon, count)
    if count > 0:
        store_corners(d1, polygon, count, side, point, normal, along)


@kernel
def meet_plane(m1, d1):
    """Stores the contact points of a shape and a plane, which is the first shape.

    They are corners of the shape's face or edge that is most parallel to the plane.  The plane is dist / 2 below the
    origin of the contact coordinates, the middle of the nearest points.
    """
    # EDGE is so small a cosine that any face counts
    find_feature(m1, d1, side=1, least_cosine=EDGE)
    if d1.feature.count[1] != POINT:
        count = load_polygon(d1, side=1)
        normal = Vec3(0.0, 0.0, 1.0)
        point = Vec3(0.0, 0.0, -0.5 * d1.convex.dist[0])
        store_corners_within(d1, polygon=0, count=count, side=1, point=point, normal=normal, along=normal)


@kernel
def edge_in_frame(d1, edge_side, side):
    """Returns the unit direction of the edge feature of shape edge_side, in the frame of shape `side`."""
    direction = normalize3(load_corner(d1, edge_side, 1) - load_corner(d1, edge_side, 0))[0]
    return d1.shapes.mat[side].T @ (d1.feature.axes[0].T @ direction)


@kernel
def replace_edge_by_face(m1, d1, side):
    """Replaces a box's edge feature by a face at this edge that is nearly parallel to the other shape's edge.

    Returns 1 if there is such a face, else 0.  Writes: feature.*[side].
    """
    face_axis = -1
    if d1.shapes.type[side] == BOX:
        edge = edge_in_frame(d1, side, side)
        other_edge = edge_in_frame(d1, 1 - side, side)
        for axis in unrolled(range(3)):
            # the face's axis is orthogonal to the box's edge, which is parallel to an axis, and to the other edge
            if face_axis < 0 and fabs(edge[axis]) < 0.5 and fabs(other_edge[axis]) < EDGE:
                face_axis = axis
        if face_axis >= 0:
            # the contact's normal, turned outwards
            normal = (1.0 - 2.0 * side) * d1.feature.axes[0].rows[2]
            highest, _ = core_support(m1, d1, side, d1.shapes.mat[side].T @ normal)
            set_box_face(d1, side, highest, face_axis)
    return 1 if face_axis >= 0 else 0


@kernel
def cut_by_other(d1, face_side):
    """Stores the contact points of two shapes: corners of one feature, cut by the other one, a face of `face_side`."""
    count = load_polygon(d1, 1 - face_side)
    polygon, count = cut_by_face(d1, face_side, count)
    normal = pointing_outward(face_side, face_normal(d1, face_side))
    # along points from the first to the second shape: the face's normal if the other feature is an edge, else the
    # normal of the second shape's face
    along = normal if face_side == 0 else -normal
    if d1.feature.count[1 - face_side] != SEGMENT:
        along = -pointing_outward(1, face_normal(d1, side=1))
    store_corners_within(d1, polygon, count, 1 - face_side, load_corner(d1, face_side, 0), normal, along)


@kernel
def meet_shapes(m1, d1):
    """Stores the contact points of two shapes if their features are a face and a face, or a face and an edge."""
    find_feature(m1, d1, side=0, least_cosine=FACE)
    if d1.feature.count[0] != POINT:
        find_feature(m1, d1, side=1, least_cosine=FACE)
        # of two edges, one is replaced by a face if possible
        if (
            d1.feature.count[0] == SEGMENT
            and d1.feature.count[1] == SEGMENT
            and replace_edge_by_face(m1, d1, side=1) == 0
        ):
            replace_edge_by_face(m1, d1, side=0)
        count1, count2 = d1.feature.count[0], d1.feature.count[1]
        if count2 != POINT and (count1 != SEGMENT or count2 != SEGMENT):
            cut_by_other(d1, face_side=1 if count1 == SEGMENT else 0)


@kernel
def meet_capsule_and_box(d1):
    """Stores the contact points of a capsule and the first face of a box that holds its nearest point.

    The face must be nearly parallel to the capsule's axis.
    """
    mat, size = d1.shapes.mat[1], d1.shapes.size[1]
    face_axis = -1
    nearest = mat.T @ (d1.convex.witness[1] - d1.shapes.pos[1])
    axis = mat.T @ capsule_axis(d1, side=0)
    normal = mat.T @ d1.convex.normal[0]
    for k in unrolled(range(3)):
        # on the face, parallel to the capsule's axis, and turned towards the capsule
        if (
            face_axis < 0
            and fabs(nearest[k]) > size[k] - ON_EDGE
            and fabs(axis[k]) < EDGE
            and nearest[k] * normal[k] < 0.0
        ):
            face_axis = k
    if face_axis >= 0:
        # the box's corner on the side of the nearest point belongs to that face
        set_box_face(d1, 1, copysign(size, nearest), face_axis)
        d1.feature.count[0] = SEGMENT  # the capsule's line
        cut_by_other(d1, face_side=1)


@stage
def impact_points(m1, d1):
    """Computes up to four contact points at impact, on both shapes: corners of their features, or the nearest points.

    Reads:  shapes.* and convex.* at impact; shapes.limit, the distance up to which a corner counts.
    Writes: sweep.impact (2, 4, 3) [m], manifold.count.
    Scratch: feature.*, clip.*.
    """
    # the nearest points, replaced below if the features have corners within the limit
    d1.sweep.impact[0, 0] = d1.convex.witness[0]
    d1.sweep.impact[1, 0] = d1.convex.witness[1]
    d1.manifold.count[0] = 1
    set_contact_axes(d1)  # writes feature.axes, feature.origin
    if d1.shapes.type[0] == PLANE:
        meet_plane(m1, d1)
    elif m1.opt_disableflags & DISABLE_MULTICCD == 0:
        if d1.shapes.type[0] == CAPSULE and d1.shapes.type[1] == BOX:
            meet_capsule_and_box(d1)
        else:
            meet_shapes(m1, d1)
