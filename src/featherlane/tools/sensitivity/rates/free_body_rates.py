"""Derivatives of the gyroscopic part of implicitfast's K at single free bodies.

    p = -h G(w) a*,    G the velocity derivatives of the bias (dynamics/integrator/free_body.py), bilinear

G(w) a* is `bias_rate`, (force, moment) in world axes for the angular velocity w and the angular part alpha of a*.
Its force keeps its components in the body's axes if the body turns; its moment is stored in these axes.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.integrator.free_body import bias_rate, is_single_free_body


@kernel
def add_free_body(m, d, p, k, by_velocity):
    """dp += derivatives of the correction p by the position of dof k, a rotation of a single free body.

    by_velocity: 1: by the velocity of dof k instead.
    p.dp is the column of derivatives in the record p (records.py); p.taken_off = qacc - a*.
    """
    body, dofadr = m.dof_bodyid[k], m.jnt_dofadr[m.dof_jntid[k]]
    # the first three dofs are translations, by which G does not change
    if is_single_free_body(m, body) and k >= dofadr + 3:
        h, R, axis = timestep(m), d.xmat[body], d.cdof[k].angular
        # angular part of a* = qacc - taken_off; columns that are solved one by one overwrite qacc_step = a*
        alpha = R @ (Vec3(d.qacc[dofadr + 3 : dofadr + 6]) - Vec3(p.taken_off[dofadr + 3 : dofadr + 6]))
        if by_velocity:
            # G is linear in w, which changes by the axis: its derivative is G(axis)
            force_change, moment_change = bias_rate(m, d, body, axis, alpha)
            p.dp[dofadr + 3 : dofadr + 6] = fma(-h, R.T @ moment_change, Vec3(p.dp[dofadr + 3 : dofadr + 6]))
        else:
            # the force turns with the body; the moment is constant in the body's axes
            force, _ = bias_rate(m, d, body, R @ Vec3(d.qvel[dofadr + 3 : dofadr + 6]), alpha)
            force_change = cross(axis, force)
        p.dp[dofadr : dofadr + 3] = fma(-h, force_change, Vec3(p.dp[dofadr : dofadr + 3]))
