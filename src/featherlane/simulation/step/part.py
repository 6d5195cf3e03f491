"""Rows and what they are for, of a whole tile; or part by part, where the contact slots of all worlds do not fit.

The parts' results are gathered under masks: what a world ends with is what it would have alone.
"""

from featherlane.prelude import *
from featherlane.collision.collision import collision
from featherlane.constraint.metric_rows import release_metric
from featherlane.constraint.row import make_rows
from featherlane.dynamics.awake import sleeping
from featherlane.sensor.measure import sensor_rows
from featherlane.simulation.step.halves import by_halves
from featherlane.solver.inverse import constraint_forces
from featherlane.solver.island import islands
from featherlane.solver.solve import solve
from featherlane.solver.untouched import mark_touched, turn_free_bodies

# what the rows are for: the acceleration, or the forces that follow from it, of the rows as well or of the dofs alone
SOLVE, STORE_FORCES, KEEP_FORCES = 0, 1, 2


@kernel
def keep(m, d):
    """Take over the results of the worlds in this part."""
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
    if sleeping(m):
        d.part[n + 5] = where(mask, d.nisland[0], d.part[n + 5])
        for t in range(m.ntree):
            d.part[n + 6 + t] = where(mask, d.tree_island[t], d.part[n + 6 + t])


@kernel
def give_back(m, d):
    """The gathered results as the tile's."""
    for i in range(m.nv):
        d.qacc[i] = d.part[i]
        d.qfrc_constraint[i] = d.part[m.nv + i]
    n = 2 * m.nv
    d.ncon[0] = d.part[n]
    d.solver_niter[0] = d.part[n + 1]
    d.solver_residual[0] = d.part[n + 2]
    d.solver_gap[0] = d.part[n + 3]
    d.ordered[0] = d.part[n + 4]
    if sleeping(m):
        d.nisland[0] = d.part[n + 5]
        for t in range(m.ntree):
            d.tree_island[t] = d.part[n + 6 + t]
        for i in range(m.nv):
            d.dof_island[i] = d.tree_island[m.dof_treeid[i]]


@kernel
def rows_and_forces(m, d, purpose):
    """Rows of the tile and what they are for, in the metric of the integrator; the islands of what may fall asleep."""
    make_rows(m, d)
    mark_touched(m, d)
    if purpose == SOLVE:
        solve(m, d)
        turn_free_bodies(m, d)
        if sleeping(m):
            islands(m, d)
    else:
        constraint_forces(m, d, 1 if purpose == STORE_FORCES else 0)
    release_metric(m, d)


@by_halves
def solve_parts(m, d, purpose):
    """One part, from its contacts on; its results are kept if it fits."""
    collision(m, d)
    if d.con_overflow[0] == 0:
        rows_and_forces(m, d, purpose)
    if d.con_overflow[0] == 0:
        sensor_rows(m, d)
        keep(m, d)


@stage
def solve_in_parts(m, d, purpose):
    """The rows of parts that fit, and what they are for.

    Args:
        purpose: SOLVE, STORE_FORCES or KEEP_FORCES.

    Reads:  the state and frames.
    Writes: qacc, qfrc_constraint, ncon, solver_niter, solver_residual, solver_gap, ordered of every world; warning;
            where trees may sleep nisland, tree_island, dof_island; part, active, lane_active, dof_touched for itself.
    """
    solve_parts(m, d, purpose)
    give_back(m, d)
