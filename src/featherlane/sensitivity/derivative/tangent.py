"""Derivatives of the next position by the present one and by the next velocity, in the tangent space.

q' = q (+) h v'.  A plain coordinate has dq' = dq + h dv'.  A quaternion turns by r = h w' in its own axes,
q' = q exp(r), and with rotations in each quaternion's own axes

    dq' = exp(-r) dq + J(r) h dw',      J(r) = 1 - (1 - cos t)/t^2 [r]x + (t - sin t)/t^3 [r]x^2,   t = |r|;

the linear update turns by the quaternion (1, r/2), normalised, and has J(r) = (1 - [r/2]x) / (1 + |r/2|^2).
Source: Sola, Deray, Atchuthan, A micro Lie theory for state estimation in robotics (2018), right Jacobian of SO(3).
"""

from featherlane.prelude import *

SMALL_ANGLE = 0.3  # below it, a series whose first neglected term is less than 1e-14


@kernel
def right_jacobian(r, x):
    """Returns J(r) x of the exponential."""
    z = dot(r, r)
    t = sqrt(z)
    small = t < SMALL_ANGLE
    s, _ = sincos(0.5 * t)
    whole, _ = sincos(t)
    size = fmax(z, SMALL_ANGLE * SMALL_ANGLE)
    first = where(
        small,
        0.5 + z * (-1.0 / 24.0 + z * (1.0 / 720.0 + z * (-1.0 / 40320.0 + z * (1.0 / 3628800.0)))),
        2.0 * s * s / size,
    )
    second = where(
        small,
        1.0 / 6.0 + z * (-1.0 / 120.0 + z * (1.0 / 5040.0 + z * (-1.0 / 362880.0 + z * (1.0 / 39916800.0)))),
        (t - whole) / (size * fmax(t, SMALL_ANGLE)),
    )
    rx = cross(r, x)
    return fma(second, cross(r, rx), fma(-first, rx, x))


@kernel
def linear_jacobian(r, x):
    """Returns J(r) x of the linear update."""
    u = 0.5 * r
    return 1.0 / (1.0 + dot(u, u)) * (x - cross(u, x))


@kernel
def quaternion_tangent(m, r):
    """Computes the columns of J(r) and of exp(-r)."""
    axes = Vec3(1.0, 0.0, 0.0), Vec3(0.0, 1.0, 0.0), Vec3(0.0, 0.0, 1.0)
    if m.opt_rotation == INFINITESIMAL:
        p = Quat(1.0, 0.5 * r.x, 0.5 * r.y, 0.5 * r.z).unit.T
        J = tuple(linear_jacobian(r, x) for x in axes)
    else:
        p = rotation_vector_quat(r).T
        J = tuple(right_jacobian(r, x) for x in axes)
    return J, tuple(p @ x for x in axes)


@kernel
def advance_quaternion(J, back, x, dq):
    """Returns J x + exp(-r) dq for the columns of both."""
    y = fma(x.z, J[2], fma(x.y, J[1], x.x * J[0]))
    return fma(dq.z, back[2], fma(dq.y, back[1], fma(dq.x, back[0], y)))


@kernel
def advance_tangent(m, dq, dv, velocity, h, out):
    """out <- dq' for the displacement dq of the position and dv of the next velocity, which is `velocity`."""
    for j in range(m.njnt):
        v, kind = m.jnt_dofadr[j], m.jnt_type[j]
        if is_free_joint(kind):
            out[v : v + 3] = fma(h, Vec3(dv[v : v + 3]), Vec3(dq[v : v + 3]))
            v += 3
        if has_quaternion(kind):
            J, back = quaternion_tangent(m, h * Vec3(velocity[v : v + 3]))
            x = h * Vec3(dv[v : v + 3])
            out[v : v + 3] = advance_quaternion(J, back, x, Vec3(dq[v : v + 3]))
        else:
            out[v] = dq[v] + h * dv[v]
