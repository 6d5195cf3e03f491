"""Rows of contacts in the LCP: a normal that can only push, and friction bounded by it.

    normal      J v' >= c,  x >= 0;   c = min(max_vel, erp / h (depth - min_depth)+ + belt_n), or depth / h + belt_n < 0
                if it bounces, with s = belt_n - J v above the least speed:  c >= restitution s + belt_n
    friction    J v' = belt,  |x| <= mu x_normal, each direction alone (a pyramid); or |x| <= mu [N]
    turns       about the normal, then about both tangents: omega = 0, |x| <= rho x_normal

The CFM of sliding friction is its slip; without a slip, it is the model's.

J is the velocity of body 2 relative to body 1 at the contact point, along normal and tangents.  The depth is measured
from includemargin.  A contact has rows if it touches, see contact_reduction.py; within the tolerance for touching, its
depth is negative, and the gap may at most close within the step.
In all kernels: start, n: the dofs of a row are lcp.col[start .. start + n - 1], its columns.  present: mask of worlds
that have the row.  dual.mark: which body a dof moves, FIRST, SECOND or BOTH.  primal.search: J by dof, which
`append_jacobian_row` reads.
Source: ODE manual, sec. "Contact"; its restitution is not limited by max_vel.  D. Stewart and J. Trinkle, "An implicit
    time-stepping scheme for rigid body dynamics with inelastic collisions and Coulomb friction" (1996), for the gap.
"""

from featherlane.prelude import *
from featherlane.constraint.contact_inertia import contact_inertia
from featherlane.constraint.impedance import impedance, inverse_regularisation
from featherlane.constraint.surface import contact_arm
from featherlane.solver.lcp.rows.contact_parameters import coefficient, set_contact_parameters
from featherlane.solver.lcp.rows.contact_reduction import choose_contacts
from featherlane.solver.lcp.rows.rows import (
    BOTH,
    FIRST,
    INFINITE,
    NO_ROW,
    SECOND,
    append_jacobian_row,
    clear_column_marks,
    has_capacity,
    open_columns,
    pair_columns,
    report_full_rows,
    set_friction,
    set_row,
)
from featherlane.solver.lcp.rows.softness import by_reference


@kernel
def fill_row(m, d, k, c, start, n, present):
    """Computes J of contact k in direction c: along normal and tangents (c < 3), then about them.

    Entry i is u . (v + w x r) along the unit vector u, or u . w about it, with the sign - for body 1 and + for body 2.
    Writes: primal.search.
    """
    u = d.con_frame[k].rows[c % 3]
    first, second = contact_arm(m, d, k, side=0), contact_arm(m, d, k, side=1)
    for p in range(start, start + n):
        i, x = d.lcp.col[p], 0.0
        mark, w = d.dual.mark[i], d.cdof[i].angular
        if mark != BOTH:  # a dof that moves both bodies alike has J = 0
            if c < 3:
                w = d.cdof[i].linear + cross(w, first if mark == FIRST else second)
            x = dot(u, w) if mark == SECOND else -dot(u, w)
        d.primal.search[i] = where(present, x, 0.0)


@kernel
def contact_softness(m, d, k):
    """Returns (erp, cfm) of the normal row."""
    c = d.contact[k]
    E, C = c.erp, c.cfm
    if m.opt_softness == BY_SOLREF:
        r, solimp = c.dist - c.includemargin, c.solimp
        D = inverse_regularisation(impedance(solimp, r), contact_inertia(m, d, k, condim=1, mu2=1.0))
        E, C = by_reference(m, c.solref, solimp, r, 1.0 / D)
    return E, C


@kernel
def normal_velocity(m, d, k, erp, v):
    """Returns c of the normal row, the target separation velocity of contact k; v: its velocity J v now."""
    contact = d.contact[k]
    depth, push = contact.includemargin - contact.dist, contact.belt[0]
    c = (erp / timestep(m)) * fmax(depth - m.opt_contact_min_depth[0], 0.0) + push
    c = where(depth < 0.0, depth / timestep(m) + push, c)
    c = fmin(c, m.opt_contact_max_vel[0])
    e, s = contact.restitution, push - v  # s: approach speed
    bounces = (e > 0.0) & (s > contact.restitution_vel)
    return where(bounces, fmax(c, e * s + push), c)


@kernel
def append_friction(m, d, k, start, n, present, normal, spin):
    """Appends the rows of friction of contact k after its normal row.

    normal: number of the normal row; spin: target angular velocity about the normal, of `set_contact_parameters`.
    """
    contact = d.contact[k]
    for c in range(1, contact.dim):
        fill_row(m, d, k, c, start, n, present)  # writes J to primal.search
        row = append_jacobian_row(m, d, start, n)
        goal, soft, force = 0.0, m.opt_cfm[0], 0.0
        if c < 3:
            slip = contact.compliance[c - 1]
            goal, soft, force = contact.belt[c], where(slip > 0.0, slip, soft), contact.frictionforce
        elif c == 3:
            goal = spin
        set_row(m, d, row, present, goal, soft, (0.0, 0.0))
        set_friction(d, row.r, normal, present, coefficient(contact.friction[c - 1]), force)


@kernel
def append_contact(m, d, k, start, n, present):
    """Appends all rows of contact k."""
    spin = set_contact_parameters(m, d, k)
    E, C = contact_softness(m, d, k)
    fill_row(m, d, k, 0, start, n, present)  # writes J of the normal to primal.search
    row = append_jacobian_row(m, d, start, n)
    set_row(m, d, row, present, normal_velocity(m, d, k, E, row.v), C, (0.0, INFINITE))
    d.con_lcprow[k] = row.r
    append_friction(m, d, k, start, n, present, row.r, spin)


@kernel
def append_contact_rows(m, d):
    """Appends the rows of all contacts; con_D > 0 if a contact has rows."""
    choose_contacts(m, d)
    for k in range(d.ncon_slot[0]):
        c = d.contact[k]
        c.lcprow = NO_ROW
        acts = c.D > 0.0
        if any_(acts):
            n, start = 0, open_columns(d)
            if has_capacity(m, d, c.dim):
                n = pair_columns(m, d, c.carrier[0], c.carrier[1], start)
            else:
                report_full_rows(d)
            if n > 0:  # else there is no space, or no dof moves the bodies
                append_contact(m, d, k, start, n, acts)
                clear_column_marks(d, start, n)
            else:
                c.D = 0.0
