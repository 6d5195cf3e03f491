"""Computes forces along contact normals that are not constraint forces: of actuators that act through the contacts of
a body, and of adhesive contacts.

The force of such an actuator is shared by all contacts of its body, including those in the gap, and pulls along their
normals.  An adhesive contact pulls with a separate force, which its row stores (constraint/row.py).  Both depend on
the contacts, so a model with either one computes contacts before forces (simulation/step/forward.py).

Contact k is stored in slot k of ncon_slot, d.contact[k], which the worlds of a tile share: con_pos is its point,
`present` is 1 in worlds that have it, `carrier` are the bodies of its two geoms, the first row of `frame` is its
normal, which points from body 1 to body 2.  If the contacts of a tile do not fit into the slots, its worlds are
processed in parts; `active` is 1 in the worlds of the present part, and only their results are written.
A force at a point of a body acts on each DoF that moves the body: on body_lastdof[b] and its chain of dof_parentid to
the root, with the component dot(cdof[i], wrench).  `point_wrench` returns the wrench at the centre of mass of the tree,
to which the motion axes cdof refer.
i is the index of an actuator, or of a DoF where stated; o is the index of an actuator's output.
Source: MuJoCo, transmission body; documentation of the actuator `adhesion`; chapter Computation, "Adhesion".
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.body.com import point_wrench


@kernel
def joins_moving(m, b1, b2):
    """Returns whether the two bodies are not rigidly connected and at least one of them can move."""
    return m.body_weldid[b1] != m.body_weldid[b2] and (m.body_lastdof[b1] >= 0 or m.body_lastdof[b2] >= 0)


@kernel
def _add_contact_force(m, d, x, start, b, k, force, mask):
    """Adds J^T of a force at contact k on body b to x, in worlds of the mask.

    x[start + i] belongs to DoF i;  force: in world axes [N].
    """
    i = m.body_lastdof[b]
    if i >= 0:
        wrench = point_wrench(d, force, moment=zeros(3), point=d.con_pos[k], root=m.body_rootid[b])
        # the DoFs that move the body, from the last to the root
        while i >= 0:
            x[start + i] = where(mask, x[start + i] + dot(d.cdof[i], wrench), x[start + i])
            i = m.dof_parentid[i]


@kernel
def add_pull(m, d, x, start, k, strength, mask):
    """Adds J^T of the pull of contact k to x in worlds of the mask: each body is pulled towards the other.

    The normal, the first row of the contact's frame, points from body 1 to body 2: the force acts along it on body 1,
    and against it on body 2.
    x[start + i] belongs to DoF i;  strength: magnitude of the force [N].
    """
    c = d.contact[k]
    pull = strength * c.frame.rows[0]
    _add_contact_force(m, d, x, start, c.carrier[0], k, pull, mask)
    _add_contact_force(m, d, x, start, c.carrier[1], k, -pull, mask)


@kernel
def _store_body_transmission(m, d, i):
    """actuator_moment, actuator_length <- those of actuator i, which acts on a body, in the active worlds.

    The moment is J^T of the mean unit pull of the body's contacts: the sum of unit pulls over the number of contacts.
    Its row has all DoFs.  The length is 0.
    """
    o, b = m.actuator_outadr[i], m.actuator_trnid[i, 0]
    active = d.active[0] > 0.0
    row = m.moment_rowadr[o]
    d.actuator_length[o] = 0.0
    for e in range(row, row + m.nv):
        d.actuator_moment[e] = where(active, 0.0, d.actuator_moment[e])
    ncontact = 0.0
    for k in range(d.ncon_slot[0]):
        c = d.contact[k]
        b1, b2 = c.carrier[0], c.carrier[1]  # bodies of the two geoms
        if (b1 == b or b2 == b) and joins_moving(m, b1, b2):
            # worlds share the slots; a slot may be empty in some
            present = c.present > 0.0
            add_pull(m, d, d.actuator_moment, start=row, k=k, strength=1.0, mask=present)
            ncontact = ncontact + c.present
    inverse = 1.0 / where(ncontact > 0.0, ncontact, 1.0)
    for e in range(row, row + m.nv):
        d.actuator_moment[e] = where(active, inverse * d.actuator_moment[e], d.actuator_moment[e])


@stage
def contact_transmission(m, d):
    """Computes lengths and moments of the actuators that act through contacts, in the active worlds.

    The length is 0, the moment is J^T of the mean unit pull over the contacts of the body.  Contacts in
    the gap count; contacts between rigidly connected or immovable bodies do not.
    Source: MuJoCo mj_transmission.
    Reads:  con_* of `collision`, active.   Writes: actuator_length, actuator_moment.   Cost: O(contacts * depth).
    """
    for i in range(m.nactuator):
        if m.actuator_trntype[i] == TRN_BODY:
            _store_body_transmission(m, d, i)


@stage
def adhesive_pull(m, d):
    """qfrc_adhesion <- sum over contacts of J^T (adhesion pulling the two bodies together), in the active worlds.

    Contacts in the gap pull, too.
    Source: MuJoCo 4, chapter Computation, "Adhesion".
    Reads:  con_* of `collision`, active, cdof, subtree_com.   Writes: qfrc_adhesion (nv,) [N, N m].
    Cost:   O(contacts * depth).
    """
    active = d.active[0] > 0.0
    for i in range(m.nv):
        d.qfrc_adhesion[i] = where(active, 0.0, d.qfrc_adhesion[i])
    # worlds share the slots; a slot may be empty in some
    for k in range(d.ncon_slot[0]):
        c = d.contact[k]
        pulls = (c.present > 0.0) & (c.adhesion != 0.0)
        if joins_moving(m, c.carrier[0], c.carrier[1]) and any_(pulls):
            add_pull(m, d, d.qfrc_adhesion, start=0, k=k, strength=c.adhesion, mask=pulls)


@kernel
def normal_force(m, d, k):
    """Returns the normal force of contact k, negative if it pulls: the force of its rows minus its adhesion."""
    f = d.con_force[k].fx  # in the contact's frame, whose x axis is the normal
    if m.flg_adhesion:
        f = f - d.con_adhesion[k]
    return f


@kernel
def has_adhesion(m, d):
    """Returns the mask of worlds with a geom or pair that adheres."""
    found = false_mask(d)
    if m.flg_adhesion:
        found = has_nonzero(m.geom_adhesion, m.ngeom) | has_nonzero(m.pair_adhesion, m.npair)
    return found
