"""Computes contacts of an ellipsoid and a plane, in all worlds at once."""

from featherlane.prelude import *


@kernel
def plane_ellipsoid(p, n, c, R, size, margin):
    """Returns (touch, distance, point) of the plane through p and an ellipsoid at its lowest point, -S S u / |S u|.

    S = diag(size) and u is the plane's normal in the ellipsoid's frame.
    Source: MuJoCo mjc_PlaneConvex of an ellipsoid.
    """
    u = mat_t_mul_vec(R, n)
    w = u[0] * size[0], u[1] * size[1], u[2] * size[2]
    length = norm3(w)
    low = -size[0] * w[0] / length, -size[1] * w[1] / length, -size[2] * w[2] / length
    lowest = mat_mul_vec(R, low) + c
    dist = dot3(lowest - p, n)
    return dist <= margin, dist, axpy3(-0.5 * dist, n, lowest)
