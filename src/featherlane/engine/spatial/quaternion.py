"""Rotations as unit quaternions (w, x, y, z): v_world = q v_local q*.

Products follow Hamilton, so that rotate(quat_mul(a, b), v) = rotate(a, rotate(b, v)).  Angular velocities are local.
"""

from featherlane.engine.lanes import any_, atan2, fabs, fma, fmax, kernel, not_, sincos, sqrt, where
from featherlane.engine.lanes.rows import attribute, operator
from featherlane.engine.spatial.types import Mat3, Quat, Vec3
from featherlane.engine.spatial.vector import MINVAL, cross, dot3, norm3

PI = 3.14159265358979323846
NEAR_UNIT = 1e-9  # distance of a squared length from 1, for `quat_renormalize`


@operator("@", Quat, Vec3)
@kernel
def rotate(q, v):
    """Returns q v q*: v rotated by q = (w, u), computed as v + 2 u x (u x v + w v)."""
    u = (q[1], q[2], q[3])
    return fma(2.0, cross(u, fma(q[0], Vec3(v), cross(u, v))), Vec3(v))


@operator("@", Quat, Quat)
@kernel
def quat_mul(a, b):
    """Returns a b: rotation b, then a."""
    return Quat(
        fma(a[0], b[0], -fma(a[1], b[1], fma(a[2], b[2], a[3] * b[3]))),
        fma(a[0], b[1], fma(a[1], b[0], fma(a[2], b[3], -(a[3] * b[2])))),
        fma(a[0], b[2], fma(a[2], b[0], fma(a[3], b[1], -(a[1] * b[3])))),
        fma(a[0], b[3], fma(a[3], b[0], fma(a[1], b[2], -(a[2] * b[1])))),
    )


@attribute(Quat, "T")
@kernel
def quat_conj(q):
    """Returns q*: the inverse rotation."""
    return Quat(q[0], -q[1], -q[2], -q[3])


@kernel
def square_length(q):
    """Returns |q|^2."""
    return fma(q[0], q[0], fma(q[1], q[1], fma(q[2], q[2], q[3] * q[3])))


@attribute(Quat, "unit")
@kernel
def quat_normalize(q):
    """Returns q scaled to unit length; a quaternion of length 0 becomes the identity, as in MuJoCo."""
    length = sqrt(square_length(q))
    return where(length < MINVAL, Quat(1.0, 0.0, 0.0, 0.0), 1.0 / fmax(length, MINVAL) * Quat(q))


@kernel
def quat_renormalize(q):
    """Returns a product of unit quaternions with unit length, as `quat_normalize`, near length 1 by a series.

    1 / |q| = 1 - (|q|^2 - 1) / 2 + ...; the next term is below 1e-18 there.  This saves a square root and a division:
    0.15 us in a tile of humanoids.
    """
    square = square_length(q)
    unit = fma(-0.5, square, 1.5) * Quat(q)
    far = not_(fabs(square - 1.0) <= NEAR_UNIT)
    if any_(far):
        unit = where(far, quat_normalize(q), unit)
    return unit


@attribute(Quat, "matrix")
@kernel
def quat_to_mat(q):
    """Returns the rotation matrix by rows.

    The diagonal is w^2 + x^2 - y^2 - z^2 and so on, which scales with |q|^2 like every other entry.
    """
    w, x, y, z = q
    ww, xx, yy, zz = w * w, x * x, y * y, z * z
    wx, wy, wz = w * x, w * y, w * z
    return Mat3(
        (ww + xx) - (yy + zz),
        2.0 * fma(x, y, -wz),
        2.0 * fma(x, z, wy),
        2.0 * fma(x, y, wz),
        (ww + yy) - (xx + zz),
        2.0 * fma(y, z, -wx),
        2.0 * fma(x, z, -wy),
        2.0 * fma(y, z, wx),
        (ww + zz) - (xx + yy),
    )


@kernel
def quat_z_axis(q):
    """Returns the third column of `quat_to_mat`."""
    w, x, y, z = q
    return Vec3(2.0 * fma(x, z, w * y), 2.0 * fma(y, z, -(w * x)), (w * w + z * z) - (x * x + y * y))


@kernel
def axis_angle_quat(axis, angle):
    """Returns the rotation by an angle [rad] about a unit axis."""
    s, c = sincos(0.5 * angle)
    return Quat(c, s * axis[0], s * axis[1], s * axis[2])


@kernel
def rotation_vector_quat(r):
    """Returns exp(r): the rotation by |r| rad about r."""
    angle = norm3(r)
    sine, cosine = sincos(0.5 * angle)
    # sin(angle / 2) / angle, which tends to 1/2
    s = where(angle < MINVAL, 0.5, sine / fmax(angle, MINVAL))
    return Quat(cosine, s * r[0], s * r[1], s * r[2])


@kernel
def _nonzero_quat(q):
    """Returns q, in worlds where its length is almost 0 `quat_normalize(q)`: a product with it can be normalised."""
    result = Quat(q)
    short = square_length(q) < 4.0 * MINVAL * MINVAL  # a length below 2 MINVAL
    if any_(short):
        result = where(short, quat_normalize(q), result)
    return result


@kernel
def quat_integrate(q, w, h):
    """Returns q exp(h w), normalised: q after h seconds of rotation at the local angular velocity w [rad/s].

    A quaternion of length 0 starts at the identity, as in MuJoCo.
    """
    q = _nonzero_quat(q)
    return quat_normalize(quat_mul(q, rotation_vector_quat((h * w[0], h * w[1], h * w[2]))))


@kernel
def quat_integrate_linear(q, w, h):
    """Returns q + h/2 q (0, w), normalised: `quat_integrate` to first order, same axis, angle 2 atan(h |w| / 2).

    With q = (q0, u):  q (0, w) = (-u . w, q0 w + u x w).
    """
    q = _nonzero_quat(q)
    u = Vec3(q[1], q[2], q[3])
    s = 0.5 * h
    vector = fma(s, fma(q[0], Vec3(w), cross(u, w)), u)
    return quat_normalize((fma(-s, dot3(u, w), q[0]), vector.x, vector.y, vector.z))


@kernel
def quat_log(q):
    """Returns the rotation vector [rad] of a unit quaternion, the shorter rotation: |result| <= pi."""
    sine = norm3((q[1], q[2], q[3]))  # of half the angle
    angle = 2.0 * atan2(sine, q[0])
    angle = where(angle > PI, angle - 2.0 * PI, angle)
    s = where(sine < MINVAL, 0.0, angle / fmax(sine, MINVAL))
    return Vec3(s * q[1], s * q[2], s * q[3])


@kernel
def quat_sub(a, b):
    """Returns the local rotation vector [rad] from b to a: a = b exp(result)."""
    return quat_log(quat_mul(quat_conj(b), a))
