"""Points around a state: worlds with one coordinate displaced, one per lane, through a step or inverse dynamics.

Lane k of a call has the state of world `order[k]`, in which coordinate `at` (-1: none) is displaced by `up`.
Coordinates are numbered: positions by dof, velocities, activations, controls, generalized forces.  A coordinate `at` is
a value (a lane may have a different one), so numbers are compared with 1.0 * number.
"""

from featherlane.prelude import *
from featherlane.sensitivity.columns.coordinates import displace, move_pos
from featherlane.sensitivity.rates.records import COLUMNS
from featherlane.simulation.step.forward import forward, step
from featherlane.simulation.step.inverse import inverse
from featherlane.simulation.tile.rows import copy_step_inputs, write_records
from featherlane.simulation.tile.tiles import over_tiles


@kernel
def move_state(m, d, b, p, thread, tile):
    """Loads the worlds of a tile and displaces position by dof and velocity; the pass displaces other coordinates."""
    copy_step_inputs(b, thread, tile, s=0)  # p.at, p.up
    move_pos(m, d, p.at[0], p.up[0])
    displace(d.qvel, m.nv, p.at[0], p.up[0], m.nv)


@over_tiles(p=COLUMNS)
def step_points(m, d, b, p, thread, tile):
    """Computes a step from each point: coordinates are position by dof, velocity, activation, control.

    Reads:  the rows that the transfers of b bring in.
    Writes: those that they take back; qpos, qvel, act, ctrl, active, recall_address, tree_settled, and all else of this
            thread's workspace.
    """
    move_state(m, d, b, p, thread, tile)
    displace(d.act, m.na, p.at[0], p.up[0], 2 * m.nv)
    displace(d.ctrl, m.nu, p.at[0], p.up[0], 2 * m.nv + m.na)
    step(m, d)
    write_records(b, thread, tile, s=0)


@over_tiles(p=COLUMNS)
def inverse_points(m, d, b, p, thread, tile):
    """Computes inverse dynamics at each point: coordinates are position by dof, velocity, acceleration.

    If nstep is 2, a forward pass follows for the actuator forces.
    Reads:  the rows that the transfers of b bring in.
    Writes: those that they take back; qpos, qvel, qacc, active, recall_address, tree_settled, and all else of this
            thread's workspace.
    """
    move_state(m, d, b, p, thread, tile)
    displace(d.qacc, m.nv, p.at[0], p.up[0], 2 * m.nv)
    inverse(m, d)
    if b.nstep == 2:  # the call's request for actuator forces
        forward(m, d)
    write_records(b, thread, tile, s=0)
