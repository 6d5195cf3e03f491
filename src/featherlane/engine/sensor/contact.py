"""Contact sensors and lists of contacts: match, rank and report the contacts of one world at a time.

A kernel with the parameter `lane` works on one world, whose values read_lane reads and write_lane writes.  Sides 0 and
1 of a contact are its first and second geom, con_geom[k, side], of body con_carrier[k, side]; k is a contact slot, s a
`Selection`.  con_present is 1 in worlds that have the contact.  write3 writes three values from a row on.
m.flg_adhesion is 1 for a model with adhesive geoms or pairs.  d.active is 1 in the worlds whose contacts are in the
tile; other worlds keep their values.
Source: MuJoCo's documentation, XML reference, sensor/contact.
"""

from typing import Any, NamedTuple

from featherlane.engine.prelude import *
from featherlane.engine.collision.rays.shapes import inside_shape
from featherlane.engine.lanes.worlds import write3
from featherlane.engine.sensor.inside import inside_hull, point_in_site
from featherlane.engine.spatial.motion import at_point

CONDATA_GEOM = 1 << 9  # additional field of lists of contacts: the two geoms
NO_MATCH, FORWARD, REVERSED = 0, 1, 2  # whether a contact matches a selection, and if with a reversed normal


class Selection(NamedTuple):
    """Selects contacts of two objects, and what is reported of them.

    Attributes:
        kind1, id1, kind2, id2: kinds, as mjtObj (a body, XBODY for its subtree, a geom; a site in place of the first
            object selects contacts inside of it; 0: any), and indices.
        fields: bits of CONDATA_*.
        reduce: REDUCE_NONE, ...
    """

    kind1: Any
    id1: Any
    kind2: Any
    id2: Any
    fields: Any
    reduce: Any


# ---- one world's contacts --------------------------------------------------------------------------------------------
@kernel
def force_of(m, d, k, lane):
    """Returns (force, moment) of contact k in its frame, less its adhesion; zeros if it has no row (con_D = 0)."""
    wrench = read_lane(d.con_force, k, lane)
    force, torque = wrench.force, wrench.torque
    if m.flg_adhesion:
        force = Vec3(force.x - read_lane(d.con_adhesion, k, lane), force.y, force.z)
    # `where` instead of a product with 0: the zero of a product would have the sign of an earlier step's force
    has_row, zero = read_lane(d.con_D, k, lane) != 0.0, Vec3(zeros(3))
    return where(has_row, force, zero), where(has_row, torque, zero)


@kernel
def motion_at(m, d, b, point, lane):
    """Returns the motion of body b at a point: angular and linear velocity in world axes."""
    return at_point(read_lane(d.cvel, b, lane), point - read_lane(d.subtree_com, m.body_rootid[b], lane))


# ---- matching -------------------------------------------------------------------------------------------------------
@kernel
def is_side(m, d, k, side, kind, obj):
    """Returns whether this side of contact k belongs to object `obj` of a kind.

    Any side matches a site, or the kind 0 (no object).
    """
    b = d.con_carrier[k, side]
    if kind == OBJ_GEOM:
        return d.con_geom[k, side] == obj
    # the subtree of body obj: one of b's ancestors; parents have lower numbers
    while kind == OBJ_XBODY and b > obj:
        b = m.body_parentid[b]
    return kind not in (OBJ_BODY, OBJ_XBODY) or b == obj


@kernel
def direction_of_objects(m, d, s, k):
    """Returns NO_MATCH if the objects of contact k do not match selection s, FORWARD, or REVERSED: a reversed normal.

    The reported normal points from the first object to the second.  If only one of them is given, it points away from
    the first object, or towards the second.
    """
    # no object matches both sides: without any object, every contact matches
    if is_side(m, d, k, side=0, kind=s.kind1, obj=s.id1) and is_side(m, d, k, side=1, kind=s.kind2, obj=s.id2):
        return FORWARD
    reverse = is_side(m, d, k, side=1, kind=s.kind1, obj=s.id1) and is_side(m, d, k, side=0, kind=s.kind2, obj=s.id2)
    return REVERSED if reverse else NO_MATCH


@kernel
def in_site(m, d, s, k, lane):
    """Returns whether contact k is inside the selection's site, or the selection has no site."""
    if s.kind1 != OBJ_SITE:
        return True
    site = s.id1
    point = point_in_site(d, site, read_lane(d.con_pos, k, lane), lane)
    if m.site_type[site] == MESH:
        return any_(inside_hull(m, m.site_dataid[site], point))
    return any_(inside_shape(m.site_type[site], read_lane(m.site_size, site, lane), point))


@kernel
def direction_in_world(m, d, s, k, lane):
    """Returns NO_MATCH, FORWARD or REVERSED for contact k of one world and selection s, as `direction_of_objects`.

    A contact that the world lacks, or that is outside of the selection's site, does not match.
    """
    direction = direction_of_objects(m, d, s, k) if read_lane(d.con_present, k, lane) > 0.0 else NO_MATCH
    return direction if direction and in_site(m, d, s, k, lane) else NO_MATCH


