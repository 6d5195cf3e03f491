"""Computes bounding boxes of geoms and bodies and tests whether they overlap, in all worlds at once.

An axis-aligned box is stored as its lower and upper corner, enlarged by the geom's margin and gap.  A contact of two
geoms requires that their axis-aligned boxes overlap and that their oriented boxes overlap.
"""

from featherlane.prelude import *
from featherlane.collision.mixing import geom_reach, is_present
from featherlane.collision.motion import step_motion, sweeping

EMPTY = 1e30  # an empty box extends from EMPTY to -EMPTY
SLACK = 1e-5  # added to |cosines| and sizes, so that rounding does not separate touching boxes
ROUNDING, ROUNDING32 = 1e-14, 1e-6  # relative to a coordinate, with a safety factor


@kernel
def geom_box(m, d, g, margin):
    """Returns the axis-aligned box of geom g's bounding box, or of its sphere if that is tighter, plus margin."""
    R, x = d.geom_xmat[g], d.geom_xpos[g]
    c, s = mat_mul_vec(R, load3(m.geom_aabb, 6 * g)), load3(m.geom_aabb, 6 * g + 3)
    r, rounding = m.geom_rbound[g], ROUNDING
    if single_precision(d):
        rounding = ROUNDING32
    # without this, rounding at touching surfaces would make a pair's test depend on the other worlds of the tile
    wider = fma(SLACK, r, fma(rounding, fabs(x[0]) + fabs(x[1]) + fabs(x[2]), geom_reach(m, d, g) + margin))
    u = fma(fabs(R[0]), s[0], fma(fabs(R[1]), s[1], fabs(R[2]) * s[2]))
    v = fma(fabs(R[3]), s[0], fma(fabs(R[4]), s[1], fabs(R[5]) * s[2]))
    w = fma(fabs(R[6]), s[0], fma(fabs(R[7]), s[1], fabs(R[8]) * s[2]))
    return (
        x[0] + fmax(c[0] - u, -r) - wider,
        x[1] + fmax(c[1] - v, -r) - wider,
        x[2] + fmax(c[2] - w, -r) - wider,
        x[0] + fmin(c[0] + u, r) + wider,
        x[1] + fmin(c[1] + v, r) + wider,
        x[2] + fmin(c[2] + w, r) + wider,
    )


@kernel
def swept_box(m, d, g):
    """Returns the axis-aligned box that holds geom g during the whole step.

    Source: MuJoCo 4.0.1, chapter "Speculative contacts", sec. "Swept broadphase AABBs".
    """
    move, turn, _ = step_motion(m, d, g)
    box = geom_box(m, d, g, norm3(turn) * m.geom_rbound[g])
    low = tuple(box[k] + fmin(move[k], 0.0) for k in range(3))
    high = tuple(box[3 + k] + fmax(move[k], 0.0) for k in range(3))
    return low[0], low[1], low[2], high[0], high[1], high[2]


@kernel
def detection_box(m, d, g, margin):
    """Returns the box of geom g, of its whole step with the flag `speculative`; empty in worlds without the geom."""
    box = swept_box(m, d, g) if sweeping(m) else geom_box(m, d, g, margin)
    if m.nvariant > 0:
        present, empty = is_present(m, g), EMPTY
        low = select3(present, (box[0], box[1], box[2]), (empty, empty, empty))
        high = select3(present, (box[3], box[4], box[5]), (-empty, -empty, -empty))
        box = low[0], low[1], low[2], high[0], high[1], high[2]
    return box


@kernel
def crowd_boxes(m, d):
    """Computes crowd.box: the axis-aligned boxes of the geoms of the crowd, of their whole step with `speculative`."""
    for i in range(m.ncrowd):
        box = detection_box(m, d, m.crowd_geom[i], 0.0)
        for k in range(6):
            d.crowd.box[6 * i + k] = box[k]


