"""Computes velocities and momenta of subtrees."""

from featherlane.prelude import *
from featherlane.sensor.frame import inertial_mat, object_velocity


@kernel
def _own_momenta(m, d):
    """Writes each body's linear momentum, and its angular momentum about its centre of mass, to its subtree's rows."""
    for i in range(m.nbody):
        v, R, I = object_velocity(m, d, OBJ_BODY, i), inertial_mat(m, d, i), m.body_inertia[i]
        d.subtree_linvel[i] = m.body_mass[i] * v.linear
        w = R.T @ v.angular
        d.subtree_angmom[i] = R @ Vec3(I[0] * w[0], I[1] * w[1], I[2] * w[2])


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
    _own_momenta(m, d)
    for i in range(m.nbody - 1, -1, -1):
        momentum = d.subtree_linvel[i]
        if i > 0:
            p = m.body_parentid[i]
            d.subtree_linvel[p] += momentum
        d.subtree_linvel[i] = 1.0 / fmax(m.body_subtreemass[i], MINVAL) * momentum
    for i in range(m.nbody - 1, 0, -1):
        p = m.body_parentid[i]
        v = object_velocity(m, d, OBJ_BODY, i).linear
        com, linvel = d.subtree_com[i], d.subtree_linvel[i]
        _add_moment(d, i, d.xipos[i] - com, v - linvel, m.body_mass[i])
        d.subtree_angmom[p] += d.subtree_angmom[i]
        com, linvel = com - d.subtree_com[p], linvel - d.subtree_linvel[p]
        _add_moment(d, p, com, linvel, m.body_subtreemass[i])
