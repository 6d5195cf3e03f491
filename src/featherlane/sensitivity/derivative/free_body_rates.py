"""Derivatives of the gyroscopic part of implicitfast's K at single free bodies.

    p = -h G(w) a*,    G the velocity derivatives of the bias (dynamics/integrator/free_body.py), bilinear

Its force keeps its components in the body's axes if the body turns; its moment is stored in these axes.
"""

from featherlane.prelude import *
from featherlane.dynamics.integrator.free_body import bias_rate, is_single_free_body


@kernel
def add_free_body(m, d, p, k, by_velocity):
    """dp += rates of p of a single free body by the position or the velocity of its rotation k."""
    i, v = m.dof_bodyid[k], m.jnt_dofadr[m.dof_jntid[k]]
    if is_single_free_body(m, i) and k >= v + 3:
        h, R, axis = timestep(m), d.xmat[i], d.cdof[k].angular
        # columns that are solved one by one overwrite qacc_step = a*
        turn = R @ (Vec3(d.qacc[v + 3 : v + 6]) - Vec3(p.taken_off[v + 3 : v + 6]))
        if by_velocity:
            f, moment = bias_rate(m, d, i, axis, turn)
            p.dp[v + 3 : v + 6] = fma(-h, R.T @ moment, Vec3(p.dp[v + 3 : v + 6]))
        else:
            f, _ = bias_rate(m, d, i, R @ Vec3(d.qvel[v + 3 : v + 6]), turn)
            f = cross(axis, f)
        p.dp[v : v + 3] = fma(-h, f, Vec3(p.dp[v : v + 3]))
