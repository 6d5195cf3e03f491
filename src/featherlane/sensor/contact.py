"""Contact sensors and lists of contacts: match, rank and report the contacts of one world at a time.

Source: MuJoCo's documentation, XML reference, sensor/contact.
"""

from typing import Any, NamedTuple

from featherlane.prelude import *
from featherlane.collision.rays.shapes import inside_shape
from featherlane.lanes.worlds import write3
from featherlane.sensor.inside import inside_hull, point_in_site
from featherlane.spatial.motion import at_point

CONDATA_GEOM = 1 << 9  # additional field of lists of contacts: the two geoms


class Selection(NamedTuple):
    """Selects contacts of two objects, and what is reported of them.

    Attributes:
        kind1, x1, kind2, x2: kinds, as mjtObj (a body, XBODY for its subtree, a geom; a site in place of the first
            object selects contacts inside of it; 0: any), and indices.
        fields: bits of CONDATA_*.
        reduce: REDUCE_NONE, ...
    """

    kind1: Any
    x1: Any
    kind2: Any
    x2: Any
    fields: Any
    reduce: Any


# ---- one world's contacts --------------------------------------------------------------------------------------------
@kernel
def force_of(m, d, k, lane):
    """Returns (force, moment) of contact k in its frame, less its adhesion; zeros if it has no row."""
    w = read_lane(d.con_force, k, lane)
    f, t = w.force, w.torque
    if m.flg_adhesion:
        f = Vec3(f.x - read_lane(d.con_adhesion, k, lane), f.y, f.z)
    s = 1.0
    if read_lane(d.con_D, k, lane) == 0.0:
        s = 0.0
    return s * f, s * t


@kernel
def motion_at(m, d, b, point, lane):
    """Returns the velocity of body b at a point."""
    return at_point(read_lane(d.cvel, b, lane), point - read_lane(d.subtree_com, m.body_rootid[b], lane))


# ---- matching -------------------------------------------------------------------------------------------------------
@kernel
def is_side(m, d, k, side, kind, x):
    """Returns 1 if this side of contact k belongs to the object, else 0; any side matches a site, or no object."""
    b, same = d.con_carrier[k, side], 1
    if kind == OBJ_GEOM:
        same = 1 if d.con_geom[k, side] == x else 0
    elif kind == OBJ_BODY:
        same = 1 if b == x else 0
    elif kind == OBJ_XBODY:
        while b > x:
            b = m.body_parentid[b]
        same = 1 if b == x else 0
    return same


@kernel
def match_direction(m, d, s, k):
    """Returns 0 if contact k does not match the selection s, 1 if it does, 2 if it does with a reversed normal.

    The normal points from the first object to the second; away from the first alone; towards the second alone.
    """
    kind1, kind2 = s.kind1, s.kind2
    a1, b1 = is_side(m, d, k, 0, kind1, s.x1), is_side(m, d, k, 1, kind1, s.x1)
    a2, b2 = is_side(m, d, k, 0, kind2, s.x2), is_side(m, d, k, 1, kind2, s.x2)
    side = 0
    if kind1 != OBJ_UNKNOWN and kind2 != OBJ_UNKNOWN:
        if a1 and b2:
            side = 1
        elif b1 and a2:
            side = 2
    elif kind1 != OBJ_UNKNOWN:
        if a1:
            side = 1
        elif b1:
            side = 2
    elif kind2 == OBJ_UNKNOWN or b2:
        side = 1
    elif a2:
        side = 2
    return side


@kernel
def in_site(m, d, s, k, lane):
    """Returns 1 if contact k is inside the selection's site or the selection has no site, else 0."""
    inside = 1
    if s.kind1 == OBJ_SITE:
        i = s.x1
        p = point_in_site(d, i, read_lane(d.con_pos, k, lane), lane)
        if m.site_type[i] == MESH:
            inside = 1 if inside_hull(m, m.site_dataid[i], p) else 0
        else:
            inside = 1 if inside_shape(m.site_type[i], read_lane(m.site_size, i, lane), p) else 0
    return inside


