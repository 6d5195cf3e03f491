"""Derivatives of a force F along a row J, of a tendon, an actuator or a constraint row, that changes by one coordinate.

    dg = J^T (k dl + b (J dv + dJ v) + D (J da + dJ a)) - dJ^T F

l is the length along the row, with the derivatives -k, -b and -D of the force by l, its rate and its acceleration.  J
has the entries J[first ...] at the dofs dof[first ...]; p.dJ holds dJ, by dof, and p.dg the residual's column.
"""

from featherlane.engine.prelude import *


@kernel
def add_square(p, J, dof, first, number, k, weight):
    """dg += weight J^T J_k of a sparse row J, J_k its entry at dof k.

    J has `number` entries from J[first] on, at the dofs from dof[first] on.
    weight: stiffness k by the position of dof k, damping b by its velocity, D by its acceleration.
    """
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
def clear_dJ(p, dof, first, number):
    """p.dJ <- 0 at the `number` dofs of a row, dof[first] and the following ones."""
    for e in range(first, first + number):
        p.dJ[dof[e]] = 0.0


@kernel
def add_dJ_terms(d, p, row, force, along, damping, curvature):
    """dg += J^T (along + b dJ v + D dJ a) - dJ^T F of a row, with dJ in p.dJ.

    row: (J, dof, first, number), as for `add_square`.
    force: F.   damping: b.   curvature: D.
    along: k dl, or 0 if `add_square` adds this term.
    """
    J, dof, first, number = row
    total = along
    for e in range(first, first + number):
        j = dof[e]
        total = fma(p.dJ[j], fma(damping, d.qvel[j], curvature * d.qacc[j]), total)
    for e in range(first, first + number):
        j = dof[e]
        p.dg[j] = fma(-force, p.dJ[j], fma(J[e], total, p.dg[j]))
