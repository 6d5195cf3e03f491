"""Computes contacts of a mesh's triangles and a signed distance field (SDF) by minimization from several points each.

The mesh's tree selects the triangles whose bounding spheres may meet the field.  From each starting point on such a
triangle, the Frank-Wolfe method goes towards the corner along which the field's gradient falls most; its result is a
contact if it is inside the field.  With a tolerance, the projected gradient method follows.  Eight boxes, triangles or
starting points are computed at once, in the lanes of one world.  Points are in the frame of the field.
Scratch has rows of eight lanes: descent.trial 3 coordinates, descent.jet field and gradient of each side,
descent.corner 9 coordinates of the triangle of each starting point.
descent.triangle has the corners of eight triangles, a coordinate per row; descent.count is the number of points found.
A node of the tree (fieldnode_*) has eight children: nodes, or -1 - group for a group of eight triangles (fieldgroup_*),
or NO_CHILD for an absent one.
m1 and d1 are the model and the data of one world.  `eights(field)` is a field as rows of eight values.
LANES is eight.  DECREASE and MOST_STEPS are those of field_pair.py: the fraction of the promised decrease that a step
must reach, and the largest number of steps.
fieldnode_adr is the root of a mesh's tree, fieldnode_box the boxes of a node's children.  descent.start holds waiting
starting points; NOWHERE is the value descent.dist of a point that is no contact.

Imported kernels:

    field_jets(m1, d1, side, exact)  writes descent.jet: a field's value and gradient at descent.trial; exact: inside a
                                     box, 1: the distance to the nearest face, 0: MuJoCo's field
    halton(index, base)              member of the Halton sequence, in [0, 1)
    add_points(d1, kept, n)          appends contacts among the first `kept` of the eight points to manifold.*; sets
                                     manifold.full if another of the first n points is a contact
    look_from_first(d1)              writes convex.pos and convex.mat: the field's pose in the frame of the mesh

Source: MuJoCo engine_collision_sdf.c (mjc_MeshSDF, processSdfCorners, stepFrankWolfe), with its order of
    triangles.  Its tree is binary, here three levels are tested at once: triangles of a box without a deep
    enough field differ only if the field's slope exceeds 1.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.convex.support import look_from_first
from featherlane.engine.collision.pairs.field_pair import (
    DECREASE,
    LANES,
    MOST_STEPS,
    NOWHERE,
    add_points,
    field_jets,
    halton,
)
from featherlane.engine.model.triangle_tree import NO_CHILD

DEPTH = 128  # nodes on the stack
FIELD = 1  # side of the field: its field and gradient are rows 4 FIELD .. 4 FIELD + 3 of descent.jet
TINY = 1e-60  # m^4: squared normal of a degenerate triangle


@kernel
def field_value_at(m1, d1, x):
    """Returns the field's value at eight points x.   Writes: descent.trial, descent.jet."""
    eights(d1.descent.trial)[0:3] = x
    field_jets(m1, d1, FIELD, exact=0)  # writes descent.jet: the field at descent.trial
    return eights(d1.descent.jet)[4 * FIELD]


# ---- boxes and triangles that may meet the field ---------------------------------------------------------------------
@kernel
def into_field(d1, x):
    """Returns eight points x of the mesh's frame in the frame of the field."""
    return d1.convex.mat[0].T @ (x - d1.convex.pos[0])


@kernel
def box_may_meet(m1, d1, low, high):
    """Returns the mask of the boxes, of eight, that may meet the field's solid.

    A box may meet it if the field at its centre is less than half its diagonal.
    low, high: corners of the boxes in the mesh's frame.
    """
    half = 0.5 * (high - low)
    return field_value_at(m1, d1, into_field(d1, low + half)) < norm3(half)


@kernel
def bounding_sphere(a, b, c):
    """Returns (centre, radius) of a sphere around a triangle: its centroid, and the distance of the farthest corner."""
    centroid = 1.0 / 3.0 * (a + (b + c))
    u, v, w = a - centroid, b - centroid, c - centroid
    return centroid, sqrt(fmax(dot(u, u), fmax(dot(v, v), dot(w, w))))


