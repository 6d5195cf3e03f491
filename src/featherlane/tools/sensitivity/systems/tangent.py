"""Derivatives of the next position by the present one and by the next velocity, in the tangent space.

q' = q (+) h v'.  A plain coordinate has dq' = dq + h dv'.  A quaternion turns by r = h w' in its own axes,
q' = q exp(r), and with rotations in each quaternion's own axes

    dq' = exp(-r) dq + J(r) h dw',      J(r) = 1 - (1 - cos t)/t^2 [r]x + (t - sin t)/t^3 [r]x^2,   t = |r|;

the linear update turns by the quaternion (1, r/2), normalised, and has J(r) = (1 - [r/2]x) / (1 + |r/2|^2).
r: rotation vector h w' in the quaternion's axes [rad]; rotation_vector_quat(r): the quaternion exp(r); q.T its inverse.
Fields of the record p (records.py): dq, dv, the column dq' and dv' of one coordinate.
Source: Sola, Deray, Atchuthan, A micro Lie theory for state estimation in robotics (2018), right Jacobian of SO(3).
"""

from featherlane.engine.prelude import *
from featherlane.tools.sensitivity.rates.coordinates import delta

SMALL_ANGLE = 0.3  # below it, a series whose first neglected term is less than 1e-14


@kernel
def right_jacobian(r, u):
    """Returns J(r) u = u - (1 - cos t)/t^2 r x u + (t - sin t)/t^3 r x (r x u), t = |r|: the right Jacobian of SO(3).

    Below SMALL_ANGLE the two coefficients are series.
    """
    tt = dot(r, r)
    t = sqrt(tt)
    small = t < SMALL_ANGLE
    sin_half, _ = sincos(0.5 * t)
    sin_t, _ = sincos(t)
    safe_tt = fmax(tt, SMALL_ANGLE * SMALL_ANGLE)  # avoids a division by 0 in worlds that use the series
    # (1 - cos t) / t^2; 1 - cos t = 2 sin(t / 2)^2 avoids cancellation
    cos_coefficient = where(
        small,
        0.5 + tt * (-1.0 / 24.0 + tt * (1.0 / 720.0 + tt * (-1.0 / 40320.0 + tt * (1.0 / 3628800.0)))),
        2.0 * sin_half * sin_half / safe_tt,
    )
    # (t - sin t) / t^3
    sin_coefficient = where(
        small,
        1.0 / 6.0 + tt * (-1.0 / 120.0 + tt * (1.0 / 5040.0 + tt * (-1.0 / 362880.0 + tt * (1.0 / 39916800.0)))),
        (t - sin_t) / (safe_tt * fmax(t, SMALL_ANGLE)),
    )
    r_x_u = cross(r, u)
    return fma(sin_coefficient, cross(r, r_x_u), fma(-cos_coefficient, r_x_u, u))


@kernel
def linear_jacobian(r, x):
    """Returns J(r) x of the linear update, (1 - [u]x) x / (1 + |u|^2) with u = r / 2."""
    u = 0.5 * r
    return 1.0 / (1.0 + dot(u, u)) * (x - cross(u, x))


@kernel
def quaternion_tangent(m, r):
    """Returns (the three columns of J(r), the three columns of exp(-r)) for the update that the model uses."""
    axes = Vec3(1.0, 0.0, 0.0), Vec3(0.0, 1.0, 0.0), Vec3(0.0, 0.0, 1.0)
    if m.opt_rotation == INFINITESIMAL:
        # the linear update turns by the quaternion (1, r/2), normalised
        back = Quat(1.0, 0.5 * r.x, 0.5 * r.y, 0.5 * r.z).unit.T
        J = tuple(linear_jacobian(r, x) for x in axes)
    else:
        back = rotation_vector_quat(r).T
        J = tuple(right_jacobian(r, x) for x in axes)
    return J, tuple(back @ x for x in axes)


@kernel
def store_next_velocity(m, d, p, acceleration):
    """next_qvel <- v' = qvel + h a; dof_tangent, dof_back <- columns of J(r) and exp(-r), which all columns share.

    acceleration: a of the integrator.
    """
    h = timestep(m)
    for i in range(m.nv):
        p.next_qvel[i] = fma(h, acceleration[i], d.qvel[i])
    for j in range(m.njnt):
        v, kind = m.jnt_dofadr[j], m.jnt_type[j]
        if has_quaternion(kind):
            v += 3 if is_free_joint(kind) else 0  # the rotations follow the translations
            J, back = quaternion_tangent(m, h * Vec3(p.next_qvel[v : v + 3]))
            for c in range(3):
                p.dof_tangent[v + c] = J[c]
                p.dof_back[v + c] = back[c]


@kernel
def advance_state(m, p, at, acceleration):
    """dq, dv <- dq', dv', the derivatives of the next state by coordinate `at`, a value.

    acceleration: derivative of the integrator's acceleration by this coordinate.
    Reads: what `store_next_velocity` writes.
    """
    h = timestep(m)
    for i in range(m.nv):
        p.dq[i] = delta(at, i)  # dq of the present position
        p.dv[i] = fma(h, acceleration[i], delta(at, m.nv + i))
    for j in range(m.njnt):
        v, kind = m.jnt_dofadr[j], m.jnt_type[j]
        if is_free_joint(kind):
            p.dq[v : v + 3] = fma(h, Vec3(p.dv[v : v + 3]), Vec3(p.dq[v : v + 3]))
            v += 3
        if has_quaternion(kind):
            J, back = tuple(tuple(columns[v + c] for c in range(3)) for columns in (p.dof_tangent, p.dof_back))
            x, dq = h * Vec3(p.dv[v : v + 3]), Vec3(p.dq[v : v + 3])
            # J(r) x + exp(-r) dq
            y = fma(x.z, J[2], fma(x.y, J[1], x.x * J[0]))
            p.dq[v : v + 3] = fma(dq.z, back[2], fma(dq.y, back[1], fma(dq.x, back[0], y)))
        else:
            p.dq[v] = p.dq[v] + h * p.dv[v]
