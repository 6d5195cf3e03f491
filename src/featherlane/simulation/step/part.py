"""Computes rows and solves them for a whole tile, or for one part after the other if the contact slots overflow.

The results of the parts are merged under masks: each world's result is the same as without the other worlds.
"""

from featherlane.prelude import *
from featherlane.collision.collision import collision
from featherlane.constraint.metric_rows import release_metric
from featherlane.constraint.row import make_rows
from featherlane.dynamics.awake import sleeping
from featherlane.sensor.measure import sensor_rows
from featherlane.simulation.step.tile_parts import by_halves
from featherlane.solver.free_bodies import mark_touched, turn_free_bodies
from featherlane.solver.inverse import constraint_forces
from featherlane.solver.island import islands
from featherlane.solver.solve import solve

# purpose of the rows: solve for the acceleration; compute forces at it, of rows and DoFs; or of the DoFs alone
SOLVE, STORE_FORCES, KEEP_FORCES = 0, 1, 2


@kernel
def needs_islands(m, d):
    """Returns whether islands are computed: on request, or if trees may sleep."""
    return d.want_islands != 0 or sleeping(m)


@kernel
def keep(m, d):
    """Stores the results of the worlds of this part in `part`."""
    mask = d.active[0] > 0.0
    for i in range(m.nv):
        d.part[i] = where(mask, d.qacc[i], d.part[i])
        d.part[m.nv + i] = where(mask, d.qfrc_constraint[i], d.part[m.nv + i])
    n = 2 * m.nv
    d.part[n] = where(mask, d.ncon[0], d.part[n])
    d.part[n + 1] = where(mask, d.solver_niter[0], d.part[n + 1])
    d.part[n + 2] = where(mask, d.solver_residual[0], d.part[n + 2])
    d.part[n + 3] = where(mask, d.solver_gap[0], d.part[n + 3])
    d.part[n + 4] = where(mask, d.ordered[0], d.part[n + 4])
    d.part[n + 5] = where(mask, d.nefc[0], d.part[n + 5])
    if needs_islands(m, d):
        d.part[n + 6] = where(mask, d.nisland[0], d.part[n + 6])
        for t in range(m.ntree):
            d.part[n + 7 + t] = where(mask, d.tree_island[t], d.part[n + 7 + t])


@kernel
def give_back(m, d):
    """Writes the merged results from `part` to the tile's fields."""
    for i in range(m.nv):
        d.qacc[i] = d.part[i]
        d.qfrc_constraint[i] = d.part[m.nv + i]
    n = 2 * m.nv
    d.ncon[0] = d.part[n]
    d.solver_niter[0] = d.part[n + 1]
    d.solver_residual[0] = d.part[n + 2]
    d.solver_gap[0] = d.part[n + 3]
    d.ordered[0] = d.part[n + 4]
    d.nefc[0] = d.part[n + 5]
    if needs_islands(m, d):
        d.nisland[0] = d.part[n + 6]
        for t in range(m.ntree):
            d.tree_island[t] = d.part[n + 7 + t]
        for i in range(m.nv):
            d.dof_island[i] = d.tree_island[m.dof_treeid[i]]


@kernel
def rows_and_forces(m, d, purpose):
    """Computes and solves the rows of the tile, in the metric of the integrator; on request, computes islands."""
    make_rows(m, d)
    mark_touched(m, d)
    if purpose == SOLVE:
        solve(m, d)
        turn_free_bodies(m, d)
        if needs_islands(m, d):
            islands(m, d)
    else:
        constraint_forces(m, d, 1 if purpose == STORE_FORCES else 0)
    release_metric(m, d)


@by_halves
def solve_parts(m, d, purpose):
    """Processes one part, from its contacts on; keeps its results if it fits."""
    collision(m, d)
    if d.con_overflow[0] == 0:
        rows_and_forces(m, d, purpose)
    if d.con_overflow[0] == 0:
        sensor_rows(m, d)
        keep(m, d)


@stage
def solve_in_parts(m, d, purpose):
    """Computes and solves the rows of a tile in parts that fit.

    Args:
        purpose: SOLVE, STORE_FORCES or KEEP_FORCES.

    Reads:  the state and frames.
    Writes: qacc, qfrc_constraint, ncon, nefc, solver_niter, solver_residual, solver_gap, ordered of every world;
            warning; on request nisland, tree_island, dof_island.
    Scratch: part, active, lane_active, dof_touched.
    """
    solve_parts(m, d, purpose)
    give_back(m, d)
