"""Forces along the normals of contacts that are no constraint: actuators that act through the contacts of a body, and
the pull of contacts that stick.

Such an actuator's force is shared by all contacts of its body, those in the gap included, and pulls along their
normals.  A contact that sticks pulls with a force of its own, which its row holds (constraint/row.py).  Both depend on
the contacts, so a model that has one finds them before its forces (simulation/step/forward.py).
Source: MuJoCo, transmission body; documentation of the actuator `adhesion`; chapter Computation, "Adhesion".
"""

from featherlane.prelude import *
from featherlane.dynamics.body.com import point_wrench


@kernel
def joins_moving(m, b1, b2):
    """Are the two bodies no rigid whole, and does one of them move?"""
    return m.body_weldid[b1] != m.body_weldid[b2] and (m.body_lastdof[b1] >= 0 or m.body_lastdof[b2] >= 0)


@kernel
def _add_normal(m, d, x, a, b, k, force, mask):
    """x[a + i] += J^T of a force at the contact of slot k on body b, in worlds of the mask; i is a dof."""
    i = m.body_lastdof[b]
    if i >= 0:
        wrench = point_wrench(d, force, zeros(d, 3), load3(d.con_pos, 3 * k), m.body_rootid[b])
        while i >= 0:
            x[a + i] = where(mask, x[a + i] + dot6(load6(d.cdof, 6 * i), wrench), x[a + i])
            i = m.dof_parentid[i]


@kernel
def add_pull(m, d, x, a, k, strength, mask):
    """x[a ..] += the pull of a contact: the first body is drawn along the normal, the second against it."""
    pull = scale3(strength, load3(d.con_frame, 9 * k))
    _add_normal(m, d, x, a, d.con_carrier[2 * k], k, pull, mask)
    _add_normal(m, d, x, a, d.con_carrier[2 * k + 1], k, scale3(-1.0, pull), mask)


@kernel
def _body_transmission(m, d, i):
    """Moment of an actuator on a body: the mean pull of the body's contacts.  Its row has all dofs."""
    o, b, active = m.actuator_outadr[i], m.actuator_trnid[2 * i], d.active[0] > 0.0
    a = m.moment_rowadr[o]
    d.actuator_length[o] = zero(d)
    for e in range(a, a + m.nv):
        d.actuator_moment[e] = where(active, zero(d), d.actuator_moment[e])
    number = zero(d)
    for k in range(d.ncon_slot[0]):
        b1, b2 = d.con_carrier[2 * k], d.con_carrier[2 * k + 1]
        if (b1 == b or b2 == b) and joins_moving(m, b1, b2):
            present = d.con_present[k] > 0.0
            add_pull(m, d, d.actuator_moment, a, k, real(d, 1.0), present)
            number = number + d.con_present[k]
    part = 1.0 / where(number > 0.0, number, 1.0)
    for e in range(a, a + m.nv):
        d.actuator_moment[e] = where(active, part * d.actuator_moment[e], d.actuator_moment[e])


@stage
def contact_transmission(m, d):
    """Lengths and moments of the actuators that act through contacts, in the worlds that take part.

    The length is 0, the moment minus the mean of the normals' Jacobians over the contacts of the body.  Contacts in
    the gap count, contacts between bodies that are one rigid whole or cannot move do not.
    Source: MuJoCo mj_transmission.
    Reads:  con_* of `collision`, active.   Writes: actuator_length, actuator_moment.   Cost: O(contacts * depth).
    """
    for i in range(m.nactuator):
        if m.actuator_trntype[i] == TRN_BODY:
            _body_transmission(m, d, i)


@stage
def adhesive_pull(m, d):
    """The passive force of adhesive contacts, in the worlds that take part: each draws its two bodies together.

    Contacts in the gap pull, too.
    Source: MuJoCo 4, chapter Computation, "Adhesion".
    Reads:  con_* of `collision`, active, cdof, subtree_com.   Writes: qfrc_adhesion (nv,) [N, N m].
    Cost:   O(contacts * depth).
    """
    active = d.active[0] > 0.0
    for i in range(m.nv):
        d.qfrc_adhesion[i] = where(active, 0.0, d.qfrc_adhesion[i])
    for k in range(d.ncon_slot[0]):
        pulls = (d.con_present[k] > 0.0) & (d.con_adhesion[k] != 0.0)
        if joins_moving(m, d.con_carrier[2 * k], d.con_carrier[2 * k + 1]) and any_(pulls):
            add_pull(m, d, d.qfrc_adhesion, 0, k, d.con_adhesion[k], pulls)


@kernel
def normal_force(m, d, k):
    """Force along the normal of contact k, negative where it pulls: that of its rows less its adhesion."""
    f = d.con_force[6 * k]
    if m.flg_adhesion:
        f = f - d.con_adhesion[k]
    return f
