"""Rates by positions of the forces of equality constraints, to the fourth order.

An equality may move by many times what a dof moves, and its impedance bends within a millimetre of its own: a central
difference over 2e-7 of a dof that moves it by 14 times as much is 1e-5 off.  Richardson's extrapolation, of the general
rows alone, takes that away: kinematics and rows at two points more.
"""

from featherlane.prelude import *
from featherlane.constraint.diagonal import wants_exact
from featherlane.constraint.row import make_general_rows
from featherlane.dynamics.body.com import com_pos, com_vel
from featherlane.dynamics.body.kinematics import frames, kinematics
from featherlane.dynamics.body.link import link_positions
from featherlane.dynamics.tendon.length import tendon, tendon_velocity
from featherlane.model.integrator import has_metric
from featherlane.sensitivity.derivative.points import move_pos
from featherlane.simulation.tile.rows import load_worlds
from featherlane.solver.primal.problem import bounded_force


@kernel
def _refines(m):
    """Are there equalities, with rows of their own: neither in the metric of a step nor by the exact diagonal?"""
    return m.neq > 0 and not has_metric(m) and not wants_exact(m)


@kernel
def add_general_rows(m, d, g):
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
    """Bodies and tendons at the position."""
    kinematics(m, d)
    frames(m, d)
    com_pos(m, d)
    link_positions(m, d)
    tendon(m, d)


@kernel
def _forces(m, d, b, thread, tile, at, step, q):
    """q <- -J^T f of the general rows at a moved position."""
    load_worlds(b, thread, tile)
    move_pos(m, d, at, step)
    place_bodies(m, d)
    com_vel(m, d)
    tendon_velocity(m, d)
    for i in range(m.nv):
        q[i] = zero(d)
    add_general_rows(m, d, q)


@kernel
def unrefined(m, d, b, p, thread, tile, at, up, down):
    """dg stays as it is."""
    pass


@kernel
def refine_equalities(m, d, b, p, thread, tile, at, up, down):
    """dg, central differences of a residual over up + down, <- with the rates of general rows refined.

    (4 D(h) - D(2h)) / 3 = D(h) + (D(h) - D(2h)) / 3, where central differences D have the others' terms alone.
    """
    if _refines(m):
        span = up + down
        scale = where(span > 0.0, 1.0 / 3.0, 0.0) / where(span > 0.0, span, 1.0)
        for reach in unrolled(range(1, 3)):
            _forces(m, d, b, thread, tile, at, reach * up, p.upper_force)
            _forces(m, d, b, thread, tile, at, -(reach * down), p.lower_force)
            weight = scale if reach == 1 else -0.5 * scale
            for i in range(m.nv):
                p.dg[i] = fma(weight, p.upper_force[i] - p.lower_force[i], p.dg[i])
