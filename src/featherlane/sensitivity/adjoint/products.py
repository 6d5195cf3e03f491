"""Costates step by step backwards through tiles of worlds: products with a step's derivatives, none of which is formed.

With l' = (l'_q, l'_v, l'_a) by the next state, and  q' = q (+) h v',  v' = v + h a*,  K a* = M a - p,  g(a; x, u) = 0,

    m = l'_v + h J^T l'_q             by the next velocity, J the right Jacobian of tangent.py
    z = K^-1 h m,  y = H^-1 M z       (where the integrator takes the acceleration itself: y = H^-1 h m, no z)
    l_c = -y . dg_c + z . dp_c + (what q, v and activations give x' directly)

for each coordinate c: one solve in all, where the derivative itself takes one for each column.  The rates dg_c, dp_c at
fixed acceleration are those of the formulas.
Source: implicit function theorem, transposed; Griewank and Walther, Evaluating Derivatives (2008), ch. 15.
"""

from featherlane.prelude import *
from featherlane.dynamics.inertia.articulated import inertia_times
from featherlane.sensitivity.derivative.columns import FITS, NEAREST
from featherlane.sensitivity.derivative.formulas import KNOWN, begin_step, rates_column
from featherlane.sensitivity.derivative.implicit_passes import EPS
from featherlane.sensitivity.derivative.rates import RATES
from featherlane.sensitivity.derivative.residual import implicit_rates, is_implicit
from featherlane.sensitivity.derivative.tangent import linear_jacobian, right_jacobian
from featherlane.simulation.tile.rows import read_controls, write_records
from featherlane.simulation.tile.tiles import in_each_tile
from featherlane.solver.hessian.equation import leaves_out, substitute

REPORTS = 2  # numbers of a step besides its gradients: KNOWN, NEAREST


@kernel
def pull_tangent(m, d, velocity, h, position, out):
    """position <- by the position what it was by the next one; out += by the next velocity."""
    for j in range(m.njnt):
        v, kind = m.jnt_dofadr[j], m.jnt_type[j]
        if is_free(kind):
            for c in range(3):
                out[v + c] = fma(h, position[v + c], out[v + c])
            v += 3
        if has_quaternion(kind):
            r, x = scale3(h, load3(velocity, v)), load3(position, v)
            # J(r)^T = J(-r)
            back = scale3(real(d, -1.0), r)
            if m.opt_rotation == INFINITESIMAL:
                p = quat_normalize((real(d, 1.0), 0.5 * r[0], 0.5 * r[1], 0.5 * r[2]))
                turned = linear_jacobian(back, x)
            else:
                p = rotation_vector_quat(r)
                turned = right_jacobian(back, x)
            store3(out, v, add3(load3(out, v), scale3(h, turned)))
            store3(position, v, rotate(p, x))
        else:
            out[v] = fma(h, position[v], out[v])


@kernel
def add_loss(m, d):
    """Costates (rk.rate, rk.velocity, rk.act_dot) += how the loss moves with this state directly."""
    for i in range(m.nv):
        d.rk.rate[i] = d.rk.rate[i] + d.primal.grad[i]
        d.rk.velocity[i] = d.rk.velocity[i] + d.qfrc_inverse[i]
    for a in range(m.na):
        d.rk.act_dot[a] = d.rk.act_dot[a] + d.rk.act[a]


@kernel
def solve_costate(m, d, damped):
    """rk_acceleration <- y, qacc_step <- z, rk.rate and rk.velocity <- what x' has of q and v directly."""
    h = timestep(m)
    pull_tangent(m, d, d.rk.qvel, h, d.rk.rate, d.rk.velocity)
    for i in range(m.nv):
        d.qvec[i] = h * d.rk.velocity[i]
        d.qacc_step[i] = zero(d)
    if is_implicit(m):
        for i in range(m.nv):
            d.qfrc_smooth[i] = d.qvec[i]
            d.qfrc_constraint[i] = zero(d)
        implicit_rates(m, d, d.qfrc_smooth, d.qvec, damped)
        inertia_times(m, d, d.qacc_step, d.primal.Ma)
        for i in range(m.nv):
            d.qvec[i] = where(damped, d.primal.Ma[i], d.qvec[i])
            d.qacc_step[i] = where(damped, d.qacc_step[i], 0.0)
    substitute(m, d, d.qvec)
    for i in range(m.nv):
        d.rk.acceleration[i] = d.qvec[i]


