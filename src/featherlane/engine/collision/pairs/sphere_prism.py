"""Computes the contact of a sphere and a prism of a height field, if the sphere's centre is in the prism or above it.

Inside, the depth of the centre is its depth below the nearest of the five faces.  Above, the nearest point is on
the top triangle.  A sphere at the side of the prism, or below it, uses the search for convex pairs.
d1 is the data of one world: shapes.prism has the prism's vertices, the bottom 0 to 2 and the top 3 to 5.  Vectors are
in the frame of the field, in which convex.pos is the sphere's centre.
nearest_on_triangle(a, b, c) is (squared distance, point, weights) of the point nearest to the origin; shapes_to_world
converts convex.* to world axes and to the surfaces of the shapes.
NO_DISTANCE is larger than any distance.  Shapes nearer than TOUCH, relative to their size, touch.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.convex.gjk import TOUCH, nearest_on_triangle
from featherlane.engine.collision.convex.pair import NO_DISTANCE, shapes_to_world


@kernel
def keep_nearer(d1, depth, n):
    """Stores a face if the sphere's centre is less deep below it than below all previous faces.

    depth: of the centre below the face [m]; n: the face's outward unit normal.
    Reads and writes: convex.dist, minus the least depth; convex.normal.
    """
    if depth < -d1.convex.dist[0]:
        d1.convex.dist[0] = -depth
        d1.convex.normal[0] = n


@kernel
def find_face_of_centre(d1, a, b, c):
    """Returns whether the sphere's centre is in the prism with the top triangle a, b, c, relative to the centre.

    If so, stores minus the centre's depth and the normal of the nearest face in convex.dist and convex.normal.
    """
    up = cross(b - a, c - a)
    # makes a, b, c counterclockwise from above, so that `up` is the top's outward normal
    if up[2] < 0.0:
        up = -1.0 * up
        b, c = c, b
    inside = dot(up, a) >= 0.0  # the centre is below the top
    if inside:
        up, _ = normalize3(up)
        zero = 0.0 * up[0]  # as a value
        one = 0.0 * up[0] + 1.0
        d1.convex.dist[0] = -NO_DISTANCE
        keep_nearer(d1, dot(up, a), up)  # the top
        # the bottom
        keep_nearer(d1, d1.convex.pos[0][2] - d1.shapes.prism[0][2], (zero, zero, -one))
        # the lesser of the two depths is not negative: the centre is also above the bottom
        inside = -d1.convex.dist[0] >= 0.0
        for _ in range(3):
            # the wall below edge ab: the edges are counterclockwise from above, so the outward normal is to their right
            out, _ = normalize3((b[1] - a[1], a[0] - b[0], zero))
            depth = dot(out, a)
            inside = inside and depth >= 0.0
            keep_nearer(d1, depth, out)
            a, b, c = b, c, a
    return inside


@kernel
def collide_prism_sphere(d1):
    """Returns whether the second shape is a sphere with its centre in or above the prism; if so, stores their distance.

    Writes: convex.dist, convex.normal, convex.witness, as `closest`.
    If the nearest point of the top triangle is not higher than the centre, no lower point of the prism is nearer.
    """
    applies = False
    if d1.shapes.type[1] == SPHERE:
        centre = d1.convex.pos[0]
        # a, b, c: the top triangle; scale2: squared size, for the tolerance
        a, b, c = d1.shapes.prism[3], d1.shapes.prism[4], d1.shapes.prism[5]
        scale2 = fmax(dot(centre, centre), dot(a, a))
        a, b, c = a - centre, b - centre, c - centre
        if find_face_of_centre(d1, a, b, c):  # the centre is inside; writes convex.dist, convex.normal
            applies = True
            d1.convex.witness[0] = fma(-d1.convex.dist[0], d1.convex.normal[0], centre)
        else:
            distance2, nearest, _ = nearest_on_triangle(a, b, c)
            if nearest[2] <= 0.0 and distance2 > TOUCH * TOUCH * scale2:
                applies = True
                length = sqrt(distance2)
                d1.convex.dist[0] = length
                d1.convex.normal[0] = -1.0 / length * nearest
                d1.convex.witness[0] = centre + nearest
        if applies:
            shapes_to_world(d1)
    return applies
