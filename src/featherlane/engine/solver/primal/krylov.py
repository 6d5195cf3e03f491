"""The direction of Newton's method with Coulomb's law, by a Krylov method preconditioned with H.

    (H - N) p = -r

H is the derivative of the residual r with all friction bounds fixed; N holds the change of the bounds of slipping
contacts with the normal acceleration, see rows/coulomb.py.  A product with N is one pass over the bodies and one back.
Preconditioned with H, the equation is (1 - H^-1 N) x = krylov.newton, with x = p and krylov.newton = -H^-1 r.
Layout: krylov.p and krylov.q have VECTORS vectors of nv values, vector j from nv j on: directions of x and their images
(1 - H^-1 N) p_j, orthogonal to each other.  krylov.r is the residual of this equation.
con_basis[k] has normal and tangents of contact k, con_basis[ANGULAR, k] its rotation axes; con_y[k] and con_y[ANGULAR,
k] are y = J a - aref along them, y_i along the friction directions (tangents and rotation axes), T = |(y_1, y_2, ..)|
and D = 1 / R of the normal.  con_wrench: forces on bodies, con_motion: their motions.
`body_forces_to_dofs` adds the joint-space forces of con_wrench to a vector.
Source: Eisenstat, Elman and Schultz, Variational iterative methods for nonsymmetric systems of linear equations
    (1983), generalized conjugate residuals (GCR).
"""

from featherlane.engine.prelude import *
from featherlane.engine.solver.hessian.equation import substitute
from featherlane.engine.solver.rows.contacts import add_basis_force, add_basis_moments
from featherlane.engine.solver.rows.coulomb import slip_rate
from featherlane.engine.solver.rows.rows import (
    ANGULAR,
    body_forces_to_dofs,
    clear_body_forces,
    compute_body_motions,
    relative_velocity,
)
from featherlane.engine.solver.vectors import clear_vector, copy_vector, dot_product

VECTORS = 6  # largest number of Krylov vectors, as declared


@kernel
def mark_slipping(d, live):
    """Stores D / T of slipping contacts in krylov.rate, and 0 of all others; returns a mask of `live` worlds with slip.

    In worlds that are not `live`, all rates are 0.
    """
    found = false_mask(d)
    for k in range(d.ncon_slot[0]):
        if d.con_dim[k] > 1:
            slips, rate = slip_rate(d, k)
            found = found | (slips & live)
            d.krylov.rate[k] = where(live, rate, 0.0)
    return found


@kernel
def multiply_by_bound_change(m, d, x, out):
    """Computes out = H^-1 N x after `mark_slipping`.

    N x: forces (D / T) (n . u) y_i along the friction directions i of each slipping contact, with u the relative
    velocity at the contact by the joint velocities x.
    Scratch: con_motion, con_wrench, primal.search, primal.Mv.
    """
    compute_body_motions(m, d, x, d.con_motion)
    clear_body_forces(m, d)  # con_wrench, to which the contacts add their forces
    clear_vector(m, out)
    for k in range(d.ncon_slot[0]):
        if d.con_dim[k] > 1 and any_(d.krylov.rate[k] > 0.0):
            # s = (D / T) (n . u): the force along friction direction i is s y_i, along n it is 0
            s = d.krylov.rate[k] * dot(d.con_basis[k].rows[0], relative_velocity(d, k, d.con_motion))
            add_basis_force(d, k, (0.0, s * d.primal.con_y[k][1], s * d.primal.con_y[k][2]))
            if d.con_dim[k] > 3:
                add_basis_moments(d, k, s * d.primal.con_y[ANGULAR, k])
    body_forces_to_dofs(m, d, out)  # adds N x to out, which is 0 so far
    substitute(m, d, out)  # out <- H^-1 out, by primal.search and Mv


@kernel
def add_krylov_terms(m, d, todo, enough):
    """Adds up to VECTORS terms to krylov.x by GCR in the worlds `todo`, until r . r of krylov.r is at most `enough`.

    p_j = r minus a multiple of each earlier direction, such that its image q_j is orthogonal to the earlier images.
    a = q_j.r / q_j.q_j;  x += a p_j;  r -= a q_j.
    Returns the mask of worlds in which r . r is still larger.
    """
    for j in range(VECTORS):
        if not any_(todo):
            break
        start_j = m.nv * j  # first value of vector j in krylov.p, krylov.q
        # p_j = r, and its image q_j = r - H^-1 N r
        multiply_by_bound_change(m, d, d.krylov.r, d.krylov.image)
        for i in range(m.nv):
            p = d.krylov.r[i]
            q = d.krylov.r[i] - d.krylov.image[i]
            d.krylov.p[start_j + i], d.krylov.q[start_j + i] = p, q
        # q_j -= (q_e . q_j / q_e . q_e) q_e makes it orthogonal to each earlier q_e; the same for p_j
        for e in range(j):
            qe_qj, qe_qe = zeros(2)
            for i in range(m.nv):
                q = d.krylov.q[m.nv * e + i]
                qe_qj = fma(q, d.krylov.q[start_j + i], qe_qj)
                qe_qe = fma(q, q, qe_qe)
            factor = qe_qj / where(qe_qe > 0.0, qe_qe, 1.0)  # q_e is 0 in worlds without slip
            for i in range(m.nv):
                d.krylov.p[start_j + i] = fma(-factor, d.krylov.p[m.nv * e + i], d.krylov.p[start_j + i])
                d.krylov.q[start_j + i] = fma(-factor, d.krylov.q[m.nv * e + i], d.krylov.q[start_j + i])
        # step a along p_j
        qj_r, qj_qj = zeros(2)
        for i in range(m.nv):
            q = d.krylov.q[start_j + i]
            qj_r = fma(q, d.krylov.r[i], qj_r)
            qj_qj = fma(q, q, qj_qj)
        a = where(todo, qj_r / where(qj_qj > 0.0, qj_qj, 1.0), 0.0)  # q_j is 0 in worlds without slip
        for i in range(m.nv):
            d.krylov.x[i] = where(todo, fma(a, d.krylov.p[start_j + i], d.krylov.x[i]), d.krylov.x[i])
            d.krylov.r[i] = where(todo, fma(-a, d.krylov.q[start_j + i], d.krylov.r[i]), d.krylov.r[i])
        todo = todo & (dot_product(m, d.krylov.r, d.krylov.r) > enough)
    return todo


@kernel
def correct_direction(m, d, live, accuracy, cycles):
    """Solves (1 - H^-1 N) x = krylov.newton for krylov.x by GCR, from x = krylov.newton, in `live` worlds.

    `mark_slipping` has stored the rates of N.

    Args:
        live: mask of worlds.
        accuracy: the method stops if the residual |r| is at most this part of |krylov.newton|.
        cycles: restarts of GCR, of VECTORS products each.

    Returns the mask of worlds in which the residual is still larger.
    """
    copy_vector(m, d.krylov.newton, d.krylov.x)
    # residual of the initial x: r = newton - (1 - H^-1 N) newton = H^-1 N newton
    multiply_by_bound_change(m, d, d.krylov.x, d.krylov.r)  # writes krylov.r
    enough = accuracy * accuracy * dot_product(m, d.krylov.newton, d.krylov.newton)
    todo = live & (dot_product(m, d.krylov.r, d.krylov.r) > enough)
    for _ in range(cycles):
        todo = add_krylov_terms(m, d, todo, enough)
    return todo
