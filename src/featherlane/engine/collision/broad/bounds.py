"""Computes bounding boxes of geoms and bodies and tests whether they overlap, in all worlds at once.

An axis-aligned box is stored as its lower and upper corner, enlarged by the geom's reach: its margin and gap.  A
contact of two geoms requires that their axis-aligned boxes overlap and that their oriented boxes overlap.
collide_geom lists the geoms that may collide, crowd_geom those in the bounding volume tree (box_tree.py).
geom_aabb[g] is the bounding box of geom g in its frame: centre and half sides; geom_rbound[g] is the radius of its
bounding sphere.
geom_reach is a geom's margin and gap, and with the LCP model its touching distance; is_present is the mask of worlds
that have the geom; step_motion returns (displacement, rotation vector, travel) of a geom in the step; sweeping(m) is
whether contacts within the step are detected (`speculative`).
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.mixing import geom_reach, is_present
from featherlane.engine.collision.motion import step_motion, sweeping

EMPTY = 1e30  # an empty box extends from EMPTY to -EMPTY
SLACK = 1e-5  # added to |cosines| and sizes, so that rounding does not separate touching boxes
ROUNDING, ROUNDING32 = 1e-14, 1e-6  # relative to a coordinate, with a safety factor


@kernel
def geom_box(m, d, g, margin):
    """Returns the bounds of geom g in world axes, enlarged by its reach and by `margin` [m].

    They are the intersection of the bounds of its bounding box, half_i = sum over k of |R_ik| s_k, and of its bounding
    sphere.
    """
    R, x = d.geom_xmat[g], d.geom_xpos[g]
    centre = R @ m.geom_aabb[g].centre
    size = m.geom_aabb[g].half
    radius = m.geom_rbound[g]
    rounding = ROUNDING32 if single_precision(d) else ROUNDING
    # added: reach + margin + rounding (|x| + |y| + |z|) + SLACK radius.  Rounding must not separate touching surfaces:
    # the pair would then be found only if it is near in another world of the tile
    added = fma(SLACK, radius, fma(rounding, fabs(x[0]) + fabs(x[1]) + fabs(x[2]), geom_reach(m, d, g) + margin))
    half_x = fma(fabs(R[0]), size[0], fma(fabs(R[1]), size[1], fabs(R[2]) * size[2]))
    half_y = fma(fabs(R[3]), size[0], fma(fabs(R[4]), size[1], fabs(R[5]) * size[2]))
    half_z = fma(fabs(R[6]), size[0], fma(fabs(R[7]), size[1], fabs(R[8]) * size[2]))
    half, margins = Vec3(half_x, half_y, half_z), Vec3(added, added, added)
    return Bounds(join(x + fmax(centre - half, -radius) - margins, x + fmin(centre + half, radius) + margins))


@kernel
def swept_box(m, d, g):
    """Returns the bounds of geom g during the whole step: those at the start of the step, extended by the displacement.

    They are enlarged by the angle of rotation times the radius of the bounding sphere: no point moves more by rotation.

    Source: MuJoCo 4.0.1, chapter "Speculative contacts", sec. "Swept broadphase AABBs".
    """
    displacement, rotation, _ = step_motion(m, d, g)
    box = geom_box(m, d, g, norm3(rotation) * m.geom_rbound[g])
    return Bounds(join(box.low + fmin(displacement, 0.0), box.high + fmax(displacement, 0.0)))


@kernel
def detection_box(m, d, g, margin):
    """Returns the bounds of geom g, with `speculative` those of its whole step; empty in worlds without the geom.

    margin: enlarges the bounds [m]; not used with `speculative`.
    """
    box = swept_box(m, d, g) if sweeping(m) else geom_box(m, d, g, margin)
    # only a model with variants has worlds without a geom
    if m.nvariant > 0:
        box = where(is_present(m, g), box, empty_bounds())
    return box


@kernel
def store_body_boxes(m, d, wide):
    """Writes near.body_box: for each body, the bounds of its geoms that may collide.

    wide: 1 enlarges the bounds of a geom by its possible travel, neighbours.travel.
    """
    margin = 0.0
    for b in range(m.nbody):
        d.near.body_box[b] = empty_bounds()
    for i in range(m.ncollide):
        g = m.collide_geom[i]
        if wide:
            margin = d.neighbours.travel[g]
        b = m.geom_bodyid[g]
        d.near.body_box[b] = union_of(detection_box(m, d, g, margin), d.near.body_box[b])


@kernel
def boxes_overlap(a, b):
    """Returns whether two bounds overlap; false for NaN."""
    return (a.lx <= b.hx) & (b.lx <= a.hx) & (a.ly <= b.hy) & (b.ly <= a.hy) & (a.lz <= b.hz) & (b.lz <= a.hz)


@kernel
def union_of(a, b):
    """Returns the bounds of both a and b."""
    return Bounds(join(fmin(a.low, b.low), fmax(a.high, b.high)))


@kernel
def empty_bounds():
    """Returns the bounds of an empty set: no other bounds overlap them, and a union with them changes nothing."""
    return Bounds(EMPTY, EMPTY, EMPTY, -EMPTY, -EMPTY, -EMPTY)


@kernel
def box_centre(m, d, g):
    """Returns the centre of the geom's bounding box, in world axes."""
    return d.geom_xpos[g] + d.geom_xmat[g] @ m.geom_aabb[g].centre


