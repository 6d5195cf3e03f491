"""Derivatives of springs and limits of ball joints, and of the springs of free joints.

A rotation by dr in the body's axes changes the rotation vector v by dexp^-1_v dr.  A spring has the force -s(|v|) v.  A
limit has the Jacobian -a, a = v / |v|, and with t = |v|

    da = cot(t / 2) / 2 (dr - a (a . dr)) + a x dr / 2
"""

from featherlane.prelude import *
from featherlane.constraint.ball import ball_axis_angle
from featherlane.dynamics.integrator.runge_kutta import rotation_rate
from featherlane.dynamics.passive.forces import ball_deflection, is_sprung, spring_coefficients


@kernel
def unit3(c):
    """Returns the unit vector along axis c."""
    return Vec3(1.0 if i == c else 0.0 for i in range(3))


@kernel
def _add_spring(p, k, v, x, dx):
    """dg of the three dofs from v on += rates of a spring's force at the deflection x with the change dx."""
    r, along, dg = norm3(x), dot(x, dx), Vec3(p.dg[v : v + 3])
    s = fma(r, fma(r, k[2], k[1]), k[0])
    rate = fma(2.0 * r, k[2], k[1]) * along / where(r > 0.0, r, 1.0)
    p.dg[v : v + 3] = where(is_sprung(k), dg + fma(s, dx, rate * x), dg)


@kernel
def add_vector_spring(m, d, p, i):
    """dg += rates of the spring of a ball or free joint by the position of its dof i."""
    j = m.dof_jntid[i]
    k, v, kind = spring_coefficients(m, j), m.jnt_dofadr[j], m.jnt_type[j]
    if not is_scalar(kind) and any_(is_sprung(k)) and not (m.opt_disableflags & DISABLE_SPRING):
        if is_free_joint(kind) and i < v + 3:
            a = m.jnt_qposadr[j]
            _add_spring(p, k, v, Vec3(d.qpos[a : a + 3]) - Vec3(m.qpos_spring[a : a + 3]), unit3(i - v))
        else:
            v = v + 3 if is_free_joint(kind) else v
            x = ball_deflection(m, d, j)
            _add_spring(p, k, v, x, rotation_rate(x, unit3(i - v)))


@kernel
def set_ball_bend(m, d, p, j, k):
    """ten_bend <- the derivative of the row of ball j's limit by the position of dof k."""
    v, at = m.jnt_dofadr[j], m.jnt_qposadr[j]
    axis, angle = ball_axis_angle(Quat(d.qpos[at : at + 4]).unit)
    a, x = Vec3(axis), unit3(k - v)
    s, c = sincos(0.5 * angle)
    turned = fma(-dot(a, x), a, x)
    half = 0.5 * c / fmax(s, MINVAL)
    b = fma(half, turned, 0.5 * cross(a, x))
    p.ten_bend[v : v + 3] = -b
