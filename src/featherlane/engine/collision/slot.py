"""Stores contact points in slots that the worlds of a tile share.

A slot is a contact point of a pair of geoms in at least one world.  Worlds without that contact hold zeros in it, and
1e10 as its distance.  Slots are ordered by pair, then by the points of a pair.  The contacts of one world are thus in
MuJoCo's order, whatever else is in the batch.  The object d.contact[slot] has the fields con_* of a slot: its `dist` is
con_dist[slot].  Slots 0 to ncon_slot - 1 are in use; nconmax is their capacity.
`lane` is the index of a world in the tile.
The field OCTREE is that of a mesh.
manifold.* are the manifold.count contact points of one world: pos, dist and normal.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.frame import frame_along, frame_of
from featherlane.engine.collision.lane import write_vec3
from featherlane.engine.collision.mixing import (
    adhesion,
    contact_dim,
    friction,
    friction_solref,
    margin_and_gap,
    reference_and_impedance,
)
from featherlane.engine.collision.motion import sweeping
from featherlane.engine.model.signed_distance import OCTREE

NO_CONTACT = 1e10  # distance in a world that lacks the slot's contact


@kernel
def append(d, point, has_contact, dist, pos, frame):
    """Adds a slot for a contact point of a pair if it exists in some world; sets con_overflow if no slot is free.

    Args:
        point: index of the contact point among those of its pair.
        has_contact: mask of the worlds that have the contact.
        dist, pos, frame: its distance [m], midpoint [m] and frame in these worlds.

    Writes: con_point, con_present, con_dist, con_pos, con_frame of the new slot; ncon_slot or con_overflow.
    """
    if any_(has_contact):
        slot = d.ncon_slot[0]
        c = d.contact[slot]
        if slot < d.nconmax:
            c.point = point
            c.present = where(has_contact, 1.0, 0.0)
            c.dist = where(has_contact, dist, NO_CONTACT)
            c.pos = where(has_contact, Vec3(pos), Vec3(zeros(3)))
            c.frame = where(has_contact, Mat3(frame), Mat3(zeros(9)))
            d.ncon_slot[0] = slot + 1
        else:
            d.con_overflow[0] = 1


# ---- one world at a time ------------------------------------------------------------------------------------
@kernel
def orthonormal(R):
    """Returns the orientation nearest to a rounded one: R (3 - R^T R) / 2, a step of Newton's method.

    It squares the error: that of a float32 orientation, 1e-7, becomes 1e-14.
    Source: Higham, Functions of Matrices, chap. 8: the polar decomposition by the Newton-Schulz iteration.
    """
    return 1.5 * R - 0.5 * (R @ (R.T @ R))


@kernel
def load_shape(m, d, side, geom, lane):
    """Copies geom of one world to one side of the shape pair of the narrow phase: 0 the first shape, 1 the second.

    A float32 orientation is made orthonormal.  Else distances that are equal, such as those of the points of a line,
    differ by up to 1e-7 sizes, depending on the coordinates in which they are computed.

    Writes: type, data (the mesh or height field), pos, size and mat of shapes.*[side].
    """
    d.shapes.type[side] = m.geom_type[geom]
    d.shapes.data[side] = m.geom_dataid[geom]
    if m.nvariant > 0:
        # worlds of a model with variants have different meshes
        d.shapes.data[side] = whole(read_lane(m.geom_variant, geom, lane))
    d.shapes.pos[side] = read_lane(d.geom_xpos, geom, lane)
    d.shapes.size[side] = read_lane(m.geom_size, geom, lane)
    mat = read_lane(d.geom_xmat, geom, lane)
    d.shapes.mat[side] = orthonormal(mat) if single_precision(d) else mat


@kernel
def load_field(m, d, side, geom, lane):
    """Copies a geom's signed distance field and bounding box to one side of the shape pair, after `load_shape`.

    Writes: shapes.field[side], the kind of field and its first parameter (an octree: its mesh); shapes.box[side].
    """
    d.shapes.field[side, 0], d.shapes.field[side, 1] = m.geom_field[geom], m.geom_fieldadr[geom]
    # in a model with variants, `load_shape` has stored the world's mesh
    if m.geom_field[geom] == OCTREE:
        d.shapes.field[side, 1] = d.shapes.data[side]
    d.shapes.box[side] = read_lane(m.geom_aabb, geom, lane)


@kernel
def open_slot(d, slot, point):
    """Initializes a slot for contact point `point` of a pair, without a contact in any world."""
    c = d.contact[slot]
    c.point = point
    c.present = 0.0
    c.dist = NO_CONTACT
    c.pos = zeros(3)
    c.frame = zeros(9)


@kernel
def store_manifold(d, first, lane):
    """Copies the points of manifold.* to the pair's slots in one world, from slot `first` on.

    Slots that other worlds have opened are shared; further ones are opened.  Without a free slot con_overflow is set.
    """
    for i in range(d.manifold.count[0]):
        slot = first + i
        if slot < d.nconmax:
            if slot == d.ncon_slot[0]:
                open_slot(d, slot, i)
                d.ncon_slot[0] = slot + 1
            write_lane(d.con_present, slot, lane, 1.0)
            write_lane(d.con_dist, slot, lane, d.manifold.dist[i])
            write_lane(d.con_pos, slot, lane, d.manifold.pos[i])
            # a frame has 9 values, of which the first 3 are the normal; `complete_frames` adds the tangents
            write_vec3(flat(d.con_frame), 9 * slot, lane, d.manifold.normal[i])
        else:
            d.con_overflow[0] = 1


@kernel
def complete_frames(d, first):
    """Computes the tangents of the pair's slots from `first` on, whose normals were stored one world at a time."""
    for slot in range(first, d.ncon_slot[0]):
        c = d.contact[slot]
        # the first row is the normal
        has_contact = c.present > 0.0
        frame = frame_of(c.frame.rows[0])
        c.frame = where(has_contact, frame, Mat3(zeros(9)))