# ---- starting points -------------------------------------------------------------------------------------------------
@kernel
def frank_wolfe(m1, d1):
    """Moves eight points to low field values in their triangles; stores the contacts.

    Reads: descent.trial, the points; descent.corner, the corners of their triangles.
    Step k goes 2 / (k + 2) of the way to the corner with the least slope . corner, slope being the field's gradient.
    Writes: descent.trial, descent.jet; descent.dist (NOWHERE without a contact), descent.shift, descent.normal.
    """
    corner = eights(d1.descent.corner)
    x = Vec3(eights(d1.descent.trial)[0:3])
    jet = eights(d1.descent.jet)
    field_jets(m1, d1, FIELD, exact=0)  # writes jet
    for step in range(m1.opt_sdf_iterations):
        slope = Vec3(jet[4 * FIELD + 1 : 4 * FIELD + 4])
        # NOWHERE is above any rise; in lanes whose point is NaN (a pose is not finite), no corner is selected
        least_rise = where(x[0] == x[0], NOWHERE, x[0])
        target = x
        for k in range(3):
            candidate = Vec3(corner[3 * k : 3 * k + 3])
            rise = plain_dot3(candidate, slope)
            target, least_rise = where(rise < least_rise, candidate, target), where(rise < least_rise, rise, least_rise)
        x = x + (2.0 / (step + 2.0)) * (target - x)
        eights(d1.descent.trial)[0:3] = x
        field_jets(m1, d1, FIELD, exact=0)  # writes jet
    if d1.shapes.tolerance[0] > 0.0:
        converge_in_triangles(m1, d1, d1.shapes.tolerance[0])
    normal, length = normalize3(Vec3(jet[4 * FIELD + 1 : 4 * FIELD + 4]))
    value = jet[4 * FIELD]
    eights(d1.descent.dist)[0] = where((value < 0.0) & (length >= MINVAL), value, NOWHERE)
    eights(d1.descent.shift)[0] = 0.5 * value
    # from the mesh to the field: against the field's gradient
    eights(d1.descent.normal)[0:3] = -normal


@kernel
def nearest_on_segment(x, a, b):
    """Returns (point nearest to x on the segment from a to b, squared distance)."""
    u = b - a
    t = clip(dot(x - a, u) / fmax(dot(u, u), MINVAL), 0.0, 1.0)
    p = fma(t, u, a)
    return p, dot(x - p, x - p)


@kernel
def nearest_on_triangle(x, a, b, c):
    """Returns the point nearest to x on the triangle a, b, c.

    It is the foot of the perpendicular if the foot is inside all edges, else the nearest point of the edges.
    """
    n = cross(b - a, c - a)
    n_squared = fmax(dot(n, n), TINY)
    foot = fma(-dot(x - a, n) / n_squared, n, x)
    # signed distances of the foot from the edges, positive inside, times lengths
    sides = tuple(dot(cross(v - u, foot - u), n) for u, v in ((a, b), (b, c), (c, a)))
    inside = (fmin(sides[0], fmin(sides[1], sides[2])) >= 0.0) & (n_squared > TINY)
    nearest, least_squared = nearest_on_segment(x, a, b)
    for u, v in ((b, c), (c, a)):
        on_edge, squared = nearest_on_segment(x, u, v)
        nearest = where(squared < least_squared, on_edge, nearest)
        least_squared = fmin(squared, least_squared)
    return where(inside, foot, nearest)


@kernel
def converge_in_triangles(m1, d1, tolerance):
    """Minimizes the field from the points `descent.trial`, in their triangles, until a step is shorter than tolerance.

    Projected gradient method: the step is accepted and its factor doubles if the field falls by the fraction DECREASE
    of what the projected step promises; otherwise the factor halves.
    Writes: descent.trial, the resulting points; descent.jet, the field there.
    """
    corners, jet = eights(d1.descent.corner), eights(d1.descent.jet)
    a, b, c = Vec3(corners[0:3]), Vec3(corners[3:6]), Vec3(corners[6:9])
    x = Vec3(eights(d1.descent.trial)[0:3])
    best_jet = Vec4(jet[4 * FIELD : 4 * FIELD + 4])
    _, radius = bounding_sphere(a, b, c)
    # a point that is NaN does not move
    moving = x[0] == x[0]
    factor = 0.1 * radius  # the length of the first step, because the gradient's length is about 1
    for _ in range(MOST_STEPS):
        if not any_(moving):
            break
        slope = Vec3(best_jet[1:4])
        trial = where(moving, nearest_on_triangle(fma(-factor, slope, x), a, b, c), x)
        step = trial - x
        eights(d1.descent.trial)[0:3] = trial
        field_jets(m1, d1, FIELD, exact=0)  # writes jet
        lower = jet[4 * FIELD] <= fma(DECREASE, dot(slope, step), best_jet[0])
        accepted = moving & lower
        x = where(accepted, trial, x)
        best_jet = where(accepted, Vec4(jet[4 * FIELD : 4 * FIELD + 4]), best_jet)
        moving = moving & (norm3(step) > tolerance)
        factor = where(lower, 2.0 * factor, 0.5 * factor)
    eights(d1.descent.trial)[0:3] = x
    jet[4 * FIELD : 4 * FIELD + 4] = best_jet


@kernel
def finish_starts(m1, d1, n):
    """Moves the first n of the eight starting points, and adds their contacts, until nmanifold points were found.

    A further contact sets manifold.full, which ends the search.
    Reads: descent.trial, descent.corner.   Writes: manifold.*, descent.count, the number of points found.
    """
    frank_wolfe(m1, d1)
    # also counts points that were found before, as MuJoCo
    found = d1.descent.count[0]
    kept = 0  # number of points up to the last counted one; the others exceed nmanifold or are no contacts
    for i in range(n):
        if d1.descent.dist[i] < NOWHERE and found < d1.nmanifold:
            found += 1
            kept = i + 1
    d1.descent.count[0] = found
    add_points(d1, kept, n)


