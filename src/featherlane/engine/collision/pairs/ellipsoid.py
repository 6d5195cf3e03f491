"""Computes contacts of an ellipsoid and a plane, in all worlds at once."""

from featherlane.engine.prelude import *


@kernel
def plane_ellipsoid(p, n, c, R, size, margin):
    """Returns (touch, distance, point) of a plane and an ellipsoid, from the ellipsoid's lowest point -S S u / |S u|.

    S = diag(size), and u is the plane's normal in the ellipsoid's frame.
    p, n: a point of the plane and its normal; c, R, size: centre, orientation and semi-axes of the ellipsoid; margin:
    largest distance of a contact [m].
    Source: MuJoCo mjc_PlaneConvex of an ellipsoid.
    """
    u = R.T @ n
    Su = Vec3(u[0] * size[0], u[1] * size[1], u[2] * size[2])
    lowest_local = Vec3(-size[0] * Su[0], -size[1] * Su[1], -size[2] * Su[2]) / norm3(Su)
    lowest = R @ lowest_local + c
    dist = dot(lowest - p, n)
    return dist <= margin, dist, fma(-0.5 * dist, n, lowest)