@kernel
def complete_frames_along(d, first, along):
    """Computes the tangents of these slots like `complete_frames`; the first one follows the unit vector `along`."""
    for slot in range(first, d.ncon_slot[0]):
        c = d.contact[slot]
        frame = frame_along(c.frame.rows[0], along)
        c.frame = where(c.present > 0.0, frame, Mat3(zeros(9)))


# ---- adhesive contacts in the gap -----------------------------------------------------------------------------
@kernel
def held_in_gap(m, d, slot, margin, adhesion):
    """Returns the mask of worlds where the slot's contact is beyond the margin, but adhesion makes it active.

    Such a contact has no friction.   margin, adhesion: of the pair [m, N].
    """
    c = d.contact[slot]
    held = (c.present > 0.0) & (c.dist >= margin) & (adhesion != 0.0)
    # contacts within the step are beyond the margin, too, but are not held by adhesion
    if sweeping(m):
        held = held & (c.speculative == 0.0)
    return held


@kernel
def copy_slot(d, slot, to):
    """Copies point index, presence, distance, position, frame and con_speculative of a slot to slot `to`."""
    c = d.contact[slot]
    d.con_point[to], d.con_present[to], d.con_dist[to] = c.point, c.present, c.dist
    d.con_speculative[to] = c.speculative
    d.con_pos[to] = c.pos
    d.con_frame[to] = c.frame


@kernel
def clear_contact(d, slot, mask):
    """Removes the contact of a slot in the worlds of the mask."""
    c = d.contact[slot]
    c.present = where(mask, 0.0, c.present)
    c.dist = where(mask, NO_CONTACT, c.dist)
    c.pos = where(mask, Vec3(zeros(3)), c.pos)
    c.frame = where(mask, Mat3(zeros(9)), c.frame)


