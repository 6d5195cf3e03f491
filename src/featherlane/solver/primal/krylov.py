"""The direction of Newton's method with Coulomb's law, by a Krylov method preconditioned with H.

    (H - N) p = -r

H is the derivative of the residual r with all friction bounds fixed; N holds the change of the bounds of slipping
contacts with the normal acceleration, see coulomb.py.  A product with N is one pass over the bodies and one back.
Source: Eisenstat, Elman and Schultz, Variational iterative methods for nonsymmetric systems of linear equations
    (1983), generalized conjugate residuals (GCR).
"""

from featherlane.prelude import *
from featherlane.solver.hessian.equation import substitute
from featherlane.solver.rows.contacts import push_bodies, turn_bodies
from featherlane.solver.rows.coulomb import slip_rate
from featherlane.solver.rows.rows import (
    TURN,
    body_forces_to_dofs,
    body_motion,
    clear_body_forces,
    relative_velocity,
)

VECTORS = 6  # largest number of Krylov vectors, as declared


@kernel
def mark_slipping(d, live):
    """Stores the rates of slipping contacts in krylov.rate; returns a mask of worlds with such a contact.

    Args:
        live: mask of the worlds in which contacts may slip.
    """
    found = false_mask(d)
    for k in range(d.ncon_slot[0]):
        if d.con_dim[k] > 1:
            slips, rate = slip_rate(d, k)
            found = found | (slips & live)
            d.krylov.rate[k] = where(live, rate, 0.0)
    return found


@kernel
def apply_bounds(m, d, x, out):
    """Computes out = H^-1 N x after `mark_slipping`; overwrites search and Mv."""
    body_motion(m, d, x, d.con_motion)
    clear_body_forces(m, d)
    for i in range(m.nv):
        out[i] = 0.0
    for k in range(d.ncon_slot[0]):
        if d.con_dim[k] > 1 and any_(d.krylov.rate[k] > 0.0):
            s = d.krylov.rate[k] * dot(d.con_basis[k].rows[0], relative_velocity(d, k, d.con_motion))
            push_bodies(d, k, (0.0, s * d.primal.con_y[k][1], s * d.primal.con_y[k][2]))
            if d.con_dim[k] > 3:
                turn_bodies(d, k, s * d.primal.con_y[TURN, k])
    body_forces_to_dofs(m, d, out)
    substitute(m, d, out)


@kernel
def product(m, d, x, y):
    """Returns x . y."""
    s = 0.0
    for i in range(m.nv):
        s = fma(x[i], y[i], s)
    return s


@kernel
def reduce_residuals(m, d, todo, enough):
    """Adds up to VECTORS terms to krylov.x by GCR, until r . r of krylov.r is small enough; returns what is left."""
    for j in range(VECTORS):
        if not any_(todo):
            break
        o = m.nv * j
        apply_bounds(m, d, d.krylov.r, d.krylov.image)
        for i in range(m.nv):
            d.krylov.p[o + i], d.krylov.q[o + i] = d.krylov.r[i], d.krylov.r[i] - d.krylov.image[i]
        for e in range(j):
            s, t = zeros(2)
            for i in range(m.nv):
                q = d.krylov.q[m.nv * e + i]
                s, t = fma(q, d.krylov.q[o + i], s), fma(q, q, t)
            s = s / where(t > 0.0, t, 1.0)
            for i in range(m.nv):
                d.krylov.p[o + i] = fma(-s, d.krylov.p[m.nv * e + i], d.krylov.p[o + i])
                d.krylov.q[o + i] = fma(-s, d.krylov.q[m.nv * e + i], d.krylov.q[o + i])
        s, t = zeros(2)
        for i in range(m.nv):
            q = d.krylov.q[o + i]
            s, t = fma(q, d.krylov.r[i], s), fma(q, q, t)
        a = where(todo, s / where(t > 0.0, t, 1.0), 0.0)
        for i in range(m.nv):
            d.krylov.x[i] = where(todo, fma(a, d.krylov.p[o + i], d.krylov.x[i]), d.krylov.x[i])
            d.krylov.r[i] = where(todo, fma(-a, d.krylov.q[o + i], d.krylov.r[i]), d.krylov.r[i])
        todo = todo & (product(m, d, d.krylov.r, d.krylov.r) > enough)
    return todo


@kernel
def correct_direction(m, d, live, part, cycles):
    """Solves (1 - H^-1 N) x = p for krylov.x by GCR, from x = p = krylov.newton, in the worlds of the mask.

    `mark_slipping` has stored the rates of N.

    Args:
        live: the mask.
        part: the method stops at this part of |p|.
        cycles: of VECTORS products each.

    Returns the mask of worlds with a larger residual.
    """
    for i in range(m.nv):
        d.krylov.x[i] = d.krylov.newton[i]
    apply_bounds(m, d, d.krylov.x, d.krylov.r)
    enough = part * part * product(m, d, d.krylov.newton, d.krylov.newton)
    todo = live & (product(m, d, d.krylov.r, d.krylov.r) > enough)
    for _ in range(cycles):
        todo = reduce_residuals(m, d, todo, enough)
    return todo
