"""Rangefinders: one ray along the z axis of a site, or one ray per pixel of a camera.

ray.point, ray.direction and ray.exclude, a body whose geoms are ignored, are the input of `cast`.
FAR is larger than any distance.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.rays.ray import cast
from featherlane.engine.collision.rays.ray_shape import FAR
from featherlane.engine.sensor.camera import pixel_ray


@kernel
def list_visible_geoms(m, d):
    """ray.seen <- all geoms that are not fully transparent, ray.ngeom <- their number; ray.cutoff <- any distance."""
    n = 0
    for g in range(m.ngeom):
        if m.geom_visible[g]:  # its alpha is not 0
            d.ray.seen[n] = g
            n += 1
    d.ray.ngeom[0] = n
    d.ray.cutoff[0] = FAR


@kernel
def store_where(d, a, mask, v):
    """sensor_now[a : a + 3] <- v in worlds of the mask, else zeros."""
    d.sensor_now[a : a + 3] = where(mask, v, Vec3(zeros(3)))


@kernel
def store_ray(d, fields, a, depth):
    """Writes the result of a ray to sensor_now, field by field from a on; returns the address of the next ray's values.

    Reads: ray.point, ray.direction; what `cast` writes: ray.distance, ray.geom, both -1 without a hit, and ray.normal.

    Args:
        fields: bits of RAYDATA_*.
        depth: depth of the hit point [m].
    """
    distance, origin, direction = d.ray.distance[0], d.ray.point[0], d.ray.direction[0]
    hit = d.ray.geom[0] >= 0.0
    if fields & RAYDATA_DIST:
        d.sensor_now[a] = distance
        a += 1
    if fields & RAYDATA_DIR:
        store_where(d, a, hit, direction)
        a += 3
    if fields & RAYDATA_ORIGIN:
        d.sensor_now[a : a + 3] = origin
        a += 3
    if fields & RAYDATA_POINT:
        store_where(d, a, hit, fma(distance, direction, origin))
        a += 3
    if fields & RAYDATA_NORMAL:
        store_where(d, a, hit, d.ray.normal[0])
        a += 3
    if fields & RAYDATA_DEPTH:
        d.sensor_now[a] = where(hit, depth, -1.0)
        a += 1
    return a


@stage
def rangefinder(m, d, i):
    """Writes sensor i: distances, points and normals of the first hits of its rays, which ignore geoms of its body.

    Source: MuJoCo's documentation, XML reference, sensor/rangefinder.
    Reads:  frames of geoms, of sites, of cameras; geom_visible.
    Writes: sensor_now; ray.*.
    Cost: O(ngeom) per ray.
    """
    sensor = m.sensor[i]
    obj, a, fields = sensor.objid, sensor.adr, sensor.intprm[0]
    list_visible_geoms(m, d)  # ray.seen, ray.ngeom, ray.cutoff
    if sensor.objtype == OBJ_CAMERA:
        d.ray.exclude[0] = m.cam_bodyid[obj]  # rays pass through the geoms of this body
        for row in range(m.cam_resolution[obj, 1]):
            for column in range(m.cam_resolution[obj, 0]):
                origin, direction = pixel_ray(m, d, obj, column, row)
                d.ray.point[0] = origin
                d.ray.direction[0] = direction
                cast(m, d)  # ray.distance, ray.geom, ray.normal
                hit = fma(d.ray.distance[0], d.ray.direction[0], d.ray.point[0])
                a = store_ray(d, fields, a, -dot(hit - d.cam_xpos[obj], d.cam_xmat[obj].columns[2]))
    else:
        d.ray.exclude[0] = m.site_bodyid[obj]
        d.ray.point[0] = d.site_xpos[obj]
        d.ray.direction[0] = d.site_xmat[obj].columns[2]
        cast(m, d)
        store_ray(d, fields, a, d.ray.distance[0])