@kernel
def split_slots(m, d, first, margin, adhesion):
    """Splits each slot from `first` on that is within the margin in some worlds and in the gap in others.

    This is necessary because worlds share the dimension of a slot, which is 1 in the gap.  The new slot directly
    follows the old one, which preserves the order of each world's contacts.

    Args:
        margin, adhesion: margin [m] and adhesive force limit [N] of the pair.
    """
    slot = first
    while slot < d.ncon_slot[0]:
        in_gap = held_in_gap(m, d, slot, margin, adhesion)
        within_margin = (d.con_present[slot] > 0.0) & not_(in_gap)
        if any_(in_gap) and any_(within_margin):
            count = d.ncon_slot[0]
            if count < d.nconmax:
                # this slot and the following ones are copied up by one, the last one first
                for j in range(count - 1, slot - 1, -1):
                    copy_slot(d, j, j + 1)
                d.ncon_slot[0] = count + 1
                # this slot keeps the worlds within the margin, the next those in the gap
                clear_contact(d, slot, in_gap)
                clear_contact(d, slot + 1, within_margin)
                slot += 1
            else:
                d.con_overflow[0] = 1
        slot += 1


@kernel
def slot_dim(m, d, slot, dim):
    """Returns the dimension of a slot: 1 if its contacts are held in the gap by adhesion, else dim.

    Reads: con_includemargin and con_adhesion of the slot.
    """
    if m.flg_adhesion and any_(held_in_gap(m, d, slot, d.con_includemargin[slot], d.con_adhesion[slot])):
        dim = 1
    return dim


# ---- parameters -----------------------------------------------------------------------------------------------
@kernel
def set_slot_parameters(m, d, candidate, pair_id, geom1, geom2, first):
    """Sets the parameters of the pair's slots, from `first` on.

    They are the fields con_cand, con_geom, con_carrier (bodies of the two geoms), con_pair, con_includemargin,
    con_adhesion, con_dim, con_friction, con_solimp, con_solref and con_solreffriction.  Those that worlds do not share
    are zero in worlds without the contact.
    pair_id, geom1, geom2: the explicit pair or -1, and the two geoms.
    candidate: candidate index of the pair, stored in con_cand; with a crowd it is arbitrary (`near_pair`).
    Writes also ncon, the number of contacts of each world.
    """
    if d.ncon_slot[0] > first:
        dim = contact_dim(m, pair_id, geom1, geom2)
        margin, _ = margin_and_gap(m, pair_id, geom1, geom2)
        mu = friction(m, pair_id, geom1, geom2)
        solref, solimp = reference_and_impedance(m, pair_id, geom1, geom2)
        friction_ref = friction_solref(m, pair_id)
        force_limit = 0.0
        # flg_adhesion: the model has adhesive geoms or pairs
        if m.flg_adhesion:
            force_limit = adhesion(m, pair_id, geom1, geom2)
            # contacts in the gap have dimension 1, so slots of both kinds are split
            if dim > 1:
                split_slots(m, d, first, margin, force_limit)
        for slot in range(first, d.ncon_slot[0]):
            c = d.contact[slot]
            c.cand = candidate
            c.geom[0], c.geom[1] = geom1, geom2
            c.carrier[0], c.carrier[1] = m.geom_bodyid[geom1], m.geom_bodyid[geom2]
            c.pair = pair_id
            has_contact = c.present > 0.0
            c.includemargin = where(has_contact, margin, 0.0)
            c.adhesion = where(has_contact, force_limit, 0.0)
            c.dim = slot_dim(m, d, slot, dim)
            # five coefficients per contact
            d.con_friction[5 * slot : 5 * slot + 5] = where(has_contact, mu, Vec5(zeros(5)))
            c.solimp = where(has_contact, solimp, Solimp(zeros(5)))
            c.solref = where(has_contact, solref, Solref(zeros(2)))
            c.solreffriction = where(has_contact, friction_ref, Solref(zeros(2)))
            d.ncon[0] = d.ncon[0] + c.present
