"""Measures the distance of two geoms, or of the nearest geoms of two bodies, with its direction and segment.

distance.geom and distance.limit are the arguments of a measurement; distance.dist and distance.fromto, the two nearest
points, are its result.

measure_geoms(m, d, g, h, lane) writes distance and nearest points of geoms g and h in one world to convex.dist and
convex.witness; it returns whether the point of h comes first.  store_distance copies them to distance.dist and
distance.fromto, in the order g, h.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.distance import measure_geoms, store_distance


@kernel
def first_geom(m, kind, i):
    """Returns the first geom of object i of a kind: the geom itself, or the first of a body."""
    return m.body_geomadr[i] if kind == OBJ_BODY else i


@kernel
def geom_count(m, kind, i):
    """Returns the number of geoms of object i of a kind: 1 for a geom."""
    return m.body_geomnum[i] if kind == OBJ_BODY else 1


@kernel
def has_distance(m, g, h):
    """Returns whether two geoms have a distance.

    - Two geoms that are planes or height fields have none.
    - If one is an SDF geom, the other one is a plane, or both have a signed distance field.
    Geom types are ordered: PLANE and HFIELD are the least, SDF is the largest.
    """
    low = min(m.geom_type[g], m.geom_type[h])
    high = max(m.geom_type[g], m.geom_type[h])
    # geom_field: kind of the signed distance field, -1: none; a plane has a distance from the hull of an SDF geom
    have_fields = high != SDF or low == PLANE or min(m.geom_field[g], m.geom_field[h]) >= 0
    return high > HFIELD and have_fields


@kernel
def nearest_of_world(m, d, i, lane):
    """distance.dist, distance.fromto <- the smallest distance of all pairs of geoms in one world, and its segment.

    i: the sensor.  The smallest distance so far, distance.limit, is the limit for the next pairs: a pair farther apart
    is skipped.  Without a pair below the cutoff, the distance is the cutoff, and the segment is zeros.
    """
    # each object is a geom, or a body with consecutive geoms
    sensor = m.sensor[i]
    g0 = first_geom(m, sensor.objtype, sensor.objid)
    h0 = first_geom(m, sensor.reftype, sensor.refid)
    best = read_lane(m.sensor_cutoff, i, lane)
    write_lane(d.distance.dist, 0, lane, best)
    # two points of three coordinates
    for c in range(6):
        write_lane(d.distance.fromto, c, lane, 0.0)
    for g in range(g0, g0 + geom_count(m, sensor.objtype, sensor.objid)):
        for h in range(h0, h0 + geom_count(m, sensor.reftype, sensor.refid)):
            if has_distance(m, g, h):
                d.distance.limit[0] = best
                # convex.dist and convex.witness <- distance and nearest points; flipped: those of h come first
                flipped = measure_geoms(m, d, g, h, lane)
                if d.convex.dist[0] < best:
                    best = d.convex.dist[0]
                    store_distance(d, lane, flipped)  # distance.dist, distance.fromto


@stage
def nearest_geoms(m, d, i):
    """Writes sensor i: signed distance, direction or segment of the nearest geoms.

    Without geoms within the cutoff, the distance is the cutoff, and the direction and the segment are zeros.

    Source: MuJoCo's documentation, XML reference, collision sensors.
    Reads:  geom_xpos, geom_xmat, sensor_cutoff.
    Writes: sensor_now.
    Scratch: distance.*, shapes.*, convex.*, support.*.
    """
    for lane in range(width(d)):
        nearest_of_world(m, d, i, lane)
    a = m.sensor_adr[i]  # first value of the sensor
    if m.sensor_type[i] == SENS_GEOMDIST:
        d.sensor_now[a] = d.distance.dist[0]
    elif m.sensor_type[i] == SENS_GEOMNORMAL:
        between = Vec3(d.distance.fromto[3:6]) - Vec3(d.distance.fromto[0:3])
        length = norm3(between)
        d.sensor_now[a : a + 3] = where(length > 0.0, between / fmax(length, MINVAL), Vec3(zeros(3)))
    else:
        d.sensor_now[a : a + 6] = d.distance.fromto[0:6]
