"""Computes contact frames: a unit normal completed to a right-handed set of axes, stored as rows (n, t, n x t)."""

from featherlane.prelude import *

STEEP = 0.9  # above this |n_x|, x is too close to the normal to define a tangent


@kernel
def _rows(n, t):
    """Returns the frame of a normal and a tangent."""
    b = cross(n, t)
    return Mat3(join(n, t, b))


@kernel
def frame_of(n):
    """Returns the frame of a unit normal.  The first tangent is y made orthogonal to n, or z if n is close to +-y.

    Source: MuJoCo mju_makeFrame, without a given tangent.
    """
    # e - (n . e) n
    upright = fabs(n[1]) < 0.5
    c = -where(upright, n[1], n[2])
    across = -(n[1] * n[2])
    t = Vec3(c * n[0], where(upright, fma(-n[1], n[1], 1.0), across), where(upright, across, fma(-n[2], n[2], 1.0)))
    return _rows(n, normalize3(t)[0])


@kernel
def turning_tangent(n, t):
    """Returns the vector whose dot product with a rotation of n is the spin of the frame (n, t) of `frame_of` about n.

    With t = (e - c n) / |e - c n| and c = n . e, and a rotation of the normal dn = w x n:
    dt . (n x t) = c / sqrt(1 - c^2) t . w.
    """
    c = where(fabs(n[1]) < 0.5, n[1], n[2])
    return c / sqrt(fma(-c, c, 1.0)) * Vec3(t)


@kernel
def frame_along(n, a):
    """Returns the frame of a unit normal whose first tangent follows the unit vector a, or x if a is the normal itself.

    Source: MuJoCo mju_makeFrame, with a given tangent.  Deviation: if a is the normal, MuJoCo takes x unchanged, which
        need not be orthogonal to the normal.  If a is almost the normal, MuJoCo's tangent is not orthogonal either.
        On a horizontal plane the two agree.
    """
    t = fma(-dot(n, a), n, a)
    parallel = norm3(t) < MINVAL

    # x, or y, made orthogonal to n
    steep = fabs(n[0]) > STEEP
    across = -(n[0] * n[1])
    x = Vec3(
        where(steep, across, fma(-n[0], n[0], 1.0)),
        where(steep, fma(-n[1], n[1], 1.0), across),
        where(steep, -(n[1] * n[2]), -(n[0] * n[2])),
    )
    t = normalize3(where(parallel, x, t))[0]

    # orthogonalized twice: for a close to the normal, cancellation leaves a rounding error along the normal
    return _rows(n, normalize3(fma(-dot(n, t), n, t))[0])
