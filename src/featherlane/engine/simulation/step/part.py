"""Computes rows and solves them for a whole tile, or for one part after the other if the contact slots overflow.

The results of the parts are merged under masks: each world's result is the same as without the other worlds.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.collision import collision, count_full
from featherlane.engine.constraint.metric_rows import release_metric
from featherlane.engine.constraint.row import make_rows
from featherlane.engine.dynamics.awake import sleeping
from featherlane.engine.sensor.measure import sensor_rows
from featherlane.engine.simulation.step.tile_parts import by_halves
from featherlane.engine.simulation.step.wake import find_contacts
from featherlane.engine.solver.free_bodies import accelerate_untouched_bodies, mark_touched
from featherlane.engine.solver.inverse import constraint_forces
from featherlane.engine.solver.island import islands
from featherlane.engine.solver.solve import solve

# purpose of the rows.  SOLVE: solve them for qacc;  STORE_FORCES: compute the forces of rows and DoFs at qacc;
# KEEP_FORCES: compute those of DoFs alone, and keep the stored forces of the rows
SOLVE, STORE_FORCES, KEEP_FORCES = 0, 1, 2


@kernel
def needs_islands(m, d):
    """Returns whether islands are computed: on request, or if trees may sleep."""
    return d.want_islands != 0 or sleeping(m)


@kernel
def store_part(m, d):
    """Stores the results of the worlds of this part, those of `active`, in part.*.

    `active` is 1 in the worlds of the part that is processed, 0 in all others.
    ordered: 1 if the Hessian of a world was factorized in its own elimination order; solver_gap: scaled duality gap.
    """
    mask = d.active[0] > 0.0
    part = d.part
    for i in range(m.nv):
        part.qacc[i] = where(mask, d.qacc[i], part.qacc[i])
        part.qfrc_constraint[i] = where(mask, d.qfrc_constraint[i], part.qfrc_constraint[i])
    part.ncon[0] = where(mask, d.ncon[0], part.ncon[0])
    part.nefc[0] = where(mask, d.nefc[0], part.nefc[0])
    part.solver_niter[0] = where(mask, d.solver_niter[0], part.solver_niter[0])
    part.solver_residual[0] = where(mask, d.solver_residual[0], part.solver_residual[0])
    part.solver_gap[0] = where(mask, d.solver_gap[0], part.solver_gap[0])
    part.ordered[0] = where(mask, d.ordered[0], part.ordered[0])
    if needs_islands(m, d):
        part.nisland[0] = where(mask, d.nisland[0], part.nisland[0])
        for t in range(m.ntree):
            part.tree_island[t] = where(mask, d.tree_island[t], part.tree_island[t])


@kernel
def write_merged_results(m, d):
    """Writes the results of all parts, merged in part.*, to the tile's fields."""
    part = d.part
    copy(d.qacc, part.qacc, m.nv)
    copy(d.qfrc_constraint, part.qfrc_constraint, m.nv)
    d.ncon[0], d.nefc[0] = part.ncon[0], part.nefc[0]
    d.solver_niter[0], d.solver_residual[0] = part.solver_niter[0], part.solver_residual[0]
    d.solver_gap[0], d.ordered[0] = part.solver_gap[0], part.ordered[0]
    if needs_islands(m, d):
        d.nisland[0] = part.nisland[0]
        copy(d.tree_island, part.tree_island, m.ntree)
        for i in range(m.nv):
            d.dof_island[i] = d.tree_island[m.dof_treeid[i]]


@kernel
def rows_and_forces(m, d, purpose):
    """Computes the rows of the tile, and solves them or computes their forces at qacc.

    purpose: SOLVE: solves the rows, and computes islands on request; STORE_FORCES: computes the forces of rows and DoFs
    at qacc; KEEP_FORCES: those of DoFs alone.
    Writes: what `make_rows`, `solve`, `islands` and `constraint_forces` write; counts worlds with dropped contacts.
    """
    make_rows(m, d)
    mark_touched(m, d)  # under the integrator `discrete`: dof_touched, the trees on which rows act
    if purpose == SOLVE:
        solve(m, d)
        accelerate_untouched_bodies(m, d)  # under `discrete`: gyroscopic terms of free bodies that nothing touches
        if needs_islands(m, d):
            islands(m, d)
    else:
        constraint_forces(m, d, store=1 if purpose == STORE_FORCES else 0)
    if d.con_overflow[0] == 0:
        count_full(d)
    release_metric(m, d)  # under `discrete`: the metric's inertial forces are no constraint forces


@by_halves  # for each part of the worlds
def solve_parts(m, d, purpose):
    """Processes the worlds of one part, from their contacts on; stores their results in part.* if they fit.

    purpose: as in `rows_and_forces`.
    """
    collision(m, d)
    if d.con_overflow[0] == 0:
        rows_and_forces(m, d, purpose)  # sets con_overflow if the rows do not fit
    if d.con_overflow[0] == 0:
        sensor_rows(m, d)
        store_part(m, d)


@stage
def solve_in_parts(m, d, purpose):
    """Computes and solves the rows of a tile in parts that fit.

    Args:
        purpose: SOLVE, STORE_FORCES or KEEP_FORCES.

    Reads:  the state and frames.
    Writes: qacc, qfrc_constraint, ncon, nefc, solver_niter, solver_residual, solver_gap, ordered of every world;
            warning, found_bad, found_pair; on request nisland, tree_island, dof_island.
    Scratch: part.*, active, lane_active, dof_touched.
    """
    solve_parts(m, d, purpose)  # part.*
    write_merged_results(m, d)


@kernel
def contacts_and_forces(m, d, purpose):
    """Computes contacts, rows, their forces and the sensors of contacts and limits; in parts if the slots overflow.

    purpose: as in `rows_and_forces`.
    """
    find_contacts(m, d)  # con_overflow: 1 if they do not fit into the tile's slots
    if d.con_overflow[0] == 0:
        rows_and_forces(m, d, purpose)  # sets con_overflow if the rows do not fit
    if d.con_overflow[0]:
        solve_in_parts(m, d, purpose)
    else:
        sensor_rows(m, d)
