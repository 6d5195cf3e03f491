"""Computes the regressor of inverse dynamics: the forces of rigid bodies are linear in their inertial parameters.

The ten parameters of a body are its rotational inertia J about the origin of its frame, the mass times its centre of
mass h, and its mass, in the axes of the body and the order of `Inertia`: Ixx Iyy Izz Ixy Ixz Iyz, hx hy hz, mass.
With the angular velocity w and acceleration a of the body, and the acceleration c of its origin, which is -g at rest,

    force   mass c + a x h + w x (w x h)
    moment  J a + w x J w + h x c

about the origin.  A DoF moves the origin by t and the body by s, so that its generalized force is

    mass t . c  +  h . (c x s + t x a + w x (w x t))  +  s . J a + (s x w) . J w

Source: Atkeson, An, Hollerbach, Estimation of inertial parameters of manipulator loads and links (Int. J. Robotics
Research 5, 1986); here by motion axes, from the body to the root.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.body.jacobian import JACOBIAN
from featherlane.engine.dynamics.body.newton_euler import world_acceleration
from featherlane.engine.dynamics.body.object_motion import motion_at


@stage(jr=JACOBIAN)
def inertial_parameters(m, jr, body):
    """Computes the ten inertial parameters of a body at its origin, in its axes.

    J = R diag(I) R^T + mass (|c|^2 1 - c c^T), with the principal moments I and the centre of mass c.
    Reads:  body_mass, body_inertia, body_ipos, body_iquat.
    Writes: jac_parameters (10,) [kg m^2, kg m, kg].   Cost: O(1).
    """
    R = m.body_iquat[body].matrix
    jr.jac_parameters[0] = inert_from_com(m.body_inertia[body], R, m.body_ipos[body], m.body_mass[body])


@kernel
def _given_acceleration(m, d, jr, body):
    """Returns the acceleration of a body at the tree's com if the DoFs have the accelerations jac_qacc; -g at rest.

    a = -g + sum over the DoFs that move the body of S jac_qacc + dS/dt qvel.
    """
    a = world_acceleration(m)
    dof = m.body_lastdof[body]
    while dof >= 0:
        a = fma(d.qvel[dof], d.cdof_dot[dof], fma(jr.jac_qacc[dof], d.cdof[dof], a))
        dof = m.dof_parentid[dof]
    return a


@stage(jr=JACOBIAN)
def torque_regressor(m, d, jr, body):
    """Computes the derivative of inverse dynamics by the ten inertial parameters of a body, for each DoF.

    For each DoF that moves the body, these are the factors of J, h and the mass in the module's last formula.
    Source: Atkeson, An, Hollerbach 1986.
    Reads:  qvel, cdof, cdof_dot, cvel, xpos, xmat, subtree_com, opt_gravity, jac_qacc.
    Writes: jac_regressor (jac_nv, 10) [s^-2, m s^-2, m^2 s^-2].   Frame: of the body.   Cost: O(nv).
    """
    for dof in range(jr.jac_nv):
        jr.jac_regressor[dof] = zeros(10)
    R, origin = d.xmat[body], d.xpos[body]
    velocity = motion_at(m, d, d.cvel[body], body, origin)
    acceleration = motion_at(m, d, _given_acceleration(m, d, jr, body), body, origin)
    w, a = R.T @ velocity.angular, R.T @ acceleration.angular
    c = R.T @ (acceleration.linear + cross(velocity.angular, velocity.linear))
    dof = m.body_lastdof[body]
    while dof >= 0:
        S = motion_at(m, d, d.cdof[dof], m.dof_bodyid[dof], origin)
        s, t = R.T @ S.angular, R.T @ S.linear
        sw = cross(s, w)
        by_h = cross(c, s) + cross(t, a) + cross(w, cross(w, t))
        # an entry off the diagonal of J occurs twice in s . J a + (s x w) . J w
        jr.jac_regressor[dof] = Inertia(
            fma(s.x, a.x, sw.x * w.x),
            fma(s.y, a.y, sw.y * w.y),
            fma(s.z, a.z, sw.z * w.z),
            fma(s.x, a.y, s.y * a.x) + fma(sw.x, w.y, sw.y * w.x),
            fma(s.x, a.z, s.z * a.x) + fma(sw.x, w.z, sw.z * w.x),
            fma(s.y, a.z, s.z * a.y) + fma(sw.y, w.z, sw.z * w.y),
            by_h.x,
            by_h.y,
            by_h.z,
            dot(t, c),
        )
        dof = m.dof_parentid[dof]
