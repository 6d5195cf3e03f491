"""Computes velocities and momenta of subtrees."""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.body.object_motion import inertial_mat, object_velocity


@kernel
def _store_own_momenta(m, d):
    """subtree_linvel, subtree_angmom <- each body's linear momentum, and angular momentum about its centre of mass."""
    for i in range(m.nbody):
        vel = object_velocity(m, d, OBJ_BODY, i)
        R = inertial_mat(m, d, i)
        inertia = m.body_inertia[i]
        d.subtree_linvel[i] = m.body_mass[i] * vel.linear
        # R diag(inertia) R^T w, in the principal axes
        w = R.T @ vel.angular
        d.subtree_angmom[i] = R @ Vec3(inertia[0] * w[0], inertia[1] * w[1], inertia[2] * w[2])


@kernel
def _add_moment(d, i, arm, velocity, mass):
    """Adds arm x mass velocity to the angular momentum of subtree i."""
    d.subtree_angmom[i] = fma(mass, cross(arm, velocity), d.subtree_angmom[i])


@stage
def subtree_vel(m, d):
    """Computes the velocity of each subtree's centre of mass, and the subtree's angular momentum about it.

    L_i = sum over the bodies b below: I_b w_b + (c_b - c_i) x m_b (v_b - v_i), accumulated from the leaves.  A step
    runs this stage if a sensor of the model needs it, a batch also if a result is bound.
    Source: MuJoCo mj_subtreeVel.
    Reads:  cvel, xipos, xquat, subtree_com.
    Writes: subtree_linvel (nbody, 3) [m/s], subtree_angmom (nbody, 3) [kg m^2/s].   Frame: world.   Cost: O(nbody).
    """
    _store_own_momenta(m, d)
    # momenta of subtrees, leaves first, divided by their masses
    for i in range(m.nbody - 1, -1, -1):
        momentum = d.subtree_linvel[i]
        if i > 0:
            parent = m.body_parentid[i]
            d.subtree_linvel[parent] += momentum
        d.subtree_linvel[i] = 1.0 / fmax(m.body_subtreemass[i], MINVAL) * momentum
    for i in range(m.nbody - 1, 0, -1):
        parent = m.body_parentid[i]
        v = object_velocity(m, d, OBJ_BODY, i).linear
        com, linvel = d.subtree_com[i], d.subtree_linvel[i]
        # the body itself, relative to its subtree's centre of mass
        _add_moment(d, i, d.xipos[i] - com, v - linvel, m.body_mass[i])
        # the subtree, relative to the centre of mass of its parent's
        d.subtree_angmom[parent] += d.subtree_angmom[i]
        arm, relative = com - d.subtree_com[parent], linvel - d.subtree_linvel[parent]
        _add_moment(d, parent, arm, relative, m.body_subtreemass[i])
