"""Computes contacts of an ellipsoid and a plane, in all worlds at once."""

from featherlane.prelude import *


@kernel
def plane_ellipsoid(p, n, c, R, size, margin):
    """Returns (touch, distance, point) of the plane through p and an ellipsoid at its lowest point, -S S u / |S u|.

    S = diag(size) and u is the plane's normal in the ellipsoid's frame.
    Source: MuJoCo mjc_PlaneConvex of an ellipsoid.
    """
    u = R.T @ n
    w = Vec3(u[0] * size[0], u[1] * size[1], u[2] * size[2])
    low = Vec3(-size[0] * w[0], -size[1] * w[1], -size[2] * w[2]) / norm3(w)
    lowest = R @ low + c
    dist = dot(lowest - p, n)
    return dist <= margin, dist, fma(-0.5 * dist, n, lowest)
