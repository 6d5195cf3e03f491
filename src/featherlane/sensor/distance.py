"""Measures the distance of two geoms, or of the nearest geoms of two bodies, with its direction and segment."""

from featherlane.prelude import *
from featherlane.collision.distance import measure_geoms, store_distance


@kernel
def first_geom(m, kind, i):
    """Returns the first geom of the object: the geom itself, or the body's first."""
    g = i
    if kind == OBJ_BODY:
        g = m.body_geomadr[i]
    return g


@kernel
def geom_count(m, kind, i):
    """Returns the number of geoms of the object."""
    n = 1
    if kind == OBJ_BODY:
        n = m.body_geomnum[i]
    return n


@kernel
def has_distance(m, g, h):
    """Returns whether two geoms have a distance: not two planes or height fields, and not SDF geoms without fields."""
    low, high = min(m.geom_type[g], m.geom_type[h]), max(m.geom_type[g], m.geom_type[h])
    known = 1
    if high <= HFIELD:
        known = 0
    elif high == SDF and low != PLANE:
        known = 1 if min(m.geom_field[g], m.geom_field[h]) >= 0 else 0
    return known


@kernel
def nearest_of_world(m, d, i, lane):
    """Writes the least distance of all pairs in one world to `distance` and `distance.fromto`.

    The least distance so far is the limit for the next pairs: a pair farther apart is skipped.
    """
    sensor = m.sensor[i]
    g0 = first_geom(m, sensor.objtype, sensor.objid)
    h0 = first_geom(m, sensor.reftype, sensor.refid)
    best = read_lane(m.sensor_cutoff, i, lane)
    write_lane(d.distance.dist, 0, lane, best)
    for c in range(6):
        write_lane(d.distance.fromto, c, lane, 0.0)
    for g in range(g0, g0 + geom_count(m, sensor.objtype, sensor.objid)):
        for h in range(h0, h0 + geom_count(m, sensor.reftype, sensor.refid)):
            if has_distance(m, g, h):
                d.distance.limit[0] = best
                flip = measure_geoms(m, d, g, h, lane)
                if d.convex.dist[0] < best:
                    best = d.convex.dist[0]
                    store_distance(d, lane, flip)


@stage
def nearest_geoms(m, d, i):
    """Writes sensor i: signed distance, direction or segment of the nearest geoms; beyond the cutoff that, or zeros.

    Source: MuJoCo's documentation, XML reference, collision sensors.
    Reads:  geom_xpos, geom_xmat, sensor_cutoff.
    Writes: sensor_now; scratch distance.*, shapes.*, convex.*, support.*.
    """
    for lane in range(width(d)):
        nearest_of_world(m, d, i, lane)
    a = m.sensor_adr[i]
    if m.sensor_type[i] == SENS_GEOMDIST:
        d.sensor_now[a] = d.distance.dist[0]
    elif m.sensor_type[i] == SENS_GEOMNORMAL:
        v = Vec3(d.distance.fromto[3:6]) - Vec3(d.distance.fromto[0:3])
        n = norm3(v)
        d.sensor_now[a : a + 3] = where(n > 0.0, v / fmax(n, 1e-15), Vec3(zeros(3)))
    else:
        d.sensor_now[a : a + 6] = d.distance.fromto[0:6]
