"""Rangefinders: one ray along the z axis of a site, or one ray per pixel of a camera."""

from featherlane.prelude import *
from featherlane.collision.rays.ray import cast
from featherlane.collision.rays.ray_shape import FAR
from featherlane.sensor.camera import pixel_ray


@kernel
def see_visible_geoms(m, d):
    """Selects all geoms that are not fully transparent, at any distance."""
    n = 0
    for g in range(m.ngeom):
        if m.geom_visible[g]:
            d.ray.seen[n] = g
            n += 1
    d.ray.ngeom[0] = n
    d.ray.cutoff[0] = FAR


@kernel
def store_where(d, a, mask, v):
    """Writes v to sensor_now[a ..] in worlds of the mask, else zeros."""
    d.sensor_now[a : a + 3] = where(mask, v, Vec3(zeros(3)))


@kernel
def store_ray(d, fields, a, depth):
    """Writes the result of a ray, field by field from a on; returns the address of the next ray's values."""
    dist, p, v = d.ray.distance[0], d.ray.point[0], d.ray.direction[0]
    hit = d.ray.geom[0] >= 0.0
    if fields & RAYDATA_DIST:
        d.sensor_now[a] = dist
        a += 1
    if fields & RAYDATA_DIR:
        store_where(d, a, hit, v)
        a += 3
    if fields & RAYDATA_ORIGIN:
        d.sensor_now[a : a + 3] = p
        a += 3
    if fields & RAYDATA_POINT:
        store_where(d, a, hit, fma(dist, v, p))
        a += 3
    if fields & RAYDATA_NORMAL:
        store_where(d, a, hit, d.ray.normal[0])
        a += 3
    if fields & RAYDATA_DEPTH:
        d.sensor_now[a] = where(hit, depth, -1.0)
        a += 1
    return a


@kernel
def camera_depth(d, i):
    """Returns the depth of the hit point in front of camera i [m]."""
    point = fma(d.ray.distance[0], d.ray.direction[0], d.ray.point[0])
    return -dot(point - d.cam_xpos[i], d.cam_xmat[i].columns[2])


@stage
def rangefinder(m, d, i):
    """Writes sensor i: distances, points and normals of the first hits of its rays; its own body is excluded.

    Source: MuJoCo's documentation, XML reference, sensor/rangefinder.
    Reads:  frames of geoms, of sites, of cameras; geom_visible.
    Writes: sensor_now; ray.*.
    Cost: O(ngeom) per ray.
    """
    sensor = m.sensor[i]
    x, a, fields = sensor.objid, sensor.adr, sensor.intprm[0]
    see_visible_geoms(m, d)
    if sensor.objtype == OBJ_CAMERA:
        d.ray.exclude[0] = m.cam_bodyid[x]
        for row in range(m.cam_resolution[x, 1]):
            for column in range(m.cam_resolution[x, 0]):
                origin, direction = pixel_ray(m, d, x, column, row)
                d.ray.point[0] = origin
                d.ray.direction[0] = direction
                cast(m, d)
                a = store_ray(d, fields, a, camera_depth(d, x))
    else:
        d.ray.exclude[0] = m.site_bodyid[x]
        d.ray.point[0] = d.site_xpos[x]
        d.ray.direction[0] = d.site_xmat[x].columns[2]
        cast(m, d)
        a = store_ray(d, fields, a, d.ray.distance[0])
