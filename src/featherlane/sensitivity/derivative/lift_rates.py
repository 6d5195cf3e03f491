"""Derivatives of gravity compensation by position: compensated weights, with composite bodies.

The compensated part s_i of the weight of body i is a force -s_i m_i g at its centre of mass, fixed in direction.
With the momentum p_j = sum over the bodies beyond dof j of s_i m_i (v + w x c_i) of its axis (w, v), the compensation
tau changes by

    dtau_j / dq_k = -p_l . (g x w_u)        u the upper of both dofs, l the lower one

It is symmetric, as weights have a potential.  The dofs of one ball turn each other's axes: there u = k, l = j.
Source: Carpentier, Mansard, Analytical derivatives of rigid body dynamics algorithms (RSS 2018), for composite bodies.
"""

from featherlane.prelude import *
from featherlane.dynamics.passive.forces import has_gravity_compensation
from featherlane.sensitivity.derivative.smooth_rates import turns_with


@kernel
def lift(m, d, p):
    """Computes for each dof the momentum of the compensated weights beyond it."""
    if has_gravity_compensation(m):
        for i in range(1, m.nbody):
            mass = m.body_gravcomp[i] * m.body_mass[i]
            arm = d.xipos[i] - d.subtree_com[m.body_rootid[i]]
            p.body_lift[i] = join((mass,), mass * arm)
        for i in range(m.nbody - 1, 0, -1):
            parent, first = m.body_parentid[i], m.body_dofadr[i]
            mass, moment = p.body_lift[i].mass, p.body_lift[i].first_moment
            for k in range(first, first + m.body_dofnum[i]):
                w, v = d.cdof[k].angular, d.cdof[k].linear
                p.dof_lift[k] = fma(mass, v, cross(w, moment))
            if parent > 0:
                p.body_lift[parent] += p.body_lift[i]


@kernel
def _tilted(m, d, k):
    """Returns g x w of dof k."""
    return cross(m.opt_gravity[0], d.cdof[k].angular)


@kernel
def _share(m, d, j):
    """Returns 1 if dof j has the compensation, 0 if actuators would add it but are off, or their sum is clamped."""
    joint, share = m.dof_jntid[j], 1.0
    if m.jnt_actgravcomp[joint]:
        if m.nactuator == 0 or m.opt_disableflags & DISABLE_ACTUATION:
            share = 0.0
        elif m.jnt_actfrclimited[joint] and is_scalar(m.jnt_type[joint]):
            f = d.qfrc_actuator[j]
            inside = (f > m.jnt_actfrcrange[joint].lower) & (f < m.jnt_actfrcrange[joint].upper)
            share = where(inside, share, 0.0)
    return share


@kernel
def subtract_lift(m, d, p, k):
    """dg -= rates of gravity compensation by the position of dof k."""
    if has_gravity_compensation(m):
        a, above, own, tilted = m.D_rowadr[k], m.D_diag[k], p.dof_lift[k], _tilted(m, d, k)
        for c in range(m.D_rownnz[k]):
            j = m.D_colind[a + c]
            if c >= above or turns_with(m, j, k):
                rate = dot(p.dof_lift[j], tilted)
            else:
                rate = dot(own, _tilted(m, d, j))
            p.dg[j] = fma(_share(m, d, j), rate, p.dg[j])
