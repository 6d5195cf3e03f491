"""Computes the penetration depth: the surface point of the difference of two shapes that is nearest to the origin.

A polytope of support points grows inside the difference C.  The plane of its face nearest to the origin is a lower
bound of the depth; the support of C along that face's normal n is an upper bound.  While the bounds differ, the support
point becomes a vertex, and the faces visible from it are replaced by a fan around it.

A face's distance is signed, so the polytope need not contain the origin: faces with the origin outside grow first.
Shapes that just touch, or are apart by rounding, need no special case.  The result is the upper bound, which is the
depth along an evaluated direction.  Moving the shapes apart by it along n leaves them touching exactly, for any
reason that ended the search (closed gap, exhausted buffer, a fan that would not close).

A vertex within SLIVER of the line of a horizon edge would create a face without a normal.  The face beyond such an edge
also counts as visible; the vertex lies in its plane, so this removes no volume.
Source: van den Bergen, Collision Detection in Interactive 3D Environments, sec. 4.3.8 (signed distances, slivers and
the upper bound are Featherlane's).
"""

from featherlane.prelude import *
from featherlane.collision.convex.facet import NO_FACET
from featherlane.collision.convex.gjk import size_of_point
from featherlane.collision.convex.polytope import (
    FACES,
    GROWN,
    axis_across,
    close_tetrahedron,
    first_tetrahedron,
    keep_vertex,
    make_face,
    normal_of_face,
    open_group,
    plane_of_three,
)
from featherlane.collision.convex.separate_facet import settle_on_facet
from featherlane.collision.convex.support import support_along

VERTICES = 256
SEEN = 1e-14  # relative height above a face from which the face is visible
SLIVER = 1e-11  # distance from an edge's line, relative to the size, within which a point is on it
NEAR, LEVEL = 1e-7, 0.999999  # faces whose planes agree this closely are merged: mesh vertices are float32
LOOSE = 2  # steps of a continued search whose upper bound may come from a face that is far from the nearest one
EXACT = 1e-13  # gap at which the search of two polytopes ends


# ---- growing ---------------------------------------------------------------------------------------------------------
@kernel
def sees(d1, f, w, size):
    """Returns whether the point is above the plane of the face."""
    return dot(normal_of_face(d1, f), w) - d1.epa.offset[f] > SEEN * size


@kernel
def on_line(d1, i, j, w, size):
    """Returns whether the point is on the line of two vertices."""
    a = d1.epa.point[i]
    e, x = d1.epa.point[j] - a, w - a
    x = cross(e, x)
    return dot(x, x) <= (SLIVER * size) * (SLIVER * size) * dot(e, e)


@kernel
def seen_faces(d1, f, w, size):
    """Marks and lists the faces visible from the point, from face f on; returns their number."""
    d1.epa.seen[0], d1.epa.mark[f] = f, 1
    n, k = 1, 0
    while k < n:
        g = d1.epa.seen[k]
        for e in range(3):
            h = d1.epa.neighbour[g, e] >> 2
            if d1.epa.mark[h] == 0:
                visible = sees(d1, h, w, size)
                if not visible:
                    visible = on_line(d1, d1.epa.corner[g, e], d1.epa.corner[g, (e + 1) % 3], w, size)
                if visible:
                    d1.epa.seen[n], d1.epa.mark[h] = h, 1
                    n = n + 1
        k = k + 1
    return n


@kernel
def horizon(d1, nseen, nvertex):
    """Lists the edges between visible and other faces; returns their number, 0 if they are not one loop."""
    for k in range(nvertex):
        d1.epa.link[k, 0] = -1
    n, good = 0, True
    for k in range(nseen):
        f = d1.epa.seen[k]
        for e in range(3):
            beyond = d1.epa.neighbour[f, e]
            if d1.epa.mark[beyond >> 2] == 0 and n < FACES:
                a, b = d1.epa.corner[f, e], d1.epa.corner[f, (e + 1) % 3]
                d1.epa.edge[n, 0], d1.epa.edge[n, 1], d1.epa.edge[n, 2] = a, b, beyond
                if d1.epa.link[a, 0] >= 0:
                    good = False
                d1.epa.link[a, 0] = n
                n = n + 1

    # one full loop
    if n < 3:
        good = False
    if good:
        start = d1.epa.edge[0, 0]
        at, length = start, 0
        for _ in range(n):
            if d1.epa.link[at, 0] >= 0:
                at = d1.epa.edge[d1.epa.link[at, 0], 1]
                length = length + 1
                if at == start:
                    break
        good = length == n and at == start
    return n if good else 0