@kernel
def body_boxes(m, d, wide):
    """Computes near.body_box: the boxes of a body's bounded colliding geoms; `wide` adds their possible travel."""
    empty, margin = EMPTY, 0.0
    for b in range(m.nbody):
        for k in range(3):
            d.near.body_box[6 * b + k], d.near.body_box[6 * b + 3 + k] = empty, -empty
    for i in range(m.ncollide):
        g = m.collide_geom[i]
        if wide:
            margin = d.neighbours.travel[g]
        box, b = detection_box(m, d, g, margin), 6 * m.geom_bodyid[g]
        for k in range(3):
            d.near.body_box[b + k] = fmin(box[k], d.near.body_box[b + k])
            d.near.body_box[b + 3 + k] = fmax(box[3 + k], d.near.body_box[b + 3 + k])


@kernel
def boxes_overlap(a, i, b, j):
    """Returns whether the boxes at a[i] and b[j] overlap; false for NaN."""
    return (
        (a[i] <= b[j + 3])
        & (b[j] <= a[i + 3])
        & (a[i + 1] <= b[j + 4])
        & (b[j + 1] <= a[i + 4])
        & (a[i + 2] <= b[j + 5])
        & (b[j + 2] <= a[i + 5])
    )


@kernel
def box_centre(m, d, g):
    """Returns the centre of the geom's bounding box, in world axes."""
    c = mat_mul_vec(d.geom_xmat[g], load3(m.geom_aabb, 6 * g))
    return d.geom_xpos[g] + c


@kernel
def axes_part(C, a, b, reach, t):
    """Returns the mask where a face axis of the first box separates the boxes; C = |cosines|, t: offset on its axes."""
    return (
        (fabs(t[0]) > fma(C[0], b[0], fma(C[1], b[1], fma(C[2], b[2], a[0] + reach))))
        | (fabs(t[1]) > fma(C[3], b[0], fma(C[4], b[1], fma(C[5], b[2], a[1] + reach))))
        | (fabs(t[2]) > fma(C[6], b[0], fma(C[7], b[1], fma(C[8], b[2], a[2] + reach))))
    )


@kernel
def edges_part(R, C, a, b, reach, t):
    """Returns the mask of worlds where a cross product of edges separates the boxes; R = cosines, C = |R|, t as above.

    The products are shorter than 1 if the edges are not orthogonal; then they only separate boxes farther than reach.
    """
    apart = reach < 0.0
    # LLVM does not unroll these loops, and would select each entry at run time
    for i in unrolled(range(3)):
        i1, i2 = (i + 1) % 3, (i + 2) % 3
        for j in unrolled(range(3)):
            j1, j2 = (j + 1) % 3, (j + 2) % 3
            offset = fabs(fma(t[i2], R[3 * i1 + j], -(t[i1] * R[3 * i2 + j])))
            own = fma(a[i1], C[3 * i2 + j], a[i2] * C[3 * i1 + j])
            other = fma(b[j1], C[3 * i + j2], b[j2] * C[3 * i + j1])
            apart = apart | (offset > own + other + reach)
    return apart


@kernel
def boxes_part(m, d, g, h, reach, near):
    """Returns the mask of worlds of `near` where the oriented bounding boxes are farther apart than reach.

    Most separated boxes are separated along an axis of the first box; the other axes are tested only if necessary.
    Source: S. Gottschalk et al., "OBBTree" (1996): fifteen axes, the face normals and the cross products of edges.
    """
    A, B = d.geom_xmat[g], d.geom_xmat[h]
    a, b = load3(m.geom_aabb, 6 * g + 3), load3(m.geom_aabb, 6 * h + 3)
    t = box_centre(m, d, h) - box_centre(m, d, g)
    ta = A.T @ t
    R = mat_mul(tuple(A[r + c] for r in range(3) for c in (0, 3, 6)), B)
    C = tuple(fabs(R[i]) + SLACK for i in range(9))
    apart = axes_part(C, a, b, reach, ta)
    if any_(near & not_(apart)):
        turned = tuple(C[r + c] for r in range(3) for c in (0, 3, 6))
        apart = apart | axes_part(turned, b, a, reach, B.T @ t)
        if any_(near & not_(apart)):
            apart = apart | edges_part(R, C, a, b, reach, ta)
    return apart
