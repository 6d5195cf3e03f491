"""Converts rates of the residual to those of the acceleration and of the next state, four columns at once.

    da = -H^-1 dg;  K da* = M da + dp;  dv' = dv + h da*;  dq' as in tangent.py

A panel of columns (dynamics/sparse/tree_panel.py) is solved together.  If K is not symmetric or lacks M's pattern, the
columns are solved one by one (solution.py).
"""

from featherlane.prelude import *
from featherlane.dynamics.inertia.joint_space import multiply_columns, solve_columns
from featherlane.dynamics.integrator.free_body import is_single_free_body
from featherlane.dynamics.sparse.tree_panel import PANEL
from featherlane.sensitivity.derivative.noslip_rates import correct_columns
from featherlane.sensitivity.derivative.solution import KNOWN, follow_bounds, is_implicit, step_column
from featherlane.sensitivity.derivative.tangent import advance_quaternion, quaternion_tangent
from featherlane.solver.hessian.equation import substitute_columns
from featherlane.solver.primal.krylov import mark_slipping
from featherlane.solver.rows.rows import compute_body_motions


@kernel
def put_column(m, d, p, c, at):
    """Writes column c of the panel, of coordinate `at`, with the next activations' rates from dact."""
    p.panel_at[c] = at
    for i in range(m.nv):
        p.panel_acceleration[i, c] = -p.dg[i]
        p.panel_lag[i, c] = p.dp[i]
    for a in range(m.na):
        p.panel_act[a, c] = p.dact[a]


@kernel
def _goes_together(m):
    """Returns whether K has the pattern and the symmetry of M."""
    together = m.opt_integrator != IMPLICIT
    if m.opt_integrator == IMPLICITFAST:
        for i in range(1, m.nbody):
            if is_single_free_body(m, i):
                together = False
    return together


@kernel
def prepare_panels(m, p):
    """Computes dof_tangent and dof_back: derivatives of quaternions' next positions by the next velocity, next_qvel."""
    for j in range(m.njnt):
        v, kind = m.jnt_dofadr[j], m.jnt_type[j]
        if has_quaternion(kind):
            v = v + 3 if is_free_joint(kind) else v
            J, back = quaternion_tangent(m, timestep(m) * Vec3(p.next_qvel[v : v + 3]))
            for c in range(3):
                p.dof_tangent[v + c] = J[c]
                p.dof_back[v + c] = back[c]


@kernel
def _follow_bounds(m, d, p):
    """Runs `follow_bounds` for all columns of the panel."""
    mark_slipping(d, true_mask(d))
    for c in range(PANEL):
        for i in range(m.nv):
            d.krylov.newton[i] = p.panel_acceleration[i, c]
        p.report[KNOWN] = where(follow_bounds(m, d), fmin(p.report[KNOWN], 0.0), p.report[KNOWN])
        for i in range(m.nv):
            p.panel_acceleration[i, c] = d.krylov.x[i]
    compute_body_motions(m, d, d.qacc, d.con_motion)  # the next columns read it


@kernel
def solve_panel(m, d, p, damped):
    """panel_acceleration <- da; panel_step <- da* if rates of the next state are requested; damped: see `is_damped`."""
    substitute_columns(m, d, p.panel_acceleration)
    if m.opt_contact_model == COULOMB:
        _follow_bounds(m, d, p)
    if m.opt_noslip_iterations > 0:
        correct_columns(m, d, p)
    elif p.rate_steps and is_implicit(m) and _goes_together(m):
        multiply_columns(m, d.M, p.panel_acceleration, p.panel_step)
        for e in range(PANEL * m.nv):
            p.panel_step[e] = p.panel_step[e] + p.panel_lag[e]
    if p.rate_steps and is_implicit(m) and _goes_together(m):
        solve_columns(m, d.qH, d.qHDiagInv, p.panel_step)
        if m.opt_integrator == EULER:
            for e in range(PANEL * m.nv):
                p.panel_step[e] = where(damped, p.panel_step[e], p.panel_acceleration[e])
    elif p.rate_steps:
        for e in range(PANEL * m.nv):
            p.panel_step[e] = p.panel_acceleration[e]


@kernel
def _unit(at, i):
    """Returns 1 if coordinate `at` is number i, else 0."""
    return 1.0 if at == i else 0.0


@kernel
def _displacement(at, v):
    """Returns the displacement of the dofs v to v + 2 by coordinate `at`."""
    return Vec3(_unit(at, v + c) for c in range(3))


@kernel
def _next_position(m, d, p, at):
    """Computes dq' of coordinate `at` from dv'."""
    h = timestep(m)
    for j in range(m.njnt):
        v, kind = m.jnt_dofadr[j], m.jnt_type[j]
        if is_free_joint(kind):
            p.dq[v : v + 3] = fma(h, Vec3(p.dv[v : v + 3]), _displacement(at, v))
            v += 3
        if has_quaternion(kind):
            J, back = tuple(tuple(a[v + c] for c in range(3)) for a in (p.dof_tangent, p.dof_back))
            x = h * Vec3(p.dv[v : v + 3])
            p.dq[v : v + 3] = advance_quaternion(J, back, x, _displacement(at, v))
        else:
            p.dq[v] = _unit(at, v) + h * p.dv[v]


@kernel
def take_column(m, d, p, c, damped):
    """Writes da, or dq' and dv', and dact', of column c of the panel."""
    at, h = p.panel_at[c], timestep(m)
    for a in range(m.na):
        p.dact[a] = p.panel_act[a, c]
    if p.rate_steps == 0 or not _goes_together(m):
        for i in range(m.nv):
            p.da[i] = p.panel_acceleration[i, c]
            p.dp[i] = p.panel_lag[i, c]
    if p.rate_steps and not _goes_together(m):
        step_column(m, d, p, 1.0 * at, damped)
    elif p.rate_steps:
        for i in range(m.nv):
            p.dv[i] = fma(h, p.panel_step[i, c], _unit(at, m.nv + i))
        _next_position(m, d, p, at)