# ---- reduction ------------------------------------------------------------------------------------------------------
@kernel
def sort_key(m, d, k, reduce, lane):
    """Returns the sort key of contact k by REDUCE_* `reduce`: contacts with smaller keys are reported first."""
    key = 0.0
    if reduce == REDUCE_MINDIST:
        key = read_lane(d.con_dist, k, lane)
    elif reduce == REDUCE_MAXFORCE:
        force, torque = force_of(m, d, k, lane)
        key = -(dot(force, force) + dot(torque, torque))
    return key


@kernel
def next_contact(m, d, s, last, lane):
    """Returns the matching contact that is reported after contact `last` (-1: the first one), -1: none.

    Contacts are ordered by sort key; equal keys by slot.
    """
    found = -1
    first = 0
    last_key = 0.0
    found_key = 0.0
    if last >= 0:
        last_key = sort_key(m, d, last, s.reduce, lane)
    # without reduction, contacts are in the order of slots
    if s.reduce == REDUCE_NONE:
        first = last + 1
    for k in range(first, d.ncon_slot[0]):
        if s.reduce == REDUCE_NONE and found >= 0:
            break  # the first one is the next one
        if direction_in_world(m, d, s, k, lane):
            key = sort_key(m, d, k, s.reduce, lane)
            # of the contacts after `last`, the one with the smallest key
            is_after = last < 0 or key > last_key or (key == last_key and k > last)
            if is_after and (found < 0 or key < found_key):
                found, found_key = k, key
    return found


@kernel
def count_matches(m, d, s, lane):
    """Returns the number of matching contacts of one world."""
    n = 0
    for k in range(d.ncon_slot[0]):
        if direction_in_world(m, d, s, k, lane):
            n += 1
    return n


# ---- extraction -----------------------------------------------------------------------------------------------------
@kernel
def field_size(fields):
    """Returns the number of reported values per contact.

    `found` (bit 0) and `dist` (bit 3) have one value, MuJoCo's seven other fields three, and geoms two.
    """
    n = 0
    for bit in range(9):
        if fields >> bit & 1:
            n += 1 if bit == 0 or bit == 3 else 3
    return n + 2 if fields & CONDATA_GEOM else n


@kernel
def reversed_vector(v, direction):
    """Returns a vector in the contact's frame as the sensor reports it.

    v has the components along normal, tangent 1 and tangent 2.  With FORWARD it is returned as it is.  With REVERSED
    the sensor reports -v, the vector of the opposite body, in the frame rotated by pi about tangent 2.  The axes of
    that frame are -normal, -tangent 1 and tangent 2, so the components are (v_0, v_1, -v_2).
    """
    return Vec3(v.x, v.y, -v.z if direction == REVERSED else v.z)


@kernel
def relative_motion(m, d, k, lane):
    """Returns the (angular, linear) velocity of the second body relative to the first at the contact, in its frame."""
    point, R = read_lane(d.con_pos, k, lane), read_lane(d.con_frame, k, lane)
    motion = motion_at(m, d, d.con_carrier[k, 1], point, lane) - motion_at(m, d, d.con_carrier[k, 0], point, lane)
    return R @ motion.angular, R @ motion.linear


class Report(NamedTuple):
    """Holds the values of a reported contact, except velocities and geoms."""

    found: Any  # number of matching contacts
    force: Any
    torque: Any
    dist: Any
    pos: Any
    normal: Any
    tangent: Any


@kernel
def write_report(fields, out, row, lane, report):
    """Writes the selected values of a report from `row` of `out` on; returns the row after them."""
    if fields & CONDATA_FOUND:
        write_lane(out, row, lane, 1.0 * report.found)
        row += 1
    if fields & CONDATA_FORCE:
        write3(out, row, lane, report.force)
        row += 3
    if fields & CONDATA_TORQUE:
        write3(out, row, lane, report.torque)
        row += 3
    if fields & CONDATA_DIST:
        write_lane(out, row, lane, report.dist)
        row += 1
    if fields & CONDATA_POS:
        write3(out, row, lane, report.pos)
        row += 3
    if fields & CONDATA_NORMAL:
        write3(out, row, lane, report.normal)
        row += 3
    if fields & CONDATA_TANGENT:
        write3(out, row, lane, report.tangent)
        row += 3
    return row