@kernel
def matches(m, d, s, k, lane):
    """Returns `direction` if the world has the contact and it is inside the site, else 0."""
    side = 0
    if read_lane(d.con_present, k, lane) > 0.0:
        side = match_direction(m, d, s, k)
        if side and in_site(m, d, s, k, lane) == 0:
            side = 0
    return side


# ---- reduction ------------------------------------------------------------------------------------------------------
@kernel
def rank(m, d, k, reduce, lane):
    """Returns the sort key of contact k: smaller keys are reported first."""
    x = 0.0
    if reduce == REDUCE_MINDIST:
        x = read_lane(d.con_dist, k, lane)
    elif reduce == REDUCE_MAXFORCE:
        f, t = force_of(m, d, k, lane)
        x = -(dot(f, f) + dot(t, t))
    return x


@kernel
def next_contact(m, d, s, last, lane):
    """Returns the matching contact after contact `last` (-1: the first), -1: none; ties are ordered by slot."""
    found, first = -1, 0
    least, most = 0.0, 0.0
    if last >= 0:
        least = rank(m, d, last, s.reduce, lane)
    if s.reduce == REDUCE_NONE:
        first = last + 1
    for k in range(first, d.ncon_slot[0]):
        if s.reduce == REDUCE_NONE and found >= 0:
            break
        if matches(m, d, s, k, lane):
            x = rank(m, d, k, s.reduce, lane)
            later = last < 0 or x > least or (x == least and k > last)
            if later and (found < 0 or x < most):
                found, most = k, x
    return found


@kernel
def count_matches(m, d, s, lane):
    """Returns the number of matching contacts of one world."""
    n = 0
    for k in range(d.ncon_slot[0]):
        if matches(m, d, s, k, lane):
            n += 1
    return n


# ---- extraction -----------------------------------------------------------------------------------------------------
@kernel
def field_size(fields):
    """Returns the number of reported values per contact."""
    n = 0
    for bit in range(9):
        if fields >> bit & 1:
            n += 1 if bit == 0 or bit == 3 else 3
    return n + 2 if fields & CONDATA_GEOM else n


@kernel
def turned(v, side):
    """Returns a vector of the contact's frame; side = 2: its opposite, in the frame rotated by pi about tangent 2."""
    z = v[2]
    if side == 2:
        z = -z
    return Vec3(v.x, v.y, z)


@kernel
def relative_motion(m, d, k, lane):
    """Returns the (angular, linear) velocity of the second body relative to the first at the contact, in its frame."""
    point, R = read_lane(d.con_pos, k, lane), read_lane(d.con_frame, k, lane)
    v = motion_at(m, d, d.con_carrier[k, 1], point, lane) - motion_at(m, d, d.con_carrier[k, 0], point, lane)
    return R @ v.angular, R @ v.linear


@kernel
def write_contact_fields(m, d, s, out, a, k, nfound, lane):
    """Writes the fields of contact k, from row a of `out` on."""
    fields, side = s.fields, match_direction(m, d, s, k)
    f, t = force_of(m, d, k, lane)
    sign = 1.0 if side == 1 else -1.0
    if fields & CONDATA_FOUND:
        write_lane(out, a, lane, 1.0 * nfound)
        a += 1
    if fields & CONDATA_FORCE:
        write3(out, a, lane, turned(f, side))
        a += 3
    if fields & CONDATA_TORQUE:
        write3(out, a, lane, turned(t, side))
        a += 3
    if fields & CONDATA_DIST:
        write_lane(out, a, lane, read_lane(d.con_dist, k, lane))
        a += 1
    if fields & CONDATA_POS:
        write3(out, a, lane, read_lane(d.con_pos, k, lane))
        a += 3
    if fields & CONDATA_NORMAL:
        write3(out, a, lane, sign * read_lane(d.con_frame, k, lane).rows[0])
        a += 3
    if fields & CONDATA_TANGENT:
        write3(out, a, lane, sign * read_lane(d.con_frame, k, lane).rows[1])
        a += 3
    if fields & (CONDATA_LINVEL | CONDATA_ANGVEL):
        w, v = relative_motion(m, d, k, lane)
        if fields & CONDATA_LINVEL:
            write3(out, a, lane, turned(v, side))
            a += 3
        if fields & CONDATA_ANGVEL:
            write3(out, a, lane, turned(w, side))
            a += 3
    if fields & CONDATA_GEOM:
        write_lane(out, a, lane, 1.0 * d.con_geom[k, side - 1])
        write_lane(out, a + 1, lane, 1.0 * d.con_geom[k, 2 - side])


