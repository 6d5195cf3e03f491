"""Derivatives of fluid forces by position and velocity, with composite bodies.

The wrench on a body depends on its velocity relative to the fluid, in the body's axes.  With B^c, F^c the sums of its
velocity derivatives and of the wrenches over the bodies beyond a joint (dynamics/passive/fluid_derivative.py), and v
the velocity before the joint relative to the wind, dof k and each dof j from the root down to k have

    by velocity   dtau_j / dv_k = S_j . B^c_k S_k
                  dtau_k / dv_j = S_k . B^c_k S_j
    by position   the same with v x S in place of S, plus S_j . (S_k x* F^c_k) in the first line, except for j = k

The axes of one ball turn each other: there the term with F is omitted.  The residual's column p.dg (records.py)
contains -tau.  Row k of D lists the dofs on the path from the root through k (up to entry D_diag), then those that k
moves.  drag_times(d, b, x) is B^c_b x, drag_transposed_times B^c_b^T x; fluid_acts: some world of the tile has a fluid.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.passive.fluid import fluid_force, fluid_worlds
from featherlane.engine.dynamics.passive.fluid_derivative import (
    composite_drag,
    drag_times,
    drag_transposed_times,
    fluid_acts,
)
from featherlane.tools.sensitivity.rates.paths import before_joint, shares_quaternion


@kernel
def fluid_rates(m, d, p):
    """Computes dof_fluid = B^c^T S of each dof; crb_drag = B^c and cfrc_fluid = F^c of each body."""
    if fluid_acts(m):
        fluid_force(m, d)  # cfrc_fluid
        composite_drag(m, d, dissipative=0)  # crb_drag, added mass and lift included
        for k in range(m.nv):
            p.dof_fluid[k] = drag_transposed_times(d, m.dof_bodyid[k], d.cdof[k])


@kernel
def _subtract_drag(m, d, p, k, motion, carried):
    """dg -= dtau for a motion of the bodies beyond dof k relative to the fluid, S_k or v x S_k.

    carried: S_k x* F^c_k, the force that moves with the bodies; 0 by velocity.   Reads: dof_fluid of `fluid_rates`.
    """
    rowadr, diagonal = m.D_rowadr[k], m.D_diag[k]
    in_fluid = fluid_worlds(m)  # worlds with a fluid: the parameters of a tile's worlds may differ
    force = drag_times(d, m.dof_bodyid[k], motion)  # B^c_k motion
    for c in range(m.D_rownnz[k]):
        j = m.D_colind[rowadr + c]
        S = d.cdof[j]
        if c > diagonal:  # k moves j: (B^c_j^T S_j) . motion
            rate = dot(p.dof_fluid[j], motion)
        elif c == diagonal or shares_quaternion(m, j, k):  # j is k, or of the same ball: S_j . (B^c_k motion)
            rate = dot(S, force)
        else:  # j is closer to the root: also S_j . carried
            rate = dot(S, force + carried)
        p.dg[j] = where(in_fluid, p.dg[j] - rate, p.dg[j])


@kernel
def subtract_fluid_position(m, d, p, k):
    """dg -= derivatives of fluid forces by the position of dof k."""
    if fluid_acts(m):
        S, wind = d.cdof[k], m.opt_wind[0]
        v = before_joint(m, d, k, d.cvel, d.qvel)
        v = Motion(join(v.angular, v.linear - wind))  # relative to the wind
        motion = cross_motion(v, S)
        carried = cross_force(S, d.cfrc_fluid[m.dof_bodyid[k]])
        _subtract_drag(m, d, p, k, motion, carried)


@kernel
def subtract_fluid_velocity(m, d, p, k):
    """dg -= derivatives of fluid forces by the velocity of dof k."""
    if fluid_acts(m):
        _subtract_drag(m, d, p, k, motion=d.cdof[k], carried=Force(zeros(6)))
