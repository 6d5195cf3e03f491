"""Differences for the part of a residual without formulas: forces without the inertia of bodies and without contacts.

Tendons around geoms, connects and welds, limits and springs of balls, fluids, external forces, actuators of all kinds,
and the force rates of implicit integrators are evaluated at displaced points, at fixed acceleration:

    g_rest = -(passive + actuator + outer forces) - J^T f(J a - aref) of the general rows,    p_rest = M a* - K a*

Newton-Euler, collisions, limits, dry friction and contacts have formulas (formulas.py), which add their own rates.
So a point takes only kinematics and the forces above.
Source: the implicit function theorem; see residual.py.
"""

from featherlane.prelude import *
from featherlane.dynamics.actuator.activation import advance_activations
from featherlane.dynamics.actuator.transmission import transmission
from featherlane.dynamics.body.com import com_vel
from featherlane.dynamics.body.xfrc import add_xfrc
from featherlane.dynamics.inertia.joint_space import crb
from featherlane.dynamics.passive.forces import passive
from featherlane.dynamics.tendon.force import tendon_armature
from featherlane.dynamics.tendon.length import tendon_velocity
from featherlane.sensitivity.derivative.columns import central_differences, move_forces
from featherlane.sensitivity.derivative.points import displace, move_pos
from featherlane.sensitivity.derivative.rates import COLUMNS
from featherlane.sensitivity.derivative.residual import (
    place_bodies,
    refine_equalities,
    set_lag,
    subtract_general_forces,
    unrefined,
)
from featherlane.simulation.step.forward import control_and_actuate, forward_position
from featherlane.simulation.tile.tiles import in_each_tile


@kernel
def adds_inertia(m):
    """Returns the mask: some tendon has armature, an inertia that belongs to no body."""
    found = timestep(m) < 0.0
    for i in range(m.ntendon):
        found = found | not_(tendon_armature(m, i) == 0.0)
    return found


@kernel
def _start(m, d):
    """Computes bodies at the position.  Worlds with adhesion have no formulas, so its forces are 0."""
    forward_position(m, d)
    for i in range(m.nv):
        d.qfrc_adhesion[i] = zero(d)


@kernel
def _place(m, d):
    """Computes bodies, tendons and transmissions at the position."""
    place_bodies(m, d)
    if m.opt_integrator == IMPLICIT:
        crb(m, d)  # rates of Coriolis forces need composite inertias
    transmission(m, d)


@kernel
def _evaluate(m, d, p, g, lag):
    """Computes g_rest, lag = p_rest and act, the next activations, after `_place`, at velocity, activation, control."""
    com_vel(m, d)
    tendon_velocity(m, d)
    passive(m, d)
    control_and_actuate(m, d)
    for i in range(m.nv):
        p.force[i] = d.qfrc_passive[i] + d.qfrc_actuator[i]
    add_xfrc(m, d, p.force)
    for i in range(m.nv):
        g[i] = -p.force[i]
    subtract_general_forces(m, d, g)
    set_lag(m, d, p, d.qacc_step, lag)
    advance_activations(m, d, d.act_dot)


@kernel
def _moved_bodies(m, d, p, at, step, given, g, lag):
    move_pos(m, d, at, step)
    _place(m, d)
    _evaluate(m, d, p, g, lag)


@kernel
def _moved_forces(m, d, p, at, step, given, g, lag):
    move_forces(m, d, at, step)
    displace(d.qacc, m.nv, at, step, 2 * m.nv + m.na + m.nu)
    _evaluate(m, d, p, g, lag)


_by_positions = central_differences(_moved_bodies, refine_equalities)
_by_forces = central_differences(_moved_forces, unrefined)


@stage(p=COLUMNS)
def rest_positions_of_tile(m, d, b, p, thread, tile):
    """Computes rates by positions, dof by dof, of the part without formulas.

    Reads:  the rows that the transfers of b bring in, qacc and qacc_step among them.
    Writes: those that they take back; dg, dp, dact, lower_g, lower_p, force, product; qpos, act, primal.*, and all else
            of this thread's workspace; qfrc_adhesion, block, cacc, cfrc, qH, qHDiagInv, qproduct, qvec for itself.
    """
    # M need not follow the displaced positions, because it cancels
    _start(m, d)
    _by_positions(m, d, b, p, thread, tile, 0)


rest_positions = in_each_tile("rest_positions", rest_positions_of_tile)


@stage(p=COLUMNS)
def rest_forces_of_tile(m, d, b, p, thread, tile):
    """Computes rates of the part without formulas by velocities, activations, controls and accelerations.

    Reads:  the rows that the transfers of b bring in, qacc and qacc_step among them.
    Writes: those that they take back; dg, dp, dact, lower_g, lower_p, force, product; qvel, qacc, act, ctrl, primal.*,
            and all else of this thread's workspace; qfrc_adhesion, block, cacc, cfrc, qH, qHDiagInv, qproduct, qvec for
            itself.
    """
    _start(m, d)
    _place(m, d)
    _by_forces(m, d, b, p, thread, tile, 0)


rest_forces = in_each_tile("rest_forces", rest_forces_of_tile)
