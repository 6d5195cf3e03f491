"""Stores user-defined contacts as slots, before the detected contacts or instead of them.

Each world stores its contacts in its state as reals: the i-th contacts of two worlds may join different bodies.  A
slot's bodies are ints that all worlds of a tile share.  Worlds whose i-th contacts agree in bodies, geoms and
dimension share a slot; the other worlds get further slots.  near.given_left is 1 in worlds whose i-th contact has no
slot yet.  The contacts of one world keep their order.  `lane` is the index of a world in the tile.
near.detects is 1 in worlds that also detect contacts.  m.flg_adhesion is 1 for a model with adhesive geoms or pairs.

Imported kernels:

    append(d, number, mask, dist, ...)   adds a slot for contact `number` in the worlds of a mask, if it has some
    split_slots(m, d, first, ...)        splits slots with worlds within the margin and worlds in the gap (adhesion)
    slot_dim(m, d, slot, dim)            1 if the slot's contacts are in the gap, else dim
    sleeping(m), pair_awake              whether the flag `sleep` is on; mask of worlds where one of two bodies is awake
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.slot import append, slot_dim, split_slots
from featherlane.engine.dynamics.awake import pair_awake, sleeping

NO_CANDIDATE = -1  # a slot without a candidate pair


@kernel
def world_integer(rows, i, lane, least, most):
    """Returns value i of a field in one world as an int, clamped to [least, most] because users set it."""
    number = read_lane(rows, i, lane)
    integer = least
    if number > least:
        integer = whole(number) if number < most else most
    return integer


@kernel
def agrees(rows, i, lane):
    """Returns the mask of worlds whose value i of a field equals that of world `lane` of the tile."""
    return rows[i] == read_lane(rows, i, lane)


@kernel
def set_fields(m, d, slot, i, lane):
    """Sets the fields of a slot that `append` does not write, from the user-defined contact i of each world.

    lane: a world that has the slot's contact; the values that worlds share are read from this world.
    """
    contact = d.contact[slot]
    # no candidate, no explicit pair, no contact within the step
    contact.cand, contact.pair, contact.speculative = NO_CANDIDATE, -1, 0.0
    for side in range(2):
        # given_body and given_geom have two rows per contact
        contact.carrier[side] = world_integer(d.given_body, 2 * i + side, lane, least=0, most=m.nbody - 1)
        contact.geom[side] = world_integer(d.given_geom, 2 * i + side, lane, least=-1, most=m.ngeom - 1)
    has_contact = contact.present > 0.0
    contact.includemargin = where(has_contact, d.given_includemargin[i], 0.0)
    if m.flg_adhesion:
        contact.adhesion = where(has_contact, d.given_adhesion[i], 0.0)
    contact.dim = slot_dim(m, d, slot, world_integer(d.given_dim, i, lane, least=1, most=6))
    friction = Vec5(d.given_friction[5 * i : 5 * i + 5])
    no_solref = Solref(zeros(2))
    # five coefficients per contact
    d.con_friction[5 * slot : 5 * slot + 5] = where(has_contact, friction, Vec5(zeros(5)))
    contact.solimp = where(has_contact, d.given_solimp[i], Solimp(zeros(5)))
    contact.solref = where(has_contact, d.given_solref[i], no_solref)
    contact.solreffriction = where(has_contact, d.given_solreffriction[i], no_solref)
    # the convex model has no restitution
    if m.opt_contact_model != CONVEX:
        contact.restitution = where(has_contact, d.given_restitution[i], 0.0)
        contact.restitution_vel = where(has_contact, d.given_restitution_vel[i], 0.0)
    if m.opt_contact_model == LCP:
        set_lcp_fields(d, slot, i, has_contact)
    d.ncon[0] = d.ncon[0] + contact.present


@kernel
def set_lcp_fields(d, slot, i, has_contact):
    """Sets the fields of a slot that only the LCP contact model reads, from the user-defined contact i of each world.

    compliance: CFM of the two rows of sliding friction (ODE's slip) [m/(s N)].
    belt: velocity of the surface along the normal and the tangents [m/s].
    """
    contact = d.contact[slot]
    contact.erp = where(has_contact, d.given_erp[i], 0.0)
    contact.cfm = where(has_contact, d.given_cfm[i], 0.0)
    contact.frictionforce = where(has_contact, d.given_frictionforce[i], 0.0)
    for side in range(2):
        contact.compliance[side] = where(has_contact, d.given_slip[i, side], 0.0)
    contact.belt = where(has_contact, d.given_motion[i], Vec3(zeros(3)))


@kernel
def leave_sleeping(m, d, i):
    """Sets near.given_left to 0 in worlds where both bodies of the i-th contact are asleep."""
    for lane in range(width(d)):
        body1 = world_integer(d.given_body, 2 * i, lane, least=0, most=m.nbody - 1)
        body2 = world_integer(d.given_body, 2 * i + 1, lane, least=0, most=m.nbody - 1)
        if not has(pair_awake(d, body1, body2), lane):
            write_lane(d.near.given_left, 0, lane, 0.0)


@stage
def given_contacts(m, d):
    """Stores the user-defined contacts of active worlds as slots, and sets which worlds also detect contacts.

    Reads:  given_* (ngiven, ...), active.
    Writes: con_* (nconmax,) of slots from ncon_slot on, ncon_slot, ncon, con_overflow, near.*.
    Cost: O(ngiven W).
    """
    active = d.active[0] > 0.0
    # given_replace: 1 in worlds whose given contacts replace detected ones
    d.near.detects[0] = where(active & (d.given_replace[0] == 0.0), 1.0, 0.0)
    for i in range(d.ngiven):
        # worlds whose i-th contact has no slot yet
        d.near.given_left[0] = where(active & (d.given_present[i] > 0.0), 1.0, 0.0)
        if sleeping(m):
            leave_sleeping(m, d, i)
        for lane in range(width(d)):
            if has(d.near.given_left[0] > 0.0, lane):
                # these worlds share a slot with the world `lane`
                alike = (d.near.given_left[0] > 0.0) & agrees(d.given_dim, i, lane)
                for side in range(2):
                    alike = alike & agrees(d.given_body, 2 * i + side, lane) & agrees(d.given_geom, 2 * i + side, lane)
                first = d.ncon_slot[0]
                append(d, i, alike, d.given_dist[i], d.given_pos[i], d.given_frame[i])
                # of an adhesive contact, worlds in the gap have dimension 1 and need another slot
                if m.flg_adhesion and world_integer(d.given_dim, i, lane, least=1, most=6) > 1:
                    split_slots(m, d, first, d.given_includemargin[i], d.given_adhesion[i])
                for slot in range(first, d.ncon_slot[0]):  # two slots after a split
                    set_fields(m, d, slot, i, lane)
                d.near.given_left[0] = where(alike, 0.0, d.near.given_left[0])
