"""Stores contact points in slots that the worlds of a tile share.

A slot is a contact point of a pair of geoms in at least one world.  Worlds without that contact hold zeros in it, and
1e10 as its distance.  Slots are ordered by pair, then by the points of a pair.  The contacts of one world are thus in
MuJoCo's order, whatever else is in the batch.
"""

from featherlane.prelude import *
from featherlane.collision.frame import frame_of
from featherlane.collision.lane import write_vec3
from featherlane.collision.mixing import (
    adhesion,
    contact_dim,
    friction,
    friction_solref,
    margin_and_gap,
    reference_and_impedance,
)
from featherlane.collision.motion import sweeping
from featherlane.model.signed_distance import OCTREE

NO_CONTACT = 1e10  # distance in a world that lacks the slot's contact


@kernel
def append(d, number, touch, dist, pos, frame):
    """Adds a slot for point `number` of a pair if it touches in some world; sets con_overflow if no slot is free."""
    if any_(touch):
        k = d.ncon_slot[0]
        c = d.contact[k]
        if k < d.nconmax:
            c.point = number
            c.present = where(touch, 1.0, 0.0)
            c.dist = where(touch, dist, NO_CONTACT)
            c.pos = where(touch, Vec3(pos), Vec3(zeros(3)))
            c.frame = where(touch, Mat3(frame), Mat3(zeros(9)))
            d.ncon_slot[0] = k + 1
        else:
            d.con_overflow[0] = 1


# ---- one world at a time ------------------------------------------------------------------------------------
@kernel
def load_shape(m, d, side, g, lane):
    """Copies geom g of one world to one side of the shape pair of the narrow phase."""
    d.shapes.type[side] = m.geom_type[g]
    d.shapes.data[side] = m.geom_dataid[g]
    if m.nvariant > 0:
        d.shapes.data[side] = whole(read_lane(m.geom_variant, g, lane))
    d.shapes.pos[side] = read_lane(d.geom_xpos, g, lane)
    d.shapes.size[side] = read_lane(m.geom_size, g, lane)
    d.shapes.mat[side] = read_lane(d.geom_xmat, g, lane)


@kernel
def load_field(m, d, side, g, lane):
    """Copies signed distance field and bounding box of geom g to one side of the shape pair, after `load_shape`."""
    d.shapes.field[side, 0], d.shapes.field[side, 1] = m.geom_field[g], m.geom_fieldadr[g]
    if m.geom_field[g] == OCTREE:
        d.shapes.field[side, 1] = d.shapes.data[side]
    d.shapes.box[side] = read_lane(m.geom_aabb, g, lane)


@kernel
def open_slot(d, k, number):
    """Initializes slot k for point `number` of a pair, without a contact in any world."""
    c = d.contact[k]
    c.point = number
    c.present = 0.0
    c.dist = NO_CONTACT
    c.pos = zeros(3)
    c.frame = zeros(9)


@kernel
def store_manifold(d, first, lane):
    """Copies the manifold points of one world to the pair's slots, from slot `first` on."""
    for i in range(d.manifold.count[0]):
        k = first + i
        if k < d.nconmax:
            if k == d.ncon_slot[0]:
                open_slot(d, k, i)
                d.ncon_slot[0] = k + 1
            write_lane(d.con_present, k, lane, 1.0)
            write_lane(d.con_dist, k, lane, d.manifold.dist[i])
            write_lane(d.con_pos, k, lane, d.manifold.pos[i])
            write_vec3(flat(d.con_frame), 9 * k, lane, d.manifold.normal[i])
        else:
            d.con_overflow[0] = 1


@kernel
def complete_frames(d, first):
    """Computes the tangents for normals that were stored one world at a time."""
    for k in range(first, d.ncon_slot[0]):
        c = d.contact[k]
        touch, frame = c.present > 0.0, frame_of(c.frame.rows[0])
        c.frame = where(touch, frame, Mat3(zeros(9)))


