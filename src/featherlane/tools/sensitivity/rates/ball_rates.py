"""Derivatives of springs and limits of ball joints, and of the springs of free joints.

A rotation by dr in the body's axes changes the rotation vector x by dexp^-1_x dr.  A spring with the coefficients
(k, c, e) has the force -s(|x|) x, s(r) = k + c r + e r^2.  A limit has the Jacobian -a, a the axis of the rotation.

p is the record of derivatives (records.py): p.dg, the derivative of the residual, that is of minus the spring's force;
p.dJ, the derivative of the row of a limit's Jacobian.  ball_deflection: x, from the spring's rest;
has_coefficients: mask of worlds with a spring; rotation_rate(x, dr) = dexp^-1_x dr.
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.ball import ball_axis_angle
from featherlane.engine.dynamics.body.force_laws import has_coefficients, vector_spring_law
from featherlane.engine.dynamics.integrator.runge_kutta import rotation_rate
from featherlane.engine.dynamics.passive.forces import ball_deflection, spring_coefficients
from featherlane.tools.sensitivity.rates.paths import unit3


@kernel
def _add_spring(p, coefficients, v, x, dx):
    """dg of the three dofs from v on -= df, the change of the spring's force by the change dx of its deflection x."""
    _, df = split_tangents(vector_spring_law(coefficients, seed(x, dx)), 1)
    dg = Vec3(p.dg[v : v + 3])
    # worlds without this spring stay unchanged
    p.dg[v : v + 3] = where(has_coefficients(coefficients), dg - df, dg)


@kernel
def add_vector_spring(m, d, p, i):
    """dg += derivatives of the spring of a ball or free joint by the position of its dof i."""
    j = m.dof_jntid[i]
    coefficients, dofadr, kind = spring_coefficients(m, j), m.jnt_dofadr[j], m.jnt_type[j]
    # springs of slides and hinges are in dof_rates.py
    if not is_scalar(kind) and any_(has_coefficients(coefficients)) and not (m.opt_disableflags & DISABLE_SPRING):
        if is_free_joint(kind) and i < dofadr + 3:
            # a translation of a free joint
            a = m.jnt_qposadr[j]
            deflection = Vec3(d.qpos[a : a + 3]) - Vec3(m.qpos_spring[a : a + 3])
            _add_spring(p, coefficients, dofadr, deflection, unit3(i - dofadr))
        else:
            first = dofadr + 3 if is_free_joint(kind) else dofadr
            deflection = ball_deflection(m, d, j)
            _add_spring(p, coefficients, first, deflection, rotation_rate(deflection, unit3(i - first)))


@kernel
def set_ball_dJ(m, d, p, j, k):
    """p.dJ <- -da, the derivative of the row of ball j's limit by the position of dof k of this ball."""
    dofadr, qposadr = m.jnt_dofadr[j], m.jnt_qposadr[j]
    q = Quat(d.qpos[qposadr : qposadr + 4]).unit
    half = 0.5 * unit3(k - dofadr)
    dq = q @ Quat(0.0, half.x, half.y, half.z)  # dq = q (0, dr) / 2 for the unit rotation dr
    _, (da, _) = split_tangents(ball_axis_angle(seed(q, dq)), 1)
    p.dJ[dofadr : dofadr + 3] = -Vec3(da)
