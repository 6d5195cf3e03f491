"""Contact frames: a unit normal completed to a right-handed set of axes, stored as the rows (n, t, n x t)."""

from featherlane.prelude import *

STEEP = 0.9  # x has no part across the normal to speak of


@kernel
def _rows(n, t):
    """The frame of a normal and a tangent."""
    b = cross(n, t)
    return n[0], n[1], n[2], t[0], t[1], t[2], b[0], b[1], b[2]


@kernel
def frame_of(n):
    """Frame of a unit normal: the first tangent is y made orthogonal to it, or z where the normal leans towards y.

    Source: MuJoCo mju_makeFrame, without a given tangent.
    """
    # e - (n . e) n
    upright = fabs(n[1]) < 0.5
    c = -where(upright, n[1], n[2])
    across = -(n[1] * n[2])
    t = (c * n[0], where(upright, fma(-n[1], n[1], 1.0), across), where(upright, across, fma(-n[2], n[2], 1.0)))
    return _rows(n, normalize3(t)[0])


@kernel
def turning_tangent(n, t):
    """How fast the frame (n, t) of `frame_of` spins about n while the normal turns: this vector times the turn.

    With t = (e - c n) / |e - c n| and c = n . e, and the normal carried along, dn = w x n:
    dt . (n x t) = c / sqrt(1 - c^2) t . w.
    """
    c = where(fabs(n[1]) < 0.5, n[1], n[2])
    return scale3(c / sqrt(fma(-c, c, 1.0)), t)


@kernel
def frame_along(n, a):
    """Frame of a unit normal whose first tangent follows the unit vector a; it is about x where a is the normal itself.

    Source: MuJoCo mju_makeFrame, with a given tangent.  Deviation: where a is the normal MuJoCo takes x as it is, which
        need not be orthogonal to the normal, and where a is all but the normal its tangent is not; on a horizontal
        plane the two agree.
    """
    t = axpy3(-dot3(n, a), n, a)
    parallel = norm3(t) < MINVAL

    # x, or y, made orthogonal to n
    steep = fabs(n[0]) > STEEP
    across = -(n[0] * n[1])
    x = (
        where(steep, across, fma(-n[0], n[0], 1.0)),
        where(steep, fma(-n[1], n[1], 1.0), across),
        where(steep, -(n[1] * n[2]), -(n[0] * n[2])),
    )
    t = normalize3((where(parallel, x[0], t[0]), where(parallel, x[1], t[1]), where(parallel, x[2], t[2])))[0]

    # once more: of an a close to the normal little was left, and that little held rounding along the normal
    return _rows(n, normalize3(axpy3(-dot3(n, t), n, t))[0])
