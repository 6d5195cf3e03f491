"""Residual of the equation of motion at a given acceleration, to which the implicit function theorem is applied.

    g(a; x, u) = M a + c - tau - J^T f(J a - aref)

is zero at the acceleration of forward dynamics, so da = -H^-1 dg, with dg at fixed a and H = dg/da the Hessian of the
solver.  An integrator that treats forces implicitly uses another acceleration, K a* = tau - c + J^T f with
K = M - h D.  Its derivative also needs  p = M a - K a*  at fixed a and a*:  K da* = M da + dp.
Neither needs a solver: g is inverse dynamics minus the given forces.
Source: MuJoCo documentation, Computation, "Inverse dynamics"; the implicit function theorem.
"""

from featherlane.prelude import *
from featherlane.collision.collision import collision
from featherlane.constraint.diagonal import wants_exact
from featherlane.constraint.row import make_general_rows
from featherlane.dynamics.actuator.activation import advance_activations
from featherlane.dynamics.body.com import com_pos, com_vel
from featherlane.dynamics.body.kinematics import frames, kinematics
from featherlane.dynamics.body.link import link_positions
from featherlane.dynamics.body.xfrc import add_xfrc
from featherlane.dynamics.inertia.articulated import inertia_times
from featherlane.dynamics.integrator.continuous import times_euler, times_fast, times_implicit
from featherlane.dynamics.integrator.discrete import discrete_metric
from featherlane.dynamics.integrator.implicit import implicit_acceleration, implicit_again
from featherlane.dynamics.integrator.integrate import (
    damps_implicitly,
    euler_acceleration,
    euler_again,
    implicitfast_acceleration,
    implicitfast_again,
)
from featherlane.dynamics.tendon.length import tendon, tendon_velocity
from featherlane.model.integrator import has_metric
from featherlane.sensitivity.derivative.points import move_pos
from featherlane.simulation.step.consistency import inverse_constraint, inverse_force
from featherlane.simulation.step.early_contacts import early_contacts, forces_need_contacts
from featherlane.simulation.step.forward import control_and_actuate, forward_position, forward_velocity
from featherlane.simulation.tile.rows import load_worlds
from featherlane.solver.primal.problem import bounded_force


# ---- the metric of the integrator ------------------------------------------------------------------------------------
@kernel
def is_implicit(m):
    """Returns whether the integrator uses another acceleration than that of forward dynamics."""
    damps = m.opt_integrator == EULER and not (m.opt_disableflags & (DISABLE_EULERDAMP | DISABLE_DAMPER))
    return damps or m.opt_integrator == IMPLICIT or m.opt_integrator == IMPLICITFAST


@kernel
def implicit_product(m, d, x, y):
    """y <- K x; returns the mask of worlds with a separate K (undamped worlds use a itself)."""
    other = true_mask(d)
    if m.opt_integrator == IMPLICIT:
        times_implicit(m, d, x, y)
    elif m.opt_integrator == IMPLICITFAST:
        times_fast(m, d, x, y)
    else:
        other = times_euler(m, d, x, y)
    return other


@kernel
def implicit_acceleration_of(m, d, free):
    """qacc_step <- K^-1 (qfrc_smooth + qfrc_constraint); `free`: the integrator uses the acceleration itself."""
    if m.opt_integrator == IMPLICIT:
        implicit_acceleration(m, d)
    elif m.opt_integrator == IMPLICITFAST:
        implicitfast_acceleration(m, d)
    elif m.opt_integrator == EULER:
        euler_acceleration(m, d, free)
    else:
        for i in range(m.nv):
            d.qacc_step[i] = free[i]


@kernel
def is_damped(m, d):
    """Returns the mask of worlds whose integrator has a separate K."""
    damped = true_mask(d)
    if m.opt_integrator == EULER:
        damped = damps_implicitly(m, d)
    return damped


@kernel
def implicit_rates(m, d, x, free, damped):
    """qacc_step <- K^-1 x after `implicit_acceleration_of`, with its factor; `free`: K is M.

    qfrc_smooth also holds x; damped is the mask of `is_damped`.
    """
    if m.opt_integrator == IMPLICIT:
        implicit_again(m, d, x)
    elif m.opt_integrator == IMPLICITFAST:
        implicitfast_again(m, d, x)
    else:
        euler_again(m, d, x)
        for i in range(m.nv):
            d.qacc_step[i] = where(damped, d.qacc_step[i], free[i])