@kernel
def face_axes_separate(C, a, b, reach, t):
    """Returns the mask where a face axis of the first box separates the boxes: |t_i| > a_i + sum_j C_ij b_j + reach.

    C: C[3 i + j] is |cosine| between axis i of the first box and axis j of the second; a, b: half sides [m].
    reach: distance up to which the boxes count as touching [m]; t: offset of the centres on the first box's axes [m].
    """
    return (
        (fabs(t[0]) > fma(C[0], b[0], fma(C[1], b[1], fma(C[2], b[2], a[0] + reach))))
        | (fabs(t[1]) > fma(C[3], b[0], fma(C[4], b[1], fma(C[5], b[2], a[1] + reach))))
        | (fabs(t[2]) > fma(C[6], b[0], fma(C[7], b[1], fma(C[8], b[2], a[2] + reach))))
    )


@kernel
def edge_axes_separate(R, C, a, b, reach, t):
    """Returns the mask of worlds where a cross product of edges separates the boxes: axis i of box 1 x axis j of box 2.

    |t_i2 R_i1j - t_i1 R_i2j| > a_i1 C_i2j + a_i2 C_i1j + b_j1 C_ij2 + b_j2 C_ij1 + reach, with i1, i2 the axes after i
    and j1, j2 those after j.
    R: cosines between the axes, R[3 i + j] is R_ij; C = |R|; a, b: half sides; t: offset of the centres on the first
    box's axes.
    The length of a cross product is below 1 if the edges are not orthogonal.  Since reach is not scaled by this length,
    such an axis separates only boxes that are farther apart than reach.
    """
    apart = reach < 0.0  # false: reach is not negative
    # unrolled, because LLVM does not unroll these loops, and would then load each entry of R and C by a variable index
    for i in unrolled(range(3)):
        i1, i2 = (i + 1) % 3, (i + 2) % 3
        for j in unrolled(range(3)):
            j1, j2 = (j + 1) % 3, (j + 2) % 3
            offset = fabs(fma(t[i2], R[3 * i1 + j], -(t[i1] * R[3 * i2 + j])))
            extent_a = fma(a[i1], C[3 * i2 + j], a[i2] * C[3 * i1 + j])
            extent_b = fma(b[j1], C[3 * i + j2], b[j2] * C[3 * i + j1])
            apart = apart | (offset > extent_a + extent_b + reach)
    return apart


@kernel
def boxes_separate(m, d, g, h, reach, near):
    """Returns the mask where the oriented bounding boxes of geoms g, h are farther apart than reach [m].

    Most separated boxes are separated along a face axis of the first box; further axes are tested only if boxes are not
    yet separated in a world of `near`.
    A, B: orientations; a, b: half sides; t: offset of the centres; R = A^T B, C = |R|.
    Source: S. Gottschalk et al., "OBBTree" (1996): fifteen axes, the face normals and the cross products of edges.
    """
    A, B = d.geom_xmat[g], d.geom_xmat[h]
    a, b = m.geom_aabb[g].half, m.geom_aabb[h].half
    t = box_centre(m, d, h) - box_centre(m, d, g)
    t_in_a = A.T @ t
    R = A.T @ B
    C = Mat3(fabs(R[i]) + SLACK for i in range(9))
    apart = face_axes_separate(C, a, b, reach, t_in_a)
    if any_(near & not_(apart)):
        apart = apart | face_axes_separate(C.T, b, a, reach, B.T @ t)
        if any_(near & not_(apart)):
            apart = apart | edge_axes_separate(R, C, a, b, reach, t_in_a)
    return apart
