"""Keeps a list of pairs that are near or may soon be near, for several steps of a world that is alone in its tile.

The list stores the pose of each colliding geom and how far its points may move.  While all geoms are within these
bounds, no unlisted pair can be near, so only listed pairs are tested.  The detected pairs and their order are the same
as without a list.  The list is not part of the state: after the state is replaced or the model is edited, the
next step builds a new list.

collide_geom lists the geoms that may collide; neighbours.* have an entry for each of these, `travel` one for each geom.
neighbours.pos, axis (two rows of the orientation) and box are the stored pose and bounding box; displacement [m] and
rotation are the allowed changes of a coordinate and of a cosine; reach and margin are the geom's reach and its margin
plus gap.  near.geom_reach[g] is the radius of geom g's bounding sphere plus its margin and gap; two geoms are near if
their distance is at most the sum of these.  m.pair_function is the id of the function of two geom types.

Imported kernels:

    geom_margin_and_gap, is_present   a geom's margin plus gap; mask of worlds that have the geom
    detection_distance                largest distance of a contact of a pair
    boxes_separate                    mask of worlds where the oriented boxes are farther apart than a distance

Source: L. Verlet, Phys. Rev. 159 (1967).
"""

from __future__ import annotations

from featherlane.engine.prelude import *
from featherlane.engine.collision.broad.bounds import boxes_separate
from featherlane.engine.collision.mixing import detection_distance, geom_margin_and_gap, is_present
from featherlane.engine.model.pair import CAPSULE_BOX, CAPSULE_CAPSULE, CONVEX, SPHERE_SPHERE

# per colliding geom; with fewer pairs, validating the list saves so little that building it costs 10 steps
LEAST_PAIRS = 7
AHEAD = 12  # steps that a geom may continue at its current velocity, in addition to both below
# allowed change of each coordinate, relative to the bounding radius; of each cosine
DISPLACEMENT, ROTATION = 0.03, 0.02
# upper bounds of the motion of a point: changes of three coordinates by at most 1 move it by sqrt(3), changes of six
# cosines by at most 1 move it by sqrt(18) bounding radii
ALL_AXES, ALL_COSINES = 1.75, 4.25


def listed_pairs(ncand: int, ncollide: int, width: int) -> int:
    """Returns the number of pairs that a tile can list."""
    return ncand if width == 1 and ncand > LEAST_PAIRS * ncollide else 0


@kernel
def is_within(v, limit):
    """Returns the mask of worlds where no component of v exceeds the limit in absolute value."""
    x, y, z = fabs(v)
    return (x <= limit) & (y <= limit) & (z <= limit)


@kernel
def is_list_valid(m, d):
    """Returns the mask of worlds where every geom is within the bounds of the list and has the same size.

    Reads: neighbours.*, the poses and bounds that `prepare_list` stored for each geom; near.geom_reach.
    """
    valid = true_mask(d)
    for k in range(m.ncollide):
        g = m.collide_geom[k]
        displacement, rotation = d.neighbours.displacement[k], d.neighbours.rotation[k]
        # two rows of the orientation determine the third
        row0, row1, _ = d.geom_xmat[g].rows
        valid = valid & is_within(d.geom_xpos[g] - d.neighbours.pos[k], displacement)
        valid = valid & is_within(row0 - d.neighbours.axis[k, 0], rotation)
        valid = valid & is_within(row1 - d.neighbours.axis[k, 1], rotation)
        box, stored_box = m.geom_aabb[g], d.neighbours.box[k]
        for i in unrolled(range(6)):
            valid = valid & (box[i] == stored_box[i])
        # margin, gap and radius may have been edited
        within_reach = d.near.geom_reach[g] <= d.neighbours.reach[k]
        # the reach of a geom that a world lacks is NaN; such a geom comes near to nothing
        if m.nvariant > 0:
            within_reach = within_reach | not_(is_present(m, g))
        valid = valid & within_reach & (geom_margin_and_gap(m, g) <= d.neighbours.margin[k])
    return valid


@kernel
def allowed_motion(m, d, g):
    """Returns (displacement, rotation): how far geom g may move along an axis [m], and change a direction cosine.

    Each is the change in AHEAD steps at the current velocity, plus a fixed part; a cosine changes at most at the rate
    |angular velocity|.  Both are zero for a geom that is welded to the world.
    """
    b = m.geom_bodyid[g]
    displacement, rotation = 0.0, 0.0
    if m.body_weldid[b] > 0:
        vel = d.cvel[b]
        arm = d.geom_xpos[g] - d.subtree_com[m.body_rootid[b]]
        time = AHEAD * timestep(m)
        # the velocity of the geom's centre is v + w x arm; cvel has v at the centre of mass of the body's tree
        displacement = fma(time, norm3(vel.linear + cross(vel.angular, arm)), DISPLACEMENT * m.geom_rbound[g])
        rotation = fma(time, norm3(vel.angular), ROTATION)
    return displacement, rotation


@kernel
def store_crowd_travel(m, d):
    """Writes neighbours.travel: how far a side of a crowd geom's bounding box may move while a list is valid [m]."""
    for i in range(m.ncrowd):
        g = m.crowd_geom[i]
        displacement, rotation = allowed_motion(m, d, g)
        turn = 0.0 if m.geom_type[g] == SPHERE else rotation * m.geom_rbound[g]
        d.neighbours.travel[g] = displacement + turn


@kernel
def prepare_list(m, d):
    """Prepares a new list: stores the poses of the geoms, and enlarges near.geom_reach by their possible travel.

    travel = ALL_AXES displacement + ALL_COSINES rotation radius.   Writes: neighbours.*, near.geom_reach.
    """
    for k in range(m.ncollide):
        g = m.collide_geom[k]
        d.neighbours.pos[k] = d.geom_xpos[g]
        d.neighbours.axis[k, 0], d.neighbours.axis[k, 1], _ = d.geom_xmat[g].rows
        d.neighbours.box[k] = m.geom_aabb[g]
        d.neighbours.margin[k] = geom_margin_and_gap(m, g)
        d.neighbours.reach[k] = d.near.geom_reach[g]
        d.neighbours.displacement[k], d.neighbours.rotation[k] = allowed_motion(m, d, g)
        d.neighbours.travel[g] = fma(
            ALL_AXES, d.neighbours.displacement[k], ALL_COSINES * d.neighbours.rotation[k] * m.geom_rbound[g]
        )
        d.near.geom_reach[g] = d.near.geom_reach[g] + d.neighbours.travel[g]


@kernel
def never_meet(m, d, g, h, near):
    """Returns the mask of worlds where the boxes of geoms g and h, enlarged by their travel, are apart.

    Such geoms cannot meet while the list is valid.  Worlds outside of `near` may be true or false.  Without a bounding
    box or a known orientation of a shape, no world of `near` is in the mask.
    """
    function = m.pair_function[m.geom_type[g], m.geom_type[h]]
    apart = not_(near)
    # the two ranges are the pair functions of spheres, capsules, cylinders, ellipsoids, boxes and meshes.
    # all_round: the model has planes, spheres and capsules only, and its steps do not compute full orientations
    if not m.all_round and (SPHERE_SPHERE <= function <= CAPSULE_CAPSULE or CAPSULE_BOX <= function <= CONVEX):
        # -1: not an explicit pair
        margin = fmax(detection_distance(m, d, -1, g, h), 0.0) + (d.neighbours.travel[g] + d.neighbours.travel[h])
        apart = boxes_separate(m, d, g, h, margin, near)
    return apart
