"""Computes contacts of a convex shape with the ridges and the peaks of a height field.

A ridge is a straight run of edges whose triangles fold down by more than rounding; an edge of the border is one.  It
touches along directions between the normals of its two sides.  A peak is a sample that is higher than all neighbours
along some direction, and touches along such directions.  Other nearest points of an edge or a sample belong to a
triangle, or to a neighbour that is nearer.
The ground below a ridge is a blade: the vertical quadrilateral between the ridge and the bottom.  Below a peak it is a
vertical segment.  Their depth below a shape is thus the depth of the ground, also if the ridge has passed through the
shape.  Both are prisms with coincident vertices.
A face or an edge of the shape touches a ridge in two points, as in other pairs of convex shapes (manifold.py).  If the
direction is beyond the normal of a side by a few degrees, as while a box rocks on the edge of a plateau, the points are
those of this side's plane.
All points are in the frame of the field, which is the pose of the first shape.  relief.* has the contacts found.
convex.* is the signed distance of a prism and the shape, its normal and nearest points.
m1 and d1 are the model and the data of one world; r and c are the row and the column of a sample: the peak, or the
start of an edge.

Imported kernels:

    closest(m1, d1)                  writes convex.* of the prism shapes.prism and the shape; NO_DISTANCE beyond the
                                     limit
    add_candidates, add_nearest      add the overlap of both features, and the nearest points, as points in clip.*
    capsule_segments                 coordinates, from -1 to 1, of the nearest points of two segments
    keep_ridge(d1)                   keeps convex.* for a shape that has no other contact, and is in the ground
    move_selected_first, store_candidates  select up to four of them, and store them in manifold.*
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.convex.facet import NO_FACET
from featherlane.engine.collision.convex.feature import EDGE
from featherlane.engine.collision.convex.manifold import (
    EQUAL,
    add_candidates,
    add_nearest,
    move_selected_first,
    set_contact_axes,
    store_candidates,
)
from featherlane.engine.collision.convex.overlap import FAR
from featherlane.engine.collision.convex.pair import closest
from featherlane.engine.collision.convex.support import PRISM, unit_axis
from featherlane.engine.collision.pairs.hfield_contacts import add_contact, keep_ridge, middle_of_nearest
from featherlane.engine.collision.pairs.hfield_faces import WALLS, faces_shape
from featherlane.engine.collision.pairs.hfield_grid import (
    continues,
    edge_step,
    has_sample,
    is_peak,
    is_ridge,
    opposite_step,
    sample_point,
)
from featherlane.engine.collision.pairs.hfield_plane import height_over
from featherlane.engine.collision.pairs.primitive import capsule_segments

PARALLEL = 1e-9  # sine of the angle by which a direction may be beyond a side's normal by rounding
ACROSS = 1e-6  # cosine between a direction and a ridge below which it is across the ridge
MEETS_AXIS = 1e-9  # m a capsule's axis that is nearer to a ridge crosses it
AT_END = 1e-7  # m nearest points at the top of a blade
LONGEST = 64  # samples: a ridge is cut at multiples, because many folds that are rounding may add up to an arc


@kernel
def set_prism(d1, top0, top1, bottom):
    """Sets the first shape to the vertical quadrilateral between a segment and its projection to the height `bottom`.

    It is a prism whose vertices 3 to 5 are at the top, each above one of the vertices 0 to 2.
    top0, top1: ends of the segment.
    """
    d1.shapes.type[0] = PRISM
    d1.shapes.pos[0] = Vec3(0.0, 0.0, 0.0)
    d1.shapes.mat[0] = Mat3(1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
    for k, p in ((0, top0), (1, top1), (2, top1)):
        d1.shapes.prism[k] = Vec3(p[0], p[1], bottom)
        d1.shapes.prism[k + 3] = p


@kernel
def store_sphere(d1, p):
    """Sets convex.* to the nearest points of the point p and the sphere; returns whether they have a normal.

    They have none if p is the sphere's centre.
    Writes: convex.dist, convex.normal, convex.witness.
    """
    n, length = normalize3(d1.shapes.pos[1] - p)
    dist = length - d1.shapes.size[1][0]
    d1.convex.dist[0] = dist
    d1.convex.normal[0] = n
    d1.convex.witness[0] = p
    d1.convex.witness[1] = fma(dist, n, p)
    return length > MINVAL


@kernel
def store_capsule(d1, start, end):
    """Sets convex.* to the nearest points of the segment of a ridge and the capsule.

    Returns whether they are also those of the ridge's blade, the ground below it.  They are if the capsule's axis is
    not below the ridge there: no point of the blade is then nearer.

    Writes: convex.dist, convex.normal, convex.witness, facet.kind.
    """
    radius, half = d1.shapes.size[1][0], d1.shapes.size[1][1]
    middle, half_ridge = 0.5 * (start + end), 0.5 * (end - start)
    centre, half_axis = d1.shapes.pos[1], half * d1.shapes.mat[1].columns[2]
    # coordinates from -1 to 1 of the nearest points
    _, on_ridge, on_axis, _, _ = capsule_segments(middle, half_ridge, centre, half_axis)
    p = fma(on_ridge, half_ridge, middle)
    n, length = normalize3(fma(on_axis, half_axis, centre) - p)
    d1.convex.dist[0] = length - radius
    d1.convex.normal[0] = n
    d1.convex.witness[0] = p
    d1.convex.witness[1] = fma(length - radius, n, p)
    d1.facet.kind[0] = NO_FACET
    return n[2] >= 0.0 and length > MEETS_AXIS


# ---- ridges ----------------------------------------------------------------------------------------------------------
@kernel
def side_of_ridge(m1, d1, field, r, c, direction, opposite, along):
    """Returns the unit vector from a ridge down one of its sides, orthogonal to the ridge.

    The outer side of an edge of the border is vertical.
    opposite: 0 or 1, the side of this opposite of the edge (`hfield_grid`).  along: unit vector of the ridge.
    """
    row, column = opposite_step(direction, opposite)
    side = Vec3(0.0, 0.0, -1.0)
    if has_sample(m1, field, r + row, c + column):
        side = sample_point(m1, d1, field, r + row, c + column) - sample_point(m1, d1, field, r, c)
    return normalize3(fma(-dot(side, along), along, side))[0]


@kernel
def is_reached(m1, d1, p, side0, side1, along):
    """Returns whether the shape may be within the limit of a ridge: False only if it is farther away.

    Its distance from the ridge is at least its height over each plane through the ridge that is above both sides.
    Three such planes are tested: those of both sides, and the one between them.
    p, along: a point of the ridge and its direction; side0, side1: unit vectors down the sides.
    """
    n0, n1 = cross(along, side0), cross(along, side1)
    # outward: the other side is below the plane
    n0, n1 = (n0 if dot(n0, side1) <= 0.0 else -n0), (n1 if dot(n1, side0) <= 0.0 else -n1)
    between, _ = normalize3(n0 + n1)
    limit = d1.shapes.limit[0]
    reached = True
    for n in (n0, n1, between):
        reached = reached and height_over(m1, d1, p, n) <= limit
    return reached


@kernel
def add_overlap(m1, d1, start, end, along, replaced):
    """Adds the contact points of a ridge and the shape, whose nearest points are in convex.*.

    They are the ends of the overlap of the features of both, and the nearest points if these are nearer.

    Args:
        start, end: the ridge.
        along: its unit vector.
        replaced: 1 if convex.normal was replaced by the normal of a side; the distance of the nearest points is then
            not along it, and they are used only without an overlap.
    """
    set_contact_axes(d1)
    d1.clip.count[0] = 0
    least = FAR  # distance of the nearest point of the overlap; FAR without an overlap
    if m1.opt_disableflags & DISABLE_MULTICCD == 0:
        least = add_candidates(m1, d1)  # writes clip.*
    # the nearest point is on the ridge, and the normal across it: at an end, a normal with a component along the ridge
    # is that of a contact of the next edge
    offset = d1.convex.witness[0] - start
    along_ridge = clip(dot(offset, along), 0.0, norm3(end - start))
    from_ridge = offset - along_ridge * along
    on_ridge = dot(from_ridge, from_ridge) < AT_END * AT_END and fabs(dot(d1.convex.normal[0], along)) < ACROSS
    # with a replaced normal, the distances are not along one direction, and cannot be compared
    if on_ridge and (d1.convex.dist[0] < least - EQUAL if replaced == 0 else least >= FAR):
        add_nearest(d1)
    store_candidates(d1, move_selected_first(d1))
    for i in range(d1.manifold.count[0]):
        add_contact(d1, d1.manifold.dist[i], d1.manifold.pos[i], d1.manifold.normal[i])


@kernel
def limit_normal_to_sides(d1, along, side0, side1):
    """Returns (accepted, replaced), 1 or 0: whether a ridge can touch along convex.normal, and whether it was changed.

    A normal between the normals of both sides is accepted.  A normal that is beyond one of them by a few degrees (EDGE)
    is accepted, too, and convex.normal becomes that of the side.
    side0, side1: unit vectors from the ridge down its sides, orthogonal to the unit vector `along` of the ridge.
    """
    n = d1.convex.normal[0]
    accepted, replaced = (1 if fabs(dot(n, along)) <= EDGE else 0), 0  # the normal is almost orthogonal to the ridge
    for side in (side0, side1):
        beyond = dot(n, side)  # sine of the angle beyond the side's normal
        if beyond > EDGE:
            accepted = 0
        elif beyond > PARALLEL:
            across = normalize3(cross(along, side))[0]
            d1.convex.normal[0] = across if dot(across, n) > 0.0 else -across
            replaced = 1
    return accepted, replaced


@stage
def collide_ridge(m1, d1, field, r, c, direction, count):
    """Adds the contacts of the shape and a ridge to relief.*: `count` edges from sample (r, c) along a direction.

    The nearest points, convex.*, are computed for one of these pairs:

    - a sphere: its centre and the ridge, in closed form, if the centre's projection on the ridge is between its ends;
    - a capsule: its axis and the ridge, in closed form, if they are also those of the ridge's blade (`store_capsule`);
    - any other shape or capsule: the shape and the blade, by a search (`closest`).

    A sphere has a contact if the normal is between those of the ridge's sides.  Other shapes have the overlap of the
    features (`add_overlap`) if `limit_normal_to_sides` accepts the normal, else perhaps a spare contact (`keep_ridge`).

    Reads:  shapes.*, hfield_*, hull_*.   Writes: relief.*, manifold.full, shapes.limit.
    Scratch: convex.*, feature.*, clip.*, manifold.*, shapes.*, what `closest` writes.
    """
    rows, columns = edge_step(direction)
    start, end = sample_point(m1, d1, field, r, c), sample_point(m1, d1, field, r + count * rows, c + count * columns)
    along, length = normalize3(end - start)
    meets, known = True, False  # whether the ridge may be within the limit; whether convex.* is known in closed form
    if d1.shapes.type[1] == CAPSULE:
        known = store_capsule(d1, start, end)
        meets = not known or d1.convex.dist[0] <= d1.shapes.limit[0]
    elif d1.shapes.type[1] == SPHERE:
        # coordinate of the centre along the ridge [m]; beyond the ends, the next edge or a peak is nearer
        t = dot(d1.shapes.pos[1] - start, along)
        meets = t > 0.0 and t < length and store_sphere(d1, fma(t, along, start))
        meets = meets and d1.convex.dist[0] <= d1.shapes.limit[0]
    if meets:
        side0 = side_of_ridge(m1, d1, field, r, c, direction, 0, along)
        side1 = side_of_ridge(m1, d1, field, r, c, direction, 1, along)
        if d1.shapes.type[1] == SPHERE:
            n = d1.convex.normal[0]
            if dot(n, side0) <= PARALLEL and dot(n, side1) <= PARALLEL:
                add_contact(d1, d1.convex.dist[0], middle_of_nearest(d1), n)
        elif known or is_reached(m1, d1, start, side0, side1, along):
            # the blade, which `add_overlap` and `keep_ridge` read, too
            set_prism(d1, start, end, -m1.hfield_size[field][3])
            if not known:
                closest(m1, d1)
            if d1.convex.dist[0] <= d1.shapes.limit[0]:
                accepted, replaced = limit_normal_to_sides(d1, along, side0, side1)
                if accepted == 1:
                    add_overlap(m1, d1, start, end, along, replaced)
                else:
                    keep_ridge(d1)


@kernel
def may_touch(d1, start, end):
    """Returns whether the bounding box of an edge meets the shape's box relief.low, relief.high, or is above it.

    start, end: ends of the edge; x and y do not decrease from start to end.
    """
    low, high = d1.relief.low[0], d1.relief.high[0]
    return (
        (start[2] >= low[2] or end[2] >= low[2])
        and end[0] >= low[0]
        and start[0] <= high[0]
        and end[1] >= low[1]
        and start[1] <= high[1]
    )


@kernel
def joins_next(m1, field, r, c, direction):
    """Returns whether the edge from sample (r, c) and the next one along its direction are parts of one straight ridge.

    Both edges must exist.  A ridge ends at every LONGEST-th sample.
    """
    step_r, step_c = edge_step(direction)
    index = (c if direction == 0 else r) + 1  # of the sample between them
    joined = index % LONGEST != 0
    # the outer ends of the two edges
    for steps in (0, 2):
        joined = joined and has_sample(m1, field, r + steps * step_r, c + steps * step_c)
    return joined and continues(m1, field, r, c, direction)


@kernel
def collide_edge(m1, d1, field, start, r, c, direction, rows, columns):
    """Adds the contacts of the shape and the whole ridge that an edge belongs to, once for all edges of the ridge.

    A ridge is a straight run of edges.  The edge from sample (r, c) is part of one and may touch the shape.  Only the
    first such edge of the ridge under the shape adds the contacts.  These do not depend on the part of the ridge that
    is under the shape.
    start: the point of sample (r, c).   direction: 0, 1 or 2, the direction of the edge (`edge_step`).
    rows, columns: (first, last) samples of the field under the shape.
    """
    step_r, step_c = edge_step(direction)
    first = True  # whether no edge before this one belongs to the ridge and may touch the shape
    if r - step_r >= rows[0] and c - step_c >= columns[0]:
        first = not (
            may_touch(d1, sample_point(m1, d1, field, r - step_r, c - step_c), start)
            and joins_next(m1, field, r - step_r, c - step_c, direction)
        )
    if first:
        before, count = 0, 1  # edges of the ridge before this one, and from this one on
        while joins_next(m1, field, r - (before + 1) * step_r, c - (before + 1) * step_c, direction):
            before += 1
        while joins_next(m1, field, r + (count - 1) * step_r, c + (count - 1) * step_c, direction):
            count += 1
        collide_ridge(m1, d1, field, r - before * step_r, c - before * step_c, direction, before + count)


# ---- peaks -----------------------------------------------------------------------------------------------------------
@kernel
def touches_peak(m1, d1, field, r, c, p, n):
    """Returns whether no neighbour of the peak p at sample (r, c), nor the ground below it, is higher along n.

    A normal n that points down is refused: the ground below the peak would be higher along it.
    """
    touches = n[2] >= 0.0
    for direction in range(3):
        rows, columns = edge_step(direction)
        for sign in (-1, 1):
            if has_sample(m1, field, r + sign * rows, c + sign * columns):
                edge = sample_point(m1, d1, field, r + sign * rows, c + sign * columns) - p
                touches = touches and dot(n, edge) <= 0.0
    return touches


@stage
def collide_peak(m1, d1, field, r, c):
    """Adds the contact of the shape and a peak to relief.*.

    A peak is a ridge of length zero: its blade is the vertical segment below it.  If the nearest point of the blade is
    not the peak itself, it is kept for a shape without another contact (`keep_ridge`).

    Reads:  shapes.*, hfield_*, hull_*.   Writes: relief.*, manifold.full, shapes.limit.
    Scratch: convex.*, shapes.*, what `closest` writes.
    """
    p = sample_point(m1, d1, field, r, c)
    if d1.shapes.type[1] == SPHERE:
        if store_sphere(d1, p) and touches_peak(m1, d1, field, r, c, p, d1.convex.normal[0]):
            add_contact(d1, d1.convex.dist[0], middle_of_nearest(d1), d1.convex.normal[0])
    else:
        set_prism(d1, p, p, -m1.hfield_size[field][3])
        closest(m1, d1)
        if d1.convex.dist[0] <= d1.shapes.limit[0]:
            off = d1.convex.witness[0] - p
            at_top = dot(off, off) < AT_END * AT_END
            if at_top and touches_peak(m1, d1, field, r, c, p, d1.convex.normal[0]):
                add_contact(d1, d1.convex.dist[0], middle_of_nearest(d1), d1.convex.normal[0])
            else:
                keep_ridge(d1)


# ---- edges between the walls and the bottom --------------------------------------------------------------------------
@stage
def collide_outer_edge(m1, d1, field, wall, other):
    """Adds the contact of the shape and the edge between a wall and another one, or the bottom, to relief.*.

    It is added only if the shape's centre is beyond one of the two faces, and the contact's normal is not directed into
    either of them.
    wall, other: faces as in `outer_face`.  An edge of the bottom has other = WALLS; a vertical edge has wall 0 or 1,
    across x, and other 2 or 3, across y.

    Reads:  shapes.*, hfield_*, hull_*.   Writes: relief.*, manifold.full, shapes.limit.
    Scratch: convex.*, shapes.*, what `closest` writes.
    """
    half_x, half_y, base = m1.hfield_size[field][0], m1.hfield_size[field][1], m1.hfield_size[field][3]
    if faces_shape(m1, d1, field, wall) or faces_shape(m1, d1, field, other):
        sign, other_sign = 1.0 - 2.0 * (wall % 2), 1.0 - 2.0 * (other % 2)
        x, y = sign * half_x, other_sign * half_y
        r = m1.hfield_nrow[field] - 1 if other % 2 == 0 else 0
        c = m1.hfield_ncol[field] - 1 if wall % 2 == 0 else 0
        top = sample_point(m1, d1, field, r, c)
        # a vertical edge, from the bottom to the surface; if other = WALLS, replaced by an edge of the bottom
        start, end = Vec3(x, y, -base), Vec3(x, y, top[2])
        if other == WALLS and wall < 2:
            start, end = Vec3(x, -half_y, -base), Vec3(x, half_y, -base)
        elif other == WALLS:
            y = sign * half_y
            start, end = Vec3(-half_x, y, -base), Vec3(half_x, y, -base)
        # a prism with all vertices at the ends of the edge
        set_prism(d1, start, end, start[2])
        for k in range(3):
            d1.shapes.prism[k] = start
        closest(m1, d1)
        if d1.convex.dist[0] <= d1.shapes.limit[0]:
            n = d1.convex.normal[0]
            axis = unit_axis(wall // 2, sign)
            other_axis = unit_axis(2, -1.0) if other == WALLS else unit_axis(1, other_sign)
            # at the upper end of a vertical edge, a normal that points up is that of a contact of this peak
            below = n[2] <= PARALLEL or d1.convex.witness[0][2] < top[2] - AT_END
            if dot(n, axis) >= 0.0 and dot(n, other_axis) >= 0.0 and below:
                add_contact(d1, d1.convex.dist[0], middle_of_nearest(d1), n)


# ---- all -------------------------------------------------------------------------------------------------------------
@kernel
def collide_ridges(m1, d1, field, rows, columns):
    """Adds the contacts of the shape and the ridges and peaks under it.

    rows, columns: (first, end) of the cells under the shape; also first and last of their samples.
    """
    for r in range(rows[0], rows[1] + 1):
        for c in range(columns[0], columns[1] + 1):
            start = sample_point(m1, d1, field, r, c)
            for direction in unrolled(range(3)):
                step_r, step_c = edge_step(direction)
                inside = r + step_r <= rows[1] and c + step_c <= columns[1]
                inside = inside and may_touch(d1, start, sample_point(m1, d1, field, r + step_r, c + step_c))
                if inside and is_ridge(m1, field, r, c, direction):
                    collide_edge(m1, d1, field, start, r, c, direction, rows, columns)
            # the sample is tested as an edge of length 0
            if may_touch(d1, start, start) and is_peak(m1, field, r, c):
                collide_peak(m1, d1, field, r, c)
