"""Chooses the geoms whose surfaces the rays of a block of pixels, or any bundle of rays, can meet."""

from featherlane.prelude import *
from featherlane.collision.rays.ray import SLACK
from featherlane.collision.rays.shapes import radius_of
from featherlane.sensor.camera import image_ray


@kernel
def near_bundle(m, d, g, origin, axis, rho, slope):
    """Returns (near, t, r): whether geom g comes near rays that lie within rho + slope t of an axis at distance t.

    t, r: its bounding sphere's distance along the axis, and its radius.
    """
    r = SLACK * radius_of(m.geom_type[g], m.geom_size[g], m.geom_rbound[g])
    c = d.geom_xpos[g] - origin
    t = dot(c, axis)
    off, wider = norm3(fma(-t, axis, c)), sqrt(fma(slope, slope, 1.0))
    return (t + r >= 0.0) & (off <= rho + slope * fmax(t + r, 0.0) + wider * r), t, r


@kernel
def choose_geoms(m, d, i, image, corner, extent):
    """Sets ray.seen to the candidates whose bounding spheres come near a block of pixels, before the far plane.

    All rays of a block lie within the distance rho + tan t of its central ray at its distance t.

    Args:
        i: the camera.
        image: (width, height) [pixels].
        corner, extent: (column, row) of the block's first pixel, (columns, rows) of the block.
    """
    (column, row), (wide, high), far = corner, extent, d.camera.clip[1]
    optical = d.cam_xmat[i].columns[2]
    origin, axis = image_ray(m, d, i, image, column + 0.5 * wide - 0.5, row + 0.5 * high - 0.5)
    rho, slope = 0.0, 0.0
    for k in range(4):
        start, way = image_ray(m, d, i, image, column + wide * (k % 2) - 0.5, row + high * (k // 2) - 0.5)
        rho, along = fmax(rho, norm3(start - origin)), dot(way, axis)
        slope = fmax(slope, sqrt(fmax(1.0 - along * along, 0.0)) / along)
    n = 0
    for k in range(d.camera.ncandidate[0]):
        g = d.camera.candidate[k]
        near, _, r = near_bundle(m, d, g, origin, axis, rho, slope)
        within = -dot(d.geom_xpos[g] - origin, optical) - r <= far
        if m.geom_type[g] == PLANE or any_(near & within):
            d.ray.seen[n] = g
            n += 1
    d.ray.ngeom[0] = n