@kernel
def grow(d1, f, vertex, nface, nspare, size):
    """Replaces the faces visible from a new vertex by a fan; returns (faces ever made, spare faces), (0, 0) on failure.

    On failure nothing is changed.
    """
    w = d1.epa.point[vertex]
    nseen = seen_faces(d1, f, w, size)
    n = horizon(d1, nseen, vertex)
    if n == 0 or nface + n - nseen - nspare > FACES:
        for k in range(nseen):
            d1.epa.mark[d1.epa.seen[k]] = 0
        nface, nspare = 0, 0
    else:
        for k in range(nseen):
            g = d1.epa.seen[k]
            d1.epa.key[g] = GROWN
            d1.epa.spare[nspare] = g
            nspare = nspare + 1
        for k in range(n):
            a, b = d1.epa.edge[k, 0], d1.epa.edge[k, 1]
            g = nface
            if nspare > 0:
                nspare = nspare - 1
                g = d1.epa.spare[nspare]
            else:
                open_group(d1, nface)
                nface = nface + 1
            # the fan's faces are indexed by the first vertex of their edge, and by the last one
            d1.epa.link[a, 0], d1.epa.link[b, 1] = g, g
            d1.epa.edge[k, 1] = g
            beyond = d1.epa.edge[k, 2]
            d1.epa.neighbour[beyond >> 2, beyond & 3] = 4 * g
            make_face(d1, g, a, b, vertex)
            d1.epa.neighbour[g, 0] = beyond
        for k in range(n):
            g = d1.epa.edge[k, 1]
            d1.epa.neighbour[g, 1] = 4 * d1.epa.link[d1.epa.corner[g, 1], 0] + 2
            d1.epa.neighbour[g, 2] = 4 * d1.epa.link[d1.epa.corner[g, 0], 1] + 1
    return nface, nspare


