"""Derivatives of the gyroscopic part of implicitfast's K at single free bodies.

    p = -h G(w) a*,    G the velocity derivatives of the bias (dynamics/integrator/free_body.py), bilinear

G(w) a* is `bias_rate`, (force, moment) in world axes for the angular velocity w and the angular part alpha of a*.
Its force keeps its components in the body's axes if the body turns; its moment is stored in these axes.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.integrator.free_body import bias_rate, is_single_free_body


@kernel
def add_free_body(m, d, p, k, by_velocity):
    """dp += derivatives of p of a single free body by the position of its rotation k, or its velocity if `by_velocity`.

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
            force, moment = bias_rate(m, d, body, axis, alpha)
            p.dp[dofadr + 3 : dofadr + 6] = fma(-h, R.T @ moment, Vec3(p.dp[dofadr + 3 : dofadr + 6]))
        else:
            # the force turns with the body: axis x force
            force, _ = bias_rate(m, d, body, R @ Vec3(d.qvel[dofadr + 3 : dofadr + 6]), alpha)
            force = cross(axis, force)
        p.dp[dofadr : dofadr + 3] = fma(-h, force, Vec3(p.dp[dofadr : dofadr + 3]))
