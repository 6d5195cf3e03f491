"""What formulas leave of a residual: forces that need neither the inertia of bodies nor contacts, by differences.

Tendons, equality constraints, limits of balls, springs of balls, media, forces from outside, actuators of all kinds and
what integrators take off for the rates of forces are evaluated at moved points, at fixed acceleration:

    g_rest = -(passive + actuator + outer forces) - J^T f(J a - aref) of the general rows,    p_rest = M a* - K a*

Newton-Euler, collisions, limits, dry friction and contacts are in formulas (formulas.py), which add their own rates.
So a point takes kinematics, and what forces follow from it.
Source: the implicit function theorem; see residual.py.
"""

from featherlane.prelude import *
from featherlane.dynamics.actuator.activation import advance_activations
from featherlane.dynamics.actuator.transmission import transmission
from featherlane.dynamics.body.com import com_pos, com_vel
from featherlane.dynamics.body.kinematics import frames, kinematics
from featherlane.dynamics.body.link import link_positions
from featherlane.dynamics.body.xfrc import add_xfrc
from featherlane.dynamics.inertia.articulated import inertia_times
from featherlane.dynamics.inertia.joint_space import crb
from featherlane.dynamics.passive.forces import passive
from featherlane.dynamics.tendon.force import tendon_armature
from featherlane.dynamics.tendon.length import tendon, tendon_velocity
from featherlane.sensitivity.derivative.columns import move_forces
from featherlane.sensitivity.derivative.equality_rates import add_general_rows, refine_equalities, refines
from featherlane.sensitivity.derivative.points import move, move_pos
from featherlane.sensitivity.derivative.rates import COLUMNS
from featherlane.sensitivity.derivative.residual import implicit_product, is_implicit
from featherlane.simulation.step.forward import control_and_actuate, forward_position
from featherlane.simulation.tile.rows import load_worlds, read_controls, write_records
from featherlane.simulation.tile.tiles import in_each_tile


@kernel
def adds_inertia(m):
    """Mask: some tendon has armature, which is inertia of no body."""
    found = timestep(m) < 0.0
    for i in range(m.ntendon):
        found = found | not_(tendon_armature(m, i) == 0.0)
    return found


@kernel
def _place(m, d):
    """Bodies, tendons and transmissions at the position."""
    kinematics(m, d)
    frames(m, d)
    com_pos(m, d)
    link_positions(m, d)
    tendon(m, d)
    if m.opt_integrator == IMPLICIT:
        crb(m, d)  # rates of Coriolis forces are made of composite inertias
    transmission(m, d)


@kernel
def _evaluate(m, d, p, g, lag):
    """g_rest and lag = p_rest at the velocity, activations and controls, after `_place`; act: the next activations."""
    com_vel(m, d)
    tendon_velocity(m, d)
    passive(m, d)
    control_and_actuate(m, d)
    for i in range(m.nv):
        p.force[i] = d.qfrc_passive[i] + d.qfrc_actuator[i]
        lag[i] = zero(d)
    add_xfrc(m, d, p.force)
    for i in range(m.nv):
        g[i] = -p.force[i]
    add_general_rows(m, d, g)
    if is_implicit(m):
        inertia_times(m, d, d.qacc_step, p.product)
        other = implicit_product(m, d, d.qacc_step, p.force)
        for i in range(m.nv):
            lag[i] = where(other, p.product[i] - p.force[i], 0.0)
    advance_activations(m, d, d.act_dot)


@kernel
def _quotients(m, d, p, span):
    """dg, dp, dact <- what they hold, less what the point at hand gives, over the span."""
    _evaluate(m, d, p, p.lower_g, p.lower_p)
    s = where(span > 0.0, 1.0, 0.0) / where(span > 0.0, span, 1.0)
    for i in range(m.nv):
        p.dg[i] = (p.dg[i] - p.lower_g[i]) * s
        p.dp[i] = (p.dp[i] - p.lower_p[i]) * s
    for a in range(m.na):
        p.dact[a] = (p.dact[a] - d.act[a]) * s


@kernel
def _upper(m, d, p):
    """The same at the upper point."""
    _evaluate(m, d, p, p.dg, p.dp)
    for a in range(m.na):
        p.dact[a] = d.act[a]


@stage(p=COLUMNS)
def rest_positions_of_tile(m, d, b, p, thread, tile):
    """Rates by positions, dof by dof, of what formulas leave.

    Reads:  the rows that the transfers of b bring in, qacc and qacc_step among them.
    Writes: those that they take back; dg, dp, dact, lower_g, lower_p, force, product; qpos, act, primal.*, and all else
            of this thread's workspace; block, cacc, cfrc, qH, qHDiagInv, qproduct, qvec for itself.
    """
    # M may stay as it is at the worlds' own positions: it cancels
    forward_position(m, d)
    for s in range(b.nstep):
        load_worlds(b, thread, tile)
        read_controls(b, thread, tile, s)
        at, up, down = p.at[0], p.up[0], p.down[0]
        move_pos(m, d, at, up)
        _place(m, d)
        _upper(m, d, p)
        load_worlds(b, thread, tile)
        move_pos(m, d, at, -down)
        _place(m, d)
        _quotients(m, d, p, up + down)
        if refines(m):
            refine_equalities(m, d, b, p, thread, tile, at, up, down)
        write_records(b, thread, tile, s)


rest_positions = in_each_tile("rest_positions", rest_positions_of_tile)


@stage(p=COLUMNS)
def rest_forces_of_tile(m, d, b, p, thread, tile):
    """Rates by velocities, activations, controls, accelerations of what formulas leave: bodies stay where they are.

    Reads:  the rows that the transfers of b bring in, qacc and qacc_step among them.
    Writes: those that they take back; dg, dp, dact, lower_g, lower_p, force, product; qvel, qacc, act, ctrl, primal.*,
            and all else of this thread's workspace; block, cacc, cfrc, qH, qHDiagInv, qproduct, qvec for itself.
    """
    forward_position(m, d)
    _place(m, d)
    for s in range(b.nstep):
        load_worlds(b, thread, tile)
        read_controls(b, thread, tile, s)
        at, up, down = p.at[0], p.up[0], p.down[0]
        move_forces(m, d, at, up)
        move(d.qacc, m.nv, at, up, 2 * m.nv + m.na + m.nu)
        _upper(m, d, p)
        load_worlds(b, thread, tile)
        move_forces(m, d, at, -down)
        move(d.qacc, m.nv, at, -down, 2 * m.nv + m.na + m.nu)
        _quotients(m, d, p, up + down)
        write_records(b, thread, tile, s)


rest_forces = in_each_tile("rest_forces", rest_forces_of_tile)
