"""Derivatives of a force F along a row J, of a tendon, an actuator or a constraint row, that changes by one coordinate.

    dg = J^T (k dl + b (J dv + dJ v) + D (J da + dJ a)) - dJ^T F

l is the length along the row, with the derivatives -k, -b and -D of the force by l, its rate and its acceleration.  J
has the entries J[first ...] at the dofs dof[first ...]; p.ten_bend holds dJ, by dof, and p.dg the residual's column.
"""

from featherlane.engine.prelude import *


@kernel
def add_square(p, J, dof, first, number, k, weight):
    """dg += weight J^T J_k of a sparse row J, by the position (weight k), velocity (b) or acceleration (D) of dof k."""
    for e in range(first, first + number):
        if dof[e] == k:
            weighted = weight * J[e]
            for n in range(first, first + number):
                p.dg[dof[n]] = fma(J[n], weighted, p.dg[dof[n]])


@kernel
def has_dof(dof, first, number, k):
    """Returns 1 if the sparse row of dofs dof[first ...] contains dof k, else 0."""
    found = 0
    for e in range(first, first + number):
        found = 1 if dof[e] == k else found
    return found


@kernel
def clear_bend(p, dof, first, number):
    """ten_bend <- 0 on the dofs of a row."""
    for e in range(first, first + number):
        p.ten_bend[dof[e]] = 0.0


@kernel
def add_bend(d, p, row, force, along, friction, curvature):
    """dg += J^T (along + b dJ v + D dJ a) - dJ^T F of a row, with dJ in ten_bend.

    row: (entries of J, their dofs, first entry, number of entries); force: F; along: k dl, unless `add_square` adds it;
    friction: b; curvature: D.
    """
    (J, dof, first, number), total = row, along
    for e in range(first, first + number):
        j = dof[e]
        total = fma(p.ten_bend[j], fma(friction, d.qvel[j], curvature * d.qacc[j]), total)
    for e in range(first, first + number):
        j = dof[e]
        p.dg[j] = fma(-force, p.ten_bend[j], fma(J[e], total, p.dg[j]))