@kernel
def least_face(d1, nface):
    """Returns the face of least key, the first of equal ones: compares eight at once, then the remaining eight."""
    keys, least_keys = eights(d1.epa.key), eights(d1.epa.least)
    least = keys[0]
    group = 0.0 * least
    for k in range(1, (nface + 7) // 8):
        lower = keys[k] < least
        least, group = where(lower, keys[k], least), where(lower, 1.0 * k, group)
    least_keys[0], least_keys[1] = least, group
    # selects, not branches: which lane is lower cannot be predicted
    f, key = 8.0 * d1.epa.least[1, 0], d1.epa.least[0, 0]
    for lane in unrolled(range(1, 8)):
        g, other = 8.0 * d1.epa.least[1, lane] + lane, d1.epa.least[0, lane]
        f = where((other < key) | ((other == key) & (g < f)), g, f)
        key = fmin(other, key)
    return whole(f)


@kernel
def faces_below(d1, nface, key):
    """Returns the number of faces with a smaller key."""
    keys, sums = eights(d1.epa.key), eights(d1.epa.least)
    total = 0.0 * keys[0]
    for k in range((nface + 7) // 8):
        total = total + where(keys[k] < key, 1.0, 0.0)
    sums[0] = total
    n = d1.epa.least[0, 0]
    for lane in unrolled(range(1, 8)):
        n = n + d1.epa.least[0, lane]
    return whole(n)


# ---- the result ------------------------------------------------------------------------------------------------------
@kernel
def parts_of_foot(d1, i, j, k, n, depth):
    """Returns the barycentric coordinates of the origin's projection on the plane of three vertices."""
    foot = depth * n
    a, b, c = d1.epa.point[i] - foot, d1.epa.point[j] - foot, d1.epa.point[k] - foot
    pa, pb, pc = dot(n, cross(b, c)), dot(n, cross(c, a)), dot(n, cross(a, b))
    whole = pa + pb + pc
    if whole > 0.0:
        s = 1.0 / whole
        pa, pb, pc = pa * s, pb * s, pc * s
    else:
        pa, pb, pc = 0.0 * pa + 1.0, 0.0 * pa, 0.0 * pa
    return pa, pb, pc


@kernel
def least_of(p):
    """Returns the smallest of three."""
    least = p[0]
    if p[1] < least:
        least = p[1]
    if p[2] < least:
        least = p[2]
    return least


@kernel
def foot_on_first(d1, nface, n, depth, near):
    """Computes the first core's deepest point, from the face in the nearest plane that holds the projected origin."""
    i, j, k = d1.epa.best[0], d1.epa.best[1], d1.epa.best[2]
    p = parts_of_foot(d1, i, j, k, n, depth)
    inside = least_of(p)
    if inside < -1e-9:
        for f in range(nface):
            level = d1.epa.offset[f] <= depth + near and d1.epa.key[f] < 0.5 * GROWN
            if level and inside < 0.0 and dot(normal_of_face(d1, f), n) > LEVEL:
                x, y, z = d1.epa.corner[f, 0], d1.epa.corner[f, 1], d1.epa.corner[f, 2]
                q = parts_of_foot(d1, x, y, z, n, depth)
                least = least_of(q)
                if least > inside:
                    i, j, k, p, inside = x, y, z, q, least

    # outside the face: its nearest corners
    total = 0.0 * depth
    a = Vec3(total, total, total)
    for c in range(3):
        part, v = p[0], i
        if c == 1:
            part, v = p[1], j
        elif c == 2:
            part, v = p[2], k
        if part > 0.0:
            total = total + part
            a = fma(part, d1.epa.first[v], a)
    return 1.0 / total * a


@kernel
def flat_normal(d1, n):
    """Returns a direction in which C has no width: orthogonal to all of its n vertices."""
    u = Vec3(1.0, 0.0, 0.0)
    if n == 2:
        e = d1.epa.point[1] - d1.epa.point[0]
        u = cross(e, axis_across(e))
        u = 1.0 / sqrt(dot(u, u)) * u
    elif n == 3:
        u = plane_of_three(d1)
    return u


@kernel
def leave_simplex(d1):
    """Stores the nearest face as the final simplex of the search."""
    for k in range(3):
        v = d1.epa.best[k]
        d1.simplex.point[k] = d1.epa.point[v]
        d1.simplex.first[k] = d1.epa.first[v]
        d1.simplex.vertex[k, 0], d1.simplex.vertex[k, 1] = d1.epa.vertex[v, 0], d1.epa.vertex[v, 1]
    d1.simplex.count[0] = 3


@kernel
def size_of_simplex(d1):
    """Returns the approximate extent of the shapes: the maximum over the simplex and the points on each shape."""
    size2 = dot(d1.convex.pos[0], d1.convex.pos[0])
    for k in range(d1.simplex.count[0]):
        reach2 = size_of_point(d1, k)
        if reach2 > size2:
            size2 = reach2
    return sqrt(size2)


@kernel
def settle_on_best(m1, d1, n):
    """Sets the facet of the face that ended the search, if there is one; n: its normal."""
    if d1.epa.closed[0] == 1:
        i, j, k = d1.epa.best[0], d1.epa.best[1], d1.epa.best[2]
        first = d1.epa.vertex[i, 0], d1.epa.vertex[j, 0], d1.epa.vertex[k, 0]
        second = d1.epa.vertex[i, 1], d1.epa.vertex[j, 1], d1.epa.vertex[k, 1]
        settle_on_facet(m1, d1, first, second, n)


@stage
def grow_polytope(m1, d1, steps, most):
    """Grows a polytope, by support points, until its nearest face is on the surface of the difference of the cores.

    A lower and an upper bound that agree may come from two faces.  If the origin is near both planes, their normals can
    differ by the square root of the gap, and the face of the lower bound may be inside the difference.  A facet is
    determined by the corners of a face, so a search of two polytopes (`EXACT`) continues until the bounds of one face
    agree (`flat`).

    Args:
        steps: maximum number of support points.
        most: number of faces below the upper bound of the depth above which the search gives up, after LOOSE steps.

    Reads:  shapes.*, convex.mat, convex.pos; epa.gap, epa.size; the polytope: epa.count, epa.point, epa.corner, ...
    Writes: convex.dist, minus the depth [m]; convex.normal (3,), in the frame of the first shape; epa.best;
            epa.closed, whether the bounds agree; the polytope.
    Scratch: epa.*, support.*.
    """
    size, exact = d1.epa.size[0], d1.epa.gap[0] == EXACT
    gap, nvertex, nface = d1.epa.gap[0] * size, d1.epa.count[0], d1.epa.count[1]
    nspare, depth, flat, closed = 0, GROWN, False, 0
    n = normal_of_face(d1, 0)
    for step in range(steps):
        f = least_face(d1, nface)
        lower, u = d1.epa.key[f], normal_of_face(d1, f)
        agree = flat or not exact
        if not lower < depth - gap and (agree or not lower < 0.5 * GROWN):  # NaN ends the search, too
            closed = 1 if agree and depth < GROWN else 0
            break
        w = support_along(m1, d1, u)
        upper = dot(u, w)
        on_surface = not upper - lower > gap
        if upper < depth or (exact and on_surface and not flat):
            depth, n, flat = upper, u, on_surface
            for i in range(3):
                d1.epa.best[i] = d1.epa.corner[f, i]
        if step >= LOOSE and most < FACES and faces_below(d1, nface, depth - gap) > most:
            break
        grown = 0
        if not on_surface and nvertex < VERTICES:
            keep_vertex(d1, nvertex)
            made, spare = grow(d1, f, nvertex, nface, nspare, size)
            if made > 0:
                grown, nface, nspare, nvertex = 1, made, spare, nvertex + 1
        if grown == 0:
            d1.epa.key[f] = upper
    d1.epa.count[0], d1.epa.count[1], d1.epa.closed[0] = nvertex, nface, closed
    d1.convex.dist[0] = -depth
    d1.convex.normal[0] = n


@stage
def epa(m1, d1):
    """Computes the depth of the origin in the difference of the two cores, which overlap or touch.

    Reads:  shapes.*, convex.mat, convex.pos, simplex.*; epa.gap, allowed difference of the bounds relative to the size.
    Writes: convex.*, minus the depth [m]; convex.normal (3,); the deepest point of the first core [m]; all in the
            frame of the first shape; simplex.*, the corners of the nearest face; facet.*, facet.vertex (2, 3): the
            facet.
    Scratch: epa.*, support.*.
    Cost:   one support point and about 60 ns per step, up to VERTICES steps.
    """
    size = size_of_simplex(d1)
    d1.facet.kind[0], d1.facet.apart[0] = NO_FACET, 0
    nvertex = first_tetrahedron(m1, d1, size)
    if nvertex < 4:
        n = flat_normal(d1, nvertex)
        depth, a = dot(support_along(m1, d1, n), n), d1.support.first[0]
    else:
        open_group(d1, 0)
        close_tetrahedron(d1)
        d1.epa.count[0], d1.epa.count[1], d1.epa.size[0] = 4, 4, size
        grow_polytope(m1, d1, 2 * VERTICES, FACES)
        depth, n = -d1.convex.dist[0], d1.convex.normal[0]
        a = foot_on_first(d1, d1.epa.count[1], n, depth, NEAR * size)
        leave_simplex(d1)
        settle_on_best(m1, d1, n)
    if d1.facet.kind[0] == NO_FACET:
        d1.convex.dist[0] = -depth
        d1.convex.normal[0] = n
        d1.convex.witness[0] = a
