"""Points around a state: worlds with one coordinate displaced, one per lane, through a step or inverse dynamics.

Lane k of a call has the state of world `order[k]`, in which coordinate `at` (-1: none) is displaced by `up`.
Coordinates are numbered: positions by dof, velocities, activations, controls, generalized forces.  A coordinate `at` is
a value (a lane may have a different one), so numbers are compared with 1.0 * number.
"""

from featherlane.prelude import *
from featherlane.sensitivity.rates.records import COLUMNS
from featherlane.simulation.step.forward import forward, step
from featherlane.simulation.step.inverse import inverse
from featherlane.simulation.tile.rows import copy_step_inputs, write_records
from featherlane.simulation.tile.tiles import over_tiles


@kernel
def copy(x, n, out, first):
    """out[first ...] <- the n rows x, numbers or typed rows."""
    for i in range(n):
        out[first + i] = x[i]


@kernel
def difference_quotient(x, n, out, first, scale):
    """out[first ...] <- (out[first ...] - x) scale, of n rows.

    scale: 1 / the displacement between both values.
    """
    for i in range(n):
        out[first + i] = (out[first + i] - x[i]) * scale


@kernel
def per_span(span):
    """Returns 1 / span; 0 if a coordinate is not displaced."""
    return where(span > 0.0, 1.0, 0.0) / where(span > 0.0, span, 1.0)


@kernel
def displace(x, n, at, step, first):
    """Adds step to entry at - first of the field x; the n entries have the coordinates first, first + 1, ..."""
    for i in range(n):
        x[i] = where(at == 1.0 * (first + i), x[i] + step, x[i])


@kernel
def move_pos(m, d, at, step):
    """qpos <- qpos (+) step along dof `at`, if it is one."""
    for j in range(m.njnt):
        qposadr, dofadr, kind = m.jnt_qposadr[j], m.jnt_dofadr[j], m.jnt_type[j]
        if is_free_joint(kind):
            for c in range(3):
                moved = at == 1.0 * (dofadr + c)
                d.qpos[qposadr + c] = where(moved, d.qpos[qposadr + c] + step, d.qpos[qposadr + c])
            qposadr, dofadr = qposadr + 3, dofadr + 3
        if has_quaternion(kind):
            q = Quat(d.qpos[qposadr : qposadr + 4])
            turns = tuple(at == 1.0 * (dofadr + c) for c in range(3))
            turned = quat_integrate(q, Vec3(where(turn, step, 0.0) for turn in turns), h=1.0)
            # a quaternion that does not turn keeps its bits
            d.qpos[qposadr : qposadr + 4] = where(turns[0] | turns[1] | turns[2], turned, q)
        else:
            d.qpos[qposadr] = where(at == 1.0 * dofadr, d.qpos[qposadr] + step, d.qpos[qposadr])


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