# ---- net force ------------------------------------------------------------------------------------------------------
@kernel
def centre_of_force(m, d, s, lane):
    """Returns the mean position of the matching contacts, weighted by the magnitudes of their forces."""
    centre, total = Vec3(zeros(3)), 0.0
    for k in range(d.ncon_slot[0]):
        if matches(m, d, s, k, lane):
            f, _ = force_of(m, d, k, lane)
            weight = sqrt(dot(f, f))
            centre = fma(weight, read_lane(d.con_pos, k, lane), centre)
            total = total + weight
    return 1.0 / fmax(total, MINVAL) * centre


@kernel
def net_wrench(m, d, s, centre, lane):
    """Returns the total (force, moment about the centre) of all matching contacts, in world axes."""
    force, moment = Vec3(zeros(3)), Vec3(zeros(3))
    for k in range(d.ncon_slot[0]):
        side = matches(m, d, s, k, lane)
        if side:
            R, (f, t) = read_lane(d.con_frame, k, lane), force_of(m, d, k, lane)
            sign = 1.0 if side == 1 else -1.0
            f, t = sign * (R.T @ f), sign * (R.T @ t)
            arm = read_lane(d.con_pos, k, lane) - centre
            force, moment = force + f, moment + (t + cross(arm, f))
    return force, moment


@kernel
def tell_net(m, d, s, out, a, nfound, lane):
    """Writes one contact that represents all: at the centre of force, in world axes."""
    fields, centre = s.fields, centre_of_force(m, d, s, lane)
    force, moment = net_wrench(m, d, s, centre, lane)
    if fields & CONDATA_FOUND:
        write_lane(out, a, lane, 1.0 * nfound)
        a += 1
    if fields & CONDATA_FORCE:
        write3(out, a, lane, force)
        a += 3
    if fields & CONDATA_TORQUE:
        write3(out, a, lane, moment)
        a += 3
    if fields & CONDATA_DIST:
        a += 1
    if fields & CONDATA_POS:
        write3(out, a, lane, centre)
        a += 3
    if fields & CONDATA_NORMAL:
        write3(out, a, lane, (1.0, 0.0, 0.0))
        a += 3
    if fields & CONDATA_TANGENT:
        write3(out, a, lane, (0.0, 1.0, 0.0))


# ---- the sensor -----------------------------------------------------------------------------------------------------
@kernel
def tell_world(m, d, s, out, at, lane):
    """Writes the selected contacts of one world to n rows of `out`, at = (first row, n); zeros if fewer match."""
    a, n = at
    size, nfound, last = field_size(s.fields), count_matches(m, d, s, lane), -1
    for c in range(n):
        write_lane(out, a + c, lane, 0.0)
    if s.reduce == REDUCE_NETFORCE:
        if nfound > 0:
            tell_net(m, d, s, out, a, nfound, lane)
    else:
        for slot in range(min(n // size, nfound)):
            last = next_contact(m, d, s, last, lane)
            write_contact_fields(m, d, s, out, a + slot * size, last, nfound, lane)


@stage
def contact_sensor(m, d, i):
    """Writes sensor i: the matching contacts of each active world, with the fields that the sensor selects.

    Reads:  con_*, con_force, cvel, subtree_com, site_xpos, site_xmat.   Writes: sensor_now.
    Frame: forces and velocities in the contact's frame, positions and directions in world axes.
    Cost: O(contacts) per slot.
    """
    sensor = m.sensor[i]
    active, fields, reduce = d.active[0] > 0.0, sensor.intprm[0], sensor.intprm[1]
    s = Selection(sensor.objtype, sensor.objid, sensor.reftype, sensor.refid, fields=fields, reduce=reduce)
    for lane in range(width(d)):
        if has(active, lane):
            tell_world(m, d, s, d.sensor_now, (sensor.adr, sensor.dim), lane)
