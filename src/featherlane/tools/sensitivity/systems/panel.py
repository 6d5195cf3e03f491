"""Converts rates of the residual to those of the acceleration and of the next state, four columns at once.

    da = -H^-1 dg;  K da* = M da + dp;  dv' = dv + h da*;  dq' as in tangent.py

A panel of columns (dynamics/sparse/tree_factor.py) is solved together.  If K is not symmetric or lacks M's pattern, the
columns are solved one by one (solution.py).  A column has the derivatives by one coordinate: da of the acceleration a,
da* of the integrator's acceleration, dq' and dv' of the next state, dact' of the next activations.

Fields of the record p (records.py): panel_acceleration (-dg, then da), panel_dp (dp), panel_step (M da + dp, then
da*), panel_act (dact'), each with the indices (dof, column); panel_at: the coordinate of each column; at: index of a
coordinate, positions by dof, then velocities, activations, controls; rate_steps: 1 if the call requests derivatives of
the next state, 0: those of the acceleration; report[KNOWN]: 1 in worlds in which all rates have formulas.
flat(panel_acceleration)[PANEL i + c] is entry (i, c).  `substitute_columns` and `solve_columns` overwrite a panel with
its solution, with the factor of the Hessian H or with a given factor.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.inertia.joint_space import multiply_joint_space, solve_columns
from featherlane.engine.dynamics.integrator.free_body import is_single_free_body
from featherlane.engine.dynamics.integrator.integrate import is_implicit
from featherlane.engine.dynamics.sparse.tree_factor import PANEL
from featherlane.engine.solver.hessian.equation import substitute_columns
from featherlane.engine.solver.primal.krylov import mark_slipping
from featherlane.engine.solver.rows.rows import compute_body_motions
from featherlane.tools.sensitivity.rates.records import KNOWN
from featherlane.tools.sensitivity.systems.solution import follow_bounds, step_column
from featherlane.tools.sensitivity.systems.tangent import advance_state


@kernel
def put_column(m, d, p, c, at):
    """Stores dg, dp and dact as column c of the panel.

    at: the column's coordinate, -1 for an unused column.
    """
    p.panel_at[c] = at
    for i in range(m.nv):
        flat(p.panel_acceleration)[PANEL * i + c] = -p.dg[i]
        flat(p.panel_dp)[PANEL * i + c] = p.dp[i]
    for a in range(m.na):
        p.panel_act[a, c] = p.dact[a]


@kernel
def _shares_factor(m):
    """Returns whether K has the pattern and the symmetry of M, so that a panel can be solved with its factor.

    Under implicit, K is not symmetric; under implicitfast, neither are its blocks of single free bodies.
    """
    shares = m.opt_integrator != IMPLICIT
    if m.opt_integrator == IMPLICITFAST:
        for i in range(1, m.nbody):
            if is_single_free_body(m, i):
                shares = False
    return shares


@kernel
def _follow_bounds(m, d, p):
    """panel_acceleration <- (1 - H^-1 N)^-1 panel_acceleration: bounds of friction follow the normal forces.

    N: derivative of the friction forces by their bounds.  report[KNOWN] <- 0 in worlds without a solution.
    """
    mark_slipping(d, true_mask(d))  # the contacts that slip, which `follow_bounds` reads
    # `follow_bounds` works in the memory of the Krylov method, which has finished
    for c in range(PANEL):
        for i in range(m.nv):
            d.krylov.newton[i] = flat(p.panel_acceleration)[PANEL * i + c]  # input of `follow_bounds`
        # krylov.x <- solution
        p.report[KNOWN] = where(follow_bounds(m, d), fmin(p.report[KNOWN], 0.0), p.report[KNOWN])
        for i in range(m.nv):
            flat(p.panel_acceleration)[PANEL * i + c] = d.krylov.x[i]
    # `follow_bounds` overwrites con_motion, which the next columns read
    compute_body_motions(m, d, d.qacc, d.con_motion)


@kernel
def solve_panel(m, d, p):
    """panel_acceleration <- da = -H^-1 dg of the main solver, from -dg; under Coulomb's law see `_follow_bounds`."""
    substitute_columns(m, d, p.panel_acceleration)
    if m.opt_contact_model == COULOMB:
        _follow_bounds(m, d, p)


@kernel
def step_panel(m, d, p, damped):
    """panel_step <- da* from da, if derivatives of the next state are requested (rate_steps).

        K is M (not `is_implicit`)         da* = da
        K has M's pattern                  da* = K^-1 (M da + dp); under euler da* = da in worlds that are not damped
        K has another (`_shares_factor`)   `take_column` computes da*; panel_step = da, which is not used

    In the second case with the no-slip solver, `correct_columns` has stored M da + dp in panel_step already.
    damped: see `is_damped`.
    """
    if m.opt_noslip_iterations == 0 and p.rate_steps and is_implicit(m) and _shares_factor(m):
        # M da + dp
        multiply_joint_space(m, d.M, p.panel_acceleration, p.panel_step)
        for i in range(m.nv):
            p.panel_step[i] = p.panel_step[i] + p.panel_dp[i]
    if p.rate_steps and is_implicit(m) and _shares_factor(m):
        # K^-1 (M da + dp), with the factor of K in qH
        solve_columns(m, d.qH, d.qHDiagInv, p.panel_step)
        # under euler, worlds without damping use the acceleration itself
        if m.opt_integrator == EULER:
            for i in range(m.nv):
                p.panel_step[i] = where(damped, p.panel_step[i], p.panel_acceleration[i])
    elif p.rate_steps:
        for i in range(m.nv):
            p.panel_step[i] = p.panel_acceleration[i]


@kernel
def take_column(m, d, p, c, damped):
    """Writes dact of column c, and

        without a next state (rate_steps = 0)              da
        with one, if K has M's pattern (`_shares_factor`)  dq and dv, from the da* of `step_panel`
        with one, if K has another pattern                 dq and dv, by `step_column` from da and dp

    damped: see `is_damped`.   Scratch: qacc_step.
    """
    at = 1.0 * p.panel_at[c]  # as a value
    for a in range(m.na):
        p.dact[a] = p.panel_act[a, c]
    # the result, or the input of `step_column`
    if p.rate_steps == 0 or not _shares_factor(m):
        for i in range(m.nv):
            p.da[i] = flat(p.panel_acceleration)[PANEL * i + c]
            p.dp[i] = flat(p.panel_dp)[PANEL * i + c]
    if p.rate_steps and not _shares_factor(m):
        step_column(m, d, p, at, damped)
    elif p.rate_steps:
        for i in range(m.nv):
            d.qacc_step[i] = flat(p.panel_step)[PANEL * i + c]  # da*
        advance_state(m, p, at, d.qacc_step)
