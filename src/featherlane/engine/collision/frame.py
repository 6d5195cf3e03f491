"""Computes contact frames: a unit normal completed to a right-handed set of axes, stored as rows (n, t, n x t)."""

from featherlane.engine.prelude import *

STEEP = 0.9  # above this |n_x|, x is too close to the normal to define a tangent


@kernel
def _rows(n, t):
    """Returns the frame (n, t, n x t) of a unit normal and a unit tangent."""
    tangent2 = cross(n, t)
    return Mat3(join(n, t, tangent2))


@kernel
def frame_of(n):
    """Returns the frame of a unit normal n.  The first tangent is e made orthogonal to n: e - (n . e) n, normalized.

    e is the axis y, or z if n is close to +-y.
    Source: MuJoCo mju_makeFrame, without a given tangent.
    """
    # t = e + c n with c = -(n . e); `across` is the part of t along z if e = y, and along y if e = z
    e_is_y = fabs(n[1]) < 0.5  # mask
    c = -where(e_is_y, n[1], n[2])
    across = -(n[1] * n[2])
    t = Vec3(c * n[0], where(e_is_y, fma(-n[1], n[1], 1.0), across), where(e_is_y, across, fma(-n[2], n[2], 1.0)))
    return _rows(n, normalize3(t)[0])


@kernel
def spin_of_frame(n, t):
    """Returns s such that a small rotation w of n turns the frame (n, t, n x t) of `frame_of` about n by s . w.

    With `frame_of`'s axis e, t = (e - c n) / |e - c n| and c = n . e.  For dn = w x n, the turn is
    dt . (n x t) = c / sqrt(1 - c^2) t . w.
    """
    c = where(fabs(n[1]) < 0.5, n[1], n[2])  # e is y, or z if n is close to +-y
    return c / sqrt(fma(-c, c, 1.0)) * Vec3(t)


@kernel
def frame_along(n, along):
    """Returns the frame of a unit normal n whose first tangent follows the unit vector `along`.

    If `along` is the normal itself, the tangent follows x, or y if x is within STEEP of the normal.
    Source: MuJoCo mju_makeFrame, with a given tangent.  Deviation: if the two are equal, MuJoCo takes x unchanged,
        which need not be orthogonal to the normal.  If they are almost equal, MuJoCo's is not orthogonal either.
        On a horizontal plane the two agree.
    """
    t = fma(-dot(n, along), n, along)
    parallel = norm3(t) < MINVAL

    # e - (n . e) n with e = x, or y if n is within STEEP of x
    e_is_y = fabs(n[0]) > STEEP  # mask
    across = -(n[0] * n[1])
    fallback = Vec3(
        where(e_is_y, across, fma(-n[0], n[0], 1.0)),
        where(e_is_y, fma(-n[1], n[1], 1.0), across),
        where(e_is_y, -(n[1] * n[2]), -(n[0] * n[2])),
    )
    t = normalize3(where(parallel, fallback, t))[0]

    # orthogonalized twice: for a direction close to the normal, cancellation leaves a rounding error along the normal
    return _rows(n, normalize3(fma(-dot(n, t), n, t))[0])
