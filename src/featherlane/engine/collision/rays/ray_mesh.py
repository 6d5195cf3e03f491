"""Intersects rays with meshes: finds the nearest triangle with a tree of boxes, one ray at a time.

A node of the tree has eight boxes, which are tested at once, and leads to other nodes or to groups of up to eight
triangles, also tested at once.  The nearest box is visited first; boxes behind the nearest hit so far are skipped.
GROUP is this number, eight.  A child of a node is a node, -1 - group for a group of triangles, or NO_CHILD.
Triangles are two-sided.  No ray passes between two triangles that share an edge, because the edge is bitwise identical
in both.
FAR is the distance without a hit.
m1 and d1 are the model and the data of one world; line.* are the ray and its nearest hit: line.distance, line.normal,
line.triangle, line.hit.  meshnode_adr is the root of a mesh's tree; meshnode_box and meshnode_child are the boxes of a
node and where they lead.  trianglegroup_vert has the corners of each group.  line.near holds eight distances.
Source: Wald, Benthin and Boulos, Getting rid of packets: efficient SIMD single-ray traversal using multi-branching BVHs
    (2008).
"""

from typing import Any, NamedTuple

from featherlane.engine.prelude import *
from featherlane.engine.collision.frame import frame_of
from featherlane.engine.collision.rays.ray_shape import FAR
from featherlane.engine.model.triangle_tree import GROUP, NO_CHILD

STEEPEST = 1e300  # replaces 1 / 0 in a slab test; unlike infinity, it gives 0 times a distance of 0
DEPTH = 160  # stack size; each level of the tree leaves at most seven nodes on the stack


class Ray(NamedTuple):
    """Holds a ray's origin, its unit direction, and two unit vectors orthogonal to it."""

    p: Any  # origin
    v: Any  # direction
    s: Any  # orthogonal to v, as t
    t: Any


@kernel
def ray_of_line(d1):
    """Returns the `Ray` of line.point and line.direction."""
    v = d1.line.direction[0]
    _, s, t = frame_of(v).rows
    return Ray(d1.line.point[0], v, s, t)


@kernel
def cross_triangle(a, b, c, ray):
    """Returns (met, distance) of the ray and the triangle a, b, c.

    Projected along the ray, with the ray's origin at 0, the triangle contains 0 if the cross products e0, e1, e2 of its
    corners have the same sign.  They are also the weights of the corners' distances along the ray:
    x = (e0 a.v + e1 b.v + e2 c.v) / (e0 + e1 + e2).
    Source: Woop, Benthin and Wald, Watertight ray/triangle intersection, JCGT 2 (2013).
    """
    p, v, s, t = ray
    a, b, c = a - p, b - p, c - p
    # coordinates of the corners along s and t
    ax, ay, bx, by, cx, cy = dot(s, a), dot(t, a), dot(s, b), dot(t, b), dot(s, c), dot(t, c)
    # no fma: the result for an edge in the opposite direction is then the exact negative
    e0, e1, e2 = bx * cy - by * cx, cx * ay - cy * ax, ax * by - ay * bx
    lowest, highest = fmin(fmin(e0, e1), e2), fmax(fmax(e0, e1), e2)
    det = e0 + e1 + e2
    met = ((lowest >= 0.0) | (highest <= 0.0)) & (fabs(det) > 0.0)
    x = (e0 * dot(v, a) + e1 * dot(v, b) + e2 * dot(v, c)) / where(met, det, 1.0)
    return met & (x >= 0.0), x


@kernel
def meet_triangle(d1, a, b, c, ray):
    """Stores distance and normal of a triangle's hit if it is nearer than `line.distance`.

    Writes: line.distance, line.hit, line.normal.
    """
    met, x = cross_triangle(a, b, c, ray)
    if met & (x < d1.line.distance[0]):
        d1.line.distance[0] = x
        d1.line.hit[0] = 1
        d1.line.normal[0] = normalize3(cross(b - a, c - a))[0]


