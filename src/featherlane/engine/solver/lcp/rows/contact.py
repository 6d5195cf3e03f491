"""Rows of contacts in the LCP: a normal that can only push, and friction bounded by it.

    normal      J v' >= c,  x >= 0;   c = min(max_vel, erp / h max(depth - min_depth, 0) + belt_n) if depth >= 0,
                c = min(max_vel, depth / h + belt_n) if depth < 0
                if it bounces, with s = belt_n - J v above the least speed, c is at least restitution s + belt_n
    friction    J v' = belt,  |x| <= mu x_normal, each direction alone (a pyramid); or |x| <= mu [N]
    turns       about the normal, then about both tangents: omega = 0, |x| <= rho x_normal

The CFM of sliding friction is its slip; without a slip, it is the model's.

J is the velocity of body 2 relative to body 1 at the contact point, along normal and tangents.  The depth is measured
from includemargin.  A contact has rows if it touches, see contact_reduction.py; within the tolerance for touching, its
depth is negative, and the gap may at most close within the step.
Symbols: k: a contact;  c: its row: 0 normal, 1 and 2 sliding, 3 turning about the normal, 4 and 5 about tangents;
    start, n: its columns lcp.col[start], ..., the dofs of its bodies (rows.py);  present: mask of worlds with it;
    dual.mark of a dof: the body that it moves, FIRST, SECOND, or BOTH alike;  primal.search: J of the next row, by dof;
    `contact_inertia`: estimate of the normal row's J M^-1 J^T;  `impedance`: d of solimp;  `inverse_regularisation`:
    D = 1 / R with R = (1 - d) / d J M^-1 J^T;  `contact_arm`: contact point from the com of a body's tree;
    INFINITE: no bound;  row: a `NewRow`, with its number row.r and row.v = J v;  con_lcprow[k]: number of the normal
    row, or NO_ROW;  con_erp, con_cfm, con_belt, con_compliance, con_frictionforce: parameters of contact k
    (contact_parameters.py).
    `list_pair_columns`: lists the dofs that move the two bodies, from lcp.col[start] on, sets dual.mark, returns n;
    `append_jacobian_row`: the next row of the LCP, from primal.search;
    `set_row`: its right-hand side and bounds;  `set_friction`: makes it a friction row;
    con_carrier: the two bodies of a contact;  con_dim: its number of rows, 1 to 6;
    `mark_contacts_with_rows` sets con_D > 0 in worlds in which a contact has rows;  `set_contact_parameters` sets the
    parameters of contact k, and returns the target angular velocity about its normal [rad/s];
    `friction_without_minimum`: mu, or 0 if it is the least value that mixing gives.
Source: ODE manual, sec. "Contact"; its restitution is not limited by max_vel.  D. Stewart and J. Trinkle, "An implicit
    time-stepping scheme for rigid body dynamics with inelastic collisions and Coulomb friction" (1996), for the gap.
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.chains import BOTH, FIRST, SECOND
from featherlane.engine.constraint.contact_inertia import contact_inertia
from featherlane.engine.constraint.impedance import impedance, inverse_regularisation
from featherlane.engine.constraint.surface import contact_arm
from featherlane.engine.solver.lcp.rows.contact_parameters import friction_without_minimum, set_contact_parameters
from featherlane.engine.solver.lcp.rows.contact_reduction import mark_contacts_with_rows
from featherlane.engine.solver.lcp.rows.rows import (
    INFINITE,
    NO_ROW,
    append_jacobian_row,
    clear_column_marks,
    first_free_column,
    list_pair_columns,
    reserve_rows,
    set_friction,
    set_row,
)
from featherlane.engine.solver.lcp.rows.softness import softness_of_reference


@kernel
def fill_contact_row(m, d, k, c, start, n, present):
    """Sets d.primal.search = J of row c of contact k, at n columns from `start` on; 0 in worlds without the contact.

    J v is the velocity of body 2 relative to body 1: for rows 0 to 2 linear, along normal and tangents, for rows 3 to 5
    angular, about them.   Reads: d.dual.mark, the bodies that a dof moves.
    """
    axis = d.con_frame[k].rows[c % 3]
    arm_1, arm_2 = contact_arm(m, d, k, side=0), contact_arm(m, d, k, side=1)
    for column in range(start, start + n):
        i = d.lcp.col[column]
        J_i = 0.0  # of a dof that moves both bodies alike
        mark, velocity = d.dual.mark[i], d.cdof[i].angular  # rows 3 to 5: the angular velocity w
        if mark != BOTH:
            if c < 3:
                # rows 0 to 2: the velocity of the contact point, v + w x arm
                velocity = d.cdof[i].linear + cross(velocity, arm_1 if mark == FIRST else arm_2)
            J_i = dot(axis, velocity) if mark == SECOND else -dot(axis, velocity)
        d.primal.search[i] = where(present, J_i, 0.0)


@kernel
def contact_softness(m, d, k):
    """Returns (erp, cfm) of the normal row of contact k: con_erp and con_cfm, or by solref, solimp and R = 1 / D."""
    c = d.contact[k]
    erp, cfm = c.erp, c.cfm
    if m.opt_softness == BY_SOLREF:
        position = c.dist - c.includemargin
        solimp = c.solimp
        solimp_d = impedance(solimp, position)
        # condim=1: J M^-1 J^T of the normal row alone; mu2, for edges of pyramids, is not used then
        D = inverse_regularisation(solimp_d, contact_inertia(m, d, k, condim=1, mu2=1.0))
        erp, cfm = softness_of_reference(m, c.solref, solimp, position, 1.0 / D)
    return erp, cfm


@kernel
def normal_velocity(m, d, k, erp, v):
    """Returns the target normal velocity of contact k [m/s], c in the formulas above; v: its present one, J v."""
    contact = d.contact[k]
    depth = contact.includemargin - contact.dist
    belt = contact.belt[0]  # surface velocity along the normal
    # depth >= 0: the error that erp removes; depth < 0: the gap may close within the step
    target = (erp / timestep(m)) * fmax(depth - m.opt_contact_min_depth[0], 0.0) + belt
    target = where(depth < 0.0, depth / timestep(m) + belt, target)
    target = fmin(target, m.opt_contact_max_vel[0])
    restitution = contact.restitution
    approach = belt - v
    bounces = (restitution > 0.0) & (approach > contact.restitution_vel)
    return where(bounces, fmax(target, restitution * approach + belt), target)


@kernel
def append_friction(m, d, k, start, n, present, normal, spin):
    """Appends the friction rows of contact k behind its normal row, of number `normal`.

    spin: target angular velocity about the normal, from `set_contact_parameters` [rad/s].
    """
    contact = d.contact[k]
    for c in range(1, contact.dim):
        fill_contact_row(m, d, k, c, start, n, present)  # writes J to d.primal.search
        row = append_jacobian_row(m, d, start, n)
        target, cfm = 0.0, m.opt_cfm[0]  # of turning rows
        is_force = 0.0  # 1: mu is a force [N]
        if c < 3:
            # sliding: the target is the belt's velocity, a slip is the CFM, and friction may be a force
            slip = contact.compliance[c - 1]
            target = contact.belt[c]
            cfm = where(slip > 0.0, slip, cfm)
            is_force = contact.frictionforce
        elif c == 3:
            target = spin
        set_row(m, d, row, present, c=target, cfm=cfm, bounds=(0.0, 0.0))  # `set_friction` sets the bounds
        set_friction(d, row.r, normal, present, friction_without_minimum(contact.friction[c - 1]), is_force)


@kernel
def append_contact(m, d, k, start, n, present):
    """Appends the normal row and the friction rows of contact k; sets con_lcprow and the contact's parameters.

    start, n: first column and number of columns of the rows; present: mask of worlds with the contact.
    """
    spin = set_contact_parameters(m, d, k)  # target of the row that turns about the normal [rad/s]
    erp, cfm = contact_softness(m, d, k)
    fill_contact_row(m, d, k, c=0, start=start, n=n, present=present)  # the normal: writes J to d.primal.search
    row = append_jacobian_row(m, d, start, n)
    set_row(m, d, row, present, c=normal_velocity(m, d, k, erp, row.v), cfm=cfm, bounds=(0.0, INFINITE))
    d.con_lcprow[k] = row.r
    append_friction(m, d, k, start, n, present, normal=row.r, spin=spin)


@kernel
def append_contact_rows(m, d):
    """Appends the rows of all contacts; afterwards con_D > 0 only if a contact has rows."""
    mark_contacts_with_rows(m, d)  # writes con_D: > 0 in worlds in which the contact acts
    for k in range(d.ncon_slot[0]):
        c = d.contact[k]
        c.lcprow = NO_ROW
        acts = c.D > 0.0
        if any_(acts):
            n = 0  # stays 0 if no dof moves its bodies (carrier), or if the rows do not fit
            start = first_free_column(d)
            if reserve_rows(m, d, c.dim):
                n = list_pair_columns(m, d, c.carrier[0], c.carrier[1], start)
            if n > 0:
                append_contact(m, d, k, start, n, acts)
                clear_column_marks(d, start, n)
            else:
                c.D = 0.0