# ---- the residual ----------------------------------------------------------------------------------------------------
@kernel
def compute_position(m, d):
    """Computes all that depends on the position; returns 1 if contacts do not fit, and are detected again later."""
    forward_position(m, d)
    d.con_fresh[0] = 0
    if forces_need_contacts(m):
        early_contacts(m, d)
    else:
        collision(m, d)
    return d.con_overflow[0]


@kernel
def set_lag(m, d, p, x, lag):
    """lag <- p = M x - K a*, 0 unless the integrator is implicit."""
    for i in range(m.nv):
        lag[i] = zero(d)
    if is_implicit(m):
        inertia_times(m, d, x, p.product)
        other = implicit_product(m, d, d.qacc_step, p.force)
        for i in range(m.nv):
            lag[i] = where(other, p.product[i] - p.force[i], 0.0)


@kernel
def step_residual(m, d, p, overflow, g, lag):
    """Computes g, lag and the next activations, at qvel, act, ctrl, qacc and qacc_step, after `compute_position`.

    Args:
        overflow: what `compute_position` returned.
        g, lag: rows to write.
    """
    forward_velocity(m, d)
    control_and_actuate(m, d)
    if has_metric(m):
        discrete_metric(m, d)
    d.con_overflow[0], d.con_fresh[0] = overflow, 1
    inverse_constraint(m, d, store=0)
    inverse_force(m, d)
    for i in range(m.nv):
        p.force[i] = d.qfrc_applied[i] + d.qfrc_actuator[i]
    add_xfrc(m, d, p.force)
    for i in range(m.nv):
        g[i] = d.qfrc_inverse[i] - p.force[i]
    set_lag(m, d, p, d.qacc, lag)
    advance_activations(m, d, d.act_dot)


# ---- general rows, to the fourth order -------------------------------------------------------------------------------
# An equality may move by many times its dof's displacement, and its impedance changes within a millimetre: a central
# difference over 2e-7 of a dof that moves it 14 times as far has an error of 1e-5.  Richardson extrapolation of these
# rows alone removes this error, with kinematics and rows at two more points.
@kernel
def subtract_general_forces(m, d, g):
    """g -= J^T f of the general rows at qacc."""
    make_general_rows(m, d)
    for k in range(d.ngenrow[0]):
        o, x = d.genrow_dofadr[k], zero(d)
        for e in range(o, o + d.genrow_dofnum[k]):
            x = fma(d.genrow_J[e], d.qacc[d.genrow_dof[e]], x)
        f, _ = bounded_force(d.genrow_D[k], x - d.genrow_aref[k], d.genrow_lo[k], d.genrow_hi[k])
        for e in range(o, o + d.genrow_dofnum[k]):
            i = d.genrow_dof[e]
            g[i] = fma(-d.genrow_J[e], f, g[i])


@kernel
def place_bodies(m, d):
    """Computes bodies and tendons at the position."""
    kinematics(m, d)
    frames(m, d)
    com_pos(m, d)
    link_positions(m, d)
    tendon(m, d)


@kernel
def _forces(m, d, b, thread, tile, at, step, q):
    """q <- -J^T f of the general rows at a displaced position."""
    load_worlds(b, thread, tile)
    move_pos(m, d, at, step)
    place_bodies(m, d)
    com_vel(m, d)
    tendon_velocity(m, d)
    for i in range(m.nv):
        q[i] = zero(d)
    subtract_general_forces(m, d, q)


@kernel
def unrefined(m, d, b, p, thread, tile, at, up, down):
    """Leaves dg unchanged."""
    pass


@kernel
def refine_equalities(m, d, b, p, thread, tile, at, up, down):
    """dg, central differences of a residual over up + down, <- with the rates of general rows refined.

    (4 D(h) - D(2h)) / 3 = D(h) + (D(h) - D(2h)) / 3, with D the central differences of these rows alone in the bracket.
    """
    # equalities with separate rows: not in the metric of a step and not by the exact diagonal
    if m.neq > 0 and not has_metric(m) and not wants_exact(m):
        span = up + down
        scale = where(span > 0.0, 1.0 / 3.0, 0.0) / where(span > 0.0, span, 1.0)
        for reach in unrolled(range(1, 3)):
            _forces(m, d, b, thread, tile, at, reach * up, p.upper_force)
            _forces(m, d, b, thread, tile, at, -(reach * down), p.lower_force)
            weight = scale if reach == 1 else -0.5 * scale
            for i in range(m.nv):
                p.dg[i] = fma(weight, p.upper_force[i] - p.lower_force[i], p.dg[i])
