"""Chooses the geoms whose surfaces the rays of a block of pixels, or any bundle of rays, can meet.

A bundle of rays lies within the distance rho + slope t of its axis, at the distance t along the axis.
The caller lists the candidates, geoms that the camera may see, in camera.candidate, and sets camera.clip, the
distances of the near and far planes [m].  SLACK, slightly above 1, scales bounding spheres, so that rounding misses no
grazing ray.
camera.ncandidate is the number of candidates.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.rays.ray import SLACK
from featherlane.engine.collision.rays.shapes import radius_of
from featherlane.engine.sensor.camera import image_ray


@kernel
def near_bundle(m, d, g, origin, axis, rho, slope):
    """Returns (mask: geom g comes near the bundle, t, r) with the bounding sphere of the geom.

    origin, axis: start and direction of the bundle's axis.
    The sphere has the radius r, and its centre the distance t along the axis.  It touches the cone of radius rho +
    slope t if its distance from the axis is at most rho + slope t + r sqrt(1 + slope^2).  The test uses t + r in place
    of t, with which it is weaker.  A sphere behind the origin, t + r < 0, is not near.
    """
    r = SLACK * radius_of(m.geom_type[g], m.geom_size[g], m.geom_rbound[g])
    centre = d.geom_xpos[g] - origin
    t = dot(centre, axis)
    off_axis = norm3(fma(-t, axis, centre))
    widening = sqrt(fma(slope, slope, 1.0))
    return (t + r >= 0.0) & (off_axis <= rho + slope * fmax(t + r, 0.0) + widening * r), t, r


@kernel
def bundle_of_block(m, d, i, image, corner, extent):
    """Returns (origin, axis, rho, slope) of the rays through a block of pixels; arguments of `choose_geoms`."""
    column, row = corner
    ncolumn, nrow = extent
    # the axis is the ray through the block's centre; image_ray adds half a pixel
    origin, axis = image_ray(m, d, i, image, column + 0.5 * ncolumn - 0.5, row + 0.5 * nrow - 0.5)
    # rho: largest distance of an origin from the axis' origin; slope: largest slope of a ray from the axis
    rho, slope = 0.0, 0.0
    for k in range(4):
        # the ray through a corner of the block: k % 2 right, k // 2 below
        start, direction = image_ray(m, d, i, image, column + ncolumn * (k % 2) - 0.5, row + nrow * (k // 2) - 0.5)
        rho = fmax(rho, norm3(start - origin))
        cosine = dot(direction, axis)
        slope = fmax(slope, sqrt(fmax(1.0 - cosine * cosine, 0.0)) / cosine)  # tangent of the angle to the axis
    return origin, axis, rho, slope


@kernel
def choose_geoms(m, d, i, image, corner, extent):
    """ray.seen <- the candidates whose bounding spheres come near a block of pixels; ray.ngeom <- their number.

    Candidates behind the far plane are left out.

    Args:
        i: the camera; -1: the free one.
        image: (width, height) [pixels].
        corner: (column, row) of the block's first pixel.
        extent: (columns, rows) of the block.
    """
    origin, axis, rho, slope = bundle_of_block(m, d, i, image, corner, extent)
    backwards = d.camera.xmat[0].columns[2]  # a camera looks along -z
    far = d.camera.clip[1]
    n = 0
    for k in range(d.camera.ncandidate[0]):
        g = d.camera.candidate[k]
        near, _, r = near_bundle(m, d, g, origin, axis, rho, slope)
        before_far = -dot(d.geom_xpos[g] - origin, backwards) - r <= far
        # a plane has no bounding sphere
        if m.geom_type[g] == PLANE or any_(near & before_far):
            d.ray.seen[n] = g
            n += 1
    d.ray.ngeom[0] = n