@kernel
def start_on_triangle(m1, d1, triangle, n):
    """Adds the starting points of a triangle to the n waiting ones; returns the new number of waiting points.

    The points are w a + u b + v c, w = 1 - u - v, with (u, v) of the Halton sequence.  As soon as eight points wait,
    they are finished (`finish_starts`).
    triangle: its lane in descent.triangle.
    Writes: descent.start and descent.corner in lane n; what `finish_starts` writes.
    """
    for i in range(max(1, m1.opt_sdf_initpoints)):
        u, v = halton(i + 1, 2), halton(i + 1, 3)
        # folds the unit square into its lower triangle u + v <= 1
        outside = u + v > 1.0
        u, v = where(outside, 1.0 - u, u), where(outside, 1.0 - v, v)
        w = 1.0 - u - v
        for k in range(3):
            # coordinate k of the three corners
            a, b, c = tuple(d1.descent.triangle[3 * j + k, triangle] for j in range(3))
            d1.descent.start[k, n] = w * a + u * b + v * c
        for k in range(9):
            d1.descent.corner[k, n] = d1.descent.triangle[k, triangle]
        n += 1
        if n == LANES:
            eights(d1.descent.trial)[0:3] = eights(d1.descent.start)[0:3]
            finish_starts(m1, d1, n)
            n = 0
    return n


@kernel
def collide_group(m1, d1, group, n):
    """Adds the starting points of a group's triangles that may meet the field; returns the number of waiting points.

    n: number of waiting starting points before the call, in descent.start.
    """
    # a group has nine rows of eight lanes: x, y, z of the three corners
    rows = eights(m1.fieldgroup_vert)
    first = 9 * group
    a = Vec3(rows[first : first + 3])
    b, c = Vec3(rows[first + 3 : first + 6]), Vec3(rows[first + 6 : first + 9])
    meets = box_may_meet(m1, d1, fmin(a, fmin(b, c)), fmax(a, fmax(b, c)))
    if any_(meets):
        a, b, c = into_field(d1, a), into_field(d1, b), into_field(d1, c)
        centroid, radius = bounding_sphere(a, b, c)
        meets = meets & (field_value_at(m1, d1, centroid) < radius)
        eights(d1.descent.triangle)[0:9] = join(a, b, c)
        # from the last to the first triangle, as MuJoCo; fieldgroup_face is -1 in a lane without a triangle
        for i in range(LANES - 1, -1, -1):
            if m1.fieldgroup_face[group, i] >= 0 and has(meets, i) and d1.manifold.full[0] == 0:
                n = start_on_triangle(m1, d1, i, n)
    return n


@stage
def mesh_field(m1, d1):
    """Computes contacts of a mesh and a signed distance field.

    The tree is visited in MuJoCo's order: the last child first.

    Reads:  shapes.*, fieldnode_*, fieldgroup_*, opt_sdf_initpoints, opt_sdf_iterations.
    Writes: manifold.*.
    Scratch: convex.pos, convex.mat, descent.*.
    Cost:   O(log triangles) plus opt_sdf_initpoints opt_sdf_iterations for each triangle near the field.
    """
    d1.manifold.count[0], d1.descent.count[0] = 0, 0
    look_from_first(d1)
    boxes = eights(m1.fieldnode_box)
    d1.descent.node[0] = m1.fieldnode_adr[d1.shapes.data[0]]
    pending, waiting = 1, 0
    while pending > 0 and d1.manifold.full[0] == 0:
        pending -= 1
        node = d1.descent.node[pending]
        if node < 0:  # -1 - group
            waiting = collide_group(m1, d1, -1 - node, waiting)
        else:
            # six rows of eight boxes: coordinates of the lower corners, then of the upper ones
            meets = box_may_meet(m1, d1, Vec3(boxes[6 * node : 6 * node + 3]), Vec3(boxes[6 * node + 3 : 6 * node + 6]))
            for k in range(LANES):
                child = m1.fieldnode_child[node, k]
                # DEPTH is the capacity of the stack
                if child != NO_CHILD and has(meets, k) and pending < DEPTH:
                    d1.descent.node[pending] = child
                    pending += 1
    # the remaining points; lanes without a point repeat the first one
    if waiting > 0:
        for i in range(waiting, LANES):
            for k in range(3):
                d1.descent.start[k, i] = d1.descent.start[k, 0]
            for k in range(9):
                d1.descent.corner[k, i] = d1.descent.corner[k, 0]
        eights(d1.descent.trial)[0:3] = eights(d1.descent.start)[0:3]
        finish_starts(m1, d1, waiting)