@kernel
def _intersect_group(m1, d1, group, ray):
    """Intersects the triangles of a group; stores the nearest hit if it is nearer.   Writes: line.*."""
    vertices = eights(m1.trianglegroup_vert)
    row = 9 * group  # one row of eight triangles per coordinate
    met, x = cross_triangle(
        Vec3(vertices[row : row + 3]), Vec3(vertices[row + 3 : row + 6]), Vec3(vertices[row + 6 : row + 9]), ray
    )
    if any_(met & (x < d1.line.distance[0])):
        near = eights(d1.line.near)
        nearest = -1
        near[0] = where(met, x, FAR)
        for k in range(GROUP):
            if d1.line.near[k] < d1.line.distance[0]:
                d1.line.distance[0], nearest = d1.line.near[k], k
        if nearest >= 0:
            # rows of eight lanes: x, y, z of each corner
            first = GROUP * row + nearest
            a, b, c = tuple(
                Vec3(m1.trianglegroup_vert[first + GROUP * (3 * corner + i)] for i in range(3)) for corner in range(3)
            )
            d1.line.hit[0] = 1
            d1.line.triangle[0] = GROUP * group + nearest
            d1.line.normal[0] = normalize3(cross(b - a, c - a))[0]


@kernel
def _push_children(m1, d1, node, n, p, inverse):
    """Pushes the children of a node whose boxes the ray enters on the stack, the nearest on top; returns the new size.

    n: size of the stack; p, inverse: origin of the ray, and the reciprocals of its direction.
    Writes: line.node, line.enter, the stack; line.near.
    """
    # a node has six rows of eight boxes: x, y, z of the lower corners, then of the upper corners
    boxes, near = eights(m1.meshnode_box), eights(d1.line.near)
    enter, leave = 0.0, d1.line.distance[0]
    # slab test of eight boxes
    for i in range(3):
        at_lower = (boxes[6 * node + i] - p[i]) * inverse[i]
        at_upper = (boxes[6 * node + 3 + i] - p[i]) * inverse[i]
        enter, leave = fmax(fmin(at_lower, at_upper), enter), fmin(fmax(at_lower, at_upper), leave)
    near[0] = where(enter <= leave, enter, FAR)
    nearest = n  # index of the nearest child on the stack
    for k in range(GROUP):
        child = m1.meshnode_child[node, k]
        if child != NO_CHILD and d1.line.near[k] < FAR and n < DEPTH:
            d1.line.node[n], d1.line.enter[n] = child, d1.line.near[k]
            if d1.line.enter[n] < d1.line.enter[nearest]:
                nearest = n
            n += 1
    # swaps the nearest child to the top
    if nearest < n - 1:
        child, x = d1.line.node[nearest], d1.line.enter[nearest]
        d1.line.node[nearest], d1.line.enter[nearest] = d1.line.node[n - 1], d1.line.enter[n - 1]
        d1.line.node[n - 1], d1.line.enter[n - 1] = child, x
    return n


@stage
def meet_mesh(m1, d1):
    """Finds the nearest triangle of the mesh `shapes.data` that is nearer than `line.distance`.

    Reads:  line.point, line.direction (unit), in the mesh's frame.
    Writes: line.hit, line.distance, line.normal, line.triangle, if there is such a triangle.
    Scratch: line.node, line.enter, line.near.
    Cost: O(log triangles) plus those near the ray.
    """
    ray = ray_of_line(d1)
    n = 1
    inverse = tuple(copysign(STEEPEST, v) if fabs(v) < 1.0 / STEEPEST else 1.0 / v for v in ray.v)
    d1.line.node[0] = m1.meshnode_adr[d1.shapes.data[0]]
    d1.line.enter[0] = 0.0
    while n > 0:
        n -= 1
        node = d1.line.node[n]
        if d1.line.enter[n] < d1.line.distance[0]:
            if node >= 0:  # else -1 - group
                n = _push_children(m1, d1, node, n, ray.p, inverse)
            else:
                _intersect_group(m1, d1, -1 - node, ray)
