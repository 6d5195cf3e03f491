"""Derivatives of gravity compensation by position: compensated weights, with composite bodies.

The compensated part s_i of the weight of body i is a force -s_i m_i g at its centre of mass, fixed in direction.
With the momentum p_j = sum over the bodies beyond dof j of s_i m_i (v + w x c_i) of its axis (w, v), the compensation
tau changes by

    dtau_j / dq_k = -p_l . (g x w_u)        u the upper of both dofs, l the lower one

Its matrix is symmetric, as weights have a potential.  The dofs of one ball turn each other's axes: there u = k, l = j.
Row k of D lists the dofs on the path from the root through k (up to entry D_diag), then those that k moves.  p is the
record of derivatives (records.py), p.dg the derivative of the residual, which contains -tau.
Source: Carpentier, Mansard, Analytical derivatives of rigid body dynamics algorithms (RSS 2018), for composite bodies.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.passive.forces import has_gravity_compensation
from featherlane.tools.sensitivity.rates.paths import shares_quaternion


@kernel
def prepare_lift(m, d, p):
    """dof_lift <- for each dof the momentum p_j of the compensated weights beyond it.

    body_lift <- sums of s_i m_i and of s_i m_i c_i over each body and its descendants.
    """
    if has_gravity_compensation(m):
        for i in range(1, m.nbody):
            mass = m.body_gravcomp[i] * m.body_mass[i]
            arm = d.xipos[i] - d.subtree_com[m.body_rootid[i]]
            p.body_lift[i] = join((mass,), mass * arm)
        # leaves first: each body's sums are complete before they are added to its parent's
        for i in range(m.nbody - 1, 0, -1):
            parent, first = m.body_parentid[i], m.body_dofadr[i]
            mass, moment = p.body_lift[i].mass, p.body_lift[i].first_moment
            for k in range(first, first + m.body_dofnum[i]):
                w, v = d.cdof[k].angular, d.cdof[k].linear
                # p_k = (sum of s m) v + w x (sum of s m c)
                p.dof_lift[k] = fma(mass, v, cross(w, moment))
            if parent > 0:
                p.body_lift[parent] += p.body_lift[i]


@kernel
def _gravity_cross_axis(m, d, k):
    """Returns g x w of dof k, w the angular part of its axis."""
    return cross(m.opt_gravity[0], d.cdof[k].angular)


@kernel
def _applied_share(m, d, j):
    """Returns the share of the compensation that acts on dof j, 1 or 0.

    The share is 0 if actuators apply the compensation (actgravcomp) and there are none, they are off, or their sum is
    clamped.
    """
    joint, share = m.dof_jntid[j], 1.0
    if m.jnt_actgravcomp[joint]:
        if m.nactuator == 0 or m.opt_disableflags & DISABLE_ACTUATION:
            share = 0.0
        # only slides and hinges have limits of actuator forces
        elif m.jnt_actfrclimited[joint] and is_scalar(m.jnt_type[joint]):
            f = d.qfrc_actuator[j]
            is_unclamped = (f > m.jnt_actfrcrange[joint].lower) & (f < m.jnt_actfrcrange[joint].upper)
            share = where(is_unclamped, share, 0.0)
    return share


@kernel
def subtract_lift(m, d, p, k):
    """dg -= derivatives of gravity compensation by the position of dof k.   Reads: dof_lift of `prepare_lift`."""
    if has_gravity_compensation(m):  # else dof_lift is not computed
        rowadr, diagonal, momentum = m.D_rowadr[k], m.D_diag[k], p.dof_lift[k]
        gravity_cross = _gravity_cross_axis(m, d, k)
        for c in range(m.D_rownnz[k]):
            j = m.D_colind[rowadr + c]
            # rate = p_l . (g x w_u) = -dtau_j / dq_k: the upper dof u is k if k moves j or both are of one ball, else j
            if c >= diagonal or shares_quaternion(m, j, k):
                rate = dot(p.dof_lift[j], gravity_cross)
            else:
                rate = dot(momentum, _gravity_cross_axis(m, d, j))
            p.dg[j] = fma(_applied_share(m, d, j), rate, p.dg[j])