@kernel
def write_contact_fields(m, d, s, out, row, k, nfound, lane):
    """Writes the selected fields of contact k, from `row` of `out` on.

    nfound: number of matching contacts, the value of the field `found`.
    """
    fields = s.fields
    direction = direction_of_objects(m, d, s, k)
    force, torque = force_of(m, d, k, lane)
    force, torque = reversed_vector(force, direction), reversed_vector(torque, direction)
    sign = 1.0 if direction == FORWARD else -1.0
    frame = read_lane(d.con_frame, k, lane)
    dist, pos = read_lane(d.con_dist, k, lane), read_lane(d.con_pos, k, lane)
    normal, tangent = frame.rows[0], frame.rows[1]
    row = write_report(fields, out, row, lane, Report(nfound, force, torque, dist, pos, sign * normal, sign * tangent))
    if fields & (CONDATA_LINVEL | CONDATA_ANGVEL):
        angular, linear = relative_motion(m, d, k, lane)
        if fields & CONDATA_LINVEL:
            write3(out, row, lane, reversed_vector(linear, direction))
            row += 3
        if fields & CONDATA_ANGVEL:
            write3(out, row, lane, reversed_vector(angular, direction))
            row += 3
    if fields & CONDATA_GEOM:
        # the first object's geom first: sides 0 and 1 of a FORWARD contact, sides 1 and 0 of a REVERSED one
        write_lane(out, row, lane, 1.0 * d.con_geom[k, direction - FORWARD])
        write_lane(out, row + 1, lane, 1.0 * d.con_geom[k, REVERSED - direction])


# ---- net force ------------------------------------------------------------------------------------------------------
@kernel
def centre_of_force(m, d, s, lane):
    """Returns sum |f_k| p_k / sum |f_k| over the matching contacts: forces f_k at positions p_k."""
    centre = Vec3(zeros(3))
    total = 0.0
    for k in range(d.ncon_slot[0]):
        if direction_in_world(m, d, s, k, lane):
            force, _ = force_of(m, d, k, lane)
            weight = sqrt(dot(force, force))
            centre = fma(weight, read_lane(d.con_pos, k, lane), centre)
            total = total + weight
    return 1.0 / fmax(total, MINVAL) * centre


@kernel
def net_wrench(m, d, s, centre, lane):
    """Returns force and moment about `centre` of all matching contacts: sum f, sum t + (p - centre) x f; world axes."""
    total_force, total_moment = Vec3(zeros(3)), Vec3(zeros(3))
    for k in range(d.ncon_slot[0]):
        direction = direction_in_world(m, d, s, k, lane)
        if direction:
            R = read_lane(d.con_frame, k, lane)
            force, torque = force_of(m, d, k, lane)
            sign = 1.0 if direction == FORWARD else -1.0
            force, torque = sign * (R.T @ force), sign * (R.T @ torque)
            arm = read_lane(d.con_pos, k, lane) - centre
            total_force = total_force + force
            total_moment = total_moment + (torque + cross(arm, force))
    return total_force, total_moment


@kernel
def write_net_contact(m, d, s, out, row, nfound, lane):
    """Writes one contact that represents all, from `row` of `out` on: at the centre of force, in world axes.

    Its distance and velocity fields stay 0.   nfound: number of matching contacts.
    """
    centre = centre_of_force(m, d, s, lane)
    force, moment = net_wrench(m, d, s, centre, lane)
    # its frame is that of the world
    x, y = Vec3(1.0, 0.0, 0.0), Vec3(0.0, 1.0, 0.0)
    write_report(s.fields, out, row, lane, Report(nfound, force, moment, 0.0, centre, x, y))


# ---- the sensor -----------------------------------------------------------------------------------------------------
@kernel
def write_world_contacts(m, d, s, out, at, lane):
    """Writes the selected contacts of one world to n rows of `out`, at = (first row, n); zeros behind them."""
    first, n = at
    size = field_size(s.fields)
    nfound = count_matches(m, d, s, lane)
    last = -1
    for c in range(n):
        write_lane(out, first + c, lane, 0.0)
    if s.reduce == REDUCE_NETFORCE:
        if nfound > 0:
            write_net_contact(m, d, s, out, first, nfound, lane)
    else:
        # n rows hold n // size contacts
        for c in range(min(n // size, nfound)):
            last = next_contact(m, d, s, last, lane)
            write_contact_fields(m, d, s, out, first + c * size, last, nfound, lane)


@stage
def contact_sensor(m, d, i):
    """Writes sensor i: the matching contacts of each active world, with the fields that the sensor selects.

    Reads:  con_*, con_force, cvel, subtree_com, site_xpos, site_xmat.   Writes: sensor_now.
    Frame: forces and velocities in the contact's frame, positions and directions in world axes.
    Cost: O(contacts) per slot.
    """
    sensor = m.sensor[i]
    active = d.active[0] > 0.0
    fields, reduce = sensor.intprm[0], sensor.intprm[1]
    s = Selection(sensor.objtype, sensor.objid, sensor.reftype, sensor.refid, fields=fields, reduce=reduce)
    for lane in range(width(d)):
        if has(active, lane):
            write_world_contacts(m, d, s, d.sensor_now, (sensor.adr, sensor.dim), lane)