# ---- adhesive contacts in the gap -----------------------------------------------------------------------------
@kernel
def held_in_gap(m, d, k, margin, adhesion):
    """Returns the mask of adhesive contacts of slot k beyond the margin, which are active but without friction."""
    c = d.contact[k]
    held = (c.present > 0.0) & (c.dist >= margin) & (adhesion != 0.0)
    if sweeping(m):
        held = held & (c.speculative == 0.0)
    return held


@kernel
def copy_slot(d, k, to):
    """Copies the geometry of slot k to slot `to`."""
    c = d.contact[k]
    d.con_point[to], d.con_present[to], d.con_dist[to] = c.point, c.present, c.dist
    d.con_speculative[to] = c.speculative
    d.con_pos[to] = c.pos
    d.con_frame[to] = c.frame


@kernel
def leave_slot(d, k, mask):
    """Clears slot k in the worlds of the mask."""
    c = d.contact[k]
    c.present = where(mask, 0.0, c.present)
    c.dist = where(mask, NO_CONTACT, c.dist)
    c.pos = where(mask, Vec3(zeros(3)), c.pos)
    c.frame = where(mask, Mat3(zeros(9)), c.frame)


@kernel
def part_slots(m, d, first, margin, adhesion):
    """Splits each slot from `first` on that is within the margin in some worlds and in the gap in others.

    Worlds share the dimension of a slot, and it is 1 in the gap.  The new slot directly follows the old one.  This
    preserves the order of each world's contacts.
    """
    k = first
    while k < d.ncon_slot[0]:
        gap = held_in_gap(m, d, k, margin, adhesion)
        within = (d.con_present[k] > 0.0) & not_(gap)
        if any_(gap) and any_(within):
            n = d.ncon_slot[0]
            if n < d.nconmax:
                for i in range(n - 1, k - 1, -1):
                    copy_slot(d, i, i + 1)
                d.ncon_slot[0] = n + 1
                leave_slot(d, k, gap)
                leave_slot(d, k + 1, within)
                k += 1
            else:
                d.con_overflow[0] = 1
        k += 1


@kernel
def slot_dim(m, d, k, dim):
    """Returns the dimension of slot k, whose adhesion and margin are set: 1 in the gap, else dim."""
    if m.flg_adhesion and any_(held_in_gap(m, d, k, d.con_includemargin[k], d.con_adhesion[k])):
        dim = 1
    return dim


# ---- parameters -----------------------------------------------------------------------------------------------
@kernel
def set_slot_parameters(m, d, number, e, g, h, first):
    """Sets the parameters of the pair's slots, from `first` on: geoms, bodies, friction, solref, solimp, margin."""
    if d.ncon_slot[0] > first:
        dim = contact_dim(m, e, g, h)
        margin, _ = margin_and_gap(m, e, g, h)
        mu = friction(m, e, g, h)
        ref, imp = reference_and_impedance(m, e, g, h)
        friction_ref = friction_solref(m, e)
        pull = 0.0
        if m.flg_adhesion:
            pull = adhesion(m, e, g, h)
            if dim > 1:
                part_slots(m, d, first, margin, pull)
        for k in range(first, d.ncon_slot[0]):
            c = d.contact[k]
            c.cand = number
            c.geom[0], c.geom[1] = g, h
            c.carrier[0], c.carrier[1] = m.geom_bodyid[g], m.geom_bodyid[h]
            c.pair = e
            has_contact = c.present > 0.0
            c.includemargin = where(has_contact, margin, 0.0)
            c.adhesion = where(has_contact, pull, 0.0)
            c.dim = slot_dim(m, d, k, dim)
            d.con_friction[5 * k : 5 * k + 5] = where(has_contact, mu, Vec5(zeros(5)))
            c.solimp = where(has_contact, imp, Solimp(zeros(5)))
            c.solref = where(has_contact, ref, Solref(zeros(2)))
            c.solreffriction = where(has_contact, friction_ref, Solref(zeros(2)))
            d.ncon[0] = d.ncon[0] + c.present
