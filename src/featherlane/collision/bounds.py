"""Bounding boxes: about geoms and bodies, all worlds at once, and whether two of them overlap.

A box is kept as its lower and its upper corner in world axes, wider by the geom's margin and gap: two geoms can make a
contact only where their boxes overlap.
"""

from __future__ import annotations

from featherlane.lanes import fabs, fma, fmax, fmin, kernel, real
from featherlane.spatial.vector import load3, load9, mat_mul_vec

EMPTY = 1e30  # bounds of a box that holds nothing: from EMPTY to -EMPTY


@kernel
def geom_box(m, d, g):
    """Box about geom g: about its own bounding box, turned, or about its bounding sphere where that is tighter."""
    R, x = load9(d.geom_xmat, 9 * g), load3(d.geom_xpos, 3 * g)
    c, s = mat_mul_vec(R, load3(m.geom_aabb, 6 * g)), load3(m.geom_aabb, 6 * g + 3)
    r, wider = m.geom_rbound[g], m.geom_margin[g] + m.geom_gap[g]
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
def crowd_boxes(m, d):
    """crowd_box: the boxes about the geoms of the crowd."""
    for i in range(m.ncrowd):
        box = geom_box(m, d, m.crowd_geom[i])
        for k in range(6):
            d.crowd_box[6 * i + k] = box[k]


@kernel
def body_boxes(m, d):
    """body_box: the boxes about all bounded geoms of a body that may collide."""
    empty = real(d, EMPTY)
    for b in range(m.nbody):
        for k in range(3):
            d.body_box[6 * b + k], d.body_box[6 * b + 3 + k] = empty, -empty
    for i in range(m.ncollide):
        g = m.collide_geom[i]
        box, b = geom_box(m, d, g), 6 * m.geom_bodyid[g]
        for k in range(3):
            d.body_box[b + k] = fmin(box[k], d.body_box[b + k])
            d.body_box[b + 3 + k] = fmax(box[3 + k], d.body_box[b + 3 + k])


@kernel
def boxes_overlap(a, i, b, j):
    """Do the boxes at a[i] and b[j] overlap?  Bad numbers do not."""
    return (
        (a[i] <= b[j + 3])
        & (b[j] <= a[i + 3])
        & (a[i + 1] <= b[j + 4])
        & (b[j + 1] <= a[i + 4])
        & (a[i + 2] <= b[j + 5])
        & (b[j + 2] <= a[i + 5])
    )