@kernel
def reach(m, d, c):
    """How far coordinate c moves up and down where forces are differenced: a control not out of its range."""
    up = real(d, EPS)
    down = up
    i = c - (2 * m.nv + m.na)
    if i >= 0:
        u = d.ctrl[i]
        if m.actuator_ctrllimited[i]:
            low, high = m.actuator_ctrlrange[2 * i], m.actuator_ctrlrange[2 * i + 1]
            up = where((u >= low) & (u + EPS <= high), up, 0.0)
            down = where((u - EPS >= low) & (u <= high), down, 0.0)
    return up, down


@kernel
def product(m, d, t, c):
    """l_c: the gradient by coordinate c, of which dof_g, dof_p and rk.act have the rates."""
    x = zero(d)
    for i in range(m.nv):
        x = fma(d.qacc_step[i], t.dof_p[i], fma(-d.rk.acceleration[i], t.dof_g[i], x))
    if c < m.nv:
        x = x + d.rk.rate[c]
    elif c < 2 * m.nv:
        x = x + d.rk.velocity[c - m.nv]
    else:
        for a in range(m.na):
            x = fma(d.rk.act_dot[a], d.rk.act[a], x)
    return x


@kernel
def give(d, b, thread, tile, W, k, value):
    """Number k of a tile's worlds."""
    d.qacc_smooth[0] = value
    write_records(b, thread, tile, W, k)


@stage(t=RATES)
def adjoint_steps_of_tile(m, d, b, t, thread, tile):
    """Costates before each step of the worlds of a tile, and gradients by its controls, from the last step on.

    What comes from the call for each step: the state, the costate after it, the loss's own gradient there.  What goes
    back, number by number: gradients by positions, velocities, activations and controls; whether formulas serve; how
    near a switch is.
    Reads:  the rows that the transfers of b bring in, among them rk.rate, rk.velocity, rk.act_dot, primal.grad,
            qfrc_inverse, rk.act.
    Writes: those that they take back; qacc_smooth[0], part, rk.*, rk.act_dot (costates), rk.acceleration (y), qacc_step
            (z); act_upper, body_*, dof_*, geom_*, slot_* and all else of t; what `base_tiles` writes; act, ctrl, which
            are put back; primal.*, qfrc_smooth, qfrc_constraint, con_wrench, crb_rate, cvel, cacc, cfrc, qvec, primal.*
            for itself.
    """
    W, n = width(d), 2 * m.nv + m.na + m.nu
    for s in range(b.nstep):
        k = s * (n + REPORTS)
        read_controls(b, thread, tile, W, s)
        add_loss(m, d)
        damped = begin_step(m, d, t)
        if d.con_overflow[0] == 0:
            # rows that found no room in company may find it alone
            d.part[KNOWN] = where(leaves_out(d) | (d.part[FITS] == 0.0), -1.0, d.part[KNOWN])
            solve_costate(m, d, damped)
            for c in range(n):
                up, down = reach(m, d, c)
                rates_column(m, d, t, c, up, down)
                give(d, b, thread, tile, W, k + c, product(m, d, t, c))
        else:
            d.part[KNOWN] = real(d, -1.0)
            d.part[NEAREST] = zero(d)
            for c in range(n):
                give(d, b, thread, tile, W, k + c, zero(d))
        known, nearest = d.part[KNOWN], d.part[NEAREST]
        give(d, b, thread, tile, W, k + n, known)
        give(d, b, thread, tile, W, k + n + 1, nearest)


adjoint_steps = in_each_tile("adjoint_steps", adjoint_steps_of_tile)
