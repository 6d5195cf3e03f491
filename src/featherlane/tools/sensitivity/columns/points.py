"""Points around a state: worlds with one coordinate displaced, one per lane, through a step or inverse dynamics.

Lane k of a call has the state of world `order[k]`, in which coordinate `at` (-1: none) is displaced by `displacement`.
coordinates.py numbers the coordinates; p is the record COLUMNS of the call (records.py).
"""

from featherlane.engine.prelude import *
from featherlane.engine.simulation.step.forward import forward, step
from featherlane.engine.simulation.step.inverse import inverse
from featherlane.engine.simulation.tile.rows import copy_step_inputs, write_records
from featherlane.engine.simulation.tile.tiles import over_tiles
from featherlane.tools.sensitivity.rates.coordinates import displace, displace_point, move_pos
from featherlane.tools.sensitivity.rates.records import COLUMNS


@over_tiles(p=COLUMNS)
def step_points(m, d, b, p, thread, tile):
    """Computes a step from each point: coordinates are position by dof, velocity, activation, control.

    Reads:  the rows that the transfers of b bring in.
    Writes: those that they take back; qpos, qvel, act, ctrl, qfrc_applied, active, recall_address, tree_settled, and
            all else of this thread's workspace.
    """
    copy_step_inputs(b, thread, tile, s=0)  # p.at, p.displacement
    displace_point(m, d, p)
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
    copy_step_inputs(b, thread, tile, s=0)  # p.at, p.displacement
    move_pos(m, d, p.at[0], p.displacement[0])
    displace(d.qvel, m.nv, p.at[0], p.displacement[0], m.nv)
    displace(d.qacc, m.nv, p.at[0], p.displacement[0], 2 * m.nv)
    inverse(m, d)
    if b.nstep == 2:  # the call's request for actuator forces
        forward(m, d)
    write_records(b, thread, tile, s=0)
