"""Rigid-body inertias as ten values about one point in world axes: Ixx Iyy Izz Ixy Ixz Iyz, m c, m.

c is the centre of mass relative to the point, and the rotational part is about the point.  Inertias about the same
point add component-wise; the composite-rigid-body algorithm uses this.
"""

from featherlane.lanes import fma, kernel
from featherlane.lanes.rows import operator
from featherlane.spatial.types import Force, Inertia, Motion


@operator("@", Inertia, Motion)
@kernel
def inert_mul(I, v):
    """Returns I v: the momentum of the motion v, or the force of the acceleration v."""
    return Force(
        fma(I[0], v[0], fma(I[3], v[1], I[4] * v[2])) + fma(I[7], v[5], -(I[8] * v[4])),
        fma(I[3], v[0], fma(I[1], v[1], I[5] * v[2])) + fma(I[8], v[3], -(I[6] * v[5])),
        fma(I[4], v[0], fma(I[5], v[1], I[2] * v[2])) + fma(I[6], v[4], -(I[7] * v[3])),
        fma(I[8], v[1], fma(-I[7], v[2], I[9] * v[3])),
        fma(I[6], v[2], fma(-I[8], v[0], I[9] * v[4])),
        fma(I[7], v[0], fma(-I[6], v[1], I[9] * v[5])),
    )


@kernel
def inert_from_com(moments, R, c, mass):
    """Returns the ten values about the origin of c: principal moments along the columns of R, centre of mass at c.

    Source: parallel axis theorem, Featherstone eq. 2.63.
    """
    # R diag(moments)
    a0, a1, a2 = moments[0] * R[0], moments[1] * R[1], moments[2] * R[2]
    b0, b1, b2 = moments[0] * R[3], moments[1] * R[4], moments[2] * R[5]
    c0, c1, c2 = moments[0] * R[6], moments[1] * R[7], moments[2] * R[8]
    x, y, z = c
    mx, my, mz = mass * x, mass * y, mass * z
    return Inertia(
        fma(a0, R[0], fma(a1, R[1], a2 * R[2])) + fma(my, y, mz * z),
        fma(b0, R[3], fma(b1, R[4], b2 * R[5])) + fma(mx, x, mz * z),
        fma(c0, R[6], fma(c1, R[7], c2 * R[8])) + fma(mx, x, my * y),
        fma(-mx, y, fma(a0, R[3], fma(a1, R[4], a2 * R[5]))),
        fma(-mx, z, fma(a0, R[6], fma(a1, R[7], a2 * R[8]))),
        fma(-my, z, fma(b0, R[6], fma(b1, R[7], b2 * R[8]))),
        mx,
        my,
        mz,
        mass,
    )
