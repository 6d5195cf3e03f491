"""Rigid-body inertias as ten values about one point in world axes: Ixx Iyy Izz Ixy Ixz Iyz, m c, m.

c is the centre of mass relative to the point, and the rotational part is about the point.  Inertias about the same
point add component-wise; the composite-rigid-body algorithm uses this.
"""

from featherlane.engine.lanes import fma, join, kernel
from featherlane.engine.lanes.rows import operator
from featherlane.engine.spatial.motion import first3, last3
from featherlane.engine.spatial.types import Force, Inertia, Motion, Vec3
from featherlane.engine.spatial.vector import cross, cross_plus


@kernel
def rotational_momentum(I, w):
    """Returns J w, with the symmetric matrix J in the first six parts of I: xx, yy, zz, xy, xz, yz."""
    return Vec3(
        fma(I[0], w[0], fma(I[3], w[1], I[4] * w[2])),
        fma(I[3], w[0], fma(I[1], w[1], I[5] * w[2])),
        fma(I[4], w[0], fma(I[5], w[1], I[2] * w[2])),
    )


@operator("@", Inertia, Motion)
@kernel
def inert_mul(I, v):
    """Returns I v: the momentum of the motion v, or the force of the acceleration v.

    (J w + h x u, mass u + w x h) with v = (w, u), the rotational inertia J and h = mass c.
    """
    w = first3(v)
    u = last3(v)
    h = Vec3(I[6], I[7], I[8])
    mass = I[9]
    return Force(join(rotational_momentum(I, w) + cross(h, u), cross_plus(w, h, mass * u)))


@kernel
def inert_from_com(moments, R, c, mass):
    """Returns the ten values about a point: principal moments along the columns of R, centre of mass at c from it.

    J = R diag(moments) R^T + mass (|c|^2 1 - c c^T).
    Source: parallel axis theorem, Featherstone eq. 2.63.
    """
    # rows x, y, z of R diag(moments); row x of R is R[0:3], row y R[3:6], row z R[6:9]
    x0, x1, x2 = moments[0] * R[0], moments[1] * R[1], moments[2] * R[2]
    y0, y1, y2 = moments[0] * R[3], moments[1] * R[4], moments[2] * R[5]
    z0, z1, z2 = moments[0] * R[6], moments[1] * R[7], moments[2] * R[8]
    x, y, z = c
    mx, my, mz = mass * x, mass * y, mass * z
    return Inertia(
        fma(x0, R[0], fma(x1, R[1], x2 * R[2])) + fma(my, y, mz * z),
        fma(y0, R[3], fma(y1, R[4], y2 * R[5])) + fma(mx, x, mz * z),
        fma(z0, R[6], fma(z1, R[7], z2 * R[8])) + fma(mx, x, my * y),
        fma(-mx, y, fma(x0, R[3], fma(x1, R[4], x2 * R[5]))),
        fma(-mx, z, fma(x0, R[6], fma(x1, R[7], x2 * R[8]))),
        fma(-my, z, fma(y0, R[6], fma(y1, R[7], y2 * R[8]))),
        mx,
        my,
        mz,
        mass,
    )
